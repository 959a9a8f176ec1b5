"""The properties of a column, in numbers: the basis of decisions about it. Pure."""

import itertools
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

Values = npt.NDArray[Any]

# 2024-03-01, 2024-03-01 10:20, 2024-03-01T10:20:30.5Z and the like: what TensorFlow can take apart, too.
# BigQuery writes 2024-03-01 10:20:30 UTC.
_MOMENT = re.compile(
    r"\d{4}-\d{2}-\d{2}(?P<time>[T ]\d{2}:\d{2}(:\d{2}(\.\d+)?)?( ?(?:Z|UTC|GMT)|[+-]\d{2}:?\d{2})?)?"
)
# 12, -1,234.50, ($5), 12 %: no code with zeros in front.
_NUMBER = re.compile(
    r"[-+(\u2212]?\s?[$€£¥]?\s?(?!0\d)\d{1,3}([.,' ]?\d{3})*([.,]\d+)?([eE]-?\d+)?\s?[%$€£¥]?\)?"
)
# From this share of numbers on, the other texts are reported.
_MOSTLY = 0.9
# Seconds since 1970, from September 2001 to 2100.
_EPOCH_SECONDS = (1e9, 4.1e9)
_TIME_WORDS = ("time", "date", "_at", "_ts")
_MOST_VALUES = 1000
_NINES = re.compile(r"9{2,}(\.9+)?")
# A number that means a missing value repeats, beside some others.
_LEAST_STAND_INS, _LEAST_OTHERS = 5, 5
_FLOAT32_MAX = 3.4e38
_SHOWN = 3
_WORD = re.compile(r"[^\W_]+")
_COUNTED_TEXTS = 10_000


@dataclass(frozen=True)
class Facts:
    """One column.

    Attributes:
        kind: "int", "float" or "text".
        missing: rows without a value.
        distinct: different values.
        counts: value -> rows, the most frequent first, at most 1,000.
        least: the smallest number; 0 for text.
        greatest: the largest number; 0 for text.
        median: of the numbers; 0 for text.
        stand_ins: numbers that may mean a missing value -> rows, as -999 beside 0 to 40; see `_stand_ins`.
        words: of a text, on average.
        others: of a text, the different values that are not numbers, where nearly all are; at most 1,000.
        ngrams: words and pairs of neighbouring words of a text, at most but for one in a hundred.
        moment: "date", "time" (of the day, too) or "seconds" (since 1970) where it holds moments, else "".
    """

    name: str
    kind: str
    rows: int
    missing: int
    distinct: int
    counts: dict[Any, int]
    least: float = 0.0
    greatest: float = 0.0
    median: float = 0.0
    stand_ins: Mapping[float, int] = field(default_factory=dict)
    words: float = 0.0
    others: tuple[str, ...] = ()
    ngrams: int = 0
    moment: str = ""

    @property
    def present(self) -> int:
        """The number of rows that have a value."""
        return self.rows - self.missing

    @property
    def missing_share(self) -> float:
        """The share of rows without a value, 0 to 1."""
        return self.missing / self.rows if self.rows else 0.0

    @property
    def is_too_large(self) -> bool:
        """Whether it holds a number that does not fit into 32 bits."""
        return max(abs(self.least), abs(self.greatest)) > _FLOAT32_MAX


def few(texts: Sequence[str]) -> str:
    """Some of the texts: 'Total' and 7 more."""
    shown = [repr(text[:40]) for text in texts[:_SHOWN]]
    if more := len(texts) - len(shown):
        shown.append(f"{more:,} more")
    return " and ".join([", ".join(shown[:-1]), shown[-1]]) if len(shown) > 1 else shown[0]


