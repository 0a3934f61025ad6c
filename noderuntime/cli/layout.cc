// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/cli/layout.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "common/program_files.h"

namespace sluice::cli {
namespace {

std::string DefaultRuntimeDir(unsigned uid) { return "/tmp/sluice-" + std::to_string(uid); }

}  // namespace

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
  return DefaultRuntimeDir(uid);
}

Status MakeRuntimeDir(const std::string& dir) {
  if (::mkdir(dir.c_str(), 0700) != 0 && errno != EEXIST) {
    return Status::FromErrno(errno, "runtime directory " + dir);
  }
  peer::Folder folder;
  if (const int error = peer::Look(dir.c_str(), &folder); error != 0) {
    return Status::FromErrno(error, "runtime directory " + dir);
  }
  if (!peer::IsPrivate(folder, ::geteuid())) {
    return Status(
        StatusCode::kPermissionDenied,
        "runtime directory " + dir +
            ": must be a directory of mode 0700 that belongs to you; name another one with "
            "--runtime-dir or SLUICE_RUNTIME_DIR");
  }
  return {};
}

peer::Reach ReachOf(const std::string& path) {
  const std::string own = DefaultRuntimeDir(::geteuid());
  return path == own || path.starts_with(own + "/") ? peer::Reach::kOwn : peer::Reach::kAnybody;
}

Status CheckRuntimeDir(const std::string& dir, peer::Use use) {
  const peer::Outcome outcome = peer::LookAt(dir.c_str(), ReachOf(dir), use);
  const std::string what = "runtime directory " + dir;
  if (outcome.error != 0) return Status::FromErrno(outcome.error, what);
  if (outcome.ok()) return {};
  return Status(StatusCode::kPermissionDenied, what + ": " + peer::Why(outcome.verdict));
}

std::string DaemonSocket(const std::string& runtime_dir) { return runtime_dir + "/noded.sock"; }

}  // namespace sluice::cli
