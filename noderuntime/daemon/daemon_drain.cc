// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
// No new jobs, until further notice: so that a GPU or a node comes to be empty while those that are
// there go on and end as they would have. On a cluster the device plugin does not offer the GPU's
// memory meanwhile; a container that was given some before may begin.

#include "common/log/log.h"
#include "common/nvml.h"
#include "noderuntime/daemon/daemon.h"

namespace sluice::noded {

Status Daemon::Drain(ControlClient* client, const protocol::Drain& wanted) {
  const bool drains = wanted.on != 0;
  // First for who comes after this daemon, and for the plugin.
  const Status kept = grants_.has_value() ? grants_->SetDrained(drains) : Status();
  if (kept.ok()) {
    draining_ = drains;
    registry_changed_ = true;
    SayOfLaunchers(logging::Level::kInfo,
                   drains ? "no new jobs from now on (drain)" : "new jobs are taken again");
  }
  protocol::Drained answer = {};
  answer.header =
      session::MakeHeader(protocol::FrameType::kDrained, sizeof answer, wanted.header.seq);
  answer.status = kept.ok() ? 0 : 1;
  answer.on = draining_ ? 1 : 0;
  answer.jobs = static_cast<uint32_t>(jobs_.size());
  session::CopyText(kept.message(), answer.text);
  return AnswerOrder(client, answer);
}

Status Daemon::TakesNewJobs() const {
  if (!draining_) return {};
  return Status(StatusCode::kUnavailable,
                "this GPU takes no new jobs: it is being drained; sluice drain off ends that");
}

}  // namespace sluice::noded