def facts_of(name: str, kind: str, values: Values) -> Facts:
    """Examines a column.

    Args:
        kind: "int", "float" or "text".
        values: [rows], float64 with NaN or objects (str) with None.
    """
    if kind == "text":
        present = [value for value in values.tolist() if value is not None]
        counts = Counter(present)
        return Facts(
            name=name,
            kind=kind,
            rows=len(values),
            missing=len(values) - len(present),
            distinct=len(counts),
            counts=_most_frequent(counts),
            words=sum(len(text.split()) for text in counts) / max(len(counts), 1),
            others=_others(counts),
            ngrams=_ngrams(list(itertools.islice(counts, _COUNTED_TEXTS))),
            moment=_moment_of_texts(counts),
        )
    numbers = values[~np.isnan(values)]
    found, rows = np.unique(numbers, return_counts=True)
    cast = int if kind == "int" else float
    counted = Counter({cast(value): int(count) for value, count in zip(found, rows, strict=True)})
    return Facts(
        name=name,
        kind=kind,
        rows=len(values),
        missing=len(values) - len(numbers),
        distinct=len(found),
        counts=_most_frequent(counted),
        least=float(found[0]) if len(found) else 0.0,
        greatest=float(found[-1]) if len(found) else 0.0,
        median=float(np.median(numbers)) if len(numbers) else 0.0,
        stand_ins=_stand_ins(found.tolist(), rows.tolist()),
        moment=_moment_of_numbers(name, found),
    )


def _stand_ins(found: list[float], rows: list[int]) -> dict[float, int]:
    """Outlying numbers that repeat and look like placeholders for a missing value.

    Args:
        found: the different numbers, ascending.
        rows: in how many rows each stands.
    """
    low, high = 0, len(found)
    stand_ins: dict[float, int] = {}
    while high - low > _LEAST_OTHERS:
        first, last = found[low], found[high - 1]
        inner = found[low + 1 : high]
        if (
            rows[low] >= _LEAST_STAND_INS
            and first < 0
            and ((_are_nines(first) and inner[0] > first / 2) or inner[0] - first > inner[-1] - inner[0])
        ):
            stand_ins[first] = rows[low]
            low += 1
        elif rows[high - 1] >= _LEAST_STAND_INS and _are_nines(last) and found[high - 2] < last / 2:
            stand_ins[last] = rows[high - 1]
            high -= 1
        else:
            break
    return stand_ins


def _are_nines(number: float) -> bool:
    """-99, 999 and 9999, 99.9 and 999.9."""
    return bool(_NINES.fullmatch(repr(abs(number)).removesuffix(".0")))


def _ngrams(texts: list[str]) -> int:
    words = [len(_WORD.findall(text)) for text in texts]
    return max(2 * math.ceil(np.quantile(words, 0.99)) - 1, 0) if words else 0


def _most_frequent(counts: Counter[Any]) -> dict[Any, int]:
    # Equal counts in the order of the values, so that the same file gives the same code.
    return dict(sorted(counts.items(), key=lambda item: (-item[1], str(item[0])))[:_MOST_VALUES])


def _others(counts: Counter[str]) -> tuple[str, ...]:
    """The texts in a column of numbers, which make it a column of text."""
    others = [text for text in counts if not _NUMBER.fullmatch(text.strip())]
    is_few = len(others) <= (1 - _MOSTLY) * len(counts)
    if any(text.strip().isdigit() for text in others):
        return ()  # with zeros in front: codes
    return tuple(sorted(others)[:_MOST_VALUES]) if is_few else ()


def _moment_of_texts(counts: Counter[str]) -> str:
    matches = [_MOMENT.fullmatch(text) for text in counts]
    if not matches or not all(matches):
        return ""
    return "time" if any(match and match["time"] for match in matches) else "date"


def _moment_of_numbers(name: str, found: npt.NDArray[np.float64]) -> str:
    """A number counts as a point in time only if its name says so, too."""
    if not len(found) or not any(word in f"_{name.lower()}" for word in _TIME_WORDS):
        return ""
    return "seconds" if _EPOCH_SECONDS[0] <= found[0] and found[-1] <= _EPOCH_SECONDS[1] else ""
