# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The Sluice authors
"""One node under load for all cases, and who looks at it."""

import os
import pathlib

import pytest

from bed.history import make_everything_happen
from bed.node import Node
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


@pytest.fixture(scope="session")
def gateway(sluice):
    """The port of the node's metrics."""
    return sluice.gateway_port


@pytest.fixture(scope="session")
def prometheus(sluice):
    """`prometheus(EXPRESSION)`."""
    return Prometheus(sluice, {"sluice-node": (sluice.gateway_port, 1), "sluice-device-plugin": (sluice.plugin_port, 1)})


@pytest.fixture(scope="session")
def everything(sluice, prometheus):
    """All that is seen only after something happened has happened, and Prometheus has seen it."""
    return make_everything_happen(sluice, prometheus)
