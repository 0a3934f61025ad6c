// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
// Waterwave's Algorithm 1 as printed, on the recorded models: for which of them it is a schedule.
#include <algorithm>

#include "bench/algorithm1_as_printed.h"
#include "bench/papers.h"
#include "bench/parallel.h"

namespace sluice::bench {

namespace {

using scheduler::simulate::Workload;

/// GPU time of a job's groups, alone.
std::vector<double> GroupNs(const Workload& job) {
  std::vector<double> ns(job.plan.gates.size(), 0);
  size_t gate = 0;
  for (size_t launch = 0; launch < job.kernels.size(); ++launch) {
    while (gate + 1 < ns.size() && job.plan.gates[gate + 1].launch <= launch) ++gate;
    ns[gate] += job.kernels[launch].alone_ns;
  }
  return ns;
}

GroupedJob Grouped(const Workload& job) {
  const auto& gates = job.plan.gates;
  const auto most = std::max_element(gates.begin(), gates.end(), [](const auto& a, const auto& b) {
    return a.need_units < b.need_units;
  });
  return {most - gates.begin() + 1, static_cast<int64_t>(gates.size()), job.peak_bytes};
}

/// How much faster than in turns at best: each pair takes as long as its longer job alone.
double AtMost(const PrintedPlan& plan, const std::vector<std::vector<double>>& group_ns) {
  std::map<int64_t, std::map<size_t, double>> pairs;
  for (const PrintedPlan::Stream* stream : {&plan.av, &plan.dv}) {
    for (const auto& [pair, groups] : *stream) {
      for (const PrintedPlan::Group& group : groups) {
        pairs[pair][group.job] += group_ns[group.job][static_cast<size_t>(group.group)];
      }
    }
  }
  double in_turns = 0;
  double together = 0;
  for (const auto& [pair, jobs] : pairs) {
    double longest = 0;
    for (const auto& [job, ns] : jobs) {
      in_turns += ns;
      longest = std::max(longest, ns);
    }
    together += longest;
  }
  return together > 0 ? in_turns / together : 0;
}

std::string Joined(const std::set<PlanFault>& faults) {
  std::string text;
  for (const PlanFault fault : faults) text += (text.empty() ? "" : ", ") + FaultText(fault);
  return text.empty() ? "none" : text;
}

/// Of all pairs of jobs with up to eight groups each way, and all rooms for up to eight of the
/// second's: how many plans are schedules, and how often each fault is met.
std::string Counted() {
  constexpr int64_t kMost = 8;
  uint64_t plans = 0;
  uint64_t schedules = 0;
  std::map<PlanFault, uint64_t> met;
  for (int64_t up_a = 1; up_a <= kMost; ++up_a) {
    for (int64_t down_a = 1; down_a <= kMost; ++down_a) {
      for (int64_t up_b = 1; up_b <= kMost; ++up_b) {
        for (int64_t down_b = 1; down_b <= kMost; ++down_b) {
          for (uint64_t room = 0; room <= kMost; ++room) {
            const auto peak = static_cast<uint64_t>(up_a) * 10;
            const std::vector<GroupedJob> jobs = {{up_a, up_a + down_a, peak},
                                                  {up_b, up_b + down_b, 0}};
            const PrintedPlan plan = AlgorithmOneAsPrinted(jobs, peak + room * 10, 10);
            const std::set<PlanFault> faults = FaultsOf(plan, jobs);
            ++plans;
            if (faults.empty()) ++schedules;
            for (const PlanFault fault : faults) ++met[fault];
          }
        }
      }
    }
  }
  std::string text = "Of " + std::to_string(plans) +
                     " inputs (two jobs, 1 to 8 groups each way, room for 0 to 8 groups) " +
                     std::to_string(schedules) + " give a schedule;";
  for (const auto& [fault, times] : met) {
    text += " " + FaultText(fault) + ": " + std::to_string(times) + ",";
  }
  text.back() = '.';
  return text;
}

}  // namespace

Result<PaperTable> WaterwaveAlgorithm1(const Traces& traces) {
  constexpr double kSplits[] = {2, 6};        // GiB
  constexpr double kParts[] = {1, 0.8, 0.6};  // of the largest batch
  constexpr size_t kRows = std::size(kSplits) * std::size(kParts);
  const Result<Card> loaded = Card::Load("v100-32", traces);
  if (!loaded.ok()) return loaded.status();
  PaperTable table;
  table.title = "Waterwave, algorithm 1 as printed: two equal jobs, by batch and size of groups";
  table.columns = {"model",    "batch", "GiB", "groups", "p", "faults", "over turns, at most",
                   "nodegroup"};
  table.rows.resize(ModelNames().size() * kRows);
  InParallel(table.rows.size(), [&](size_t i) {
    const std::string& model = ModelNames()[i / kRows];
    const double split = kSplits[i % std::size(kSplits)];
    const double part = kParts[i % kRows / std::size(kSplits)];
    Card card = *loaded;
    std::vector<uint64_t> bound = card.Bound({model, model});
    for (uint64_t& batch : bound) {
      batch = std::max<uint64_t>(1, static_cast<uint64_t>(static_cast<double>(batch) * part));
    }
    const uint64_t peak = card.Job(model, bound[0]).peak_bytes;
    card.gates = GatesEvery(split, peak);
    const Workload job = card.Job(model, bound[0]);
    const std::vector<GroupedJob> jobs = {Grouped(job), Grouped(job)};
    const PrintedPlan plan =
        AlgorithmOneAsPrinted(jobs, card.PoolBytes(2), static_cast<uint64_t>(split * kGibibyte));
    const std::set<PlanFault> faults = FaultsOf(plan, jobs);
    const Card::Jobs both = {{model, model}, bound};
    const double turns = card.Run(both, "temporal").throughput;
    const double ours = card.Run(both, "nodegroup").throughput;
    const std::vector<double> ns = GroupNs(job);
    const bool runs = std::all_of(faults.begin(), faults.end(), [](PlanFault fault) {
      return fault == PlanFault::kBesideItself;
    });
    table.rows[i] = {
        model,
        bound[0],
        Cell(split, 0),
        std::to_string(jobs[0].growing) + " + " + std::to_string(jobs[0].groups - jobs[0].growing),
        std::to_string(plan.p),
        Joined(faults),
        runs ? Cell(AtMost(plan, {ns, ns}), 3) : Cell(),
        turns > 0 ? Cell(ours / turns, 3) : Cell()};
  });
  table.notes = {
      Counted(),
      "Read kindly: an end of a loop is left out, a counter that is stepped in a loop's "
      "head and body is stepped once.",
      "Over turns, at most: groups of one job in a pair run one after the other, and jobs "
      "in a pair do not slow each other down. nodegroup is what Sluice makes of the same "
      "groups, over taking turns, with jobs that do."};
  return table;
}

}  // namespace sluice::bench
