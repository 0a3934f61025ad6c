# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The Sluice authors
"""Whether all is there and right, and whether Sluice's figures are the driver's."""

from . import panels as p
from .dashboard import Dashboard
from .queries import GPU, JOB, NODE, OF_GPU, OF_POD, increase, now, quantiles, target

_OF = "node, gpu"


def _sum(metric):
    return f"sum by ({_OF}) ({metric}{{{GPU}}})"


def _parts(board):
    board.row("Is everything there")
    board.add(6, 6, p.stat(
        "Daemons", "Whether each GPU's daemon answers. One that does not: jobs go on with what they hold and get no more. `kubectl logs` of "
        "the node's pod says why it ended; alert SluiceDaemonDown.", p.COUNT,
        now(f"min by ({_OF}) (sluice_up{{{GPU}}})", OF_GPU), steps=((None, p.VERMILION), (1, p.BLUE)), mappings=p.words(v0="down", v1="up")))
    board.add(6, 6, p.stat(
        "Device plugins", "Whether kubelet knows each node's device plugin. While it does not, nothing new starts there with GPU memory; "
        "running jobs do not notice. Empty without Kubernetes. Alert SluicePluginNotRegistered.", p.COUNT,
        now(f"min by (node) (sluice_plugin_registered{{{NODE}}})", "{{node}}"), steps=((None, p.VERMILION), (1, p.BLUE)),
        mappings=p.words(v0="not registered", v1="registered")))
    board.add(6, 6, p.stat(
        "Running since", "When each daemon began. A daemon that died is replaced within seconds and takes over what its jobs hold; several "
        "in an hour are a defect or too little memory for its container: alert SluiceDaemonRestarts.", p.MOMENT,
        now(f"max by ({_OF}) (sluice_daemon_start_time_seconds{{{GPU}}}) * 1000", OF_GPU)))
    board.add(6, 6, p.table(
        "Versions", "Versions of the daemons and of the device plugins, with how many there are. Two at once are usual during an upgrade; "
        "the node's pods are replaced only when somebody deletes them (OnDelete).",
        [("Daemons", p.COUNT, f"count by (version) (sluice_build_info{{{GPU}}})"),
         ("Plugins", p.COUNT, f"count by (version) (sluice_plugin_build_info{{{NODE}}})")], [("version", "Version")]))
    board.add(12, 7, p.series(
        "Time to look at a daemon", "How long each daemon took to say all that is scraped. Milliseconds are usual. Rising: its event loop is "
        "busy or gets no CPU, and jobs wait for its answers too; alert SluiceDaemonSlow.",
        p.SECONDS, target(f"max by ({_OF}) (sluice_scrape_seconds{{{GPU}}})", OF_GPU)))
    board.add(12, 7, p.series(
        "Jobs by version of the protocol", "Which protocol the jobs' libraries speak. Old ones belong to pods that started before an upgrade; "
        "they are served, without what is newer. They go when those pods are restarted; alert SluiceProtocolOld after a day.",
        p.COUNT, target(f"sum by (version) (sluice_sessions{{{GPU}}})", "{{version}}"), stacked=True))


def _sums(board):
    board.row("Are the figures right")
    lent = _sum("sluice_job_lent_bytes")
    board.add(8, 8, p.series(
        "Held + free + reserve - pool", "Must be 0 at every scrape. Anything else is a defect of Sluice, and memory may be lent twice or be "
        "lost: keep the event log, run `sluice check-log` on it, and report it; alert SluiceSumsDisagree.",
        p.BYTES, target(f"{_sum('sluice_pool_held_bytes')} + {_sum('sluice_pool_free_bytes')} + {_sum('sluice_pool_reserve_bytes')}"
                        f" - {_sum('sluice_pool_bytes')}", OF_GPU), minimum=None))
    board.add(8, 8, p.series(
        "Lent - borrowed", "What all jobs of a GPU lent less what all borrowed, and less the loans by pairs: both must be 0 at every scrape. "
        "Anything else is a defect of the books about loans (not of who holds what); alert SluiceSumsDisagree.",
        p.BYTES, target(f"{lent} - {_sum('sluice_job_borrowed_bytes')}", f"{OF_GPU} lent - borrowed"),
        target(f"{lent} - ({_sum('sluice_loan_bytes')} or 0 * {lent})", f"{OF_GPU} lent - loans"), minimum=None))
    board.add(8, 8, p.series(
        "Drift against NVML", "What NVML says is used, less all that Sluice knows of. Some hundred MiB for each job are contexts and modules. "
        "More: somebody uses the GPU beside Sluice, or memory leaks in the driver. Below 0: Sluice counts what is not there. Alert SluiceDrift.",
        p.BYTES, target(_sum("sluice_drift_bytes"), OF_GPU), minimum=None))
    board.add(12, 8, p.series(
        "Used, as NVML says", "Memory of the GPU that is used, against all of it. The pool is used from the start, whoever holds it: what moves "
        "here is beside the pool. Near the GPU's memory: contexts of new jobs will fail; raise the reserve.",
        p.BYTES, target(_sum("sluice_nvml_used_bytes"), f"{OF_GPU} used"), target(_sum("sluice_gpu_memory_bytes"), f"{OF_GPU} memory"),
        overrides=[p.matching("memory$", custom__fillOpacity=0, custom__lineStyle={"dash": [8, 4], "fill": "dash"})]))
    board.add(12, 8, p.series(
        "Longest free run and all that is free", "A job needs its memory in runs. All free far above the longest run: the pool is scattered, "
        "which matters where jobs wait for 'place'; alert SluicePoolFragmented says what to do.",
        p.BYTES, target(_sum("sluice_pool_largest_free_bytes"), f"{OF_GPU} longest run"), target(_sum("sluice_pool_free_bytes"), f"{OF_GPU} free")))


