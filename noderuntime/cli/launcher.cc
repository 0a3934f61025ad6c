// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/cli/launcher.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "common/printable.h"
#include "noderuntime/cli/daemon_process.h"
#include "noderuntime/cli/program_file.h"

namespace sluice::cli {
namespace {

// High enough not to collide with what shells and test harnesses pass by number.
constexpr int kFirstConnectionFd = 200;

int Complain(int code, const std::string& text) {
  std::fprintf(stderr, "sluice: %s\n", PrintableLines(text).c_str());
  return code;
}

/// 0 when `file` may be executed.
int CheckFile(const std::string& file) {
  struct stat info = {};
  if (::stat(file.c_str(), &info) != 0) {
    return errno == ENOENT || errno == ENOTDIR ? kExitNotFound : kExitCannotExecute;
  }
  return S_ISREG(info.st_mode) && ::access(file.c_str(), X_OK) == 0 ? 0 : kExitCannotExecute;
}

/// The connection under a high number, kept open by exec: the job lives as long as its processes
/// do.
Result<int> KeepOverExec(UniqueFd connection) {
  int kept = ::fcntl(connection.get(), F_DUPFD, kFirstConnectionFd);
  // A low limit of open files leaves no high numbers.
  if (kept < 0) kept = ::fcntl(connection.get(), F_DUPFD, 3);
  if (kept < 0) return Status::FromErrno(errno, "connection to sluice-noded");
  return kept;
}

}  // namespace

Result<Environment> JobEnvironment(Environment environment, const Layout& layout,
                                   const std::string& socket, bool verbose) {
  if (layout.library.find_first_of(": ") != std::string::npos) {
    return Status(
        StatusCode::kFailedPrecondition,
        "the path " + layout.library +
            " holds a space or a colon, which LD_PRELOAD cannot express; allowed: a folder "
            "without either");
  }
  environment.Set("SLUICE_SOCKET", socket);
  environment.Prepend("LD_PRELOAD", layout.preload);
  if (verbose) environment.Set("SLUICE_VERBOSE", "1");
  return environment;
}

int CheckProgram(const std::string& program, const std::string& path) {
  if (program.empty()) return kExitNotFound;
  if (program.find('/') != std::string::npos) return CheckFile(program);
  int worst = kExitNotFound;
  for (size_t start = 0; start <= path.size();) {
    const size_t end = std::min(path.find(':', start), path.size());
    const std::string folder = end == start ? "." : path.substr(start, end - start);
    const int code = CheckFile(folder + '/' + program);
    if (code == 0) return 0;
    if (code == kExitCannotExecute) worst = code;
    start = end + 1;
  }
  return worst;
}

std::variant<PreparedJob, int> PrepareJob(const RunOptions& options, const Layout& layout) {
  const Environment own = Environment::Current();
  const std::string& program = options.command.front();
  // Before anything is started or registered: a mistyped name has no other effect.
  const std::string path = own.Get("PATH").value_or("/usr/bin:/bin");
  if (const int code = CheckProgram(program, path); code != 0) {
    return Complain(
        code, program + (code == kExitNotFound ? ": no such program" : ": cannot be executed"));
  }
  const std::string why = WhyNotPreloaded(ProgramFile(program, path));
  if (!why.empty()) {
    Complain(0, program + ": " + why +
                    ", so the library cannot be loaded into it: what it takes "
                    "of the GPU is neither limited nor seen");
  }
  if (::access(layout.library.c_str(), R_OK) != 0) {
    return Complain(kExitRefused, layout.library + ": " + std::strerror(errno) +
                                      " (the interception library belongs beside the programs)");
  }

  JobRequest request = {options.limit_bytes, options.request_bytes, options.gpu, "",
                        options.observe};
  request.name = JobName(program, {options.command.begin() + 1, options.command.end()});
  std::vector<std::string> flags = {"--gpu", std::to_string(options.gpu)};
  flags.insert(flags.end(), options.daemon_flags.begin(), options.daemon_flags.end());
  const std::vector<std::string> wanted = FrameworksDaemonFlags(options.frameworks);
  flags.insert(flags.end(), wanted.begin(), wanted.end());
  Result<DaemonClient> client = ConnectOrStart(layout, options.runtime_dir, flags, own);
  if (!client.ok()) return Complain(kExitRefused, client.status().message());
  Result<JobGrant> grant = client->Register(request);
  if (!grant.ok() && grant.status().code() == StatusCode::kUnavailable) {
    // The daemon ended, idle, between our connection and its answer. The next one has just begun.
    client = ConnectOrStart(layout, options.runtime_dir, flags, own);
    if (!client.ok()) return Complain(kExitRefused, client.status().message());
    grant = client->Register(request);
  }
  if (grant.ok() && !wanted.empty()) {
    const Result<std::string> status = client->FetchStatus();
    const std::string line = status.ok() ? WhyNotLent(options.frameworks, *status) : "";
    if (!line.empty()) Complain(0, line);
  }
  if (!grant.ok()) {
    const bool refused = grant.status().code() == StatusCode::kResourceExhausted;
    return Complain(kExitRefused, (refused ? "refused: " : "") + grant.status().message());
  }

  Result<Environment> environment = JobEnvironment(own, layout, grant->socket, options.verbose);
  if (!environment.ok()) return Complain(kExitRefused, environment.status().message());
  const std::vector<std::string> steered = SteerFrameworks(options.frameworks, &*environment);
  if (options.verbose) {
    for (const std::string& line : steered) Complain(0, line);
  }
  return PreparedJob{*std::move(client), *std::move(environment)};
}

int BecomeProgram(const RunOptions& options, const Environment& environment, UniqueFd connection) {
  const Result<int> kept = KeepOverExec(std::move(connection));
  if (!kept.ok()) return Complain(kExitRefused, kept.status().message());
  const std::string& program = options.command.front();
  std::vector<std::string> argv_text = options.command;
  std::vector<std::string> env_text = environment.Entries();
  ::execvpe(program.c_str(), Pointers(argv_text).data(), Pointers(env_text).data());
  const int error = errno;
  return Complain(error == ENOENT ? kExitNotFound : kExitCannotExecute,
                  program + ": " + std::strerror(error));
}

int RunJob(const RunOptions& options, const Layout& layout) {
  std::variant<PreparedJob, int> prepared = PrepareJob(options, layout);
  if (const int* code = std::get_if<int>(&prepared)) return *code;
  auto& job = std::get<PreparedJob>(prepared);
  return BecomeProgram(options, job.environment, std::move(job.client).Release());
}

}  // namespace sluice::cli
