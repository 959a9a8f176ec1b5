import pytest

from slipway.components.preflight.amounts import duration, memory


@pytest.mark.parametrize(
    ("size", "words"), [(0, "0.00 MiB"), (2**20, "1.00 MiB"), (2**30 / 10, "0.10 GiB"), (2**31, "2.00 GiB")]
)
def test_memory_is_shown_in_the_unit_that_is_easier_to_read(size, words):
    assert memory(size) == words


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(4.58e-6, "4.58 µs"), (1e-3, "1 ms"), (1.0, "1 s"), (119, "119 s"), (120, "2 min"), (7200, "2 h")],
)
def test_times_are_shown_in_the_unit_that_is_easiest_to_read(seconds, words):
    assert duration(seconds) == words
