// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
// What was recorded of a job that is observed.
#include "noderuntime/flow/flow.h"
#include "scheduler/profile/recorded_trace.h"
#include "scheduler/trace/write.h"

namespace sluice::flow {

Result<std::string> Flow::RecordingOf(JobId id, uint64_t now_ns) {
  now_ns_ = now_ns;
  FlowJob* job = Get(id);
  const auto none = [](const std::string& why) {
    return Status(StatusCode::kFailedPrecondition, why);
  };
  if (job == nullptr) return none("the job has not begun to use the GPU");
  if (!job->recorder.has_value()) return none("the job was not to be observed");
  // What it wrote last; its end may be near, or over.
  ConsumeRing(id, job, protocol::kRingRecords);
  const Result<scheduler::trace::Trace> trace = scheduler::TraceOf(*job->recorder, job->spec.name);
  if (trace.ok()) return scheduler::trace::WriteTrace(*trace);
  // Why is more than the recorder can know.
  if (job->launches == 0) return none("the job launched nothing on the GPU");
  if (job->profiler.certain()) return trace.status();
  return none("no iteration was found in its " + std::to_string(job->launches) +
              " launches: it repeats nothing, or not often enough");
}

}  // namespace sluice::flow
