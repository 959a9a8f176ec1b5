"""Tables that are split by time, and those that are not although they hold dates."""

import numpy as np
import pytest
from split_tables import DAYS, LABEL, NOISE, ROWS, split_table

from slipway.pipeline.start.deciding import Role
from slipway.pipeline.start.split_rule import Split


def test_rows_in_order_of_time_are_judged_by_the_latest():
    _, split = split_table(day=DAYS, x=NOISE)
    assert split == Split(
        {"time": "day", "starts": {"train": None, "eval": "2022-08-24"}},
        "by time: rows from 2022-08-24 on are for evaluation, earlier ones for training",
        {"max_skew_l_infinity": 1.0, "max_skew_jensen_shannon": 1.0, "max_label_shift": 1.0},
        ROWS,
        keeps_neighbours_together=True,
    )
    assert DAYS[ROWS * 2 // 3] == "2022-08-24"
    assert "time" not in split_table(day=DAYS, x=NOISE, is_whole=False)[1].by, "the last rows are not known"


@pytest.mark.parametrize("turned", [False, True])
def test_dates_in_a_column_of_any_name_decide_where_rows_are_in_their_order(turned):
    days = DAYS[::-1] if turned else DAYS
    assert split_table(seen=days, x=NOISE)[1].by == {
        "time": "seen", "starts": {"train": None, "eval": "2022-08-24"}
    }  # fmt: skip
    mixed = [days[row * 401 % ROWS] for row in range(ROWS)]
    assert "time" not in split_table(seen=mixed, x=NOISE)[1].by
    assert split_table(day=mixed, x=NOISE)[1].by["time"] == "day", "a name says it, too"


def test_rows_of_one_day_are_in_their_order():
    weeks = [DAYS[row // 7] for row in range(ROWS)]
    assert split_table(seen=weeks, x=NOISE)[1].by["time"] == "seen"
    assert split_table(seen=weeks[::-1], x=NOISE)[1].by["time"] == "seen"


def test_split_by_time_begins_with_a_day():
    times = [f"{day} 10:20:30" for day in DAYS]
    assert split_table(day=times, x=NOISE)[1].by["starts"]["eval"] == "2022-08-24"


@pytest.mark.parametrize(("label", "task"), [(NOISE, "regression"), (LABEL, "binary")])
def test_rows_whose_label_is_not_known_yet_are_no_part_of_a_split_by_time(label, task):
    known = np.arange(ROWS) < 540
    label = np.where(known, label, None if label.dtype == object else np.nan)
    by = split_table(label=label, task=task, day=DAYS, x=NOISE)[1].by
    assert by == {"time": "day", "starts": {"train": None, "eval": DAYS[360]}}


def test_columns_that_begin_or_end_meanwhile_are_known_by_their_smaller_share():
    rows = np.arange(ROWS)
    late = np.where(rows >= 600, NOISE, np.nan)
    some = np.where(rows >= 450, NOISE, np.nan)
    ended = np.where(rows < 690, NOISE, np.nan)
    plan, split = split_table(day=DAYS, x=NOISE, late=late, some=some, ended=ended)
    assert split.by["time"] == "day"
    roles = {each.facts.name: each for each in plan.decisions}
    assert roles["late"].role is Role.LEFT_OUT
    assert roles["late"].why == "no value in a row before 2022-08-24, so nothing can be learned of it"
    assert (split.present_shares["some"], split.present_shares["ended"]) == (0.25, 0.3)


def test_dates_behind_which_labels_moved_leave_it_to_the_next_column():
    label = np.array(["no", "no", "yes"] * 200 + ["yes", "yes", "no"] * 100, dtype=object)
    mixed = [DAYS[row * 401 % ROWS] for row in range(ROWS)]
    assert split_table(label=label, day=DAYS, sold_at=mixed, x=NOISE)[1].by["time"] == "sold_at"


@pytest.mark.parametrize(("name", "decides"), [("sold_at", True), ("Sold at", True), ("format", False)])
def test_times_in_any_order_decide_by_their_name(name, decides):
    mixed = [DAYS[row * 401 % ROWS] for row in range(ROWS)]
    assert ("time" in split_table(**{name: mixed, "x": NOISE})[1].by) == decides


def test_one_row_in_a_hundred_may_be_out_of_order():
    swapped = list(DAYS)
    for row in range(0, 8 * 50, 50):
        swapped[row], swapped[row + 1] = swapped[row + 1], swapped[row]
    assert split_table(seen=swapped, x=NOISE)[1].by["time"] == "seen"
    for row in range(20, 8 * 50, 50):
        swapped[row], swapped[row + 1] = swapped[row + 1], swapped[row]
    assert "time" not in split_table(seen=swapped, x=NOISE)[1].by


@pytest.mark.parametrize(
    "earlier",
    [
        {"date_of_birth": DAYS[::-1]},
        {"sold_at": [None, *DAYS[1:]]},
        # What means that there is no date.
        {"sold_at": [*["1900-01-01"] * 9, *DAYS[9:]]},
        {"week": [f"2021-01-{1 + row % 19:02}" for row in range(ROWS)]},
        {"seen": [DAYS[row * 401 % ROWS] for row in range(ROWS)]},
        # Nine of ten rows are of its last day.
        {"shipped_at": [*DAYS[:90], *[DAYS[90]] * (ROWS - 90)]},
    ],
)
def test_dates_that_cannot_decide_leave_it_to_the_next_column(earlier):
    assert split_table(**earlier, day=DAYS, x=NOISE)[1].by["time"] == "day"
    assert "time" not in split_table(**earlier, x=NOISE)[1].by


@pytest.mark.parametrize(("without", "is_told"), [(1, True), (45, True), (46, False)])
def test_a_time_that_few_rows_lack_is_told_not_to_decide(without, is_told):
    days = [*DAYS[:-without], *[None] * without]
    notes = split_table(day=days, x=NOISE)[0].notes
    assert [note[:29] for note in notes if "day" in note] == ["day does not decide the split"] * is_told
    assert not any("day" in note for note in split_table(day=days, sold=DAYS, x=NOISE)[0].notes)


def test_a_class_that_ends_keeps_rows_from_a_split_by_time_and_is_told():
    label = np.array(["no", *["yes", "no"] * 200, *["no"] * (ROWS - 401)], dtype=object)
    plan, split = split_table(label=label, day=DAYS, x=NOISE)
    assert "time" not in split.by
    assert any("do not have two values of churned that earlier rows have" in note for note in plan.notes)


def test_of_two_times_that_in_whose_order_the_rows_are_decides():
    changed = [DAYS[row * 401 % ROWS] for row in range(ROWS)]
    assert split_table(changed_at=changed, created_at=DAYS, x=NOISE)[1].by["time"] == "created_at"


def test_twenty_moments_are_enough():
    weeks = [DAYS[row * 20 // ROWS * 7] for row in range(ROWS)]
    assert split_table(week=weeks, x=NOISE)[1].by["time"] == "week"


@pytest.mark.parametrize(("last", "decides"), [(450, True), (451, False)])
def test_half_of_the_rows_at_most_is_judged_by(last, decides):
    days = [*DAYS[: ROWS - last], *[DAYS[ROWS - last]] * last]
    assert ("time" in split_table(day=days, x=NOISE)[1].by) is decides


NUMBERS = np.linspace(0, 1, ROWS // 3)


@pytest.mark.parametrize(
    ("later", "decides"),
    [(NUMBERS, True), (NUMBERS + 0.28, True), (NUMBERS + 0.3, False), (NUMBERS - 0.3, False)],
)
def test_number_to_predict_may_move_by_one_deviation(later, decides):
    label = np.concatenate([NUMBERS, NUMBERS, later])
    label[[5, 700]] = np.nan  # in neither part
    plan, split = split_table(label=label, task="regression", day=DAYS, x=NOISE)
    assert ("time" in split.by) is decides
    moved = (
        "Rows from 2022-08-23 on have very different values of churned than earlier rows, so day does not "
        "decide the split: the model will interpolate between known rows, and may fail on later ones "
        "(data.split_by in docs/data.md)."
    )
    assert (moved in plan.notes) is not decides


def test_later_rows_need_two_classes_that_earlier_ones_have():
    mostly = ["no"] * 9 + ["yes"]
    assert "time" not in split_table(label=np.array(mostly * 60 + ["no"] * 300), day=DAYS, x=NOISE)[1].by
    unknown = np.array(mostly * 40 + ["no", None] * 250, dtype=object)
    assert "time" not in split_table(label=unknown, day=DAYS, x=NOISE)[1].by
    new = np.array(["no", "yes"] * 448 + ["maybe"] * 4)
    assert "time" not in split_table(label=new, task="multiclass", day=DAYS, x=NOISE)[1].by
    gone = np.array([*["zero"] * 10, *["no", "yes"] * 445])
    assert split_table(label=gone, task="multiclass", day=DAYS, x=NOISE)[1].by["time"] == "day"
    gaps = np.array(["no", "yes", None] * 300, dtype=object)
    assert split_table(label=gaps, day=DAYS, x=NOISE)[1].by["time"] == "day"


@pytest.mark.parametrize(("share", "decides"), [(0.7, True), (0.73, False)])
def test_share_of_a_class_may_move_by_a_fifth(share, decides):
    late = (np.arange(300) < share * 300).astype(int)
    label = np.array(["no", "yes"])[np.concatenate([np.arange(600) % 2, late])]
    assert ("time" in split_table(label=label, day=DAYS, x=NOISE)[1].by) is decides


def test_seconds_decide_as_dates_do():
    _, split = split_table(start_time=1.4e9 + np.arange(ROWS) * 3600.0, x=NOISE)
    assert split.by["starts"]["eval"] == 1_400_000_000 + ROWS * 2 // 3 * 3600


@pytest.mark.parametrize("name", ["date_of_birth", "born"])
def test_a_date_of_birth_does_not_decide(name):
    assert split_table(**{name: DAYS[::-1], "x": NOISE})[1].by == {}


def test_a_class_that_only_later_rows_have_forbids_a_split_by_time():
    label = np.array(["no"] * (ROWS - 100) + ["yes"] * 100, dtype=object)
    assert "time" not in split_table(label=label, day=DAYS, x=NOISE)[1].by


def test_labels_that_are_others_in_the_later_rows_forbid_a_split_by_time():
    label = np.array(["no", "no", "yes"] * 200 + ["yes", "yes", "no"] * 100, dtype=object)
    plan, split = split_table(label=label, day=DAYS, x=NOISE)
    assert "time" not in split.by
    assert plan.notes[-1].startswith(
        "Rows from 2022-08-24 on have very different values of churned than earlier rows, so day does not"
    )
    assert not any("very different" in note for note in split_table(day=DAYS, x=NOISE)[0].notes)
