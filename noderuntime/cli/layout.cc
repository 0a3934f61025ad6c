// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/cli/layout.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "common/program_files.h"

namespace sluice::cli {

Result<Layout> Layout::Find() {
  const Result<std::string> bin = ProgramFolder();
  if (!bin.ok()) return bin.status();
  return At(*bin);
}

Layout Layout::At(const std::string& bin) {
  const std::filesystem::path root = std::filesystem::path(bin).parent_path();
  const std::string library = (root / "lib/libsluice.so").string();
  std::error_code ignored;
  const bool links = std::filesystem::is_directory(root / "lib/preload", ignored);
  return {bin, library, links ? (root / "lib/preload/$LIB/libsluice.so").string() : library,
          SimulatedGpuFolder(bin)};
}

std::string RuntimeDir(const Environment& environment, unsigned uid) {
  // An empty variable counts as absent: the folder would be relative to nowhere.
  if (const auto own = environment.Get("SLUICE_RUNTIME_DIR"); own && !own->empty()) return *own;
  if (const auto user = environment.Get("XDG_RUNTIME_DIR"); user && !user->empty()) {
    return *user + "/sluice";
  }
  return "/tmp/sluice-" + std::to_string(uid);
}

Status MakeRuntimeDir(const std::string& dir) {
  if (::mkdir(dir.c_str(), 0700) != 0 && errno != EEXIST) {
    return Status::FromErrno(errno, "runtime directory " + dir);
  }
  struct stat info = {};
  if (::lstat(dir.c_str(), &info) != 0) return Status::FromErrno(errno, "runtime directory " + dir);
  if (!S_ISDIR(info.st_mode) || info.st_uid != ::geteuid() || (info.st_mode & 077) != 0) {
    return Status(
        StatusCode::kPermissionDenied,
        "runtime directory " + dir +
            ": must be a directory of mode 0700 that belongs to you; name another one with "
            "--runtime-dir or SLUICE_RUNTIME_DIR");
  }
  return {};
}

std::string DaemonSocket(const std::string& runtime_dir) { return runtime_dir + "/noded.sock"; }

}  // namespace sluice::cli
