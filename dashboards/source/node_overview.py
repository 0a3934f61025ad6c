# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The Sluice authors
"""What a node's GPUs have, who is there, and what may still come."""

from . import panels as p
from .dashboard import Dashboard
from .queries import GPU, JOB, NODE, OF_GPU, now, target


def _of_gpus(metric):
    return f"sum by (node, gpu) ({metric}{{{GPU}}})"


def _by_gpu(metric):
    """For a table: without the labels of whoever was scraped, which would be columns."""
    return f"sum by (node, gpu, UUID) ({metric}{{{GPU}}})"


def _numbers(board):
    board.row("At the moment")
    board.add(4, 4, p.stat(
        "GPUs that answer", "GPUs whose daemon answers, of those that are known. Fewer than there are: jobs go on with what they hold and "
        "get no more; see alert SluiceDaemonDown and the log of the node's pod.", p.COUNT,
        now(f"sum(sluice_up{{{GPU}}})"), now(f"count(sluice_up{{{GPU}}})"), text="value"))
    board.add(4, 4, p.stat(
        "Pools", "Memory that Sluice manages on the selected GPUs. It is what the GPUs have, less what is kept beside the pools for "
        "contexts and the like (--reserve). Less than expected: a daemon is away or a reserve is large.", p.BYTES,
        now(f"sum(sluice_pool_bytes{{{GPU}}})")))
    board.add(4, 4, p.stat(
        "Promised", "Requests of all jobs over the pools. At 100 % nobody else is taken, however little is held at the moment: requests "
        "that are higher than the bases keep others out.", p.SHARE,
        now(f"sum(sluice_job_request_bytes{{{JOB}}}) / sum(sluice_pool_bytes{{{GPU}}})"), steps=((None, p.BLUE), (0.95, p.ORANGE))))
    board.add(4, 4, p.stat(
        "Free", "What of the pools nobody holds and anybody may have. Much of it while jobs wait means that promises are in the way, not "
        "bytes: see 'Memory flow', demand against claim.", p.SHARE,
        now(f"sum(sluice_pool_free_bytes{{{GPU}}}) / sum(sluice_pool_bytes{{{GPU}}})")))
    board.add(4, 4, p.stat(
        "Jobs", "Jobs with a session on the selected GPUs, those that ended in the last minutes not among them. A pod that runs and is not "
        "counted uses no GPU memory yet, or uses the GPU without the library (see 'Health and drift').", p.COUNT,
        now(f'sum(sluice_jobs{{{GPU},phase!="ended"}})')))
    board.add(4, 4, p.stat(
        "GPUs that are drained", "GPUs that take no new jobs (`sluice drain on`). One that stays here is forgotten: `sluice drain off` opens "
        "it again; alert SluiceDrainedLong reminds after a day.", p.COUNT,
        now(f"sum(sluice_draining{{{GPU}}})"), steps=((None, p.BLUE), (1, p.ORANGE))))


