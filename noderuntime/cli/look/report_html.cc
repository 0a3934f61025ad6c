// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
// The report as a page in one file. Names come from anywhere, so that every text is escaped.
#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "common/bytes.h"
#include "noderuntime/cli/look/run_report.h"
#include "noderuntime/cli/offline/format.h"

namespace sluice::cli {
namespace {

/// Okabe and Ito's palette, which people who see colours differently can tell apart. Names stand in
/// the table beside each colour, so that it is never the only sign.
constexpr std::array<const char*, 8> kFills = {"#0072b2", "#e69f00", "#009e73", "#cc79a7",
                                               "#56b4e9", "#d55e00", "#f0e442", "#999999"};
constexpr double kWidth = 960;
constexpr double kHeight = 300;
constexpr double kLeft = 80;
constexpr double kTop = 16;
constexpr double kBottom = 28;

constexpr char kStyle[] = R"(
:root{color-scheme:light dark;--ink:#1b1f24;--paper:#fff;--soft:#5b6570;--line:#d8dee4;--wash:#f6f8fa}
@media(prefers-color-scheme:dark){:root{--ink:#e6edf3;--paper:#0d1117;--soft:#9aa4ae;--line:#30363d;--wash:#161b22}}
body{margin:2rem auto;max-width:64rem;padding:0 1rem;background:var(--paper);color:var(--ink);font:16px/1.5 system-ui,sans-serif}
h1{font-size:1.5rem;margin:0}h2{font-size:1.1rem;margin:2rem 0 .5rem}p{margin:.25rem 0}.soft{color:var(--soft)}
dl{display:grid;grid-template-columns:repeat(auto-fit,minmax(14rem,1fr));gap:1rem;margin:1.5rem 0}
dl div{background:var(--wash);border:1px solid var(--line);border-radius:.5rem;padding:.75rem 1rem}
dt{color:var(--soft);font-size:.85rem}dd{margin:0;font-size:1.35rem;font-variant-numeric:tabular-nums}
.scroll{overflow-x:auto}table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}
th,td{padding:.35rem .6rem;border-bottom:1px solid var(--line);text-align:right;white-space:nowrap}
th{color:var(--soft);font-weight:600}th:first-child,td:first-child,.text{text-align:left}td:first-child{white-space:normal;overflow-wrap:anywhere;min-width:12rem}
svg{width:100%;height:auto}svg text{fill:var(--soft);font:12px system-ui,sans-serif}
.key{display:inline-block;width:.8em;height:.8em;border-radius:.15em;margin-right:.4em}
)";

/// What is no UTF-8, which the page says that it is, replaced by U+FFFD.
std::string Utf8(const std::string& text) {
  using nlohmann::json;
  const std::string quoted = json(text).dump(-1, ' ', false, json::error_handler_t::replace);
  return json::parse(quoted).get<std::string>();
}

std::string Escaped(const std::string& text) {
  std::string out;
  for (const char c : Utf8(text)) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        // A page may not have control characters.
        out += (static_cast<unsigned char>(c) >= ' ' && c != '\x7f') ? c : '?';
    }
  }
  return out;
}

std::string Seconds(uint64_t ns) { return Format("%.2f s", static_cast<double>(ns) / 1e9); }
std::string Milliseconds(uint64_t ns) { return Format("%.1f ms", static_cast<double>(ns) / 1e6); }
std::string Percent(uint64_t part, uint64_t all) {
  return Format("%.1f %%",
                all == 0 ? 0 : 100 * static_cast<double>(part) / static_cast<double>(all));
}

std::string Tile(const std::string& name, const std::string& value) {
  return "<div><dt>" + name + "</dt><dd>" + value + "</dd></div>\n";
}

const char* Fill(size_t job) { return kFills[job % kFills.size()]; }

/// What was held over time, by job, under a line at the pool's size.
std::string Picture(const RunReport& report) {
  if (report.series.size() < 2) return "<p class=\"soft\">too short for a picture</p>\n";
  const double plot_width = kWidth - kLeft - 8;
  const double plot_height = kHeight - kTop - kBottom;
  const auto pool = static_cast<double>(std::max<uint64_t>(report.pool_bytes, 1));
  const auto lasted = static_cast<double>(std::max<uint64_t>(report.lasted_ns, 1));
  const auto x = [&](uint64_t t_ns) {
    const uint64_t at = t_ns - std::min(t_ns, report.began_ns);
    return kLeft + plot_width * static_cast<double>(at) / lasted;
  };
  const auto y = [&](uint64_t bytes) {
    return kTop + plot_height * (1 - static_cast<double>(bytes) / pool);
  };
  std::string svg = Format(
      "<svg viewBox=\"0 0 %.0f %.0f\" role=\"img\" aria-label=\"Memory held by "
      "each job over time\">\n",
      kWidth, kHeight);
  std::vector<uint64_t> below(report.series.size(), 0);
  for (size_t i = 0; i < report.jobs.size(); ++i) {
    std::string upper;
    std::string lower;
    for (size_t at = 0; at < report.series.size(); ++at) {
      const auto held = report.series[at].held.find(report.jobs[i].id);
      const uint64_t bytes =
          held == report.series[at].held.end() ? 0 : held->second * report.unit_bytes;
      const double from = x(report.series[at].t_ns);
      const double to =
          at + 1 < report.series.size() ? x(report.series[at + 1].t_ns) : kLeft + plot_width;
      const double top = y(below[at] + bytes);
      const double bottom = y(below[at]);
      upper += Format("%.1f,%.1f %.1f,%.1f ", from, top, to, top);
      lower = Format("%.1f,%.1f %.1f,%.1f ", to, bottom, from, bottom) + lower;
      below[at] += bytes;
    }
    svg += "<polygon fill=\"" + std::string(Fill(i)) + "\" points=\"" + upper + lower +
           "\"><title>" + Escaped(report.jobs[i].name) + "</title></polygon>\n";
  }
  svg += Format("<path d=\"M%.0f %.1fH%.0f\" stroke=\"currentColor\" stroke-dasharray=\"4 3\"/>\n",
                kLeft, kTop, kLeft + plot_width);
  svg += Format("<path d=\"M%.0f %.1fH%.0f\" stroke=\"currentColor\"/>\n", kLeft,
                kTop + plot_height, kLeft + plot_width);
  const auto label = [&](double at_x, double at_y, const char* anchor, const std::string& text) {
    svg += Format("<text x=\"%.0f\" y=\"%.0f\" text-anchor=\"%s\">", at_x, at_y, anchor) + text +
           "</text>\n";
  };
  label(kLeft - 6, kTop + 4, "end", FormatBytes(report.pool_bytes));
  label(kLeft - 6, kTop + plot_height / 2 + 4, "end", FormatBytes(report.pool_bytes / 2));
  label(kLeft - 6, kTop + plot_height + 4, "end", "0");
  label(kLeft, kHeight - 8, "start", "0 s");
  label(kLeft + plot_width, kHeight - 8, "end", Seconds(report.lasted_ns));
  return svg + "</svg>\n";
}

std::string Jobs(const RunReport& report) {
  std::string text =
      "<div class=\"scroll\"><table><thead><tr><th>job</th><th>iterations</th><th>median</th>"
      "<th>p90</th><th>peak</th><th>limit</th><th>held / peak</th><th>lent</th><th>borrowed</th>"
      "<th>waited</th><th>of its time</th></tr></thead><tbody>\n";
  for (size_t i = 0; i < report.jobs.size(); ++i) {
    const ReportedJob& job = report.jobs[i];
    text += "<tr><td><span class=\"key\" style=\"background:" + std::string(Fill(i)) +
            "\"></span>" + std::to_string(job.id) + " " + Escaped(job.name) + "</td>";
    for (const std::string& cell :
         {std::to_string(job.iterations), Milliseconds(job.iteration_median_ns),
          Milliseconds(job.iteration_p90_ns), FormatBytes(job.peak_bytes),
          FormatBytes(job.limit_bytes), Format("%.2f", job.held_over_peak),
          FormatBytes(job.lent_bytes), FormatBytes(job.borrowed_bytes), Seconds(job.waited_ns),
          Percent(job.waited_ns, job.there_ns)}) {
      text += "<td>" + cell + "</td>";
    }
    text += "</tr>\n";
  }
  return text + "</tbody></table></div>\n";
}

std::string Happened(const RunReport& report) {
  std::string rows;
  for (const ReportedJob& job : report.jobs) {
    const auto row = [&](const std::string& what, const std::string& reason, uint64_t count) {
      if (count == 0) return;
      rows += "<tr><td>" + std::to_string(job.id) + " " + Escaped(job.name) +
              "</td><td class=\"text\">" + what + "</td><td class=\"text\">" + Escaped(reason) +
              "</td><td>" + std::to_string(count) + "</td></tr>\n";
    };
    for (const auto& [reason, count] : job.figures.waits) row("waited", reason, count);
    for (const auto& [reason, count] : job.figures.refusals) row("was refused", reason, count);
    row("raised its claim", "", job.figures.claim_raises);
    row("left its iteration", "", job.figures.deviations);
    row("was moved to host memory", "", job.figures.evictions);
  }
  if (rows.empty()) return "<p>Nobody waited, and nobody was refused.</p>\n";
  return "<div class=\"scroll\"><table><thead><tr><th>job</th><th class=\"text\">what</th>"
         "<th class=\"text\">why</th><th>times</th></tr></thead><tbody>\n" +
         rows + "</tbody></table></div>\n";
}

std::string Loans(const RunReport& report) {
  if (report.loans.empty()) return "<p>Nothing was lent within iterations.</p>\n";
  const auto name = [&](scheduler::JobId id) {
    for (const ReportedJob& job : report.jobs) {
      if (job.id == id) return std::to_string(id) + " " + Escaped(job.name);
    }
    return std::string("others");
  };
  std::string text =
      "<div class=\"scroll\"><table><thead><tr><th>lender</th><th class=\"text\">borrower</th>"
      "<th>lent</th><th>times</th></tr></thead><tbody>\n";
  for (const scheduler::Loan& loan : report.loans) {
    text += "<tr><td>" + name(loan.lender) + "</td><td class=\"text\">" + name(loan.borrower) +
            "</td><td>" + FormatBytes(loan.lent * report.unit_bytes) + "</td><td>" +
            std::to_string(loan.times) + "</td></tr>\n";
  }
  return text + "</tbody></table></div>\n";
}

}  // namespace

