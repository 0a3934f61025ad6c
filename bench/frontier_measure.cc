// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <algorithm>
#include <cmath>

#include "bench/frontier_report.h"

namespace sluice::bench {
namespace {

using scheduler::Units;
using scheduler::simulate::JobRun;
using scheduler::simulate::Options;
using scheduler::simulate::Tune;
using scheduler::simulate::Tuned;
using scheduler::simulate::TuneOptions;
using scheduler::simulate::UnlimitedThroughput;

}  // namespace

Row MeasureFrontier(const Regime& regime, const Mix& mix) {
  Row row;
  row.mix = mix.name;
  row.jobs = mix.models.size();
  std::vector<JobRun> runs;
  for (const std::string& model : mix.models) runs.push_back({&regime.models.at(model), 0});
  Options plenty;
  plenty.unit_bytes = kFrontierUnit;
  const double unlimited = UnlimitedThroughput(runs, regime.machine, plenty);
  const auto least = static_cast<double>(LeastPool(runs));
  for (size_t p = 0; p < kFrontierPoolCount; ++p) {
    Options options;
    options.unit_bytes = kFrontierUnit;
    options.gate_ns = regime.gate_ns;
    options.pool_units = static_cast<Units>(std::ceil(kFrontierPools[p] * least));
    for (size_t claims = 0; claims < 3; ++claims) {
      TuneOptions tuning;
      tuning.claims = static_cast<scheduler::Claims>(claims);
      const Result<Tuned> tuned = Tune(runs, regime.machine, options, tuning);
      if (!tuned.ok()) {
        row.error = tuned.status().message();
        return row;
      }
      row.temporal = tuned->temporal;
      row.unlimited = unlimited / tuned->temporal;
      Line& line = row.lines[claims];
      line.throughput[p] = tuned->outcome.Throughput() / tuned->temporal;
      line.retained[p] = row.unlimited > 1 ? (line.throughput[p] - 1) / (row.unlimited - 1) : 1;
      line.settings[p] = tuned->setting;
    }
  }
  return row;
}

}  // namespace sluice::bench
