// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "simgpu/nvrtc/toolchain.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string_view>

extern char** environ;

namespace sluice::simgpu::nvrtc {
namespace {

constexpr std::string_view kDropped[] = {
    "LD_PRELOAD=", "LD_LIBRARY_PATH=", "LANG=", "LC_ALL=", "LC_MESSAGES="};

std::optional<std::string> InPath(const std::string& name) {
  const char* path = std::getenv("PATH");
  std::istringstream folders(path != nullptr ? path : "/usr/local/bin:/usr/bin:/bin");
  for (std::string folder; std::getline(folders, folder, ':');) {
    std::string file = (folder.empty() ? "." : folder) + "/" + name;
    std::error_code error;
    if (access(file.c_str(), X_OK) != 0 || !std::filesystem::is_regular_file(file, error)) continue;
    return std::filesystem::absolute(file, error).string();
  }
  return std::nullopt;
}

std::optional<std::string> ReadFile(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  if (!stream) return std::nullopt;
  std::ostringstream content;
  content << stream.rdbuf();
  return std::move(content).str();
}

}  // namespace

std::optional<std::string> FindCompiler(std::string* error) {
  constexpr const char* kHow =
      "; the simulated GPU compiles CUDA C with the host's C++ compiler: install one (Debian, "
      "Ubuntu: "
      "apt-get install g++) or name one in SLUICE_SIMGPU_CXX";
  if (const char* chosen = std::getenv("SLUICE_SIMGPU_CXX"); chosen != nullptr && *chosen != '\0') {
    const std::string name = chosen;
    const auto found = name.find('/') == std::string::npos ? InPath(name)
                       : access(chosen, X_OK) == 0
                           ? std::optional(std::filesystem::absolute(name).string())
                           : std::nullopt;
    if (!found) *error = "SLUICE_SIMGPU_CXX names '" + name + "', which cannot be executed" + kHow;
    return found;
  }
  for (const char* name : {"c++", "g++", "clang++"}) {
    if (auto found = InPath(name)) return found;
  }
  const char* path = std::getenv("PATH");
  *error = std::string("no C++ compiler: looked for c++, g++ and clang++ in PATH=") +
           (path != nullptr ? path : "") + kHow;
  return std::nullopt;
}

RunResult RunTool(const std::vector<std::string>& command, const std::string& directory) {
  std::vector<char*> argv;
  for (const std::string& argument : command) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  std::vector<char*> env;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    bool dropped = false;
    for (std::string_view prefix : kDropped) {
      dropped |= std::string_view(*variable).starts_with(prefix);
    }
    if (!dropped) env.push_back(*variable);
  }
  static char locale[] = "LC_ALL=C";
  env.push_back(locale);
  env.push_back(nullptr);

  const std::string errors_file = directory + "/tool.errors";
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 2, errors_file.c_str(), O_WRONLY | O_CREAT | O_TRUNC,
                                   0600);
  posix_spawn_file_actions_addchdir_np(&actions, directory.c_str());
  // The program's signal handling must not reach the compiler.
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  pid_t pid = 0;
  const int started = posix_spawn(&pid, argv[0], &actions, &attributes, argv.data(), env.data());
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);

  RunResult result;
  if (started != 0) {
    result.errors = "cannot run " + command[0] + ": " + std::strerror(started);
    return result;
  }
  int status = 0;
  pid_t reaped;
  do {
    reaped = waitpid(pid, &status, 0);
  } while (reaped < 0 && errno == EINTR);
  // A program that ignores SIGCHLD leaves no status to read; then the missing output is what tells.
  result.ok = reaped < 0 ? errno == ECHILD : WIFEXITED(status) && WEXITSTATUS(status) == 0;
  result.errors = ReadFile(errors_file).value_or("");
  if (reaped > 0 && WIFSIGNALED(status)) {
    result.errors += command[0] + " was ended by signal " + std::to_string(WTERMSIG(status)) + "\n";
  }
  return result;
}

ScratchDir::ScratchDir() {
  const char* parent = std::getenv("TMPDIR");
  std::string pattern =
      std::string(parent != nullptr && *parent != '\0' ? parent : "/tmp") + "/simgpu-nvrtc-XXXXXX";
  if (mkdtemp(pattern.data()) != nullptr) path_ = pattern;
}

ScratchDir::~ScratchDir() {
  std::error_code ignored;
  if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
}

bool ScratchDir::Write(const std::string& name, const std::string& content) const {
  const std::filesystem::path file = std::filesystem::path(path_) / name;
  std::error_code error;
  std::filesystem::create_directories(file.parent_path(), error);
  std::ofstream stream(file, std::ios::binary);
  stream.write(content.data(), static_cast<std::streamsize>(content.size()));
  return static_cast<bool>(stream.flush());
}

std::optional<std::string> ScratchDir::Read(const std::string& name) const {
  return ReadFile(std::filesystem::path(path_) / name);
}

}  // namespace sluice::simgpu::nvrtc
