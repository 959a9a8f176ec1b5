import numpy as np
import pytest

from slipway.pipeline.start.deciding import Role, decide
from slipway.pipeline.start.facts import facts_of, facts_of_lists

ROWS = 600
LABEL = facts_of("good", "text", np.array(["no", "yes"] * (ROWS // 2), dtype=object))


def _decision(kind, lists, *, kept=()):
    of_kind = object if kind == "text" else np.float64
    column = facts_of_lists("list", kind, [np.array(each, dtype=of_kind) for each in lists])
    other = facts_of("other", "float", np.arange(ROWS) / 7)
    return decide([column, other, LABEL], label="good", task="binary", leaks={}, kept=kept).decisions[0]


def _rows(of):
    return [of(row) for row in range(ROWS)]


@pytest.mark.parametrize(
    ("kind", "lists", "role", "values", "why"),
    [
        (
            "text",
            _rows(lambda row: ["a", "new york"][: row % 3]),
            Role.ITEMS,
            2,
            "texts, 1 to 2 in a list, 2",
        ),
        (
            "int",
            _rows(lambda row: [row % 5, 3, 4][: 1 + row % 3]),
            Role.ITEMS,
            3,
            "5 different: each is hashed",
        ),
        (
            "int",
            _rows(lambda row: [70_000 + 999 * (row % 50)] * (1 + row % 4)),
            Role.ITEMS,
            4,
            "50 different",
        ),
        ("int", _rows(lambda row: [row] * (1 + row % 4)), Role.SERIES, 0, "how many, their mean"),
        ("float", _rows(lambda row: [row / 7] * (row % 4)), Role.SERIES, 0, "numbers, 1 to 3 in a list"),
        ("float", _rows(lambda row: [row / 7, 1.0, 2.0]), Role.VECTOR, 3, "3 in every list: each place"),
        ("int", _rows(lambda row: [row % 2, 0, 1]), Role.VECTOR, 3, "3 in every list"),
        ("float", _rows(lambda row: [row / 7, 1.0] if row % 2 else []), Role.VECTOR, 2, "2 in every list"),
        ("float", _rows(lambda row: [row / 7] * 1025), Role.SERIES, 0, "1,025 in every list"),
        ("text", _rows(lambda row: [f"{row} {n}" for n in range(9)]), Role.LEFT_OUT, 0, "join each list"),
        ("text", _rows(lambda row: ["2024-01-02", "2024-01-03"]), Role.LEFT_OUT, 0, "points in time"),
        ("float", _rows(lambda row: [1e39, 1.0]), Role.LEFT_OUT, 0, "beyond what 32-bit numbers hold"),
        (
            "float",
            _rows(lambda row: [1.0, float("nan") if row < 3 else row / 7]),
            Role.LEFT_OUT,
            0,
            "lists with NaN in 3 rows: write other numbers there, or an empty list",
        ),
        ("float", _rows(lambda row: [] if row else [1.0, 2.0]), Role.LEFT_OUT, 0, "a value in 1 of 600 rows"),
    ],
)
def test_what_a_list_becomes_depends_on_its_values_and_lengths(kind, lists, role, values, why):
    found = _decision(kind, lists)
    assert (found.role, found.values) == (role, values)
    assert why in found.why


def test_as_many_values_are_read_as_nearly_all_lists_have():
    lists = _rows(lambda row: ["a", "b", "c"] if row else ["a"] * 5000)
    assert _decision("text", lists).values == 3
    assert _decision("text", _rows(lambda row: ["a"] * (300 + row % 2))).values == 256


def test_a_list_that_is_kept_is_a_feature():
    found = _decision("text", _rows(lambda row: [f"{row} {n}" for n in range(9)]), kept=("list",))
    assert (found.role, found.is_kept) == (Role.ITEMS, True)


@pytest.mark.parametrize(("distinct", "codes"), [(8, 16_384), (300, 32_768), (100_000, 262_144)])
def test_few_values_need_few_codes(distinct, codes):
    lists = _rows(lambda row: [f"v{(row * 700 + n) % distinct}" for n in range(700)])
    assert _decision("text", lists).codes == codes
