// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

namespace sluice::bench {

/// What stands in one field of a table, for people and for programs.
struct Cell {
  Cell() : text("-") {}
  Cell(std::string words) : text(std::move(words)), value(text) {}  // NOLINT: a table of words
  Cell(const char* words) : Cell(std::string(words)) {}             // NOLINT
  Cell(uint64_t number) : text(std::to_string(number)), value(number) {}  // NOLINT
  /// So many digits behind the point.
  Cell(double number, int digits);

  std::string text;
  nlohmann::json value;  // null: nothing is known
};

/// A number that has to be met.
struct PaperGoal {
  std::string what;
  double value = 0;
  double least = 0;
  bool met() const { return value >= least; }
};

/// A line of a chart.
struct Series {
  std::string name;
  std::vector<std::pair<double, double>> points;  // x, y; by x
};

struct Chart {
  std::string name;  // of its file
  std::string title;
  std::string x;
  std::string y;
  std::vector<Series> series;
};

/// A table or figure of a paper: its figures beside ours.
struct PaperTable {
  std::string name;
  std::string title;
  std::string kind = "simulated";  // stands at the end of every line
  std::vector<std::string> columns;
  std::vector<std::vector<Cell>> rows;
  std::vector<std::string> notes;
  std::vector<PaperGoal> goals;
  std::vector<Chart> charts;
  double seconds = 0;  // that it took
};

/// Columns of equal width, the notes, and each goal with `met` or `MISSED`.
std::string TextOf(const PaperTable& table);
std::string MarkdownOf(const PaperTable& table);
std::string CsvOf(const PaperTable& table);
nlohmann::json JsonOf(const PaperTable& table);

}  // namespace sluice::bench
