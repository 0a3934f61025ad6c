# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The Sluice authors
"""One cluster with one node and Sluice on it for all tests; each test cleans up after itself."""

import os
import pathlib
import shutil

import pytest

from support.chart import Chart
from support.cluster import Cluster
from support.gpu import MIB, SimulatedGpus
from support.images import REPOSITORY, make_musl, make_pause, make_trainer

# Of each simulated GPU; the chart's values keep 16 MiB of it back. Sluice has the second one but for a test.
GPU_BYTES = 64 * MIB


@pytest.fixture(scope="session")
def work():
    return pathlib.Path(os.environ["SLUICE_E2E_WORK"])


@pytest.fixture(scope="session")
def cluster(work):
    """Without Sluice."""
    cluster = Cluster(os.environ["SLUICE_E2E_PROGRAMS"], work / "cluster")
    pause = make_pause(work)
    trainer = make_trainer(os.environ["SLUICE_E2E_TRAINER_ROOT"], work)
    try:
        cluster.up([pause, trainer, make_musl(work), os.environ["SLUICE_E2E_IMAGE"]])
        yield cluster
    finally:
        cluster.down()
        kept = os.environ.get("SLUICE_E2E_KEEP")
        if kept:
            shutil.copytree(work / "cluster/logs", kept, dirs_exist_ok=True)


@pytest.fixture(scope="session")
def gpus(cluster, work):
    (work / "simulated").mkdir()
    gpus = SimulatedGpus(work / "simulated", 2, GPU_BYTES)
    yield gpus
    gpus.down()


@pytest.fixture(scope="session")
def sluice(cluster, gpus):
    """The chart, installed."""
    chart = Chart(cluster, gpus)
    chart.install()
    try:
        chart.until_offered(48)
        yield chart
    finally:
        for component in ("node", "device-plugin"):
            (cluster.processes.logs / f"{component}.log").write_text(chart.logs(component))


@pytest.fixture
def plugin(cluster, work):
    """`kubectl sluice ...`, by kubectl's own way to find its plugins."""
    folder = work / "plugins"
    folder.mkdir(exist_ok=True)
    link = folder / "kubectl-sluice"
    if not link.exists():
        link.symlink_to(REPOSITORY / "build/release/bin/sluice")
    return cluster.kubectl.with_plugins(folder)


@pytest.fixture
def kubectl(cluster):
    yield cluster.kubectl
    cluster.kubectl.delete("jobs,pods", "--all")
