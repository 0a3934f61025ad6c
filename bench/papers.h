// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <string_view>
#include <vector>

#include "bench/papers_card.h"
#include "bench/papers_table.h"
#include "common/status.h"

/// Tables and figures of the papers that Sluice builds on, from recorded iterations: Waterwave
/// (Shi et al., IEEE Transactions on Computers, 2023), Zico (Lim et al., USENIX ATC 2021),
/// SmartPool (Zhang et al., 2019), GLake (talk, 2024).
namespace sluice::bench {

struct PaperPart {
  std::string_view name;
  std::string_view about;
  Result<PaperTable> (*make)(const Traces& traces);
};

const std::vector<PaperPart>& PaperParts();

// papers_waterwave_batches.cc
Result<PaperTable> WaterwaveTable1(const Traces& traces);
Result<PaperTable> WaterwaveTable2(const Traces& traces);
Result<PaperTable> WaterwaveMoreJobs(const Traces& traces);
// papers_waterwave_figures.cc
Result<PaperTable> WaterwaveFigure2(const Traces& traces);
Result<PaperTable> WaterwaveFigure3(const Traces& traces);
Result<PaperTable> WaterwaveFigure7(const Traces& traces);
Result<PaperTable> WaterwaveFigure8(const Traces& traces);
// papers_algorithm1.cc
Result<PaperTable> WaterwaveAlgorithm1(const Traces& traces);
// papers_zico.cc
Result<PaperTable> ZicoFigure5(const Traces& traces);
Result<PaperTable> ZicoTable2(const Traces& traces);
// papers_zico_memory.cc
Result<PaperTable> ZicoFigure7(const Traces& traces);
Result<PaperTable> ZicoFigure9(const Traces& traces);
Result<PaperTable> ZicoFigure10(const Traces& traces);
// papers_zico_pairs.cc
Result<PaperTable> ZicoFigure8(const Traces& traces);
// papers_zico_tracking.cc
Result<PaperTable> ZicoTable1(const Traces& traces);
// papers_placement.cc
Result<PaperTable> SmartPoolTable1(const Traces& traces);
Result<PaperTable> GlakeReserved(const Traces& traces);
// papers_goals.cc
Result<PaperTable> LargestBatches(const Traces& traces);
Result<PaperTable> PagingSensitivity(const Traces& traces);
// papers_more_jobs.cc
Result<PaperTable> MoreThanTwoJobs(const Traces& traces);

}  // namespace sluice::bench
