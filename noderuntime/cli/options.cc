// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/cli/options.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "noderuntime/cli/validators.h"
#include "scheduler/policy/policies.h"

namespace sluice::cli {
namespace {

const std::string kCommands =
    std::string("run, status, policy, budget, limit, drain, check-log, demo, doctor, page, ") +
    kLookCommands + ", " + kOfflineCommands;
constexpr uint32_t kMaxGpu = 63;
constexpr uint32_t kMaxLanes = 64;

/// "--json, --jobs": what an unknown option could have been.
std::string OptionNames(const CLI::App& app) {
  std::string names;
  for (const CLI::Option* option : app.get_options()) {
    if (option->nonpositional()) names += (names.empty() ? "" : ", ") + option->get_name();
  }
  return names;
}

/// One line for a person from what CLI11 found.
std::string Explain(const CLI::ParseError& error, const CLI::App& app) {
  const CLI::App* where = &app;
  if (const auto chosen = app.get_subcommands(); !chosen.empty()) where = chosen.front();
  const std::string command = where == &app ? "" : where->get_name() + ": ";
  // CLI11 complains of the missing command first, even when a mistyped one is there.
  const auto extra = app.remaining(true);
  if (!extra.empty()) {
    const std::string first = "'" + extra.front() + "'";
    return where == &app ? first + " is not a command; allowed: " + kCommands
                         : command + first + " is not understood; allowed: " + OptionNames(*where);
  }
  if (where == &app) return "a command is needed; allowed: " + kCommands;
  std::string text = error.what();
  std::replace(text.begin(), text.end(), '\n', ' ');
  return command + text;
}

}  // namespace

Result<Invocation> ParseCommandLine(const std::vector<std::string>& arguments,
                                    const Environment& environment) {
  // What follows "--" belongs to the program and is none of our business.
  const auto dashes = std::find(arguments.begin(), arguments.end(), "--");
  std::vector<std::string> own(arguments.begin(), dashes);

  std::string runtime_dir = RuntimeDir(environment, ::getuid());
  std::string limit;
  std::string request;
  std::string policy;
  std::string frameworks = kFrameworksNames[0];
  std::string pool;
  std::string event_log;
  RunOptions run;
  StatusOptions status;
  PolicyOptions other_policy;
  BudgetOptions budget;
  std::string budget_size;
  LimitOptions other_limit;
  std::string limit_size;
  DrainOptions drain;
  std::string drain_word;
  CheckLogOptions check_log;
  DemoOptions demo;
  DoctorOptions doctor;
  PageOptions page;

  CLI::App app("Lends GPU memory between jobs while they run.", "sluice");
  app.set_version_flag("--version", kVersionText);
  app.require_subcommand(1);
  const std::string dir_help = "Folder of the daemon's socket";

  CLI::App* run_app =
      app.add_subcommand("run", "Run a program as a job: sluice run [OPTIONS] -- PROGRAM ARGS");
  run_app->add_option("--limit", limit, "Most memory the job may ever hold, for example 3GiB");
  run_app->add_option("--request", request, "Memory the job is guaranteed, for example 1GiB");
  run_app
      ->add_option("--frameworks", frameworks,
                   "How PyTorch, TensorFlow and JAX are asked to allocate, unless the environment "
                   "says it already: async, expandable or none (async)")
      ->check(OneOf({kFrameworksNames[0], kFrameworksNames[1], kFrameworksNames[2]}));
  run_app->add_flag("--verbose", run.verbose,
                    "Say which variables are set, and what the library lets pass");
  run_app->add_option("--gpu", run.gpu, "Ordinal of the GPU")->check(Integer(0, kMaxGpu));
  run_app->add_option("--runtime-dir", runtime_dir, dir_help);
  run_app->add_option("--policy", policy, "Policy of the daemon, if this starts one")
      ->check(OneOf(scheduler::NodePolicyNames()));
  run_app->add_option("--pool", pool, "Size of the pool of the daemon, if this starts one");
  run_app->add_option("--event-log", event_log,
                      "Event log of the daemon, if this starts one (sluice report reads it)");
  run_app->add_flag("--observe", run.observe,
                    "Record an iteration, and say what sharing the GPU would bring");
  run_app
      ->add_option("--trace", run.trace,
                   "Where --observe writes the recorded iteration (PROGRAM.trace, or "
                   "PROGRAM.2.trace and so on where that is there)")
      ->check(FileToWrite());

  CLI::App* status_app = app.add_subcommand("status", "Show jobs and who holds what");
  status_app->add_flag("--json", status.json, "As JSON");
  status_app->add_option("--runtime-dir", runtime_dir, dir_help);

  CLI::App* policy_app =
      app.add_subcommand("policy", "Have a running daemon decide by another policy");
  policy_app->add_option("NAME", other_policy.policy, "The policy from now on")
      ->required()
      ->check(OneOf(scheduler::NodePolicyNames()));
  policy_app->add_option("--lanes", other_policy.lanes, "Jobs past their gate at once (as now)")
      ->check(Integer(1, kMaxLanes));
  policy_app->add_option("--runtime-dir", runtime_dir, dir_help);

  CLI::App* budget_app =
      app.add_subcommand("budget", "Have a running daemon lend less of its pool, or all of it");
  budget_app->add_option("SIZE", budget_size, "How much, for example 12GiB, or all")->required();
  budget_app->add_option("--runtime-dir", runtime_dir, dir_help);

  CLI::App* limit_app =
      app.add_subcommand("limit", "Change the most memory that a job may hold, while it runs");
  limit_app->add_option("JOB", other_limit.job, "Its number, its name, or NAMESPACE/POD")
      ->required();
  limit_app
      ->add_option("SIZE", limit_size,
                   "How much, for example 12GiB, or asked: what its pod asks for")
      ->required();
  limit_app->add_option("--runtime-dir", runtime_dir, dir_help);

  CLI::App* drain_app =
      app.add_subcommand("drain", "Take no new jobs, while those that are there go on");
  drain_app->add_option("STATE", drain_word, "on, or off: take them again")
      ->required()
      ->check(OneOf({"on", "off"}));
  drain_app->add_option("--runtime-dir", runtime_dir, dir_help);

  CLI::App* doctor_app =
      app.add_subcommand("doctor", "Look at this machine: what is fine, and what to do");
  doctor_app->add_flag("--json", doctor.json, "As JSON");
  doctor_app->add_option("--runtime-dir", runtime_dir, dir_help);

  CLI::App* page_app =
      app.add_subcommand("page", "Say where the live page is; starts what serves it, if need be");
  page_app->add_option("--gpu", page.gpu, "The GPU that it shows first, on a node with several")
      ->check(Integer(0, kMaxGpu));
  page_app->add_option("--runtime-dir", runtime_dir, dir_help);

  CLI::App* check_app =
      app.add_subcommand("check-log", "Replay an event log and check every promise");
  check_app->add_option("FILE", check_log.file, "What sluice-noded --event-log wrote")->required();

  CLI::App* demo_app =
      app.add_subcommand("demo", "Two jobs that do not fit together, run together");
  demo_app->add_flag("--json", demo.json, "Results as JSON");
  demo_app->add_option("--jobs", demo.jobs, "Number of training jobs")
      ->check(Integer(kMinDemoJobs, kMaxDemoJobs));
  demo_app->add_option("--iterations", demo.iterations, "Iterations of every job")
      ->check(Integer(kMinDemoIterations, kMaxDemoIterations));
  CLI::Option* fraction = demo_app->add_option("--pool-fraction", demo.pool_fraction,
                                               "Pool over the sum of the solo peaks");
  fraction->check(Between(kMinPoolFraction, std::nextafter(kEndPoolFraction, 0.0),
                          "a number from 0.3 to less than 0.65"));
  demo_app->add_option("--seed", demo.seed, "Seed of the first job; the others count on")
      ->check(Integer(0, UINT32_MAX));
  demo_app->add_option("--keep", demo.keep, "Keep logs and events in this folder");
  demo_app->add_flag("--real-gpu", demo.real_gpu,
                     "Use this machine's driver, not the simulated one");
  demo_app->add_option("--pool", pool, "Fixed size of the pool")->excludes(fraction);
  const LookCommands look(app, &runtime_dir, dir_help);
  const OfflineCommands offline(app);

  try {
    std::reverse(own.begin(), own.end());  // CLI11 takes its vector from the back
    app.parse(own);
  } catch (const CLI::CallForHelp&) {
    return Invocation(PrintText{app.help()});
  } catch (const CLI::CallForVersion&) {
    return Invocation(PrintText{kVersionText});
  } catch (const CLI::ParseError& error) {
    return Status(StatusCode::kInvalidArgument, Explain(error, app));
  }

  // Absolute, because a daemon started here may outlive this working directory.
  runtime_dir = std::filesystem::absolute(runtime_dir).lexically_normal().string();
  // Given but empty, as from an unset variable of a script, is an error like any other bad size: it
  // must not mean "without a limit".
  const CLI::App* chosen = app.get_subcommands().front();
  const auto bytes = [chosen](const std::string& text, const char* field,
                              uint64_t& value) -> Status {
    if (chosen->count(field) == 0) return {};
    const Result<uint64_t> parsed = ParseBytes(text, field);
    if (parsed.ok()) value = *parsed;
    return parsed.status();
  };
  if (*run_app) {
    if (dashes == arguments.end() || dashes + 1 == arguments.end()) {
      return Status(StatusCode::kInvalidArgument,
                    "run: no program given; allowed: sluice run [OPTIONS] -- PROGRAM ARGS");
    }
    run.command.assign(dashes + 1, arguments.end());
    run.runtime_dir = runtime_dir;
    run.frameworks = *FrameworksNamed(frameworks);
    if (Status s = bytes(limit, "--limit", run.limit_bytes); !s.ok()) return s;
    if (Status s = bytes(request, "--request", run.request_bytes); !s.ok()) return s;
    if (run.limit_bytes != 0 && run.request_bytes > run.limit_bytes) {
      return Status(StatusCode::kInvalidArgument, "--request: " + request +
                                                      " is more than --limit " + limit +
                                                      "; allowed: at most the limit");
    }
    if (!run.trace.empty() && !run.observe) {
      return Status(StatusCode::kInvalidArgument, "--trace: means nothing without --observe");
    }
    uint64_t pool_bytes = 0;
    if (Status s = bytes(pool, "--pool", pool_bytes); !s.ok()) return s;
    if (!policy.empty()) run.daemon_flags.insert(run.daemon_flags.end(), {"--policy", policy});
    if (pool_bytes != 0) {
      run.daemon_flags.insert(run.daemon_flags.end(), {"--pool", std::to_string(pool_bytes)});
    }
    if (!event_log.empty()) {
      run.daemon_flags.insert(run.daemon_flags.end(),
                              {"--event-log", std::filesystem::absolute(event_log).string()});
    }
    return Invocation(std::move(run));
  }
  if (dashes != arguments.end()) {
    return Status(StatusCode::kInvalidArgument, "'--' is understood only by sluice run");
  }
  if (*status_app) {
    status.runtime_dir = runtime_dir;
    return Invocation(std::move(status));
  }
  if (*policy_app) {
    other_policy.runtime_dir = runtime_dir;
    return Invocation(std::move(other_policy));
  }
  if (*budget_app) {
    budget.runtime_dir = runtime_dir;
    if (budget_size != "all") {
      const Result<uint64_t> parsed = ParseBytes(budget_size, "budget");
      if (!parsed.ok()) return parsed.status();
      budget.bytes = *parsed;
    }
    return Invocation(std::move(budget));
  }
  if (*limit_app) {
    other_limit.runtime_dir = runtime_dir;
    if (limit_size != "asked") {
      const Result<uint64_t> parsed = ParseBytes(limit_size, "limit");
      if (!parsed.ok()) return parsed.status();
      other_limit.bytes = *parsed;
    }
    return Invocation(std::move(other_limit));
  }
  if (*drain_app) {
    drain.runtime_dir = runtime_dir;
    drain.on = drain_word == "on";
    return Invocation(std::move(drain));
  }
  if (*doctor_app) {
    doctor.runtime_dir = runtime_dir;
    return Invocation(std::move(doctor));
  }
  if (*page_app) {
    page.runtime_dir = runtime_dir;
    return Invocation(std::move(page));
  }
  if (*check_app) return Invocation(std::move(check_log));
  if (auto other = look.Chosen(runtime_dir); other.has_value()) {
    return Invocation(*std::move(other));
  }
  if (const auto other = offline.Chosen(); other.has_value()) {
    if (!other->ok()) return other->status();
    return Invocation(**other);
  }
  if (Status s = bytes(pool, "--pool", demo.pool_bytes); !s.ok()) return s;
  if (demo.real_gpu && demo.pool_bytes == 0) {
    return Status(StatusCode::kInvalidArgument,
                  "--real-gpu: needs the size of the pool with --pool");
  }
  return Invocation(std::move(demo));
}

}  // namespace sluice::cli
