// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace sluice::doctor {

/// One GPU as the driver describes it.
struct DeviceFacts {
  std::string name;
  std::string uuid;
  uint64_t total_bytes = 0;
  bool virtual_memory = false;    // VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED
  bool posix_handles = false;     // HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED
  bool stream_values_64 = false;  // CAN_USE_64_BIT_STREAM_MEM_OPS
  std::vector<pid_t> processes;   // with a context on it, by NVML
};

/// What the machine is like: plain values, gathered by the probes (probe.h) and judged elsewhere.
/// A problem is the text of what went wrong; empty: nothing did.
struct Facts {
  std::string driver_problem;
  int driver_version = 0;  // 12040: 12.4
  bool exchanges_capture_mode = false;
  std::vector<DeviceFacts> devices;
  std::string nvml_problem;

  std::string mps_folder;
  bool mps_runs = false;                   // its control daemon has its pipe there
  std::vector<std::string> other_plugins;  // sockets of other GPU plugins of the kubelet
  /// On a node of a cluster: whom NVIDIA's container runtime gives the GPUs that
  /// NVIDIA_VISIBLE_DEVICES names.
  enum class GivesGpus { kUnknown, kEverybody, kPrivileged } gives_gpus = GivesGpus::kUnknown;
  std::vector<pid_t> own_processes;  // jobs of the daemon that runs here

  std::string library;  // path of libsluice.so
  std::string library_problem;
  std::string libc_version;  // "2.36"; empty: not glibc

  std::string runtime_dir;
  std::string runtime_dir_problem;
  /// kDied: its keeper waits. kSilent: it is there and does not answer.
  enum class Daemon { kNone, kRuns, kDied, kSilent } daemon = Daemon::kNone;
  std::string daemon_problem;                // kSilent: what is to be seen of it
  std::optional<uint64_t> keeper_missing_s;  // how long the daemon has had none that it is to have
  bool keeper_program = false;               // sluice-keeper lies beside the programs

  std::string pidfd_problem;
  std::string seal_problem;       // F_SEAL_FUTURE_WRITE
  std::string cgroup;             // of this process; empty: none is to be seen
  uint64_t open_files_limit = 0;  // the hard one
};

}  // namespace sluice::doctor