def _memory(board):
    board.row("Memory")
    board.add(24, 8, p.table(
        "GPUs",
        "Each GPU with its pool and what is in it: held, free and reserve add up to the pool. A budget below the pool was set by an "
        "operator. Scattered is the part of what is free that is not in one piece: high values matter only where jobs wait for a place.",
        [("Memory", p.BYTES, _by_gpu("sluice_gpu_memory_bytes")), ("Pool", p.BYTES, _by_gpu("sluice_pool_bytes")),
         ("Budget", p.BYTES, _by_gpu("sluice_pool_budget_bytes")), ("Held", p.BYTES, _by_gpu("sluice_pool_held_bytes")),
         ("Free", p.BYTES, _by_gpu("sluice_pool_free_bytes")), ("Reserve", p.BYTES, _by_gpu("sluice_pool_reserve_bytes")),
         ("Scattered", p.SHARE, _by_gpu("sluice_pool_fragmentation_ratio"))],
        [("node", "Node"), ("gpu", "GPU"), ("UUID", "UUID")]))
    board.add(12, 9, p.series(
        "Held by GPU",
        "What of its pool is held, GPU by GPU. One that is full while another is empty: kubelet fills one GPU first unless the chart says "
        "devicePlugin.packing: spread; jobs do not move once they run.",
        p.SHARE, target(f"{_of_gpus('sluice_pool_held_bytes')} / {_of_gpus('sluice_pool_bytes')}", OF_GPU), highest=1))
    board.add(12, 9, p.series(
        "Beside the pool",
        "What is charged outside the pools (contexts, arrays, graphs) against the room that is kept for it. When it reaches the room, "
        "calls that need such memory are refused with out-of-memory: raise the reserve (chart value `reserve`), see alert "
        "SluiceOutsideReserveFull.",
        p.BYTES, target(_of_gpus("sluice_outside_bytes"), f"{OF_GPU} charged"), target(_of_gpus("sluice_outside_reserve_bytes"), f"{OF_GPU} room"),
        overrides=[p.matching("room$", custom__fillOpacity=0, custom__lineStyle={"dash": [8, 4], "fill": "dash"})]))
    board.add(12, 8, p.series(
        "Host tier",
        "Host memory that evicted jobs take up, against what they may. Full: the next job that leaves its claim is told out of memory "
        "instead of being moved; raise node.hostMemory or lower the limits, see alert SluiceHostTierFull.",
        p.BYTES, target(_of_gpus("sluice_host_tier_used_bytes"), f"{OF_GPU} used"),
        target(_of_gpus("sluice_host_tier_capacity_bytes"), f"{OF_GPU} room"),
        overrides=[p.matching("room$", custom__fillOpacity=0, custom__lineStyle={"dash": [8, 4], "fill": "dash"})]))
    board.add(12, 8, p.series(
        "What is offered to kubelet",
        "Granules' devices by state: healthy ones may be had, unhealthy ones had a GPU error, withheld ones are kept back, because running jobs may "
        "need more than their granules. Unhealthy for long: the GPU needs a reset, see alert SluiceGpuUnhealthy. Empty without Kubernetes.",
        p.COUNT, target(f"sum by (node, state) (sluice_plugin_devices{{{NODE}}})", "{{node}} {{state}}"),
        target(f"sum by (node) (sluice_plugin_grants{{{NODE}}})", "{{node}} grants")))


def _jobs(board):
    board.row("Jobs")
    board.add(8, 9, p.series(
        "Jobs by what they do",
        "How many jobs are in which phase. waiting for long: admission or a measurement of another job; unprofiled for long: a program "
        "without a cycle, which others cannot share well with; dying for long: a child of a killed job still holds memory.",
        p.COUNT, target(f'sum by (phase) (sluice_jobs{{{GPU},phase!="ended"}}) > 0', "{{phase}}"), stacked=True))
    job = "node, gpu, namespace, pod, container"
    board.add(16, 9, p.table(
        "Who is there",
        "Each job with what it is guaranteed, may ever hold, holds now, has allocated, and has at its trough. A request far above the base "
        "keeps others out for nothing; a limit near what is held means that the job may soon be told out of memory.",
        [(name, p.BYTES, f"sum by ({job}) (sluice_job_{metric}_bytes{{{JOB}}})") for name, metric in
         (("Request", "request"), ("Limit", "limit"), ("Held", "held"), ("Live", "live"), ("Base", "base"), ("Most held", "peak_held"))],
        [("node", "Node"), ("gpu", "GPU"), ("namespace", "Namespace"), ("pod", "Pod"), ("container", "Container")]))


def dashboard():
    board = Dashboard("sluice-node-overview", "Sluice / Node overview",
                      "The GPUs of the selected nodes: how much memory there is, what of it is held, free and kept back, and which jobs are there.")
    _numbers(board)
    _memory(board)
    _jobs(board)
    return board