def _troubles(board):
    board.row("What goes wrong")
    board.add(8, 8, p.series(
        "Refusals", "How often jobs did not get memory, by reason: each but 'gate' was an out-of-memory to a program. The pod's stderr and "
        "`sluice explain JOB` have the sentence with the holders; alert SluiceRefusals.",
        p.COUNT, target(increase("sluice_job_refusals_total", JOB, "namespace, pod, reason"), f"{OF_POD} {{{{reason}}}}")))
    board.add(8, 8, p.series(
        "Deviations, evictions, returns", "How often jobs left their profile, were moved to host memory, and came back. Single ones are what "
        "the insurance is for; the same pod again and again disturbs all others: alerts SluiceDeviations and SluiceEvictionsRepeat.",
        p.COUNT, target(increase("sluice_job_deviations_total", JOB, "namespace, pod"), f"{OF_POD} deviations"),
        target(increase("sluice_job_evictions_total", JOB, "namespace, pod"), f"{OF_POD} evictions"),
        target(increase("sluice_job_returns_total", JOB, "namespace, pod"), f"{OF_POD} returns")))
    board.add(8, 8, p.series(
        "Who passes by", "Processes that were found on a GPU without the library, since the daemon began: of pods, and others. Their memory "
        "comes out of the reserve and has no limit. The pod has an event (SluiceBypassed); alert SluiceBypass.",
        p.COUNT, target(f"sum by (node, gpu, of) (sluice_bypassed_processes_total{{{GPU}}})", f"{OF_GPU} {{{{of}}}}")))


def _plugin(board):
    board.row("Device plugin (Kubernetes)")
    board.add(6, 8, p.series(
        "Allocations", "Containers that kubelet asked memory for, by result. refused: the request fits no single GPU or the GPU is not to be "
        "had, which the pod is told. failed: the plugin could not write a grant; alert SluiceAllocationsFail.",
        p.COUNT, target(increase("sluice_plugin_allocations_total", NODE, "node, result"), "{{node}} {{result}}")))
    board.add(6, 8, p.series(
        "Time of an allocation", "How long the plugin took for an allocation; kubelet starts no container before that. Milliseconds are usual. "
        "Seconds: a slow disk under hostPaths.root, or the API server is asked for the pod and does not answer.",
        p.SECONDS, *quantiles("sluice_plugin_allocate_seconds", NODE, "node")))
    board.add(6, 8, p.series(
        "Registrations", "How often the plugin registered with kubelet, by result. One for each start of kubelet or of the plugin. Failures "
        "that go on: kubelet's folder is another one (hostPaths.kubelet); alert SluicePluginNotRegistered.",
        p.COUNT, target(f"sum by (node, result) (sluice_plugin_registrations_total{{{NODE}}})", "{{node}} {{result}}")))
    board.add(6, 8, p.series(
        "Events to the API server", "Events on pods and nodes that the plugin wrote, by result. Failures: the API server is away, or the right "
        "to write events is missing (rbac.create); pods are then not told why they were refused.",
        p.COUNT, target(f"sum by (node, result) (sluice_plugin_events_total{{{NODE}}})", "{{node}} {{result}}")))


def dashboard():
    board = Dashboard("sluice-health", "Sluice / Health and drift",
                      "Whether daemons and plugins are there, whether the sums agree with each other and with NVML, and what goes wrong.")
    _parts(board)
    _sums(board)
    _troubles(board)
    _plugin(board)
    return board
