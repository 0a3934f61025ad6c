// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "tests/observe/stand/made_up_source.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

namespace sluice::testing {
namespace {

using Json = nlohmann::ordered_json;

constexpr uint64_t kStepMs = 20;
constexpr uint64_t kUnit = 8u << 20;
constexpr uint64_t kPoolUnits = 9216;  // 72 GiB
constexpr uint64_t kKeptMs = 10'000;
constexpr unsigned kGates = 12;

constexpr const char* kNames[] = {
    "llama-8b-sft", "resnet50",      "bert-base-mlm", "unet-diffusion", "vit-large-384",
    "gnmt-en-de",   "whisper-small", "dlrm-criteo",   "roberta-reward", "efficientnet-b4"};

/// One job at one time. All of it is a function of its number and the time.
struct Moment {
  uint64_t iteration = 0;
  double through = 0;  // 0 to 1: how much of its iteration is done
  bool inside = false;
  bool waits = false;
  uint64_t base = 0;  // units
  uint64_t peak = 0;
  uint64_t held = 0;
};

Moment At(unsigned job, unsigned jobs, uint64_t t_ms) {
  Moment moment;
  // Sizes fall with the number, so that a crowd has many small ones; together they fit.
  const double weight = jobs <= 4 ? 1.0 / jobs : 1.35 / (2.0 + job) / std::log(2.0 + jobs);
  moment.peak = std::max<uint64_t>(4, static_cast<uint64_t>(weight * 0.92 * kPoolUnits));
  moment.base = moment.peak * (22 + job * 7 % 20) / 100;
  const uint64_t period = 3400 + 730 * (job * 5 % 7);
  const uint64_t shifted = t_ms + job * 1370;
  moment.iteration = shifted / period;
  const double at = static_cast<double>(shifted % period) / static_cast<double>(period);
  constexpr double kInside = 0.72;
  moment.inside = at < kInside;
  moment.waits = !moment.inside && at > 0.80;
  moment.through = moment.inside ? at / kInside : 0;
  const double steps = std::floor(moment.through * 24) / 24;
  const double rise = moment.inside ? std::sin(steps * 3.14159) : 0;
  moment.held = moment.base + static_cast<uint64_t>(std::pow(rise, 0.8) *
                                                    static_cast<double>(moment.peak - moment.base));
  return moment;
}

std::string Name(unsigned job) {
  const unsigned kinds = std::size(kNames);
  const std::string name = kNames[job % kinds];
  return job < kinds ? "research/" + name + "/train"
                     : "batch/" + name + "-" + std::to_string(job / kinds) + "/train";
}

class MadeUpConnection final : public page::LiveConnection {
 public:
  explicit MadeUpConnection(const MadeUpSource* source) : source_(source) {}
  Result<std::string> Fetch(uint64_t cursor) override {
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
    const Result<std::string> alive = source_->Status(0);
    if (!alive.ok()) return alive.status();
    return source_->Live(static_cast<uint64_t>(ms), cursor);
  }

