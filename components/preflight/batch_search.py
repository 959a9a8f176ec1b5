"""Searches for the largest batch that a compiler accepts, with few compilations. Pure."""

from collections.abc import Callable

from slipway.components.preflight.question_and_answer import Compiled

CLOSE = 0.01
"""Least effort ends when the batch that fails is larger by at most this share than the one that fits."""
SEARCH_LIMIT_ROWS = 2**17
"""The largest batch per device that is tried."""
MOST_GROWTH = 16
"""The memory measured at one batch is extrapolated to at most this many times that batch."""


def largest_batch(
    first: Compiled,
    *,
    quickly: Callable[[int], Compiled],
    fully: Callable[[int], Compiled],
    unit: int,
    limit: int,
    has_time: Callable[[], bool],
    has_time_to_approach: Callable[[], bool],
) -> tuple[int | None, int | None]:
    """Find the largest batch that compiles and fits, and the smallest that does not.

    The compiler's least effort tells in a fraction of the time about where that batch is. With full effort,
    as a training is compiled, a few more or fewer rows may fit: so what is returned was compiled with that.
    Unless time runs out, the second batch is the next after the first, one `unit` larger.

    Args:
        first: the compiler's report on one batch, with full effort.
        quickly: compiles another batch, a multiple of `unit`, with least effort.
        fully: the same with full effort.
        unit: the number that a batch must be a multiple of, >= 1.
        limit: the largest batch that is tried.
        has_time: returns False when the search must end.
        has_time_to_approach: returns False when full effort must begin; no later than `has_time`.

    Returns:
        The largest batch that fits and the smallest that does not: (None, smallest) if no batch fits, and
        (largest, None) if all batches up to the limit fit or time ran out before one did not.
    """
    start = _approach(first, quickly, unit=unit, limit=limit, has_time=has_time_to_approach)
    fits, fails = _settle(start, first, fully, unit=unit, limit=limit, has_time=has_time)
    return max(fits, default=None), min(fails, default=None)


def _approach(
    first: Compiled,
    compiled: Callable[[int], Compiled],
    *,
    unit: int,
    limit: int,
    has_time: Callable[[], bool],
) -> int:
    """Return the largest batch that compiles, or one close to it; if none does, the smallest.

    Memory is assumed to grow linearly with the batch. This only guides the search.
    """
    fits = [first] if first.compiles else []
    fails = [] if first.compiles else [first.batch_size]
    while has_time():
        best, worst = max((each.batch_size for each in fits), default=0), min(fails, default=None)
        batch = _next(fits, worst, count=len(fits) + len(fails), unit=unit, limit=limit)
        if batch <= best or (worst is not None and batch >= worst):
            break
        said = compiled(batch)
        if said.compiles:
            fits.append(said)
        elif said.is_out_of_memory:
            fails.append(batch)
        else:
            break  # it failed for a reason other than memory
    return max((each.batch_size for each in fits), default=min(fails, default=first.batch_size))


def _settle(
    start: int,
    first: Compiled,
    compiled: Callable[[int], Compiled],
    *,
    unit: int,
    limit: int,
    has_time: Callable[[], bool],
) -> tuple[list[int], list[int]]:
    """Return batches that fit and that do not: from `start` outwards in doubled steps, then by halves."""
    fits = [first.batch_size] if first.compiles else []
    fails = [] if first.compiles else [first.batch_size]
    low, high, batch = None, None, start
    while has_time():
        said = first if batch == first.batch_size else compiled(batch)
        if said.compiles:
            low = batch
            fits.append(batch)
        elif said.is_out_of_memory:
            high = batch
            fails.append(batch)
        else:
            break  # it failed for a reason other than memory
        if low is None:
            wanted = max(unit, batch - (start - batch) - unit)
        elif high is None:
            wanted = max(low, min(limit, batch + (batch - start) + unit))
        else:
            wanted = (low + high) // 2
        batch = wanted // unit * unit
        if batch in fits or batch in fails:
            break
    return fits, fails


def _next(fits: list[Compiled], worst: int | None, *, count: int, unit: int, limit: int) -> int:
    """Return the batch to compile next; if there is none, a batch whose result is known already.

    Args:
        count: the number of batches compiled so far.
    """
    best = max(fits, key=lambda each: each.batch_size, default=None)
    low = best.batch_size if best else 0
    if worst is None:
        guess = _guess(fits) if len(fits) > 1 else low * 4
        wanted = max(low * 2, min(guess, low * MOST_GROWTH))
        return max(low, min(wanted, limit) // unit * unit)
    if worst - low <= max(unit, low * CLOSE):
        return low
    # Where memory does grow linearly, two guesses end the search. Elsewhere each could gain one unit only: so
    # every second batch is the middle, which halves what is left.
    if len(fits) > 1 and count % 2:
        wanted = min(max(_guess(fits), low + unit), worst - 1)
    else:
        wanted = (low + worst) // 2 if low else worst // 4
    return max(low + unit, wanted // unit * unit)


def _guess(fits: list[Compiled]) -> int:
    """Return the batch at which a line through the two largest batches reaches the available memory."""
    below, above = sorted(fits, key=lambda each: each.batch_size)[-2:]
    each = (above.peak_bytes - below.peak_bytes) / (above.batch_size - below.batch_size)
    if each <= 0 or not above.available_bytes:
        return above.batch_size * MOST_GROWTH
    return round(above.batch_size + (above.available_bytes - above.peak_bytes) / each)
