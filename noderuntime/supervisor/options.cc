// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/supervisor/options.h"

#include <CLI/CLI.hpp>
#include <string>

#include "common/program_files.h"

namespace sluice::supervisor {
namespace {

Status Bad(const std::string& text) { return Status(StatusCode::kInvalidArgument, text); }

/// What each daemon is told by its supervisor.
Status CheckArguments(const std::vector<std::string>& arguments) {
  for (const std::string& argument : arguments) {
    const std::string name = argument.substr(0, argument.find('='));
    for (const char* ours : {"--gpu", "--runtime-dir", "--ready-fd"}) {
      if (name == ours) return Bad(name + " behind --: each daemon gets its own from sluice-node");
    }
  }
  return {};
}

Status CheckCompute(const std::string& compute, const Options& options) {
  if (compute != "timeslice" && compute != "mps") {
    return Bad("--compute '" + compute + "': allowed: timeslice, mps");
  }
  if (!options.mps_control.starts_with('/')) {
    return Bad("--mps-control '" + options.mps_control + "': allowed: an absolute path");
  }
  if (!options.mps_dir.starts_with('/') || options.mps_dir.size() > kMaxMpsDir) {
    return Bad("--mps-dir '" + options.mps_dir + "': allowed: an absolute path of at most " +
               std::to_string(kMaxMpsDir) + " characters");
  }
  if (!options.grants.starts_with('/')) {
    return Bad("--grants '" + options.grants + "': allowed: an absolute path");
  }
  return {};
}

std::string BesideThisProgram(const std::string& name) {
  const Result<std::string> bin = ProgramFolder();
  return bin.ok() ? *bin + "/" + name : name;
}

}  // namespace

Result<std::optional<Options>> ReadCommandLine(int argc, const char* const* argv, int* status) {
  Options options;
  options.noded = BesideThisProgram("sluice-noded");
  std::string gpus = "all";
  std::string compute = "timeslice";
  std::string mps_version = "auto";
  std::string terms = "off";
  bool check = false;
  bool check_alive = false;
  CLI::App app("Runs a sluice-noded for each GPU of this node and starts again what ends.",
               "sluice-node");
  app.set_version_flag("--version", SLUICE_VERSION);
  app.add_option("--runtime-dir", options.runtime_dir,
                 "folder of the daemons' folders, one named by each GPU's number (required)");
  app.add_option("--gpus", gpus, "all, or numbers such as 0,1")->capture_default_str();
  app.add_option("--noded", options.noded, "the daemon's program")->capture_default_str();
  app.add_option("--compute", compute,
                 "how kernels of several jobs come onto a GPU: timeslice (in turn), mps (side by "
                 "side, by NVIDIA's MPS)")
      ->capture_default_str();
  app.add_option("--mps-control", options.mps_control, "NVIDIA's program, for --compute mps")
      ->capture_default_str();
  app.add_option("--mps-dir", options.mps_dir,
                 "folder of the MPS pipes, one named by each GPU's UUID, shared with "
                 "sluice-device-plugin")
      ->capture_default_str();
  app.add_option("--mps-version", mps_version,
                 "legacy (one server for a GPU), 3 (one for each trust group, a namespace for each "
                 "grant; driver 615), auto (3 where the driver has it)")
      ->capture_default_str();
  app.add_option("--grants", options.grants,
                 "with MPS v3: folder of the grants, as for the daemons")
      ->capture_default_str();
  app.add_option("--terms", terms,
                 "with MPS v3: wait (a grant has a namespace once its group is known), off (all "
                 "are of one group), as for the daemons")
      ->capture_default_str();
  app.add_flag("--check", check, "only look: 0 when all daemons of this folder serve");
  app.add_flag("--check-alive", check_alive, "only look: 0 when this folder's sluice-node runs");
  app.add_option("arguments", options.arguments, "behind --: for each daemon");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) {
      *status = app.exit(error);
      return std::optional<Options>();
    }
    return Bad(error.what());
  }
  if (!options.runtime_dir.starts_with('/')) {
    return Bad("--runtime-dir '" + options.runtime_dir + "': allowed: an absolute path");
  }
  if (check && check_alive) return Bad("--check, --check-alive: allowed: one of them");
  if (check) options.what = Options::What::kCheck;
  if (check_alive) options.what = Options::What::kCheckAlive;
  Result<GpuNumbers> parsed = ParseGpuNumbers(gpus, "--gpus");
  if (!parsed.ok()) return parsed.status();
  options.gpus = std::move(*parsed);
  if (Status s = CheckArguments(options.arguments); !s.ok()) return s;
  if (Status s = CheckCompute(compute, options); !s.ok()) return s;
  options.mps = compute == "mps";
  const Result<MpsChoice> version = ParseMpsChoice(mps_version);
  if (!version.ok()) return version.status();
  options.mps_version = *version;
  if (terms != "wait" && terms != "off") return Bad("--terms '" + terms + "': allowed: wait, off");
  options.wait_for_terms = terms == "wait";
  return std::optional(std::move(options));
}

}  // namespace sluice::supervisor
