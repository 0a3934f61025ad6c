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
using scheduler::simulate::Outcome;
using scheduler::simulate::Tune;
using scheduler::simulate::Tuned;
using scheduler::simulate::TuneOptions;

double Unlimited(std::vector<JobRun> runs, const Machine& machine) {
  Options options;
  options.unit_bytes = kFrontierUnit;
  options.managed = false;
  double longest = 0;
  for (const JobRun& run : runs) longest = std::max(longest, run.workload->alone_ns);
  double most = 0;
  for (const double offset : {0.1, 0.25, 0.5}) {
    for (size_t i = 0; i < runs.size(); ++i) {
      runs[i].start_ns = offset * longest * static_cast<double>(i);
    }
    const Result<Outcome> outcome = Simulate(runs, machine, options);
    if (outcome.ok()) most = std::max(most, outcome->Throughput());
  }
  return most;
}

}  // namespace

Row MeasureFrontier(const Regime& regime, const Mix& mix) {
  Row row;
  row.mix = mix.name;
  row.jobs = mix.models.size();
  std::vector<JobRun> runs;
  for (const std::string& model : mix.models) runs.push_back({&regime.models.at(model), 0});
  const double unlimited = Unlimited(runs, regime.machine);
  const auto least = static_cast<double>(LeastPool(runs));
  for (size_t p = 0; p < kFrontierPoolCount; ++p) {
    Options options;
    options.unit_bytes = kFrontierUnit;
    options.pool_units = static_cast<Units>(std::ceil(kFrontierPools[p] * least));
    for (size_t claims = 0; claims < 3; ++claims) {
      TuneOptions tuning;
      tuning.claims = static_cast<scheduler::simulate::Claims>(claims);
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
