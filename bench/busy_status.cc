// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "bench/busy_status.h"

#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <utility>

#include "noderuntime/figures/histogram.h"

namespace sluice::bench {
namespace {

using Json = nlohmann::json;

Json Histogram(size_t bounds) {
  Json json;
  for (size_t i = 0; i <= bounds; ++i) json["counts"].push_back(1'000'000 + i);
  json["sum_ns"] = 123'456'789'012;
  return json;
}

std::string NameOf(uint32_t id) {
  return "team-" + std::to_string(id % 5) + "/resnet-training-7f9c4d8b6-" +
         std::to_string(10'000 + id) + "/main";
}

/// What is counted of each.
Json Counted(uint32_t id, bool events) {
  Json counted;
  for (const char* key : {"iterations", "lent_bytes", "borrowed_bytes", "lent_total_bytes",
                          "borrowed_total_bytes", "claim_raises", "returns"}) {
    counted[key] = 12'345'678'901 + id;
  }
  counted["gate_wait"] = counted["lease_wait"] = Histogram(std::size(figures::kWaitBounds));
  for (const char* reason : {"turn", "memory", "measurement"}) counted["waits"][reason] = 1234;
  for (const char* reason : {"over-limit", "exhausted"}) counted["refusals"][reason] = 12;
  counted["deviations_by"]["launches"] = counted["evictions_by"]["memory"] = 123'456;
  for (int i = 0; i < (events ? 16 : 0); ++i) {
    counted["events"].push_back({{"unix_ms", 1'764'000'000'000},
                                 {"kind", "waited"},
                                 {"reason", "memory"},
                                 {"text", std::string(120, 'x')}});
  }
  return counted;
}

Json Ended(uint32_t id, bool events) {
  Json json = {
      {"id", id}, {"name", NameOf(id)}, {"phase", "ended"}, {"figures", Counted(id, events)}};
  json["figures"]["lent_bytes"] = json["figures"]["borrowed_bytes"] = 0;
  return json;
}

Json JobOf(uint32_t id, bool events) {
  Json json = {{"id", id},
               {"name", NameOf(id)},
               {"pid", 12345},
               {"phase", "running"},
               {"launches", 123'456'789},
               {"run_ahead_ns", 1'234'567},
               {"profile", {{"credit_ns", 2'345'678}, {"iteration_ns", 256'789'012}}},
               {"waiting",
                {{"kind", "gate"},
                 {"since_ms", 1234},
                 {"code", "memory"},
                 {"reason", "waits for 1.2 GiB that job 7 'team-2/other/main' was promised"}}}};
  for (const char* key :
       {"request_bytes", "limit_bytes", "claim_bytes", "base_bytes", "held_bytes", "away_bytes",
        "unfenced_bytes", "spare_bytes", "peak_held_bytes", "live_bytes", "outside_bytes"}) {
    json[key] = 12'345'678'901 + id;
  }
  json["figures"] = Counted(id, events);
  return json;
}

}  // namespace

Json BusyStatus(bool events) {
  Json json = {{"version", "0.2.0"},
               {"gpu", 3},
               {"gpu_uuid", "GPU-01234567-89ab-cdef-0123-456789abcdef"},
               {"started_unix_ms", 1'764'000'000'000},
               {"policy", "flow"},
               {"lanes", 2},
               {"claims", "steps"},
               {"draining", false},
               {"sessions", {{"1.5", 60}, {"1.4", 4}}},
               {"nvml", {{"used_bytes", 12'345'678'901}, {"drift_bytes", -12'345'678}}}};
  for (const char* key : {"gpu_bytes", "pool_bytes", "budget_bytes", "free_bytes", "reserve_bytes",
                          "largest_free_bytes", "outside_reserve_bytes", "outside_bytes"}) {
    json[key] = 123'456'789'012;
  }
  Json& counted = json["figures"];
  const std::pair<const char*, std::span<const uint64_t>> all[] = {
      {"wait", figures::kWaitBounds},
      {"decision", figures::kDecisionBounds},
      {"service", figures::kServiceBounds},
      {"handover", figures::kHandoverBounds},
      {"reclaim", figures::kReclaimBounds}};
  for (const auto& [name, bounds] : all) {
    counted["bounds_ns"][name] = bounds;
    counted[name] = Histogram(bounds.size());
  }
  for (uint32_t i = 0; i < kBusyPairs; ++i) {
    counted["loans"].push_back({{"lender", 1 + i % kBusyJobs},
                                {"borrower", 1 + (i + 1 + i / kBusyJobs) % kBusyJobs},
                                {"bytes", 1'234'567'890},
                                {"lent_bytes", 123'456'789'012},
                                {"returned_bytes", 122'456'789'012},
                                {"loans", 123'456}});
  }
  for (uint32_t id = 1; id <= kBusyJobs; ++id) json["jobs"].push_back(JobOf(id, events));
  for (uint32_t i = 1; i <= kBusyEnded; ++i) json["ended"].push_back(Ended(kBusyJobs + i, events));
  return json;
}

}  // namespace sluice::bench
