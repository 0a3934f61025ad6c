// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "bench/papers_table.h"

#include <algorithm>

#include "noderuntime/cli/offline/format.h"

namespace sluice::bench {

namespace {

using cli::Format;

std::string GoalLine(const PaperGoal& goal) {
  return Format("%s: %.3f, goal %.3f or more: %s", goal.what.c_str(), goal.value, goal.least,
                goal.met() ? "met" : "MISSED");
}

/// RFC 4180.
std::string Quoted(const std::string& text) {
  if (text.find_first_of(",\"\n") == std::string::npos) return text;
  std::string out = "\"";
  for (const char c : text) out += c == '"' ? std::string("\"\"") : std::string(1, c);
  return out + "\"";
}

/// The rows with their kind, headings first.
std::vector<std::vector<std::string>> Lines(const PaperTable& table) {
  std::vector<std::vector<std::string>> lines = {table.columns};
  lines.back().push_back("figures");
  for (const std::vector<Cell>& row : table.rows) {
    lines.emplace_back();
    for (const Cell& cell : row) lines.back().push_back(cell.text);
    lines.back().push_back(table.kind);
  }
  return lines;
}

}  // namespace

Cell::Cell(double number, int digits) : text(Format("%.*f", digits, number)), value(number) {}

std::string TextOf(const PaperTable& table) {
  std::string text = table.name + ": " + table.title + "\n";
  const auto lines = Lines(table);
  std::vector<size_t> widths;
  for (const std::vector<std::string>& line : lines) {
    widths.resize(std::max(widths.size(), line.size()));
    for (size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], line[i].size());
  }
  for (const std::vector<std::string>& line : lines) {
    text += " ";
    for (size_t i = 0; i < line.size(); ++i) {
      const std::string pad(widths[i] - line[i].size(), ' ');
      text += i == 0 ? " " + line[i] + pad : "  " + pad + line[i];
    }
    text += "\n";
  }
  for (const std::string& note : table.notes) text += "  " + note + "\n";
  for (const PaperGoal& goal : table.goals) text += "  " + GoalLine(goal) + "\n";
  return text + Format("  took %.0f s\n\n", table.seconds);
}

std::string MarkdownOf(const PaperTable& table) {
  std::string text = "## " + table.name + "\n\n" + table.title + "\n\n";
  bool heading = true;
  for (const std::vector<std::string>& line : Lines(table)) {
    text += "|";
    for (const std::string& field : line) text += " " + field + " |";
    text += "\n";
    if (heading) {
      text += "|";
      for (size_t i = 0; i < line.size(); ++i) text += "---|";
      text += "\n";
    }
    heading = false;
  }
  text += "\n";
  for (const std::string& note : table.notes) text += "* " + note + "\n";
  for (const PaperGoal& goal : table.goals) text += "* " + GoalLine(goal) + "\n";
  return text + (table.notes.empty() && table.goals.empty() ? "" : "\n");
}

std::string CsvOf(const PaperTable& table) {
  std::string text;
  for (const std::vector<std::string>& line : Lines(table)) {
    for (size_t i = 0; i < line.size(); ++i) text += (i == 0 ? "" : ",") + Quoted(line[i]);
    text += "\n";
  }
  return text;
}

nlohmann::json JsonOf(const PaperTable& table) {
  nlohmann::json rows = nlohmann::json::array();
  for (const std::vector<Cell>& row : table.rows) {
    nlohmann::json fields;
    for (size_t i = 0; i < row.size(); ++i) fields[table.columns[i]] = row[i].value;
    rows.push_back(std::move(fields));
  }
  nlohmann::json goals = nlohmann::json::array();
  for (const PaperGoal& goal : table.goals) {
    goals.push_back(
        {{"what", goal.what}, {"value", goal.value}, {"least", goal.least}, {"met", goal.met()}});
  }
  return {{"title", table.title}, {"figures", table.kind}, {"rows", std::move(rows)},
          {"notes", table.notes}, {"goals", goals},        {"seconds", table.seconds}};
}

}  // namespace sluice::bench
