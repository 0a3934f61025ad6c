// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/doctor/probe.h"

#include <fcntl.h>
#include <gnu/libc-version.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cctype>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "common/unique_fd.h"

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

namespace sluice::doctor {
namespace {

constexpr char kToolkitConfig[] = "/etc/nvidia-container-runtime/config.toml";

std::string Why(const std::string& what) { return what + ": " + std::strerror(errno); }

void ProbeSharing(const std::string& mps_folder, const std::string& plugin_folder, Facts* facts) {
  facts->mps_folder = mps_folder;
  // The control daemon's pipe; a dead one leaves it behind, and then nobody reads.
  const UniqueFd control(
      ::open((mps_folder + "/control").c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC));
  facts->mps_runs = control.valid();
  std::error_code absent;
  for (const auto& entry : std::filesystem::directory_iterator(plugin_folder, absent)) {
    const std::string name = entry.path().filename().string();
    const bool gpu = name.find("nvidia") != std::string::npos ||
                     name.find("gpu") != std::string::npos ||
                     name.find("hami") != std::string::npos;
    if (gpu && name.find("sluice") == std::string::npos) facts->other_plugins.push_back(name);
  }
  std::ifstream toolkit(kToolkitConfig);
  if (toolkit && std::filesystem::exists(plugin_folder, absent)) {
    facts->gives_gpus = GivesGpus(toolkit);
  }
}

}  // namespace

Facts::GivesGpus GivesGpus(std::istream& config) {
  for (std::string line; std::getline(config, line);) {
    // One key in a line, and this one stands before all tables. A comment begins with #.
    std::erase_if(line, [](unsigned char c) { return std::isspace(c) != 0; });
    if (line.starts_with("accept-nvidia-visible-devices-envvar-when-unprivileged=false")) {
      return Facts::GivesGpus::kPrivileged;
    }
  }
  return Facts::GivesGpus::kEverybody;
}

void ProbeMachine(const std::string& mps_folder, const std::string& plugin_folder, Facts* facts) {
  ProbeSharing(mps_folder, plugin_folder, facts);
  facts->libc_version = ::gnu_get_libc_version();
  const UniqueFd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, ::getpid(), 0)));
  if (!pidfd.valid()) facts->pidfd_problem = Why("processes cannot be watched");
  const UniqueFd page(::memfd_create("sluice-doctor", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!page.valid() || ::fcntl(page.get(), F_ADD_SEALS, F_SEAL_FUTURE_WRITE) != 0) {
    facts->seal_problem = Why("shared pages cannot be sealed");
  }
  std::ifstream cgroup("/proc/self/cgroup");
  std::getline(cgroup, facts->cgroup);
  rlimit files = {};
  if (::getrlimit(RLIMIT_NOFILE, &files) == 0) facts->open_files_limit = files.rlim_max;
}

}  // namespace sluice::doctor
