// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
// Jobs whose library puts scattered units side by side where there is no run (docs/adr/0031). What
// they were promised is a number of units, wherever those lie; a run is what they would rather
// have, as it costs no call of the driver.
#include <algorithm>

#include "noderuntime/flow/flow.h"

namespace sluice::flow {

using scheduler::Decision;

void Flow::WantRun(Request* request, Units run, const JobSpec& spec) {
  request->contiguous = spec.stitches ? std::min<Units>(run, 1) : run;
  request->prefers = spec.stitches ? run : 0;
}

/// A run, if it is there now and takes nothing from what others were promised. Else the client has
/// its answer at once: in pieces it may get by with fewer units, for which it waits as anybody
/// does. What units of its own are in the way of becoming free is done first.
Status Flow::LeaseIfThere(JobId id, const Request& request) {
  if (frozen_) {
    AnswerDeny(id, protocol::DenyCode::kNoRun, "");
    return {};
  }
  Enqueue(id, request);
  while (true) {
    const auto own = std::find_if(requests_.begin(), requests_.end(),
                                  [id](const Request& one) { return one.job == id; });
    if (own == requests_.end()) break;
    const std::vector<Request> alone = {*own};
    std::optional<Decision> decision =
        scheduler::Next(ledger_, alone, options_.policy, OutlookNow(), nullptr, &spare_);
    const bool granted = decision && decision->kind == Decision::Kind::kGrant;
    const bool reclaims = decision && decision->kind == Decision::Kind::kReclaim;
    if (granted) decision->request = static_cast<size_t>(own - requests_.begin());
    if (!granted && !reclaims) break;
    ++decisions_;
    ++changes_;
    if (!ApplyDecision(*decision)) break;
  }
  if (RequestOf(id) != nullptr) AnswerDeny(id, protocol::DenyCode::kNoRun, "");
  Decide();
  return {};
}

}  // namespace sluice::flow
