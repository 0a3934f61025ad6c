// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <algorithm>

#include "bench/papers.h"
#include "bench/papers_zico.h"
#include "bench/parallel.h"

namespace sluice::bench {

namespace {

struct Pair {
  const char* first;
  const char* second;
  double over_turns;   // the paper's mean
  double over_paging;  // its best
};
constexpr Pair kPairs[] = {{"rhn", "gnmt", 1.42, 5.1},
                           {"nasnetalarge", "gnmt", 1.46, 8.3},
                           {"bert-base", "gnmt", 1.27, 6.0},
                           {"nasnetalarge", "resnet110", 1.15, 6.5}};

/// What each takes of the pool alone; together always more than there is. The paper names one of
/// its combinations, 30 % and 90 % of the card.
constexpr double kShares[][2] = {{0.3, 0.9}, {0.5, 0.7}, {0.7, 0.5}, {0.9, 0.3}};

double Over(double value, double base) { return base > 0 ? value / base : 0; }

struct Figures {
  double timeshift = 0;
  double tuned = 0;
  double over_paging = 0;
};

}  // namespace

Result<PaperTable> ZicoFigure8(const Traces& traces) {
  constexpr size_t kCells = std::size(kPairs) * std::size(kShares);
  const Result<Card> card = Card::Load("2080ti-11", traces);
  if (!card.ok()) return card.status();
  PaperTable table;
  table.title = "Zico, figure 8: throughput of two different jobs over taking turns, on a 2080 Ti";
  table.columns = {"models", "peaks/pool", "batches",          "timeshift",
                   "auto",   "paging",     "timeshift/paging", "auto/paging"};
  table.rows.resize(kCells);
  std::vector<Figures> figures(kCells);
  InParallel(kCells, [&](size_t i) {
    const Pair& pair = kPairs[i / std::size(kShares)];
    const double* shares = kShares[i % std::size(kShares)];
    std::vector<Cell>& row = table.rows[i];
    char peaks[32];
    std::snprintf(peaks, sizeof peaks, "%.0f%% + %.0f%%", 100 * shares[0], 100 * shares[1]);
    row = {std::string(pair.first) + " + " + pair.second, peaks};
    const auto first = ZicoBatch(*card, pair.first, shares[0]);
    const auto second = ZicoBatch(*card, pair.second, shares[1]);
    if (!first || !second) {
      row.resize(table.columns.size());
      return;
    }
    row.emplace_back(std::to_string(*first) + " + " + std::to_string(*second));
    const Card::Jobs jobs = {{pair.first, pair.second}, {*first, *second}};
    const double turns = card->Run(jobs, "temporal").throughput;
    if (turns == 0) {
      row.resize(table.columns.size());
      return;
    }
    const double shifted = card->Run(jobs, "timeshift").throughput;
    const double tuned = card->Run(jobs, "auto").throughput;
    const double paged = card->Run(jobs, "paging").throughput;
    figures[i] = {Over(shifted, turns), Over(tuned, turns), Over(tuned, paged)};
    row.emplace_back(figures[i].timeshift, 3);
    row.emplace_back(figures[i].tuned, 3);
    row.emplace_back(Over(paged, turns), 3);
    row.emplace_back(Over(shifted, paged), 2);
    row.emplace_back(figures[i].over_paging, 2);
  });
  for (size_t p = 0; p < std::size(kPairs); ++p) {
    Figures mean;
    double most = 0;
    double ran = 0;
    for (size_t i = p * std::size(kShares); i < (p + 1) * std::size(kShares); ++i) {
      if (figures[i].tuned == 0) continue;
      ++ran;
      mean.timeshift += figures[i].timeshift;
      mean.tuned += figures[i].tuned;
      most = std::max(most, figures[i].over_paging);
    }
    char text[220];
    std::snprintf(text, sizeof text,
                  "%s + %s: over taking turns in the mean: paper %.2f, timeshift %.2f, auto %.2f; "
                  "over paging at most: paper %.1f, auto %.1f.",
                  kPairs[p].first, kPairs[p].second, kPairs[p].over_turns,
                  Over(mean.timeshift, ran), Over(mean.tuned, ran), kPairs[p].over_paging, most);
    table.notes.emplace_back(text);
  }
  table.notes.emplace_back(
      "-: one's peak and what the other keeps at its trough are more than the pool, which is the "
      "card less a context for each.");
  return table;
}

}  // namespace sluice::bench
