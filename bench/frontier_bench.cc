// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <CLI/CLI.hpp>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/frontier_policies.h"
#include "bench/frontier_report.h"
#include "bench/parallel.h"
#include "noderuntime/cli/offline/files.h"

namespace sluice::bench {
namespace {

std::vector<const Mix*> MixesOfUpTo(size_t jobs) {
  std::vector<const Mix*> mixes;
  for (const Mix& mix : Mixes()) {
    if (mix.models.size() <= jobs) mixes.push_back(&mix);
  }
  return mixes;
}

/// The mixes of one regime, as many at a time as there are processors.
RegimeRows Measure(const Regime& regime, const std::vector<const Mix*>& mixes) {
  RegimeRows measured;
  measured.regime = regime.name;
  measured.rows.resize(mixes.size());
  InParallel(mixes.size(), [&](size_t at) {
    measured.rows[at] = MeasureFrontier(regime, *mixes[at]);
    std::fprintf(stderr, "%c: %s\n", regime.name, mixes[at]->name.c_str());
  });
  return measured;
}

/// The same mixes again, under every policy.
std::vector<PolicyRow> MeasureAll(const Regime& regime, const std::vector<const Mix*>& mixes,
                                  const RegimeRows& known) {
  std::vector<PolicyRow> rows(mixes.size());
  InParallel(mixes.size(), [&](size_t at) {
    rows[at] = MeasurePolicies(regime, *mixes[at], known.rows[at]);
    std::fprintf(stderr, "%c: %s, every policy\n", regime.name, mixes[at]->name.c_str());
  });
  return rows;
}

int Main(int argc, char** argv) {
  CLI::App app("What lending memory is worth, by the size of the pool (simulated)");
  std::vector<std::string> names = {"A", "B", "C", "Z", "Y"};
  size_t most_jobs = 4;
  std::string json;
  app.add_option("--regime", names, "Which of the five")
      ->check(CLI::IsMember({"A", "B", "C", "Z", "Y"}));
  app.add_option("--most-jobs", most_jobs, "Leave out mixes of more jobs")->check(CLI::Range(2, 4));
  double gate_us = 0;
  uint32_t max_gates = scheduler::GateOptions().max_gates;
  app.add_option("--gate-us", gate_us,
                 "Microseconds of its host's time for a gate at which a job needs more (0: the "
                 "goals are for a model that knows nothing of them; live ones take about 10)")
      ->check(CLI::Range(0, 1000));
  app.add_option("--gates", max_gates, "Most gates in an iteration (48, as on a node)")
      ->check(CLI::Range(1, 1000));
  bool every = false;
  app.add_flag("--every-policy", every,
               "Also the best of a grid under every policy, and how near auto comes to it");
  app.add_option("--json", json, "Keep the figures in this file");
  CLI11_PARSE(app, argc, argv);
  const std::vector<const Mix*> mixes = MixesOfUpTo(most_jobs);
  std::vector<RegimeRows> all;
  nlohmann::json policies;
  bool met = true;
  const auto miss = [&met](const std::vector<std::string>& missed) {
    for (const std::string& line : missed) std::printf("  missed: %s\n", line.c_str());
    met = met && missed.empty();
    std::fflush(stdout);
  };
  for (const std::string& name : names) {
    Result<Regime> regime = MakeRegime(name.front(), max_gates);
    if (!regime.ok()) {
      std::fprintf(stderr, "sluice_frontier_bench: %s\n", regime.status().message().c_str());
      return 2;
    }
    regime->gate_ns = gate_us * 1e3;
    all.push_back(Measure(*regime, mixes));
    std::fputs(FrontierTable(all.back()).c_str(), stdout);
    miss(Missed(all.back()));
    if (!every) continue;
    const std::vector<PolicyRow> rows = MeasureAll(*regime, mixes, all.back());
    std::fputs(PolicyTable(regime->name, rows).c_str(), stdout);
    miss(WorseThanBest(regime->name, rows));
    policies[name] = PolicyJson(rows);
  }
  if (!json.empty()) {
    nlohmann::json figures = FrontierJson(all);
    if (every) figures["every_policy"] = std::move(policies);
    const Status status = cli::WriteWholeFile(json, figures.dump(2) + "\n");
    if (!status.ok()) {
      std::fprintf(stderr, "sluice_frontier_bench: %s\n", status.message().c_str());
      return 2;
    }
  }
  return met ? 0 : 1;
}

}  // namespace
}  // namespace sluice::bench

int main(int argc, char** argv) { return sluice::bench::Main(argc, argv); }
