"""Which workload and versions the words of `compare` name."""

from pathlib import Path

import pytest

from slipway.pipeline.commands.compare_versions import chosen
from slipway.pipeline.errors import UsageError
from slipway.pipeline.terminal.invocation import DEFAULT_WORKLOAD


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ((Path("taxi"), 17, 18), (Path("taxi"), 17, 18)),
        ((Path("17"), 18, None), (DEFAULT_WORKLOAD, 17, 18)),
    ],
)
def test_workload_may_be_left_out(words, expected):
    assert chosen(*words) == expected


@pytest.mark.parametrize(
    "words",
    [
        (DEFAULT_WORKLOAD, None, None),
        (Path("17"), None, None),
        (Path("taxi"), None, None),
        (Path("taxi"), 17, None),
        (Path("serving/17"), 18, None),
    ],
)
def test_one_version_alone_is_not_compared(words):
    with pytest.raises(UsageError, match="compare needs two pushed versions") as refused:
        chosen(*words)
    assert "versions" in refused.value.hint
