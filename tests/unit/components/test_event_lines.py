"""Events among what user code prints."""

import pytest

from slipway.components.event_lines import read_event


@pytest.mark.parametrize("line", ["", "hello", "{broken", "{}", '{"loss": 1}', "[1]", "3"])
def test_line_that_is_no_event_is_left_alone(line):
    assert read_event(line) is None


def test_event_is_read():
    assert read_event('{"event": "epoch", "epoch": 1}\n') == {"event": "epoch", "epoch": 1}


@pytest.mark.parametrize(
    "line",
    [
        '.....{"event": "done", "loss": 0.5}\n',
        '{"event": "done", "loss": 0.5}.....\n',
        'step 3 {"loss": 1} {"event": broken {"event": "done", "loss": 0.5}{"x": 1}\n',
    ],
)
def test_event_is_found_in_a_line_that_others_write_into(line):
    assert read_event(line) == {"event": "done", "loss": 0.5}
