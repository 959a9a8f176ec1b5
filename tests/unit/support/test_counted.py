"""What is counted is the work alone."""

import gc

import pytest
from counted import lines_run


@pytest.fixture
def looks():
    """The looks for garbage, as many as there can be, each of which calls Python as Hypothesis has it do."""
    threshold, found = gc.get_threshold(), []

    def called(*_):
        for each in range(9):
            found.append(each)

    gc.callbacks.append(called)
    gc.set_threshold(1)
    yield found
    gc.set_threshold(*threshold)
    gc.callbacks.remove(called)


def make_lists():
    return [[] for _ in range(100)]


def test_looks_for_garbage_are_not_counted(looks):
    make_lists()
    assert looks, "there are some"
    assert lines_run(make_lists) == 102  # the function's, and each pass of the loop
    assert gc.isenabled()
