import numpy as np
import pytest

from pipeline.start.deciding import Role, decide
from pipeline.start.facts import facts_of
from pipeline.start.splitting import decide_split, repeated_share

ROWS = 900
NOISE = np.random.default_rng(2).normal(size=ROWS)
LABEL = np.array(["no", "yes"] * (ROWS // 2), dtype=object)
DAYS = [str(day) for day in np.datetime64("2021-01-01") + np.arange(ROWS)]


def _split(kept=(), label=LABEL, **columns):
    arrays = {"churned": label, **{name: np.array(values) for name, values in columns.items()}}
    arrays = {
        name: values.astype(object if values.dtype.kind in "UO" else np.float64)
        for name, values in arrays.items()
    }
    kinds = {
        name: "text" if each.dtype == object else "int" if (each == np.round(each)).all() else "float"
        for name, each in arrays.items()
    }
    facts = [facts_of(name, kinds[name], values) for name, values in arrays.items()]
    plan = decide(facts, label="churned", task="binary", leaks={}, kept=kept)
    return decide_split(plan, arrays, is_whole=True)


def test_rows_that_are_all_different_are_split_by_their_content():
    assert _split(x=NOISE)[1].by == {}


def test_rows_of_a_coarse_table_are_split_by_their_place_and_may_repeat():
    _, split = _split(sex=[row % 2 for row in range(ROWS)], age=[row % 5 for row in range(ROWS)])
    assert split.by == {"row": True}
    assert split.why.endswith("place in its file: 99% of the rows repeat another in what is read")
    assert split.gate["max_duplicate_share"] == 1.0


def test_an_id_that_is_no_feature_decides_where_there_is_one():
    _, split = _split(passenger_id=np.arange(ROWS) + 5, sex=[row % 2 for row in range(ROWS)])
    assert split.by == {"key": "passenger_id"}


def test_rows_in_order_of_time_are_judged_by_the_latest():
    _, split = _split(day=DAYS, x=NOISE)
    assert split.by == {"time": "day", "starts": {"train": None, "eval": "2022-08-24"}}
    assert DAYS[ROWS * 2 // 3] == "2022-08-24"
    assert split.gate["max_label_shift"] == 1.0


def test_seconds_decide_as_dates_do():
    _, split = _split(start_time=1.4e9 + np.arange(ROWS) * 3600.0, x=NOISE)
    assert split.by["starts"]["eval"] == 1_400_000_000 + ROWS * 2 // 3 * 3600


@pytest.mark.parametrize("name", ["date_of_birth", "born"])
def test_a_date_of_birth_does_not_decide(name):
    assert _split(**{name: DAYS[::-1], "x": NOISE})[1].by == {}


def test_a_class_that_only_later_rows_have_forbids_a_split_by_time():
    label = np.array(["no"] * (ROWS - 100) + ["yes"] * 100, dtype=object)
    assert "time" not in _split(label=label, day=DAYS, x=NOISE)[1].by


def test_labels_that_are_others_in_the_later_rows_forbid_a_split_by_time():
    label = np.array(["no", "no", "yes"] * 200 + ["yes", "yes", "no"] * 100, dtype=object)
    plan, split = _split(label=label, day=DAYS, x=NOISE)
    assert "time" not in split.by
    assert plan.notes[-1].startswith(
        "Rows from 2022-08-24 on have quite another churned than earlier ones, so day does not decide"
    )
    assert not any("quite another" in note for note in _split(day=DAYS, x=NOISE)[0].notes)


def test_rows_of_one_person_stay_together_and_the_person_is_no_feature():
    plan, split = _split(nr=[13.0 + row // 8 * 7 for row in range(ROWS)], x=NOISE)
    assert split.by == {"key": "nr"}
    assert split.units == len({row // 8 for row in range(ROWS)})
    [person] = [d for d in plan.decisions if d.facts.name == "nr"]
    assert person.role is Role.LEFT_OUT
    assert "names a group of 8.0 rows on average" in person.why


def test_a_panel_is_seen_whatever_its_columns_are_called():
    pig, week = np.repeat(np.arange(90), 10), np.tile(np.arange(10), 90)
    plan, split = _split(Pig=4600 + pig, week=week, x=NOISE)
    assert (split.by, split.units, split.keeps_neighbours) == ({"key": "Pig"}, 90, True)
    [left] = [d for d in plan.decisions if d.facts.name == "Pig"]
    assert (left.role, left.why) == (
        Role.LEFT_OUT,
        "names a group of 10.0 rows on average, in the order of week: it decides over the split, and is no "
        "feature",
    )
    assert _split(kept=["Pig"], Pig=4600 + pig, week=week, x=NOISE)[1].by == {}


def test_the_label_says_nothing_of_a_panels_order():
    label = np.array(["a", "b", "c"] * 300, dtype=object)
    assert _split(label=label, colour=[f"c{row // 3}" for row in range(ROWS)], x=NOISE)[1].by == {}


def test_a_group_that_the_user_keeps_stays_a_feature():
    assert _split(kept=["nr"], nr=[13.0 + row // 8 * 7 for row in range(ROWS)], x=NOISE)[1].by == {}


def test_few_values_of_many_rows_each_are_no_groups():
    assert _split(store_id=[10 + row % 20 for row in range(ROWS)], x=NOISE)[1].by == {}


def test_missing_cells_are_equal_to_each_other_where_rows_are_compared():
    assert repeated_share([np.array([np.nan, np.nan, 1.0, np.inf]), np.array(["a", "a", None, None])]) == 0.25
