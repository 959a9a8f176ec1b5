"""Takes an even sample of rows whose number is not known before. Pure."""

from collections.abc import Iterable


def even_sample(records: Iterable[bytes], *, most: int) -> list[bytes]:
    """Return `most` records spread evenly over all of them, in their order; all if there are no more.

    The first ones alone would be of one day, or of one class, where rows are in order.

    Args:
        most: >= 1. Fewer than twice as many are held at a time.
    """
    kept: list[bytes] = []
    step = 1
    for place, record in enumerate(records):
        if place % step == 0:
            kept.append(record)
            if len(kept) == 2 * most:
                kept, step = kept[::2], 2 * step
    many = min(len(kept), most)
    return [kept[place * len(kept) // many] for place in range(many)]
