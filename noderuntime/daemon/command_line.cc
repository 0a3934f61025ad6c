// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <system_error>

#include "common/bytes.h"
#include "common/program_files.h"
#include "noderuntime/daemon/noded.h"

namespace sluice::noded {
namespace {

/// What the options are as text, before they are checked: CLI11's own checks do not say what is
/// allowed.
struct Raw {
  std::string runtime_dir;
  std::string gpu = "0";
  std::string pool;
  std::string reserve;
  std::string context;
  std::string host_memory;
  std::string unit;
  std::string handle;
  std::string lanes = "2";
  std::string credit_us;
  std::vector<std::string> oracle;
  std::string idle_exit;
  std::string lease_wait;
  std::string slice;
  std::string patience;
  std::string ready_fd;
  std::string keeper;
  std::string keeper_linger;
};

Status Bad(const std::string& text) { return Status(StatusCode::kInvalidArgument, text); }

template <typename T>
Status Take(Result<T> parsed, T* value) {
  if (!parsed.ok()) return parsed.status();
  *value = *parsed;
  return {};
}

Result<uint32_t> ParseNumber(const std::string& text, const std::string& field) {
  const bool digits =
      !text.empty() && text.size() <= 6 &&
      std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
  if (!digits) return Bad(field + " '" + text + "': allowed: a whole number from 0 to 999999");
  return static_cast<uint32_t>(std::stoul(text));
}

Result<double> ParseSeconds(const std::string& text, const std::string& field) {
  const bool plain = !text.empty() && text.size() <= 12 &&
                     text.find_first_not_of("0123456789.") == std::string::npos &&
                     std::count(text.begin(), text.end(), '.') <= 1 && text != ".";
  if (!plain)
    return Bad(field + " '" + text + "': allowed: a number of seconds, for example 5 or 0.5");
  return std::stod(text);
}

/// Beside this program, where it is installed and built; empty when it is not there.
std::string DefaultKeeper() {
  const Result<std::string> bin = ProgramFolder();
  if (!bin.ok()) return "";
  const std::string keeper = *bin + "/sluice-keeper";
  std::error_code failed;
  return std::filesystem::exists(keeper, failed) ? keeper : "";
}

Status Convert(const Raw& raw, const CLI::App& app, const std::string& environment_oracle,
               config::Options* options) {
  const auto given = [&app](const char* name) { return app.count(name) > 0; };
  options->runtime_dir = raw.runtime_dir;
  // Jobs are told paths below it, wherever they run.
  if (!raw.runtime_dir.empty()) {
    std::error_code failed;
    const auto absolute = std::filesystem::absolute(raw.runtime_dir, failed);
    if (!failed) options->runtime_dir = absolute.lexically_normal().string();
  }
  uint64_t bytes = 0;
  Status status = Take(ParseNumber(raw.gpu, "--gpu"), &options->gpu);
  if (status.ok()) status = Take(ParseNumber(raw.lanes, "--lanes"), &options->lanes);
  if (status.ok() && given("--credit-us")) {
    uint32_t credit_us = 0;
    status = Take(ParseNumber(raw.credit_us, "--credit-us"), &credit_us);
    options->credit_us = credit_us;
  }
  if (status.ok() && given("--pool")) {
    status = Take(ParseBytes(raw.pool, "--pool"), &bytes);
    options->pool_bytes = bytes;
  }
  if (status.ok() && given("--reserve")) {
    status = Take(ParseBytes(raw.reserve, "--reserve"), &bytes);
    options->reserve_bytes = bytes;
  }
  if (status.ok() && given("--context")) {
    status = Take(ParseBytes(raw.context, "--context"), &options->context_bytes);
  }
  if (status.ok() && given("--host-memory")) {
    bytes = 0;  // an amount of memory is more than nothing; here nothing has a meaning
    if (raw.host_memory != "0") {
      status = Take(ParseBytes(raw.host_memory, "--host-memory (0: none)"), &bytes);
    }
    options->host_memory_bytes = bytes;
  }
  if (status.ok() && given("--lease-unit")) {
    status = Take(ParseBytes(raw.unit, "--lease-unit"), &options->unit_bytes);
  }
  options->unit_by_pool = !given("--lease-unit") && !given("--handle");
  // What a driver makes is no smaller.
  options->handle_bytes = std::max(options->unit_bytes, 2 * kMiB);
  if (status.ok() && given("--handle")) {
    status = Take(ParseBytes(raw.handle, "--handle"), &options->handle_bytes);
  }
  double seconds = 0;
  if (status.ok() && given("--idle-exit")) {
    status = Take(ParseSeconds(raw.idle_exit, "--idle-exit"), &seconds);
    options->idle_exit_s = seconds;
  }
  if (status.ok() && given("--lease-wait")) {
    status = Take(ParseSeconds(raw.lease_wait, "--lease-wait"), &options->lease_wait_s);
  }
  if (status.ok() && given("--slice")) {
    status = Take(ParseSeconds(raw.slice, "--slice"), &options->slice_s);
  }
  if (status.ok() && given("--patience")) {
    status = Take(ParseSeconds(raw.patience, "--patience"), &options->patience_s);
  }
  if (status.ok() && given("--keeper-linger")) {
    status = Take(ParseSeconds(raw.keeper_linger, "--keeper-linger"), &options->keeper_linger_s);
  }
  if (given("--keeper")) options->keeper = raw.keeper == "off" ? "" : raw.keeper;
  uint32_t fd = 0;
  if (status.ok() && given("--ready-fd")) {
    status = Take(ParseNumber(raw.ready_fd, "--ready-fd"), &fd);
    options->ready_fd = static_cast<int>(fd);
  }
  if (status.ok() && given("--oracle")) {
    options->oracle =
        raw.oracle.empty() || raw.oracle.front().empty() ? environment_oracle : raw.oracle.front();
    if (options->oracle.empty())
      status = Bad("--oracle: allowed: a file, or SLUICE_ORACLE names one");
  }
  return status;
}

}  // namespace

Result<std::variant<config::Options, PrintText>> ParseCommandLine(
    const std::vector<std::string>& arguments, const std::string& environment_oracle) {
  CLI::App app("Lends the memory of one GPU between jobs while they run.", "sluice-noded");
  config::Options options;
  options.keeper = DefaultKeeper();
  Raw raw;
  app.set_version_flag("--version", std::string("sluice-noded ") + SLUICE_VERSION);
  // Required, but asked for below: an unknown flag is what a person should be told of first.
  app.add_option("--runtime-dir", raw.runtime_dir,
                 "folder for the sockets (0700, made if missing; required)");
  app.add_option("--gpu", raw.gpu, "number of the GPU (0)");
  app.add_option("--pool", raw.pool, "memory to lend (the GPU's minus the reserve)");
  app.add_option("--reserve", raw.reserve, "memory left to contexts (an eighth, at most 2 GiB)");
  app.add_option("--context", raw.context,
                 "what each context is charged for outside the pool (0: contexts are not charged)");
  app.add_option(
      "--grants", options.grants,
      "folder of the grants that sluice-device-plugin makes for containers (its --root)");
  app.add_option("--terms", options.terms,
                 "of grants: wait (nobody uses one before the plugin has found its pod's terms) or "
                 "off (it is worth what its granules are)")
      ->capture_default_str();
  app.add_option("--host-memory", raw.host_memory,
                 "host memory for jobs that are evicted, 0: none (as much as the pool, at most a "
                 "quarter of the machine's)");
  app.add_option("--lease-unit", raw.unit, "unit of lending (8MiB, more for pools above 48 GiB)");
  app.add_option("--handle", raw.handle, "unit of creating and mapping (the lease unit)");
  app.add_option(
      "--policy", options.policy,
      "flow, nodegroup, temporal, timeshift, spatial (nobody waits, limits are reserved) or auto "
      "(whichever gets most done) (flow)");
  app.add_option("--lanes", raw.lanes, "jobs past their gate at once under flow (2)");
  app.add_option("--residents", options.residents,
                 "jobs whose memory at the trough is in the pool at once; the others' is in host "
                 "memory, by turns: a number, auto (as many as get most done, with --policy auto) "
                 "or all (all)");
  app.add_option(
      "--slice", raw.slice,
      "seconds that a job's memory is in host memory, where --residents is a number (1)");
  app.add_option("--claims", options.claims,
                 "what others may count on while a job that can be evicted is in its iteration: "
                 "contract (its peak, to its trough), steps or curve (steps)");
  app.add_option("--lend", options.lend,
                 "demand: give back while another job is there; eager: always (demand)");
  app.add_option("--credit", options.credit,
                 "off: never wait for the GPU, at the trough neither; to measure (on)");
  app.add_option(
      "--credit-us", raw.credit_us,
      "GPU time in microseconds that the CPU may run ahead; to measure (by the profile)");
  app.add_option("--event-log", options.event_log, "JSON lines, one per ledger transition");
  app.add_option("--oracle", raw.oracle, "publish who holds what (default: $SLUICE_ORACLE)")
      ->expected(0, 1);
  app.add_flag("--poison", options.poison,
               "overwrite memory between two holders; waits for the GPU meanwhile (for tests)");
  app.add_option("--idle-exit", raw.idle_exit, "end after this many seconds without a job");
  app.add_option("--lease-wait", raw.lease_wait, "seconds to wait for what nobody promised (30)");
  app.add_option("--patience", raw.patience,
                 "seconds without a sign of life after which others do not wait any more for the "
                 "first iteration of a job (120)");
  app.add_option(
      "--keeper", raw.keeper,
      "program that keeps the jobs' sessions while no daemon runs, or off (sluice-keeper "
      "beside this program)");
  app.add_option("--keeper-linger", raw.keeper_linger,
                 "seconds that it stays without a daemon and without a living job (30)");
  app.add_option("--ready-fd", raw.ready_fd, "descriptor that gets a line when the daemon listens");
  std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());
  try {
    app.parse(reversed);
  } catch (const CLI::CallForHelp&) {
    return std::variant<config::Options, PrintText>(PrintText{app.help()});
  } catch (const CLI::CallForVersion& version) {
    return std::variant<config::Options, PrintText>(PrintText{std::string(version.what()) + "\n"});
  } catch (const CLI::ParseError& error) {
    return Bad(std::string(error.what()) + " (sluice-noded --help lists what is allowed)");
  }
  if (raw.runtime_dir.empty()) return Bad("--runtime-dir: is required; allowed: a folder");
  if (Status s = Convert(raw, app, environment_oracle, &options); !s.ok()) return s;
  return std::variant<config::Options, PrintText>(std::move(options));
}

}  // namespace sluice::noded
