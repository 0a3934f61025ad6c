// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "bench/place_report.h"

#include <array>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <nlohmann/json.hpp>

#include "bench/machine.h"
#include "bench/place_client.h"
#include "scheduler/place/offline/fit.h"
#include "scheduler/place/offline/leased.h"
#include "scheduler/place/offline/solve.h"

namespace sluice::bench {
namespace {

using scheduler::FitHole;
using scheduler::FitOrder;
using scheduler::Offsets;

constexpr uint64_t kUnit = uint64_t{8} << 20;

using Buffers = std::vector<scheduler::Buffer>;
template <FitOrder order, FitHole hole>
Offsets ByFit(const Buffers& buffers) {
  return scheduler::PlaceByFit(buffers, order, hole);
}
struct Rival {
  const char* heading;
  Offsets (*place)(const Buffers&);
};
constexpr std::array kRivals = {
    Rival{"SmartPool best", ByFit<FitOrder::kSize, FitHole::kBest>},
    Rival{"SmartPool first", ByFit<FitOrder::kSize, FitHole::kFirst>},
    Rival{"time best", ByFit<FitOrder::kTime, FitHole::kBest>},
    Rival{"time first", ByFit<FitOrder::kTime, FitHole::kFirst>},
    // What a plan for the client would have to beat: where it gives back at its troughs, and where
    // it keeps what it holds (docs/adr/0035).
    Rival{"client", [](const Buffers& buffers) { return PlaceAsClient(buffers, kUnit, true); }},
    Rival{"client first", [](const Buffers& b) { return PlaceAsClient(b, kUnit, false); }},
};
// What is over soon is measured again, and the least counts.
constexpr int kRepeats = 5;
constexpr double kSoon = 0.2;

PlaceFigure Measure(const PlaceInstance& instance, std::string method,
                    const std::function<Offsets()>& place) {
  PlaceFigure figure;
  figure.method = std::move(method);
  Offsets offsets;
  for (int i = 0; i < kRepeats; ++i) {
    const std::clock_t start = std::clock();
    offsets = place();
    const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
    if (i == 0 || seconds < figure.seconds) figure.seconds = seconds;
    if (figure.seconds > kSoon) break;
  }
  figure.footprint = scheduler::Footprint(instance.buffers, offsets);
  const Status judged = scheduler::ValidatePlacement(instance.buffers, offsets, figure.footprint);
  if (!judged.ok()) {
    std::fprintf(stderr, "sluice_place_bench: %s by %s: %s\n", instance.name.c_str(),
                 figure.method.c_str(), judged.message().c_str());
    std::exit(1);
  }
  figure.leased_over_least = scheduler::LeasedIntegral(instance.buffers, offsets, kUnit) /
                             scheduler::LeastLeasedIntegral(instance.buffers, kUnit);
  return figure;
}

PlaceFigure MeasureOurs(const PlaceInstance& instance, scheduler::PlaceObjective objective) {
  scheduler::PlaceRequest request;
  request.buffers = instance.buffers;
  request.capacity = instance.capacity;
  request.objective = objective;
  request.unit_bytes = kUnit;
  request.effort =
      instance.capacity.has_value() ? scheduler::kThoroughEffort : scheduler::kUsualEffort;
  std::string method;
  PlaceFigure figure = Measure(instance, "ours", [&] {
    scheduler::PlaceAnswer answer = scheduler::SolvePlacement(request).value();
    method = answer.method;
    return std::move(answer.offsets);
  });
  figure.method = method;
  return figure;
}

double OverBound(const PlaceRow& row, const PlaceFigure& figure) {
  return static_cast<double>(figure.footprint) / static_cast<double>(row.lower_bound);
}

std::string Format(const char* format, ...) __attribute__((format(printf, 1, 2)));
std::string Format(const char* format, ...) {
  char text[256];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  return text;
}

nlohmann::json Json(const PlaceRow& row, const PlaceFigure& figure) {
  return {{"method", figure.method},
          {"footprint_bytes", figure.footprint},
          {"over_lower_bound", OverBound(row, figure)},
          {"leased_over_least", figure.leased_over_least},
          {"seconds", figure.seconds}};
}

}  // namespace

PlaceRow MeasurePlacement(const PlaceInstance& instance) {
  PlaceRow row;
  row.name = instance.name;
  row.buffers = instance.buffers.size();
  row.lower_bound = scheduler::PeakLoad(instance.buffers);
  row.ours = MeasureOurs(instance, scheduler::PlaceObjective::kFootprint);
  row.ours_leased = MeasureOurs(instance, scheduler::PlaceObjective::kLeased);
  for (const Rival& rival : kRivals) {
    row.fits.push_back(
        Measure(instance, rival.heading, [&] { return rival.place(instance.buffers); }));
  }
  if (instance.capacity.has_value() && row.ours.footprint > *instance.capacity) {
    row.missed = "above its capacity";
  } else if (!instance.capacity.has_value() &&
             OverBound(row, row.ours) > instance.most_over_bound) {
    row.missed = Format("above %.3f of the lower bound", instance.most_over_bound);
  } else if (row.ours.seconds > instance.most_seconds) {
    row.missed = Format("longer than %.0f s", instance.most_seconds);
  }
  return row;
}

std::string PlaceTable(const std::vector<PlaceRow>& rows) {
  std::string text = "Measured on one core of " + MachineLine() +
                     "\n\nFootprint over the lower "
                     "bound, and seconds\n\n";
  text += Format("%-20s %7s %12s %16s", "", "buffers", "bound bytes", "ours");
  for (const Rival& rival : kRivals) text += Format(" %16s", rival.heading);
  text += "  ours by\n";
  for (const PlaceRow& row : rows) {
    text += Format("%-20s %7zu %12llu", row.name.c_str(), row.buffers,
                   static_cast<unsigned long long>(row.lower_bound));
    text += Format("  %6.4f %6.3f s", OverBound(row, row.ours), row.ours.seconds);
    for (const PlaceFigure& fit : row.fits) {
      text += Format("  %6.4f %5.3f s", OverBound(row, fit), fit.seconds);
    }
    text += "  " + row.ours.method + (row.missed.empty() ? "" : "  MISSED: " + row.missed) + "\n";
  }
  text +=
      "\nBytes leased over time in units of 8 MiB, over the least; ours by this objective, with "
      "its footprint over the lower bound\n\n";
  text += Format("%-20s %16s", "", "ours");
  for (const Rival& rival : kRivals) text += Format(" %16s", rival.heading);
  text += "  ours by\n";
  for (const PlaceRow& row : rows) {
    // In one unit or two everything is the same.
    if (row.lower_bound < 8 * kUnit) continue;
    text += Format("%-20s  %6.4f (%6.4f)", row.name.c_str(), row.ours_leased.leased_over_least,
                   OverBound(row, row.ours_leased));
    for (const PlaceFigure& fit : row.fits) text += Format(" %16.4f", fit.leased_over_least);
    text += "  " + row.ours_leased.method + "\n";
  }
  return text;
}

nlohmann::json PlaceJson(const std::vector<PlaceRow>& rows) {
  nlohmann::json instances = nlohmann::json::array();
  for (const PlaceRow& row : rows) {
    nlohmann::json fits = nlohmann::json::array();
    for (const PlaceFigure& fit : row.fits) fits.push_back(Json(row, fit));
    instances.push_back({{"name", row.name},
                         {"buffers", row.buffers},
                         {"lower_bound_bytes", row.lower_bound},
                         {"ours", Json(row, row.ours)},
                         {"ours_leased", Json(row, row.ours_leased)},
                         {"fits", fits},
                         {"missed", row.missed}});
  }
  return {{"machine", DescribeMachine()},
          {"threads", 1},
          {"lease_unit_bytes", kUnit},
          {"instances", instances}};
}

}  // namespace sluice::bench
