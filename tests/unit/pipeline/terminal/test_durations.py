"""Durations in words."""

import pytest

from slipway.pipeline.terminal.durations import seconds


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (0.04, "0.0 s"),
        (9.94, "9.9 s"),
        (36.4, "36 s"),
        (119.4, "119 s"),
        (125, "2 min 5 s"),
        (179.6, "3 min 0 s"),
        (3600, "60 min 0 s"),
    ],
)
def test_duration_carries_its_unit(value, words):
    assert seconds(value) == words
