from itertools import count

import pytest

from slipway.components.preflight.batch_search import largest_batch
from slipway.components.preflight.question_and_answer import Compiled

HBM = 1_000_000


def compiler(fixed: int, each: float, asked: list[int]):
    def compiled(batch: int) -> Compiled:
        asked.append(batch)
        needed = round(fixed + each * batch)
        if needed > HBM:
            return Compiled(batch_size=batch, error="Ran out of memory", is_out_of_memory=True)
        return Compiled(batch_size=batch, peak_bytes=needed, available_bytes=HBM)

    return compiled


@pytest.mark.parametrize("first", [8, 64, 800, 100_000])
@pytest.mark.parametrize("each", [1.0, 37.0, 900.0])
def test_the_answer_is_the_compilers_own_on_both_sides_and_the_largest(first, each):
    asked: list[int] = []
    ask = compiler(1000, each, asked)

    fits, fails = largest_batch(ask(first), ask, unit=8, limit=10**9, has_time=lambda: True)

    assert ask(fits).compiles
    assert not ask(fails).compiles
    assert fails - fits == 8
    assert len(asked) < 16
    assert all(batch % 8 == 0 for batch in asked)


@pytest.mark.parametrize("step", [128, 1000, 4096])
def test_memory_that_grows_in_steps_takes_few_more(step):
    """As where the compiler pads the batch to whole tiles: a line through two batches misses the step."""
    asked: list[int] = []

    def compiled(batch):
        asked.append(batch)
        needed = 1000 + 37 * (-(-batch // step) * step)
        if needed > HBM:
            return Compiled(batch_size=batch, error="Ran out of memory", is_out_of_memory=True)
        return Compiled(batch_size=batch, peak_bytes=needed, available_bytes=HBM)

    fits, fails = largest_batch(compiled(64), compiled, unit=8, limit=10**9, has_time=lambda: True)

    assert (fits, fails) == (27_000 // step * step // 8 * 8, 27_000 // step * step // 8 * 8 + 8)
    assert len(asked) < 28


def test_nothing_fits():
    ask = compiler(HBM + 1, 1.0, [])

    assert largest_batch(ask(64), ask, unit=8, limit=1024, has_time=lambda: True) == (None, 8)


def test_the_limit_is_not_passed_and_said_to_fit():
    ask = compiler(1, 1.0, [])

    assert largest_batch(ask(8), ask, unit=8, limit=1024, has_time=lambda: True) == (1024, None)


def test_it_ends_when_time_is_up_with_what_is_known():
    asked: list[int] = []
    ask, left = compiler(1000, 1.0, asked), count(1)

    fits, fails = largest_batch(ask(8), ask, unit=8, limit=10**9, has_time=lambda: next(left) <= 1)

    assert (fits, fails) == (asked[-1], None)
    assert len(asked) == 2


def test_another_refusal_than_memory_ends_the_search():
    first = Compiled(batch_size=8, peak_bytes=10, available_bytes=HBM)

    found = largest_batch(
        first, lambda batch: Compiled(batch_size=batch, error="odd"), unit=8, limit=999, has_time=lambda: True
    )

    assert found == (8, None)
