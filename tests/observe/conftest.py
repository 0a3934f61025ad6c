# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The Sluice authors
"""One node under load for all cases, and who looks at it."""

import os
import pathlib
import shutil

import pytest

from bed.history import make_everything_happen
from bed.node import REPOSITORY, Node
from bed.prometheus import Prometheus


@pytest.fixture(scope="session")
def work():
    return pathlib.Path(os.environ["SLUICE_OBSERVE_WORK"])


@pytest.fixture(scope="session")
def sluice(work):
    """The node: two trainings that lend, daemons, gateway and device plugin."""
    node = Node(work)
    try:
        node.up()
        yield node
    finally:
        node.down()
        kept = os.environ.get("SLUICE_OBSERVE_KEEP")
        if kept:
            shutil.copytree(work / "logs", kept, dirs_exist_ok=True)
            for file in work.glob("events-*.jsonl"):
                shutil.copy(file, kept)


@pytest.fixture(scope="session")
def gateway(sluice):
    """The port of the node's metrics."""
    return sluice.gateway_port


@pytest.fixture(scope="session")
def prometheus(sluice, work):
    """`prometheus(EXPRESSION)`; it knows the rules of dashboards/rules."""
    rules = sorted((REPOSITORY / "dashboards/rules").glob("*.yaml"))
    return Prometheus(sluice.processes, sluice.environment, work, sluice.gateway_port, sluice.plugin_port, rules)


@pytest.fixture(scope="session")
def everything(sluice, prometheus):
    """All that is seen only after something happened has happened, and Prometheus has seen it."""
    return make_everything_happen(sluice, prometheus)
