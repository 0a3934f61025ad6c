// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/flow/profile_page.h"

#include <algorithm>
#include <memory>

#include "intercept/protocol/page_access.h"

namespace sluice::flow {

bool PublishProfile(const scheduler::Profile& profile, const scheduler::CyclePlan& plan,
                    uint32_t id, protocol::DaemonPage* page) {
  if (profile.period == 0 || profile.period > protocol::kMaxPeriodLaunches || plan.gates.empty() ||
      plan.gates.size() > protocol::kMaxGates || profile.launch_ns.size() < profile.period) {
    return false;
  }
  const auto image = std::make_unique<protocol::ProfileImage>();
  image->profile_id = id;
  image->period = profile.period;
  image->pacing_slot = profile.pacing_stream;
  image->window = profile.window;
  image->trough_place = profile.trough_place == scheduler::TroughPlace::kBeforeFirst
                            ? protocol::TroughPlace::kBeforeFirst
                            : protocol::TroughPlace::kAfterLast;
  image->trough_hash = profile.trough_hash;
  image->credit_ns = plan.credit_ns;
  image->gate_count = static_cast<uint32_t>(plan.gates.size());
  for (size_t i = 0; i < plan.gates.size(); ++i) {
    image->gates[i] = {plan.gates[i].launch, plan.gates[i].need_units};
  }
  std::copy_n(profile.launch_ns.begin(), profile.period, image->launch_ns);
  protocol::PublishProfile(*page, *image);
  return true;
}

void PublishAmounts(const scheduler::CyclePlan& plan, protocol::DaemonPage* page) {
  const auto image = std::make_unique<protocol::ProfileImage>();
  if (!protocol::ReadProfile(*page, image.get()) || image->profile_id == 0) return;
  if (image->gate_count != plan.gates.size()) return;
  bool same = image->credit_ns == plan.credit_ns;
  image->credit_ns = plan.credit_ns;
  for (size_t i = 0; i < plan.gates.size(); ++i) {
    same = same && image->gates[i].need_units == plan.gates[i].need_units;
    image->gates[i].need_units = plan.gates[i].need_units;
  }
  if (!same) protocol::PublishProfile(*page, *image);
}

void WithdrawProfile(protocol::DaemonPage* page) {
  protocol::PublishProfile(*page, *std::make_unique<protocol::ProfileImage>());
}

}  // namespace sluice::flow
