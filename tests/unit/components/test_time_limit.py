"""Work that is waited for only so long."""

import threading

import pytest

from slipway.components.time_limit import LateError, within


def test_the_result_is_returned():
    assert within(60, lambda: 7) == 7


def test_work_that_hangs_is_left_behind():
    end = threading.Event()
    with pytest.raises(LateError):
        within(0.01, end.wait)
    end.set()


@pytest.mark.parametrize("error", [ValueError("no"), TimeoutError("the work's own"), KeyboardInterrupt()])
def test_errors_of_the_work_are_its_own(error):
    def work():
        raise error

    with pytest.raises(type(error)) as raised:
        within(60, work)
    assert raised.value is error
