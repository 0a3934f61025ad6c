// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>

#include "common/flush_output.h"
#include "common/machine_file.h"
#include "common/printable.h"
#include "common/program_files.h"
#include "scheduler/trace/parse.h"
#include "tools/replay/device_peaks.h"
#include "tools/replay/options.h"
#include "tools/replay/replayer.h"

namespace sluice::replay {
namespace {

constexpr int kFailed = 1, kBadUsage = 2, kOutOfMemory = 3, kMismatch = 4;

int Complain(const std::string& text, int code) {
  std::fprintf(stderr, "sluice-replay: %s\n", PrintableLines(text).c_str());
  return code;
}

Result<std::string> ReadFile(const std::string& path) {
  // A stream opens a folder, too, and reads nothing from it.
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) {
    return Status(StatusCode::kInvalidArgument, path + ": is a directory");
  }
  std::ifstream file(path, std::ios::binary);
  if (!file) return Status(StatusCode::kNotFound, "cannot read " + path);
  std::ostringstream text;
  text << file.rdbuf();
  if (text.view().empty()) return Status(StatusCode::kInvalidArgument, path + ": is empty");
  return std::move(text).str();
}

/// The files that were named, so that what is wrong with them is said before anything else.
struct Inputs {
  scheduler::trace::Trace trace;
  std::optional<Machine> machine;
};

Result<Inputs> ReadInputs(const Options& options) {
  const Result<std::string> text = ReadFile(options.trace);
  if (!text.ok()) return text.status().Annotate("TRACE");
  Result<scheduler::trace::Trace> trace = scheduler::trace::ParseTrace(*text);
  if (!trace.ok()) return trace.status().Annotate(options.trace);
  Inputs inputs{*std::move(trace), std::nullopt};
  if (options.machine.empty()) return inputs;
  const Result<std::string> bin = ProgramFolder();
  if (!bin.ok()) return bin.status();
  Result<Machine> machine = ReadNamedMachine(options.machine, SimulatedGpuFolder(*bin));
  if (!machine.ok()) return machine.status().Annotate("--machine");
  inputs.machine = *std::move(machine);
  return inputs;
}

Result<Plan> PlanOf(const Options& options, const Inputs& inputs, const DevicePeaks& device) {
  const Result<Scaling> scaling =
      ScalingOf(options, inputs.machine ? &*inputs.machine : nullptr, device);
  if (!scaling.ok()) return scaling.status();
  Result<Plan> plan = MakePlan(inputs.trace, options.batch, *scaling);
  if (!plan.ok()) return plan.status().Annotate(options.trace);
  const std::optional<BlockId> corrupt = options.run.corrupt;
  if (corrupt && (*corrupt >= plan->block_bytes.size() ||
                  !EverChecked(*plan, *corrupt, options.run.iterations))) {
    return Status(StatusCode::kInvalidArgument,
                  "--corrupt: no operator reads block " + std::to_string(*corrupt) +
                      " after one wrote it; allowed: a block that is checked");
  }
  return plan;
}

struct Gpu {
  explicit Gpu(int ordinal) : driver(cuda::ClientDriver::Load()), device(driver, ordinal) {}

  cuda::ClientDriver driver;
  cuda::ClientDevice device;
};

int Run(const Options& options, const Inputs& inputs) {
  std::optional<Gpu> gpu;
  DevicePeaks peaks;
  if (AsksDriver(options)) {
    gpu.emplace(options.device);
    peaks = PeaksOf(AttributesOf(gpu->device));
  }
  const Result<Plan> plan = PlanOf(options, inputs, peaks);
  if (!plan.ok()) return Complain(plan.status().message(), kBadUsage);
  if (!gpu) gpu.emplace(options.device);
  const Report report = Replayer(gpu->device, *plan, options.run).Run();
  std::fputs((options.json ? ReportJson(report) : ReportText(report)).c_str(), stdout);
  return report.ok() ? 0 : Complain(Complaint(report), kMismatch);
}

int Main(const std::vector<std::string>& arguments) {
  const Result<Options> options = ParseOptions(arguments);
  if (!options.ok()) return Complain(options.status().message(), kBadUsage);
  if (options->help) {
    std::fputs(HelpText().c_str(), stdout);
    return 0;
  }
  const Result<Inputs> inputs = ReadInputs(*options);
  if (!inputs.ok()) return Complain(inputs.status().message(), kBadUsage);
  try {
    return Run(*options, *inputs);
  } catch (const cuda::OutOfMemory& failure) {
    return Complain(failure.what(), kOutOfMemory);
  } catch (const std::exception& failure) {
    return Complain(failure.what(), kFailed);
  }
}

}  // namespace
}  // namespace sluice::replay

int main(int argc, char** argv) {
  try {
    const int code = sluice::replay::Main({argv + 1, argv + argc});
    const sluice::Status written = sluice::FlushOutput(stdout);
    if (written.ok()) return code;
    // What went wrong before says more.
    const int lost = sluice::replay::Complain(written.message(), sluice::replay::kFailed);
    return code != 0 ? code : lost;
  } catch (...) {  // no memory to read the files
    return 1;
  }
}
