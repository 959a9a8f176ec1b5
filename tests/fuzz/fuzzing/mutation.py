"""Damage to bytes, the same for the same random numbers. Pure."""

import random
from collections.abc import Callable, Sequence

INTERESTING = (
    b"", b"\0", b"\xff", b"\n", b"\r\n", b"\xef\xbb\xbf", b"-", b"NaN", b"1e400", b"-0",
    b"9223372036854775808", b"\xf0\x9f\x98\x80", b"\xed\xa0\x80", b"../../x", b"{{", b'"', b"\\", b"'",
    b"${HOME}", b"<script>",
)  # fmt: skip
"""Inputs that parsers fail on: ends of lines, numbers beyond their type, half characters, quotes, paths."""

_MOST_BYTES = 1 << 16


def mutated(seed: bytes, rng: random.Random, *, tokens: Sequence[bytes] = ()) -> bytes:
    """One to eight changes of a seed.

    Args:
        seed: well-formed, or an earlier finding.
        rng: decides everything.
        tokens: of the format, beside those that stand in `INTERESTING`.

    Returns:
        At most 64 KiB: larger input finds limits, for which there are tests, instead of faults.
    """
    found = seed
    words = (*INTERESTING, *tokens)
    for _ in range(rng.choice((1, 1, 2, 4, 8))):
        found = rng.choice(_CHANGES)(found, rng, words)[:_MOST_BYTES]
    return found


def _span(data: bytes, rng: random.Random) -> tuple[int, int]:
    start = rng.randrange(len(data) + 1)
    return start, min(start + rng.choice((1, 2, 4, 8, 64)), len(data))


def _flip(data: bytes, rng: random.Random, _: Sequence[bytes]) -> bytes:
    if not data:
        return data
    at = rng.randrange(len(data))
    return data[:at] + bytes([data[at] ^ (1 << rng.randrange(8))]) + data[at + 1 :]


def _replace(data: bytes, rng: random.Random, words: Sequence[bytes]) -> bytes:
    start, end = _span(data, rng)
    return data[:start] + rng.choice(words) + data[end:]


def _insert(data: bytes, rng: random.Random, words: Sequence[bytes]) -> bytes:
    start, _ = _span(data, rng)
    return data[:start] + rng.choice(words) * rng.choice((1, 1, 1, 30)) + data[start:]


def _delete(data: bytes, rng: random.Random, _: Sequence[bytes]) -> bytes:
    start, end = _span(data, rng)
    return data[:start] + data[end:]


def _cut(data: bytes, rng: random.Random, _: Sequence[bytes]) -> bytes:
    return data[: rng.randrange(len(data) + 1)]


def _repeat(data: bytes, rng: random.Random, _: Sequence[bytes]) -> bytes:
    start, end = _span(data, rng)
    return data[:end] + data[start:end] * rng.choice((1, 2, 100)) + data[end:]


def _move(data: bytes, rng: random.Random, _: Sequence[bytes]) -> bytes:
    start, end = _span(data, rng)
    rest = data[:start] + data[end:]
    at = rng.randrange(len(rest) + 1)
    return rest[:at] + data[start:end] + rest[at:]


def _number(data: bytes, rng: random.Random, _: Sequence[bytes]) -> bytes:
    """Writes an extreme of 1, 2, 4 or 8 bytes over what is there: lengths and counts of binary formats."""
    size = rng.choice((1, 2, 4, 8))
    at = rng.randrange(max(len(data) - size, 0) + 1)
    value = rng.choice((0, 1, (1 << 8 * size - 1) - 1, 1 << 8 * size - 1, (1 << 8 * size) - 1))
    return data[:at] + value.to_bytes(size, rng.choice(("little", "big"))) + data[at + size :]


_CHANGES: tuple[Callable[[bytes, random.Random, Sequence[bytes]], bytes], ...] = (
    _flip, _replace, _insert, _delete, _cut, _repeat, _move, _number,
)  # fmt: skip
