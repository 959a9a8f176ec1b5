"""Which rule splits the rows of a table."""

from types import SimpleNamespace

import numpy as np
import pytest
from split_tables import DAYS, LABEL, NOISE, ROWS, split_table

from slipway.pipeline.start import splitting
from slipway.pipeline.start.deciding import Role
from slipway.pipeline.start.split_rule import Split
from slipway.pipeline.start.splitting import repeated_share


def test_rows_that_are_all_different_are_split_by_their_content():
    assert split_table(x=NOISE)[1] == Split(unit_count=ROWS)
    # A gap is a value like others where rows are compared.
    assert split_table(x=np.where(np.arange(ROWS) == 5, np.nan, NOISE))[1] == Split(unit_count=ROWS)


def test_rows_of_a_coarse_table_are_split_by_their_place_and_may_repeat():
    _, split = split_table(sex=[row % 2 for row in range(ROWS)], age=[row % 5 for row in range(ROWS)])
    told = (
        "by a hash of the row's position in its file: 99% of the rows repeat another in the columns that are "
        "read"
    )
    assert split == Split({"row": True}, told, {"max_duplicate_share": 1.0}, ROWS)


@pytest.mark.parametrize(
    ("times", "other", "is_told"),
    [(2, {}, True), (2, {"order_no": np.arange(ROWS) + 5}, True), (1.05, {}, False), (30, {}, True)],
)
def test_rows_that_somebody_doubled_are_told_of(times, other, is_told):
    rows = (np.arange(ROWS) / times).astype(int)
    plan, split = split_table(label=LABEL[rows], x=NOISE[rows], y=np.abs(NOISE)[rows], **other)
    assert split.by
    assert any("If a join or an export doubled them" in note for note in plan.notes) is is_told


@pytest.mark.parametrize(
    "table",
    [
        {f"x{n}": [row % n for row in range(ROWS)] for n in (2, 5, 9)},
        {"wage": np.round(NOISE, 2)},  # nearly all rows differ in it alone
    ],
)
def test_rows_of_a_coarse_table_repeat_by_chance(table):
    plan, split = split_table(**table)
    assert split.by == {"row": True}
    assert not any("doubled" in note for note in plan.notes)


def test_rows_that_repeat_may_do_so_by_a_tenth_more():
    some = np.where(np.arange(ROWS) % 8 == 0, 0.5, NOISE)
    assert split_table(x=some)[1].gate == {"max_duplicate_share": 0.22}
    # One in a hundred may be an accident.
    assert split_table(x=[*NOISE[:-8], *NOISE[:8]])[1].by == {}
    assert split_table(x=[*NOISE[:-10], *NOISE[:10]])[1].by == {"row": True}


def test_an_id_that_is_no_feature_decides_where_there_is_one():
    _, split = split_table(passenger_id=np.arange(ROWS) + 5, sex=[row % 2 for row in range(ROWS)])
    told = (
        "by a hash of passenger_id, which is not a feature: 100% of the rows repeat another in the columns "
        "that are read"
    )
    assert split == Split({"key": "passenger_id"}, told, {"max_duplicate_share": 1.0}, ROWS)
    assert split_table(passenger_id=np.arange(ROWS) + 5, x=NOISE)[1].why == (
        "by a hash of passenger_id, which is not a feature"
    )


@pytest.mark.parametrize(
    ("changes", "is_one"),
    [
        ({}, True),
        ({"kind": "text", "words": 1.9}, True),
        ({"kind": "float"}, True),
        ({"kind": "float", "is_whole": False}, False),
        ({"missing": 1}, False),
        ({"distinct": 8}, False),
        ({"kind": "text", "words": 2.0}, False),
        ({"is_list": True}, False),
    ],
)
def test_an_id_is_whole_or_text_of_one_word_and_different_in_every_row(changes, is_one):
    facts = SimpleNamespace(
        **{
            "is_list": False,
            "kind": "int",
            "is_whole": True,
            "missing": 0,
            "distinct": 9,
            "rows": 9,
            "words": 0.0,
            **changes,
        }
    )
    column = SimpleNamespace(facts=facts)
    plan = SimpleNamespace(with_role=lambda role: [column] if role is Role.LEFT_OUT else [])
    assert splitting._identity(plan) is (column if is_one else None)


def test_rows_that_stay_together_may_repeat_as_others_may():
    shelf = {"price": [row % 3 for row in range(ROWS)]}
    _, by_group = split_table(id=[row // 8 for row in range(ROWS)], **shelf)
    assert (by_group.by, by_group.gate) == ({"key": "id"}, {"max_duplicate_share": 0.35})
    assert by_group.why == (
        "by id: the rows of each of its 113 values stay together; 25% of the rows repeat another in the "
        "columns that are read"
    )
    _, by_time = split_table(day=np.repeat(DAYS[: ROWS // 10], 10), **shelf)
    assert by_time.by.keys() == {"time", "starts"}
    assert by_time.gate == {
        "max_skew_l_infinity": 1.0, "max_skew_jensen_shannon": 1.0, "max_label_shift": 1.0,
        "max_duplicate_share": 0.5,
    }  # fmt: skip


def test_missing_cells_are_equal_to_each_other_where_rows_are_compared():
    texts = np.array(["a", "a", None, None], dtype=object)
    assert repeated_share([np.array([np.nan, np.nan, 1.0, np.inf]), texts]) == 0.25
    assert repeated_share([np.array([np.nan, 0.0])]) == 0.0, "nor is a missing one nothing"
    assert repeated_share([np.array([])]) == 0.0
