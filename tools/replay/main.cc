// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <cstdio>
#include <exception>
#include <fstream>
#include <optional>
#include <sstream>

#include "common/machine.h"
#include "scheduler/trace/parse.h"
#include "tools/replay/options.h"
#include "tools/replay/replayer.h"

namespace sluice::replay {
namespace {

constexpr int kFailed = 1, kBadUsage = 2, kOutOfMemory = 3, kMismatch = 4;

int Complain(const std::string& text, int code) {
  std::fprintf(stderr, "sluice-replay: %s\n", text.c_str());
  return code;
}

Result<std::string> ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  if (!file || !(text << file.rdbuf())) {
    return Status(StatusCode::kNotFound, "cannot read " + path);
  }
  return std::move(text).str();
}

Result<Scaling> ReadScaling(const Options& options) {
  if (options.machine.empty()) return ScalingOf(options, nullptr);
  const Result<std::string> text = ReadFile(options.machine);
  if (!text.ok()) return text.status().Annotate("--machine");
  const Result<Machine> machine = ParseMachine(*text, options.machine);
  if (!machine.ok()) return machine.status();
  return ScalingOf(options, &*machine);
}

Result<Plan> ReadPlan(const Options& options) {
  const Result<Scaling> scaling = ReadScaling(options);
  if (!scaling.ok()) return scaling.status();
  const Result<std::string> text = ReadFile(options.trace);
  if (!text.ok()) return text.status().Annotate("TRACE");
  const Result<scheduler::trace::Trace> trace = scheduler::trace::ParseTrace(*text);
  if (!trace.ok()) return trace.status().Annotate(options.trace);
  Result<Plan> plan = MakePlan(*trace, options.batch, *scaling);
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

Report Run(const Options& options, const Plan& plan) {
  const auto driver = cuda::ClientDriver::Load();
  cuda::ClientDevice device(driver, options.device);
  return Replayer(device, plan, options.run).Run();
}

int Main(const std::vector<std::string>& arguments) {
  const Result<Options> options = ParseOptions(arguments);
  if (!options.ok()) return Complain(options.status().message(), kBadUsage);
  if (options->help) {
    std::fputs(HelpText().c_str(), stdout);
    return 0;
  }
  const Result<Plan> plan = ReadPlan(*options);
  if (!plan.ok()) return Complain(plan.status().message(), kBadUsage);
  try {
    const Report report = Run(*options, *plan);
    std::fputs((options->json ? ReportJson(report) : ReportText(report)).c_str(), stdout);
    return report.ok() ? 0 : Complain(Complaint(report), kMismatch);
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
    return sluice::replay::Main({argv + 1, argv + argc});
  } catch (...) {  // no memory to read the files
    return 1;
  }
}
