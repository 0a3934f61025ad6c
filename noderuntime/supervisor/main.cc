// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
// sluice-node: what runs on a node of a cluster in the place of a launcher.
#include <signal.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>

#include <cerrno>
#include <cstdio>

#include "common/nvml.h"
#include "noderuntime/supervisor/options.h"
#include "noderuntime/supervisor/supervisor.h"

namespace sluice::supervisor {
namespace {

Result<std::vector<uint32_t>> AllGpus() {
  Result<std::unique_ptr<Nvml>> nvml = Nvml::Load();
  if (!nvml.ok()) return nvml.status();
  const Result<std::vector<Nvml::Gpu>> gpus = (*nvml)->Gpus();
  if (!gpus.ok()) return gpus.status();
  if (gpus->empty()) return Status(StatusCode::kNotFound, "this node has no GPU");
  std::vector<uint32_t> numbers;
  for (uint32_t i = 0; i < gpus->size(); ++i) numbers.push_back(i);
  return numbers;
}

Result<UniqueFd> TakeSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int number : {SIGTERM, SIGINT, SIGCHLD}) sigaddset(&signals, number);
  UniqueFd fd(::sigprocmask(SIG_BLOCK, &signals, nullptr) == 0
                  ? ::signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK)
                  : -1);
  if (!fd.valid()) return Status::FromErrno(errno, "signalfd");
  return fd;
}

Status Serve(Options options) {
  const Result<UniqueFd> signals = TakeSignals();
  if (!signals.ok()) return signals.status();
  // Keepers that have ended are reaped here, not by the node's first process.
  ::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
  Result<Signs> signs = Signs::Begin(options.runtime_dir);
  if (!signs.ok()) return signs.status();
  Result<std::vector<uint32_t>> gpus =
      options.gpus.has_value() ? Result<std::vector<uint32_t>>(*options.gpus) : AllGpus();
  if (!gpus.ok()) return gpus.status().Annotate("--gpus all");
  Supervisor supervisor({options.noded, options.runtime_dir, std::move(*gpus), options.arguments},
                        std::move(*signs));
  return supervisor.Run(signals->get());
}

Status Do(Options options) {
  switch (options.what) {
    case Options::What::kCheck:
      return Signs::CheckReady(options.runtime_dir);
    case Options::What::kCheckAlive:
      return Signs::CheckAlive(options.runtime_dir);
    case Options::What::kServe:
      break;
  }
  return Serve(std::move(options));
}

}  // namespace
}  // namespace sluice::supervisor

int main(int argc, char** argv) {
  auto logger =
      std::make_shared<spdlog::logger>("node", std::make_shared<spdlog::sinks::stderr_sink_st>());
  logger->set_pattern("%H:%M:%S.%e %l %v");
  spdlog::set_default_logger(std::move(logger));
  int status = 0;
  auto options = sluice::supervisor::ReadCommandLine(argc, argv, &status);
  if (options.ok() && !options->has_value()) return status;
  const sluice::Status done =
      options.ok() ? sluice::supervisor::Do(std::move(**options)) : options.status();
  if (done.ok()) return 0;
  std::fprintf(stderr, "sluice-node: %s\n", done.message().c_str());
  return done.code() == sluice::StatusCode::kInvalidArgument ? 2 : 1;
}
