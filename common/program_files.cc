// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "common/program_files.h"

#include <filesystem>
#include <system_error>

namespace sluice {

Result<std::string> ProgramFolder() {
  std::error_code error;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) return Status::FromErrno(error.value(), "/proc/self/exe");
  return program.parent_path().string();
}

std::string SimulatedGpuFolder(const std::string& bin) {
  return (std::filesystem::path(bin).parent_path() / "simgpu").string();
}

}  // namespace sluice
