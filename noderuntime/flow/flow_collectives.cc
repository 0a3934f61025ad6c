// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
// Jobs that take part in collective operations: a kernel of theirs waits on this GPU for one on
// another GPU, whose daemon knows nothing of this one (docs/adr/0030). Two of them, each in its
// iteration on one GPU and before the other's gate on the other, would wait in a circle that no
// ledger of one GPU shows. So such a job waits nowhere but at its trough, and there it takes no
// turns where the limits of all fit into the pool together. It still waits for a run that is long
// enough, and while a budget falls.
#include "noderuntime/flow/flow.h"

namespace sluice::flow {

void Flow::NoteCollectives(JobId id, FlowJob* job) {
  if (job->collectives) return;
  job->collectives = true;
  // Else when it is admitted; until then the ledger may know its last session, which has died.
  if (job->admitted) {
    (void)Must(id, ledger_.SetCollective(id));
    // A newcomer may begin beside it now, and the log has to say why.
    if (const scheduler::Job& known = *ledger_.Find(id); known.quiet) LogQuiet(known);
  }
  if (options_.spatial) return;
  sink_->Notice(id, 0,
                {"takes part in collective operations: it shares between its iterations, not "
                 "within them"});
  if (!job->published.has_value() || job->published->plan.gates.size() <= 1) return;
  Withdraw(id, job,
           {scheduler::DeviationReason::kCollectives,
            "it takes part in collective operations, and waits at its trough alone from now on"});
}

}  // namespace sluice::flow