std::string ReportHtml(const RunReport& report) {
  std::string text =
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
      "<meta name=\"viewport\" content=\"width=device-width\">"
      "<title>Sluice: a run</title><style>" +
      std::string(kStyle) + "</style></head><body>\n<h1>A run under Sluice</h1>\n";
  text += "<p class=\"soft\">" + Escaped(report.source) + ": " + Seconds(report.lasted_ns) +
          ", pool " + FormatBytes(report.pool_bytes);
  for (const auto& [policy, ns] : report.policies) {
    text += ", policy " + Escaped(policy) + " for " + Seconds(ns);
  }
  text += "</p>\n<dl>\n";
  text += Tile("lent within iterations", FormatBytes(report.lent_bytes));
  text += Tile("peaks of all jobs together", FormatBytes(report.peaks_bytes));
  text += Tile("most held at once", FormatBytes(report.most_held_bytes));
  text += Tile("jobs at once", std::to_string(report.most_jobs));
  text += Tile("of them with room for whole peaks", std::to_string(report.fit_without));
  text += Tile("two or more inside at once", Percent(report.together_ns, report.busy_ns));
  text += "</dl>\n<h2>Memory held</h2>\n" + Picture(report);
  text += "<h2>Jobs</h2>\n" + Jobs(report);
  text += "<h2>What happened</h2>\n" + Happened(report);
  text += "<h2>Who lent to whom</h2>\n" + Loans(report);
  text +=
      report.violations == 0
          ? "<p class=\"soft\">Every promise was kept, by <code>sluice check-log</code>.</p>\n"
          : "<p><strong>" + std::to_string(report.violations) +
                " promises were broken:</strong> <code>sluice check-log</code> names them.</p>\n";
  return text + "</body></html>\n";
}

}  // namespace sluice::cli
