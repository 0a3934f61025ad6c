# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The Sluice authors
import pytest

from chart import defaults, render


@pytest.fixture
def rendered(request):
    """The chart with a value (chart.value), which is seen in what comes out."""
    path, setting, beside = request.param
    result = render({**beside, path: setting})
    without = render(beside) if beside else defaults()
    assert result.documents != without.documents, f"{path} changes nothing"
    return result
