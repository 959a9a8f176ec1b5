"""A program's need of device memory, and the compiler's message if there is too little."""

from types import SimpleNamespace

import pytest

from slipway.components.preflight.memory_fit import (
    Shortage,
    held_bytes,
    next_batch_shortage,
    shortage,
    state_shortage,
)

GIB = 2**30


def test_results_that_replace_an_argument_are_held_once():
    memory = SimpleNamespace(
        argument_size_in_bytes=100, output_size_in_bytes=90, alias_size_in_bytes=80, temp_size_in_bytes=7
    )
    assert held_bytes(memory) == 100 + 10 + 7


@pytest.mark.parametrize(
    ("message", "needed", "available"),
    [
        (
            "RESOURCE_EXHAUSTED: Ran out of memory on HBM, the total memory required for HLO temporaries "
            "(17.61G) exceeds available HBM (15.75G)",
            17.61 * GIB,
            15.75 * GIB,
        ),
        (
            "RESOURCE_EXHAUSTED: XLA:TPU compile permanent error. Ran out of memory in memory space hbm. "
            "Used 41.22G of 512.00M hbm. Exceeded hbm capacity by 40.72G.",
            41.22 * GIB,
            GIB / 2,
        ),
        ("RESOURCE_EXHAUSTED: the attempt to allocate failed", 0, 0),
    ],
)
def test_shortage_is_read_out_of_the_compiler_s_words(message, needed, available):
    assert shortage(message) == Shortage(round(needed), round(available))


def test_refusal_for_another_reason_is_no_shortage():
    assert shortage("INVALID_ARGUMENT: used 3.00G of patience, exceeds available HBM (1.00G)") is None


def test_what_one_operation_needs_within_the_chip_is_no_shortage_of_the_devices_memory():
    assert (
        shortage("RESOURCE_EXHAUSTED: Ran out of memory in memory space vmem. Used 33M of 16M vmem.") is None
    )
    assert shortage("RESOURCE_EXHAUSTED: Scoped allocation exceeded scoped vmem limit by 1.5M") is None
    report = (
        "Ran out of memory in memory space hbm. Used 41.00G of 16.00G hbm.\n report: scoped vmem bytes: 7"
    )
    assert shortage(report) == Shortage(41 * GIB, 16 * GIB)


@pytest.mark.parametrize(
    ("state", "available", "found"),
    [(17, 16, Shortage(17, 16)), (16, 16, None), (0, 16, None), (17, 0, None)],
)
def test_variables_beyond_the_memory_are_a_shortage_and_nothing_is_said_of_what_is_not_known(
    state, available, found
):
    assert state_shortage(state, available) == found


@pytest.mark.parametrize(
    ("held", "batch", "available", "found"),
    [(15, 2, 16, Shortage(17, 16)), (14, 2, 16, None), (15, 2, 0, None)],
)
def test_a_step_fits_if_it_does_beside_the_next_batch(held, batch, available, found):
    assert next_batch_shortage(held, batch, available) == found
