// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/machine.h"
#include "bench/papers.h"
#include "bench/papers_svg.h"
#include "noderuntime/cli/offline/files.h"

namespace sluice::bench {

const std::vector<PaperPart>& PaperParts() {
  static const std::vector<PaperPart> parts = {
      {"waterwave-table1", "largest batches of two equal jobs, V100 and P100", WaterwaveTable1},
      {"waterwave-table2", "largest batches of two different jobs", WaterwaveTable2},
      {"waterwave-figure2", "memory when frees count at scheduling, or when the GPU is done",
       WaterwaveFigure2},
      {"waterwave-figure3", "what it costs to wait for each kernel", WaterwaveFigure3},
      {"waterwave-figure7", "throughput over the batch", WaterwaveFigure7},
      {"waterwave-figure8", "throughput over the size of groups", WaterwaveFigure8},
      {"waterwave-algorithm1", "for which jobs algorithm 1 as printed is a schedule",
       WaterwaveAlgorithm1},
      {"waterwave-5.5", "three and four jobs", WaterwaveMoreJobs},
      {"zico-figure5", "throughput and memory of two equal jobs (with figure 6)", ZicoFigure5},
      {"zico-figure7", "memory of two equal jobs over time", ZicoFigure7},
      {"zico-figure8", "throughput of two different jobs", ZicoFigure8},
      {"zico-figure9", "memory of two different jobs over time", ZicoFigure9},
      {"zico-figure10", "a budget that shrinks and grows", ZicoFigure10},
      {"zico-table1", "what it costs to mark a stream", ZicoTable1},
      {"zico-table2", "throughput over the unit of sharing", ZicoTable2},
      {"smartpool-table1", "footprint of each allocator over the peak load", SmartPoolTable1},
      {"glake-reserved", "reserved over allocated memory", GlakeReserved},
      {"largest-batches", "the goals of lending at the largest batches", LargestBatches},
      {"more-jobs", "three and four jobs against two in the same memory", MoreThanTwoJobs},
      {"paging", "how much the paging model hangs on its parameters", PagingSensitivity},
  };
  return parts;
}

namespace {

int Fail(const Status& status) {
  std::fprintf(stderr, "sluice_papers_bench: %s\n", status.message().c_str());
  return 2;
}

struct Asked {
  std::vector<std::string> names;
  std::string json, csv, markdown, svg;
};

/// A file per table or chart, in folders that exist.
Status Keep(const Asked& asked, const PaperTable& table) {
  Status status;
  if (!asked.csv.empty()) {
    status = cli::WriteWholeFile(asked.csv + "/" + table.name + ".csv", CsvOf(table));
  }
  if (status.ok() && !asked.markdown.empty()) {
    status = cli::WriteWholeFile(asked.markdown + "/" + table.name + ".md", MarkdownOf(table));
  }
  for (const Chart& chart : table.charts) {
    if (!status.ok() || asked.svg.empty()) break;
    status = cli::WriteWholeFile(asked.svg + "/" + chart.name + ".svg", SvgOf(chart));
  }
  return status;
}

int Run(const Asked& asked) {
  const Result<Traces> traces = ReadTraces();
  if (!traces.ok()) return Fail(traces.status());
  nlohmann::json json = {{"simulated", true}, {"machine", DescribeMachine()}};
  bool met = true;
  for (const PaperPart& part : PaperParts()) {
    const auto wanted = [&](std::string_view name) {
      return std::find(asked.names.begin(), asked.names.end(), name) != asked.names.end();
    };
    if (!wanted(part.name) && !wanted("all")) continue;
    const auto begun = std::chrono::steady_clock::now();
    Result<PaperTable> table = part.make(*traces);
    if (!table.ok()) return Fail(table.status().Annotate(std::string(part.name)));
    table->name = part.name;
    table->seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
    std::fputs(TextOf(*table).c_str(), stdout);
    std::fflush(stdout);
    for (const PaperGoal& goal : table->goals) met &= goal.met();
    json["tables"][table->name] = JsonOf(*table);
    if (Status kept = Keep(asked, *table); !kept.ok()) return Fail(kept);
  }
  if (!asked.json.empty()) {
    if (Status kept = cli::WriteWholeFile(asked.json, json.dump(1) + "\n"); !kept.ok()) {
      return Fail(kept);
    }
  }
  return met ? 0 : 1;
}

/// Ends with 1 when a goal was missed.
int Main(int argc, char** argv) {
  CLI::App app("Tables and figures of the papers beside ours (simulated)");
  Asked asked;
  std::vector<std::string> known = {"all"};
  std::string about = "\nTables:\n";
  for (const PaperPart& part : PaperParts()) {
    known.emplace_back(part.name);
    about += "  " + std::string(part.name) + ": " + std::string(part.about) + "\n";
  }
  app.footer(about);
  app.add_option("TABLE", asked.names, "Which, or all")->required()->check(CLI::IsMember(known));
  app.add_option("--json", asked.json, "Keep all figures in this file");
  app.add_option("--csv", asked.csv, "Keep a file per table in this folder")
      ->check(CLI::ExistingDirectory);
  app.add_option("--markdown", asked.markdown, "The same as Markdown")
      ->check(CLI::ExistingDirectory);
  app.add_option("--svg", asked.svg, "Keep the figures as pictures in this folder")
      ->check(CLI::ExistingDirectory);
  CLI11_PARSE(app, argc, argv);
  return Run(asked);
}

}  // namespace
}  // namespace sluice::bench

int main(int argc, char** argv) { return sluice::bench::Main(argc, argv); }
