// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/cli/look/explain.h"

#include <time.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "common/bytes.h"
#include "noderuntime/cli/answer.h"
#include "noderuntime/cli/job_lookup.h"
#include "noderuntime/cli/offline/format.h"
#include "noderuntime/cli/text_columns.h"

namespace sluice::cli {
namespace {

using answer::Member;
using answer::Number;
using answer::Text;
using nlohmann::json;

std::string Bytes(const json& object, const char* key) { return FormatBytes(Number(object, key)); }

std::string Seconds(double ns) {
  if (ns < 1e6) return Format("%.0f us", ns / 1e3);
  if (ns < 1e9) return Format("%.1f ms", ns / 1e6);
  return Format("%.1f s", ns / 1e9);
}

std::string TimeOfDay(uint64_t unix_ms) {
  const auto seconds = static_cast<time_t>(unix_ms / 1000);
  tm local = {};
  ::localtime_r(&seconds, &local);
  return Format("%02d:%02d:%02d.%03u", local.tm_hour, local.tm_min, local.tm_sec,
                static_cast<unsigned>(unix_ms % 1000));
}

/// "12 times, 3.4 s in all, at most 30.0 ms for 9 of 10": of a histogram.
std::string Waits(const json& histogram, const json& bounds_ns) {
  const json counts = Member(histogram, "counts");
  uint64_t all = 0;
  uint64_t at_once = 0;
  for (const json& count : counts) all += count.get<uint64_t>();
  if (all == 0) return "never";
  if (!counts.empty()) at_once = counts.front().get<uint64_t>();
  std::string text = std::to_string(all - at_once) + " of " + std::to_string(all) + " times, " +
                     Seconds(static_cast<double>(Number(histogram, "sum_ns"))) + " in all";
  uint64_t seen = 0;
  for (size_t i = 0; i < counts.size(); ++i) {
    seen += counts[i].get<uint64_t>();
    if (seen * 10 < all * 9) continue;
    if (i < bounds_ns.size()) {
      text += ", 9 of 10 at most " + Seconds(bounds_ns[i].get<double>());
    }
    break;
  }
  return text;
}

std::string Counts(const json& counts) {
  std::string text;
  for (const auto& [reason, count] : counts.items()) {
    text += (text.empty() ? "" : ", ") + reason + " " + count.dump();
  }
  return text;
}

std::string Title(const json& job) {
  return "job " + std::to_string(Number(job, "id")) + " '" + Text(job, "name") + "'";
}

std::string NameOf(const json& status, uint64_t id) {
  for (const char* list : {"jobs", "ended"}) {
    for (const json& job : Member(status, list)) {
      if (Number(job, "id") == id) return Title(job);
    }
  }
  return "others";
}

std::string Now(const json& status, const json& job) {
  std::string text = "  holds " + Bytes(job, "held_bytes");
  if (Number(job, "claim_bytes") > 0)
    text += " of the " + Bytes(job, "claim_bytes") + " it claimed";
  text += " (request " + Bytes(job, "request_bytes") + ", limit " + Bytes(job, "limit_bytes") +
          "), " + Bytes(job, "live_bytes") + " of it in use\n";
  if (Number(job, "away_bytes") > 0) {
    text += "  has " + Bytes(job, "away_bytes") + " in host memory\n";
  }
  if (Number(job, "outside_bytes") > 0) {
    text += "  has " + Bytes(job, "outside_bytes") + " outside the pool\n";
  }
  const uint64_t id = Number(job, "id");
  for (const json& loan : Member(Member(status, "figures"), "loans")) {
    if (Number(loan, "bytes") == 0) continue;
    if (Number(loan, "lender") == id) {
      text += "  lends " + Bytes(loan, "bytes") + " to " +
              NameOf(status, Number(loan, "borrower")) + "\n";
    } else if (Number(loan, "borrower") == id) {
      text += "  borrows " + Bytes(loan, "bytes") + " from " +
              NameOf(status, Number(loan, "lender")) + "\n";
    }
  }
  return text;
}

/// What it waits for, or why it never will be given anything.
std::string Why(const json& job) {
  if (Member(job, "unseen") == true) {
    return "  is on the GPU without a session: the library is not in it\n";
  }
  if (const std::string refused = Text(job, "refused"); !refused.empty()) {
    return "  refused: " + refused + "\n  what helps: " + WhatHelps("refused") + "\n";
  }
  const json waiting = Member(job, "waiting");
  if (!waiting.is_object()) return "  waits for nothing\n";
  const std::string code = Text(waiting, "code");
  std::string text =
      "  waits since " + Seconds(static_cast<double>(Number(waiting, "since_ms")) * 1e6) +
      (code.empty() ? "" : " (" + code + ")") + ": " + Text(waiting, "reason") + "\n";
  if (const std::string help = WhatHelps(code); !help.empty())
    text += "  what helps: " + help + "\n";
  return text;
}

std::string Neighbours(const json& status, uint64_t but) {
  std::vector<std::vector<std::string>> rows = {{"", "", "HELD", "CLAIM", "LIMIT", ""}};
  for (const json& other : Member(status, "jobs")) {
    if (Number(other, "id") == but) continue;
    const json waiting = Member(other, "waiting");
    rows.push_back({Title(other), Text(other, "phase"), Bytes(other, "held_bytes"),
                    Bytes(other, "claim_bytes"), Bytes(other, "limit_bytes"),
                    waiting.is_object() ? "waits (" + Text(waiting, "code") + ")" : ""});
  }
  if (rows.size() == 1) return "  nobody else is on this GPU\n";
  std::string text = "\nwho else is there, free " + Bytes(status, "free_bytes") + " of " +
                     Bytes(status, "pool_bytes") + "\n";
  return text + AlignColumns(rows, 2, 2, 4);
}

std::string SoFar(const json& status, const json& job) {
  const json figures = Member(job, "figures");
  if (!figures.is_object()) return "";
  const json bounds = Member(Member(Member(status, "figures"), "bounds_ns"), "wait");
  std::string text = "\nso far\n  " + std::to_string(Number(figures, "iterations")) +
                     " iterations; lent " + Bytes(figures, "lent_total_bytes") + ", borrowed " +
                     Bytes(figures, "borrowed_total_bytes") + "\n";
  text += "  waited at gates " + Waits(Member(figures, "gate_wait"), bounds) + "\n";
  text += "  waited between gates " + Waits(Member(figures, "lease_wait"), bounds) + "\n";
  const std::string waits = Counts(Member(figures, "waits"));
  if (!waits.empty()) text += "  for: " + waits + "\n";
  const std::string refusals = Counts(Member(figures, "refusals"));
  if (!refusals.empty()) text += "  refused: " + refusals + "\n";
  for (const auto& [key, words] :
       {std::pair("claim_raises", "claim raised"), std::pair("deviations", "left its iteration"),
        std::pair("evictions", "moved to host memory")}) {
    if (const uint64_t count = Number(figures, key); count > 0) {
      text += std::string("  ") + words + " " + std::to_string(count) + " times\n";
    }
  }
  const json events = Member(figures, "events");
  if (events.empty()) return text;
  text += "\nlately\n";
  for (const json& event : events) {
    const std::string reason = Text(event, "reason");
    text += "  " + TimeOfDay(Number(event, "unix_ms")) + " " + Text(event, "kind") +
            (reason.empty() ? "" : " (" + reason + ")") + ": " + Text(event, "text") + "\n";
  }
  return text;
}

struct Found {
  json status;
  json job;
};

Result<Found> Find(const std::string& status_json, const std::string& job) {
  Found found;
  found.status = json::parse(status_json, nullptr, /*allow_exceptions=*/false);
  Result<uint32_t> id = FindJob(status_json, job);
  if (!id.ok() && id.status().code() == StatusCode::kNotFound) {
    // The latest of those that ended: who runs a job again means that one.
    for (const json& ended : Member(found.status, "ended")) {
      const auto number = static_cast<uint32_t>(Number(ended, "id"));
      if (MayMean(job, number, Text(ended, "name"))) id = number;
    }
  }
  if (!id.ok()) return id.status();
  for (const char* list : {"ended", "jobs"}) {
    for (const json& each : Member(found.status, list)) {
      if (Number(each, "id") == *id) found.job = each;
    }
  }
  return found;
}

}  // namespace

std::string WhatHelps(const std::string& reason) {
  struct Help {
    const char* reason;
    const char* text;
  };
  static constexpr Help kHelp[] = {
      {"admission", "end a job, lower the limit of one (sluice limit), or ask for less"},
      {"measurement", "it is a matter of the other job's first iterations; nothing has to be done"},
      {"standstill",
       "see what the job that computes nothing waits for; it may be stopped in a debugger"},
      {"turn",
       "jobs take turns; more lanes (sluice policy NAME --lanes N) or a higher priority change "
       "whose turn it is"},
      {"memory",
       "what is free is promised to others until they are through; a smaller batch, a larger "
       "budget, or claims by steps (--claims steps) lend more"},
      {"place",
       "where the other jobs' bases lie leaves no run that is long enough; it opens when one of "
       "them ends or when nobody is inside"},
      {"budget",
       "an operator is lowering the budget (sluice budget); it is in force when those inside have "
       "come to their troughs"},
      {"host-memory",
       "it comes back when its place is free again; smaller claims of its neighbours make that "
       "sooner"},
      {"fence", "its own GPU work has to pass what it gave back; nothing has to be done"},
      {"over-limit",
       "raise its limit (sluice limit, or the pod's annotation), or make the batch smaller"},
      {"exhausted",
       "it asked for more than it had claimed, and nobody gave anything back in time; raise its "
       "request, or make the batch smaller"},
      {"gate",
       "nothing has to be done: its gate opened, and it asks for what it needs piece by piece; a "
       "larger pool leaves longer runs"},
      {"refused", "ask for less, or wait until the jobs that are named have ended"},
      {"outside",
       "memory outside the pool is not lent; a larger reserve (--reserve) makes room for it"},
      {"second-process",
       "one process of a job has the GPU's memory at a time; start the other one as a job of its "
       "own"},
      {"internal", "a defect of the daemon; please report it with its log"},
  };
  for (const Help& help : kHelp) {
    if (reason == help.reason) return help.text;
  }
  return "";
}

Result<std::string> Explain(const std::string& status_json, const std::string& job) {
  const Result<Found> found = Find(status_json, job);
  if (!found.ok()) return found.status();
  const json& status = found->status;
  const bool ended = Text(found->job, "phase") == "ended";
  std::string text = Title(found->job) + ": " + Text(found->job, "phase");
  if (ended) {
    text += " at " + TimeOfDay(Number(found->job, "ended_unix_ms")) + "\n";
    return text + SoFar(status, found->job);
  }
  text += " on GPU " + std::to_string(Number(status, "gpu")) + " (" + Text(status, "gpu_name") +
          "), policy " + Text(status, "policy") + "\n";
  return text + Now(status, found->job) + Why(found->job) +
         Neighbours(status, Number(found->job, "id")) + SoFar(status, found->job);
}

Result<std::string> ExplainJson(const std::string& status_json, const std::string& job) {
  const Result<Found> found = Find(status_json, job);
  if (!found.ok()) return found.status();
  const json waiting = Member(found->job, "waiting");
  const std::string reason = found->job.contains("refused") ? "refused" : Text(waiting, "code");
  json answer;
  answer["job"] = found->job;
  answer["gpu"] = found->status;
  answer["help"] = WhatHelps(reason);
  return answer.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

}  // namespace sluice::cli
