// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/doctor/checks.h"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "common/bytes.h"

namespace sluice::doctor {
namespace {

constexpr uint64_t kHandleBytes = 32 * kMiB;  // of a pool that nobody sized otherwise
constexpr uint64_t kOtherFiles = 256;         // sockets, pages and the like of some jobs
constexpr int kLeastDriver = 11'070;          // 64-bit stream memory operations of the second kind

class Findings {
 public:
  void Ok(const std::string& check, const std::string& text) {
    list_.push_back({check, Verdict::kOk, text, ""});
  }
  void Warn(const std::string& check, const std::string& text, const std::string& advice) {
    list_.push_back({check, Verdict::kWarn, text, advice});
  }
  void Fail(const std::string& check, const std::string& text, const std::string& advice) {
    list_.push_back({check, Verdict::kFail, text, advice});
  }
  /// Fine, or a job cannot run.
  void Need(bool good, const std::string& check, const std::string& fine, const std::string& bad,
            const std::string& advice) {
    good ? Ok(check, fine) : Fail(check, bad, advice);
  }
  std::vector<Finding> Take() { return std::move(list_); }

 private:
  std::vector<Finding> list_;
};

std::string Version(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

/// Whether "2.36" is at least 2.17.
bool LibcSuffices(const std::string& version) {
  unsigned major = 0;
  unsigned minor = 0;
  if (std::sscanf(version.c_str(), "%u.%u", &major, &minor) != 2) return false;
  return major > 2 || (major == 2 && minor >= 17);
}

void Driver(const Facts& facts, Findings* out) {
  out->Need(facts.driver_problem.empty(), "driver",
            "CUDA driver found, version " + Version(facts.driver_version), facts.driver_problem,
            "install NVIDIA's driver, or select the simulated one (scripts/demo shows how)");
  if (!facts.driver_problem.empty()) return;
  out->Need(facts.driver_version >= kLeastDriver, "driver_version",
            "the driver is new enough (" + Version(kLeastDriver) + ")",
            "the driver is too old: " + Version(facts.driver_version),
            "install one of CUDA " + Version(kLeastDriver) + " or later");
  out->Need(!facts.devices.empty(), "devices",
            std::to_string(facts.devices.size()) +
                (facts.devices.size() == 1 ? " GPU" : " GPUs, of which noded manages one"),
            "the driver has no GPU", "look at nvidia-smi, and at CUDA_VISIBLE_DEVICES");
  if (facts.exchanges_capture_mode) {
    out->Ok("capture_mode", "calls of ours can be kept out of a stream capture");
  } else {
    out->Warn("capture_mode", "the driver cannot exchange a thread's capture mode",
              "programs that capture graphs may fail while another thread allocates");
  }
  for (size_t i = 0; i < facts.devices.size(); ++i) {
    const DeviceFacts& device = facts.devices[i];
    const std::string gpu = "GPU " + std::to_string(i) + " '" + device.name + "' (" + device.uuid +
                            ", " + FormatBytes(device.total_bytes) + ")";
    out->Need(device.virtual_memory, "virtual_memory", gpu + ": virtual memory management",
              gpu + ": no virtual memory management", "this GPU cannot be shared");
    out->Need(device.posix_handles, "posix_handles", gpu + ": memory can be handed to processes",
              gpu + ": memory cannot be handed to other processes",
              "this GPU cannot be shared (vGPU and WSL profiles lack it)");
    out->Need(device.stream_values_64, "stream_values", gpu + ": 64-bit stream memory operations",
              gpu + ": no 64-bit stream memory operations",
              "this GPU cannot be shared; a newer driver may help");
  }
}

void Sharing(const Facts& facts, Findings* out) {
  out->Need(facts.nvml_problem.empty(), "nvml", "the driver's list of compute processes answers",
            facts.nvml_problem,
            "install libnvidia-ml.so.1, which belongs to the driver: nothing else tells when a "
            "killed job's memory is free");
  for (size_t i = 0; i < facts.devices.size(); ++i) {
    std::string strangers;
    for (const pid_t pid : facts.devices[i].processes) {
      const auto& own = facts.own_processes;
      if (std::find(own.begin(), own.end(), pid) != own.end()) continue;
      strangers += (strangers.empty() ? "" : ", ") + std::to_string(pid);
    }
    const std::string gpu = "GPU " + std::to_string(i);
    if (strangers.empty()) {
      out->Ok("sold_twice", gpu + ": no process but Sluice's jobs uses it");
    } else {
      out->Warn("sold_twice", gpu + ": other processes use it too: " + strangers,
                "what they take is missing beside the pool; give the GPU to Sluice alone, or make "
                "the pool smaller (--pool)");
    }
  }
  std::string plugins;
  for (const std::string& name : facts.other_plugins) plugins += " " + name;
  if (plugins.empty()) {
    out->Ok("other_plugins", "no other GPU plugin of the kubelet is to be seen");
  } else {
    out->Warn("other_plugins", "other GPU plugins of the kubelet:" + plugins,
              "a GPU must be advertised by one of them only");
  }
  if (facts.gives_gpus == Facts::GivesGpus::kPrivileged) {
    out->Ok("visible_devices", "NVIDIA's runtime gives no GPU for a container's variable alone");
  } else if (facts.gives_gpus == Facts::GivesGpus::kEverybody) {
    out->Warn("visible_devices",
              "NVIDIA's runtime gives every container the GPUs that NVIDIA_VISIBLE_DEVICES names, "
              "also one without a grant",
              "whoever may make pods here is to be trusted with the GPUs, or docs/operations/"
              "kubernetes.md, 'Who is protected from whom', says what else there is");
  }
  out->Ok("mps", facts.mps_runs
                     ? "NVIDIA's MPS runs (" + facts.mps_folder +
                           "): kernels of jobs may overlap, and one job's fault ends them all"
                     : "NVIDIA's MPS does not run: jobs take turns on the GPU");
}

void Machine(const Facts& facts, Findings* out) {
  out->Need(facts.library_problem.empty(), "library", facts.library + " can be preloaded",
            facts.library + ": " + facts.library_problem,
            "build or install Sluice; the library belongs beside the programs");
  if (facts.libc_version.empty()) {
    out->Warn("libc", "this machine's libc is not glibc",
              "the library is for glibc; programs with another libc run without it");
  } else {
    out->Need(LibcSuffices(facts.libc_version), "libc", "glibc " + facts.libc_version,
              "glibc " + facts.libc_version + " is too old", "glibc 2.17 or later is needed");
  }
  out->Need(facts.runtime_dir_problem.empty(), "runtime_dir", facts.runtime_dir + " is usable",
            facts.runtime_dir_problem,
            "a folder of this user with mode 0700; SLUICE_RUNTIME_DIR names another one");
  switch (facts.daemon) {
    case Facts::Daemon::kRuns:
      out->Ok("daemon", "sluice-noded runs");
      break;
    case Facts::Daemon::kNone:
      out->Ok("daemon", "sluice-noded does not run; 'sluice run' starts one");
      break;
    case Facts::Daemon::kDied:
      out->Warn("daemon", "sluice-noded has died, and its jobs wait for another one",
                "any 'sluice run' starts one, which takes over; or start sluice-noded");
      break;
    case Facts::Daemon::kSilent:
      out->Fail("daemon", facts.daemon_problem,
                "its jobs wait and lose nothing: let it go on (kill -CONT, thaw its control group, "
                "leave the debugger), or kill it; the next one takes over");
      break;
  }
  if (facts.keeper_missing_s.has_value()) {
    out->Warn(
        "keeper",
        "the daemon has had no keeper for " + std::to_string(*facts.keeper_missing_s) + " s",
        "do not end the daemon now, its jobs would get no more memory; its log says why there "
        "is none, and it tries again by itself");
  } else if (facts.keeper_program) {
    out->Ok("keeper", "sluice-keeper lies beside the programs");
  } else {
    out->Warn("keeper", "sluice-keeper does not lie beside the programs",
              "without it jobs get no more memory once their daemon is killed");
  }
  out->Need(facts.pidfd_problem.empty(), "pidfd", "processes can be watched", facts.pidfd_problem,
            "Linux 5.3 or later is needed");
  out->Need(facts.seal_problem.empty(), "seals", "shared pages can be sealed", facts.seal_problem,
            "Linux 5.1 or later is needed");
  if (facts.cgroup.empty()) {
    out->Warn("cgroup", "no control group of this process is to be seen",
              "only a cross-check on clusters needs it");
  } else {
    out->Ok("cgroup", "control group " + facts.cgroup);
  }
  uint64_t most = 0;
  for (const DeviceFacts& device : facts.devices) most = std::max(most, device.total_bytes);
  const uint64_t needed = most / kHandleBytes + kOtherFiles;
  const std::string limit = std::to_string(facts.open_files_limit);
  out->Need(facts.open_files_limit >= needed, "open_files",
            "up to " + limit + " open files; the pool needs about " + std::to_string(needed),
            "at most " + limit + " open files; the pool needs about " + std::to_string(needed),
            "raise the hard limit (ulimit -Hn), or use larger handles (--handle)");
}

const char* Name(Verdict verdict) {
  switch (verdict) {
    case Verdict::kOk:
      return "ok";
    case Verdict::kWarn:
      return "warn";
    case Verdict::kFail:
      break;
  }
  return "fail";
}

}  // namespace

std::vector<Finding> Judge(const Facts& facts) {
  Findings findings;
  Driver(facts, &findings);
  Sharing(facts, &findings);
  Machine(facts, &findings);
  return findings.Take();
}

bool Healthy(const std::vector<Finding>& findings) {
  return std::none_of(findings.begin(), findings.end(),
                      [](const Finding& finding) { return finding.verdict == Verdict::kFail; });
}

std::string RenderText(const std::vector<Finding>& findings) {
  std::string text;
  for (const Finding& finding : findings) {
    const std::string verdict = Name(finding.verdict);
    text += verdict + std::string(6 - verdict.size(), ' ') + finding.text + "\n";
    if (!finding.advice.empty()) text += "      -> " + finding.advice + "\n";
  }
  return text;
}

std::string RenderJson(const std::vector<Finding>& findings) {
  nlohmann::ordered_json json;
  json["healthy"] = Healthy(findings);
  json["checks"] = nlohmann::ordered_json::array();
  for (const Finding& finding : findings) {
    nlohmann::ordered_json entry;
    entry["check"] = finding.check;
    entry["verdict"] = Name(finding.verdict);
    entry["text"] = finding.text;
    if (!finding.advice.empty()) entry["advice"] = finding.advice;
    json["checks"].push_back(std::move(entry));
  }
  return json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace sluice::doctor
