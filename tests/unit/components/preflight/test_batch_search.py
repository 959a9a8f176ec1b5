from itertools import count

import pytest

from slipway.components.preflight.batch_search import largest_batch
from slipway.components.preflight.question_and_answer import Compiled

HBM = 1_000_000


def compiler(asked: list[int], needs):
    """Compiles what needs at most the memory there is; `needs` returns the bytes of a batch."""

    def compiled(batch: int) -> Compiled:
        asked.append(batch)
        if needs(batch) > HBM:
            return Compiled(batch_size=batch, error="Ran out of memory", is_out_of_memory=True)
        return Compiled(batch_size=batch, peak_bytes=round(needs(batch)), available_bytes=HBM)

    return compiled


def search(first: Compiled, *, quickly, fully, unit=8, limit=10**9, has_time=lambda: True):
    return largest_batch(
        first,
        quickly=quickly,
        fully=fully,
        unit=unit,
        limit=limit,
        has_time=has_time,
        has_time_to_approach=has_time,
    )


@pytest.mark.parametrize("first", [8, 64, 800, 100_000])
@pytest.mark.parametrize("each", [1.0, 37.0, 900.0])
@pytest.mark.parametrize("effort", [1.0, 0.998, 1.002])
def test_the_answer_is_the_largest_that_compiles_with_full_effort(first, each, effort):
    quick: list[int] = []
    full: list[int] = []
    fully = compiler(full, lambda batch: (1000 + each * batch) * effort)

    fits, fails = search(
        fully(first), quickly=compiler(quick, lambda batch: 1000 + each * batch), fully=fully
    )

    assert fully(fits).compiles
    assert not fully(fails).compiles
    assert fails - fits == 8
    assert len(quick) < 14
    assert len(full) < 24
    assert all(batch % 8 == 0 for batch in [*quick, *full])


def test_where_least_effort_is_right_the_next_larger_batch_ends_the_search():
    full: list[int] = []

    def needs(batch):
        return 1000 + 37.0 * batch

    fully = compiler(full, needs)
    search(fully(27_000 // 8 * 8), quickly=compiler([], needs), fully=fully)
    assert full == [27_000, 27_008]


@pytest.mark.parametrize("step", [128, 1000, 4096])
def test_memory_that_grows_in_steps_takes_few_more(step):
    """As where the compiler pads the batch to whole tiles: a line through two batches misses the step."""
    quick: list[int] = []
    full: list[int] = []

    def needs(batch):
        return 1000 + 37 * (-(-batch // step) * step)

    fully = compiler(full, needs)
    fits, fails = search(fully(64), quickly=compiler(quick, needs), fully=fully)
    assert (fits, fails) == (27_000 // step * step, 27_000 // step * step + 8)
    assert len(quick) < 20
    assert len(full) < 16


def test_nothing_fits():
    ask = compiler([], lambda batch: HBM + 1)
    assert search(ask(64), quickly=ask, fully=ask, limit=1024) == (None, 8)


def test_the_limit_is_not_passed_and_said_to_fit():
    ask = compiler([], lambda batch: batch)
    assert search(ask(8), quickly=ask, fully=ask, limit=1024) == (1024, None)


def test_a_batch_above_the_limit_is_the_answer_if_it_fits():
    asked: list[int] = []
    fully = compiler(asked, lambda batch: batch)
    assert search(fully(4096), quickly=fully, fully=fully, limit=1024) == (4096, None)
    assert asked == [4096]


def test_it_ends_when_time_is_up_with_what_was_compiled_with_full_effort():
    quick: list[int] = []
    full: list[int] = []
    left = count(1)
    fully = compiler(full, lambda batch: 1000 + batch)
    found = largest_batch(
        fully(8),
        quickly=compiler(quick, lambda batch: 1000 + batch),
        fully=fully,
        unit=8,
        limit=10**9,
        has_time=lambda: next(left) <= 1,
        has_time_to_approach=lambda: len(quick) < 2,
    )
    assert len(quick) == 2
    assert full == [8, quick[-1]]
    assert found == (quick[-1], None)


def test_without_time_for_another_the_first_is_the_answer():
    ask = compiler([], lambda batch: 1000 + batch)
    assert search(ask(8), quickly=ask, fully=ask, has_time=lambda: False) == (8, None)


def test_another_refusal_than_memory_ends_the_search():
    first = Compiled(batch_size=8, peak_bytes=10, available_bytes=HBM)

    def odd(batch):
        return Compiled(batch_size=batch, error="odd")

    assert search(first, quickly=odd, fully=odd, limit=999) == (8, None)
