// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/daemon/noded.h"

#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <cstdio>
#include <memory>

#include "common/log/log.h"
#include "common/printable.h"
#include "noderuntime/daemon/daemon.h"
#include "noderuntime/gpu/cuda_device.h"

namespace sluice::noded {
namespace {

constexpr int kExitUsage = 2;
constexpr int kExitFailed = 1;

/// Launchers show the last line of the log, so a failure ends with one plain line.
int Complain(int code, const Status& status) {
  std::fprintf(stderr, "sluice-noded: %s\n", PrintableLines(status.message()).c_str());
  return code;
}

/// Before any thread of the driver starts, so that all of them leave these signals to the loop.
void BlockSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
}

void SayReady(int fd) {
  if (fd < 0) return;
  if (::write(fd, "ready\n", 6) != 6) logging::Warn("ready-fd {}: nobody reads it", fd);
  ::close(fd);
}

Status Serve(const config::Options& options, const flow::FaultPlan& faults) {
  Result<std::unique_ptr<gpu::CudaDevice>> device = gpu::CudaDevice::Open(options.gpu);
  if (!device.ok()) return device.status();
  Result<std::unique_ptr<Daemon>> daemon = Daemon::Create(options, device->get(), faults);
  if (!daemon.ok()) return daemon.status();
  SayReady(options.ready_fd);
  return (*daemon)->Run();
}

}  // namespace

int RunNoded(const std::vector<std::string>& arguments, const flow::FaultPlan& faults) {
  const char* oracle = ::getenv("SLUICE_ORACLE");
  const auto parsed = ParseCommandLine(arguments, oracle == nullptr ? "" : oracle);
  if (!parsed.ok()) return Complain(kExitUsage, parsed.status());
  if (const auto* print = std::get_if<PrintText>(&*parsed)) {
    std::fputs(print->text.c_str(), stdout);
    return 0;
  }
  const config::Options& options = std::get<config::Options>(*parsed);
  if (Status s = config::Validate(options); !s.ok()) return Complain(kExitUsage, s);
  logging::SetUp();
  BlockSignals();
  if (Status s = Serve(options, faults); !s.ok()) return Complain(kExitFailed, s);
  return 0;
}

}  // namespace sluice::noded
