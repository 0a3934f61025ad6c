// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
// sluice-node: what runs on a node of a cluster in the place of a launcher.
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>

#include "common/log/log.h"
#include "common/nvml.h"
#include "common/printable.h"
#include "noderuntime/supervisor/options.h"
#include "noderuntime/supervisor/supervisor.h"

namespace sluice::supervisor {
namespace {

struct Node {
  std::vector<Nvml::Gpu> gpus;  // that answer
  std::string driver;           // empty: it does not say
};

Result<Node> LookAtNode() {
  Result<std::unique_ptr<Nvml>> nvml = Nvml::Load();
  if (!nvml.ok()) return nvml.status();
  Result<Nvml::Listed> listed = (*nvml)->Gpus();
  if (!listed.ok()) return listed.status();
  for (const Nvml::Silent& gpu : listed->silent) {
    logging::Error("GPU {} is left out: {}", gpu.index, gpu.why);
  }
  const Result<std::string> driver = (*nvml)->DriverVersion();
  return Node{std::move(listed->gpus), driver.ok() ? *driver : ""};
}

Result<std::vector<uint32_t>> AllGpus() {
  const Result<Node> node = LookAtNode();
  if (!node.ok()) return node.status();
  if (node->gpus.empty()) return Status(StatusCode::kNotFound, "this node has no GPU");
  std::vector<uint32_t> numbers;
  for (const Nvml::Gpu& gpu : node->gpus) numbers.push_back(gpu.index);
  return numbers;
}

/// An MPS control daemon for each of these GPUs. One that the node does not have, or that does
/// not answer, gets none; its daemon says that it is not there, again and again, while the others
/// serve.
Result<std::vector<mps::Control>> Controls(const Options& options,
                                           const std::vector<uint32_t>& numbers) {
  std::vector<mps::Control> controls;
  if (!options.mps) return controls;
  if (Status s = mps::CheckProgram(options.mps_control); !s.ok()) return s;
  const Result<Node> node = LookAtNode();
  if (!node.ok()) return node.status().Annotate("--compute mps");
  const Result<bool> v3 = MpsV3Wanted(options.mps_version, node->driver, options.mps_dir);
  if (!v3.ok()) return v3.status();
  logging::Info("MPS {}: the driver is {}", *v3 ? "v3" : "legacy", node->driver);
  for (const Nvml::Gpu& gpu : node->gpus) {
    if (std::find(numbers.begin(), numbers.end(), gpu.index) == numbers.end()) continue;
    controls.push_back({options.mps_control, options.mps_dir, gpu.uuid, *v3});
  }
  return controls;
}

Result<std::vector<mps::Namespaces>> NamespacesOf(const Options& options,
                                                  const std::vector<mps::Control>& controls) {
  std::vector<mps::Namespaces> all;
  for (const mps::Control& control : controls) {
    if (!control.v3) continue;
    Result<GrantStore> store = GrantStore::Open(options.grants);
    if (!store.ok()) return store.status().Annotate("--grants");
    Result<grants::GrantWatch> watch = grants::GrantWatch::Open(options.grants, control.gpu);
    if (!watch.ok()) return watch.status().Annotate("--grants");
    all.emplace_back(control, std::move(*store), std::move(*watch), options.wait_for_terms);
  }
  return all;
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
  Result<std::vector<mps::Control>> controls = Controls(options, *gpus);
  if (!controls.ok()) return controls.status();
  Result<std::vector<mps::Namespaces>> namespaces = NamespacesOf(options, *controls);
  if (!namespaces.ok()) return namespaces.status();
  Supervisor supervisor({options.noded, options.runtime_dir, std::move(*gpus), options.arguments,
                         std::move(*controls)},
                        std::move(*signs), std::move(*namespaces));
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
  sluice::logging::SetUp();
  int status = 0;
  auto options = sluice::supervisor::ReadCommandLine(argc, argv, &status);
  if (options.ok() && !options->has_value()) return status;
  const sluice::Status done =
      options.ok() ? sluice::supervisor::Do(std::move(**options)) : options.status();
  if (done.ok()) return 0;
  std::fprintf(stderr, "sluice-node: %s\n", sluice::PrintableLines(done.message()).c_str());
  return done.code() == sluice::StatusCode::kInvalidArgument ? 2 : 1;
}