 private:
  const MadeUpSource* source_;
};

}  // namespace

MadeUpSource::MadeUpSource(unsigned jobs) : jobs_(jobs) {}

Result<std::unique_ptr<page::LiveConnection>> MadeUpSource::Connect(uint32_t) const {
  if (down_) return sluice::Status(StatusCode::kUnavailable, "no daemon runs in /run/made-up");
  return std::unique_ptr<page::LiveConnection>(new MadeUpConnection(this));
}

std::string MadeUpSource::Live(uint64_t now_ms, uint64_t cursor) const {
  const unsigned jobs = jobs_;
  const uint64_t now = now_ms / kStepMs;
  Json json = {{"seq", now},
               {"now_ms", now * kStepMs},
               {"step_ms", kStepMs},
               {"pool", kPoolUnits * kUnit},
               {"budget", kPoolUnits * kUnit},
               {"unit", kUnit}};
  std::vector<Moment> moments;
  uint64_t held = 0;
  for (unsigned i = 0; i < jobs; ++i) {
    moments.push_back(At(i, jobs, now * kStepMs));
    held += moments.back().held;
  }
  json["free"] = (kPoolUnits - std::min(held, kPoolUnits)) * kUnit;
  {
    const std::lock_guard lock(mutex_);
    json["policy"] = policy_;
    json["lanes"] = lanes_;
  }
  json["jobs"] = Json::array();
  json["loans"] = Json::array();
  for (unsigned i = 0; i < jobs; ++i) {
    const Moment& moment = moments[i];
    const Moment& next = moments[(i + 1) % jobs];
    const bool borrows = jobs > 1 && moment.inside && !next.inside;
    const uint64_t lent = borrows ? std::min(moment.held - moment.base, next.peak - next.base) : 0;
    if (lent > 0) json["loans"].push_back({(i + 1) % jobs + 1, i + 1, lent * kUnit});
    Json job = {{"id", i + 1}, {"name", Name(i)}};
    job["phase"] = moment.inside ? "running" : moment.waits ? "waiting" : "parked";
    job["held"] = moment.held * kUnit;
    job["live"] = moment.held * kUnit / 16 * 15;
    job["claim"] = moment.inside ? moment.peak * kUnit : 0;
    job["limit"] = moment.peak * kUnit;
    job["request"] = moment.base * kUnit;
    job["base"] = moment.base * kUnit;
    job["lent"] = 0;
    job["borrowed"] = lent * kUnit;
    job["gate"] = static_cast<unsigned>(moment.through * kGates);
    job["gates"] = kGates;
    job["iteration"] = moment.iteration % 100'000;
    job["waits_ms"] = moment.waits ? 420 : 0;
    job["waits_for"] = moment.waits ? "its next iteration needs " +
                                          std::to_string((moment.peak - moment.base) / 128) +
                                          ".0 GiB more than is free before job " +
                                          std::to_string((i + 1) % jobs + 1) + " gives back"
                                    : "";
    job["code"] = moment.waits ? (i % 3 == 0 ? "turn" : "memory") : "";
    json["jobs"].push_back(std::move(job));
  }
  for (const Json& loan : json["loans"]) {
    Json& lender = json["jobs"][loan[0].get<size_t>() - 1];
    lender["lent"] = lender["lent"].get<uint64_t>() + loan[2].get<uint64_t>();
  }
  json["frames"] = Json::array();
  const uint64_t oldest = now - kKeptMs / kStepMs;
  for (uint64_t step = std::max(cursor, oldest) + 1; step <= now; ++step) {
    Json units = Json::array();
    for (unsigned i = 0; i < jobs; ++i) {
      units.push_back(i + 1);
      units.push_back(At(i, jobs, step * kStepMs).held);
    }
    json["frames"].push_back({step * kStepMs, std::move(units)});
  }
  return json.dump();
}

Result<std::string> MadeUpSource::Status(uint32_t) const {
  if (down_) return sluice::Status(StatusCode::kUnavailable, "no daemon runs in /run/made-up");
  const Json live = Json::parse(Live(kStepMs * 1'000'000, 0));
  Json json = {{"version", "0.1.0"}, {"gpu", 0}, {"gpu_name", "Made-up GPU, 80 GiB"}};
  json["pool_bytes"] = live["pool"];
  json["policy"] = live["policy"];
  json["lanes"] = live["lanes"];
  json["jobs"] = Json::array();
  for (const Json& job : live["jobs"]) {
    Json entry = {{"id", job["id"]}, {"name", job["name"]}, {"phase", job["phase"]}};
    for (const char* key : {"held", "limit", "request", "claim", "base"}) {
      entry[std::string(key) + "_bytes"] = job[key];
    }
    json["jobs"].push_back(std::move(entry));
  }
  return json.dump();
}

Result<uint32_t> MadeUpSource::SetPolicy(uint32_t, const std::string& policy,
                                         uint32_t lanes) const {
  const std::lock_guard lock(mutex_);
  policy_ = policy;
  if (lanes != 0) lanes_ = lanes;
  return lanes_;
}

}  // namespace sluice::testing
