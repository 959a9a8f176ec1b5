from types import SimpleNamespace

import numpy as np
import pytest

from slipway.pipeline.start import splitting
from slipway.pipeline.start.deciding import Role, decide
from slipway.pipeline.start.facts import facts_of
from slipway.pipeline.start.splitting import Split, decide_split, repeated_share

ROWS = 900
NOISE = np.random.default_rng(2).normal(size=ROWS)
LABEL = np.array(["no", "yes"] * (ROWS // 2), dtype=object)
DAYS = [str(day) for day in np.datetime64("2021-01-01") + np.arange(ROWS)]


def _split(kept=(), label=LABEL, task="binary", is_whole=True, **columns):
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
    plan = decide(facts, label="churned", task=task, leaks={}, kept=kept)
    return decide_split(plan, arrays, is_whole=is_whole)


def test_rows_that_are_all_different_are_split_by_their_content():
    assert _split(x=NOISE)[1] == Split(unit_count=ROWS)
    # A gap is a value like others where rows are compared.
    assert _split(x=np.where(np.arange(ROWS) == 5, np.nan, NOISE))[1] == Split(unit_count=ROWS)


def test_rows_of_a_coarse_table_are_split_by_their_place_and_may_repeat():
    _, split = _split(sex=[row % 2 for row in range(ROWS)], age=[row % 5 for row in range(ROWS)])
    told = (
        "by a hash of the row's position in its file: 99% of the rows repeat another in the columns that are "
        "read"
    )
    assert split == Split({"row": True}, told, {"max_duplicate_share": 1.0}, ROWS)


def test_rows_that_repeat_may_do_so_by_a_tenth_more():
    some = np.where(np.arange(ROWS) % 8 == 0, 0.5, NOISE)
    assert _split(x=some)[1].gate == {"max_duplicate_share": 0.22}
    # One in a hundred may be an accident.
    assert _split(x=[*NOISE[:-8], *NOISE[:8]])[1].by == {}
    assert _split(x=[*NOISE[:-10], *NOISE[:10]])[1].by == {"row": True}


def test_an_id_that_is_no_feature_decides_where_there_is_one():
    _, split = _split(passenger_id=np.arange(ROWS) + 5, sex=[row % 2 for row in range(ROWS)])
    told = (
        "by a hash of passenger_id, which is not a feature: 100% of the rows repeat another in the columns "
        "that are read"
    )
    assert split == Split({"key": "passenger_id"}, told, {"max_duplicate_share": 1.0}, ROWS)
    assert _split(passenger_id=np.arange(ROWS) + 5, x=NOISE)[1].why == (
        "by a hash of passenger_id, which is not a feature"
    )


def test_rows_in_order_of_time_are_judged_by_the_latest():
    _, split = _split(day=DAYS, x=NOISE)
    assert split == Split(
        {"time": "day", "starts": {"train": None, "eval": "2022-08-24"}},
        "by time: rows from 2022-08-24 on are for evaluation, earlier ones for training",
        {"max_skew_l_infinity": 1.0, "max_skew_jensen_shannon": 1.0, "max_label_shift": 1.0},
        ROWS,
        keeps_groups_together=True,
    )
    assert DAYS[ROWS * 2 // 3] == "2022-08-24"
    assert "time" not in _split(day=DAYS, x=NOISE, is_whole=False)[1].by, "the last rows are not known"


@pytest.mark.parametrize("turned", [False, True])
def test_dates_in_a_column_of_any_name_decide_where_rows_are_in_their_order(turned):
    days = DAYS[::-1] if turned else DAYS
    assert _split(seen=days, x=NOISE)[1].by == {
        "time": "seen", "starts": {"train": None, "eval": "2022-08-24"}
    }  # fmt: skip
    mixed = [days[row * 401 % ROWS] for row in range(ROWS)]
    assert "time" not in _split(seen=mixed, x=NOISE)[1].by
    assert _split(day=mixed, x=NOISE)[1].by["time"] == "day", "a name says it, too"


def test_rows_of_one_day_are_in_their_order():
    weeks = [DAYS[row // 7] for row in range(ROWS)]
    assert _split(seen=weeks, x=NOISE)[1].by["time"] == "seen"
    assert _split(seen=weeks[::-1], x=NOISE)[1].by["time"] == "seen"


def test_split_by_time_begins_with_a_day():
    times = [f"{day} 10:20:30" for day in DAYS]
    assert _split(day=times, x=NOISE)[1].by["starts"]["eval"] == "2022-08-24"


@pytest.mark.parametrize(("label", "task"), [(NOISE, "regression"), (LABEL, "binary")])
def test_rows_whose_label_is_not_known_yet_are_no_part_of_a_split_by_time(label, task):
    known = np.arange(ROWS) < 540
    label = np.where(known, label, None if label.dtype == object else np.nan)
    by = _split(label=label, task=task, day=DAYS, x=NOISE)[1].by
    assert by == {"time": "day", "starts": {"train": None, "eval": DAYS[360]}}


def test_columns_that_begin_or_end_meanwhile_are_known_by_their_smaller_share():
    rows = np.arange(ROWS)
    late = np.where(rows >= 600, NOISE, np.nan)
    some = np.where(rows >= 450, NOISE, np.nan)
    ended = np.where(rows < 690, NOISE, np.nan)
    plan, split = _split(day=DAYS, x=NOISE, late=late, some=some, ended=ended)
    assert split.by["time"] == "day"
    roles = {each.facts.name: each for each in plan.decisions}
    assert roles["late"].role is Role.LEFT_OUT
    assert roles["late"].why == "no value in a row before 2022-08-24, so nothing can be learned of it"
    assert (split.present_shares["some"], split.present_shares["ended"]) == (0.25, 0.3)


def test_dates_behind_which_labels_moved_leave_it_to_the_next_column():
    label = np.array(["no", "no", "yes"] * 200 + ["yes", "yes", "no"] * 100, dtype=object)
    mixed = [DAYS[row * 401 % ROWS] for row in range(ROWS)]
    assert _split(label=label, day=DAYS, sold_at=mixed, x=NOISE)[1].by["time"] == "sold_at"


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


def test_one_row_in_a_hundred_may_be_out_of_order():
    swapped = list(DAYS)
    for row in range(0, 8 * 50, 50):
        swapped[row], swapped[row + 1] = swapped[row + 1], swapped[row]
    assert _split(seen=swapped, x=NOISE)[1].by["time"] == "seen"
    for row in range(20, 8 * 50, 50):
        swapped[row], swapped[row + 1] = swapped[row + 1], swapped[row]
    assert "time" not in _split(seen=swapped, x=NOISE)[1].by


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
    assert _split(**earlier, day=DAYS, x=NOISE)[1].by["time"] == "day"
    assert "time" not in _split(**earlier, x=NOISE)[1].by


@pytest.mark.parametrize(("without", "is_told"), [(1, True), (45, True), (46, False)])
def test_a_time_that_few_rows_lack_is_told_not_to_decide(without, is_told):
    days = [*DAYS[:-without], *[None] * without]
    notes = _split(day=days, x=NOISE)[0].notes
    assert [note[:29] for note in notes if "day" in note] == ["day does not decide the split"] * is_told
    assert not any("day" in note for note in _split(day=days, sold=DAYS, x=NOISE)[0].notes)


def test_a_class_that_ends_keeps_rows_from_a_split_by_time_and_is_told():
    label = np.array(["no", *["yes", "no"] * 200, *["no"] * (ROWS - 401)], dtype=object)
    plan, split = _split(label=label, day=DAYS, x=NOISE)
    assert "time" not in split.by
    assert any("do not have two values of churned that earlier rows have" in note for note in plan.notes)


def test_of_two_times_that_in_whose_order_the_rows_are_decides():
    changed = [DAYS[row * 401 % ROWS] for row in range(ROWS)]
    assert _split(changed_at=changed, created_at=DAYS, x=NOISE)[1].by["time"] == "created_at"


def test_twenty_moments_are_enough():
    weeks = [DAYS[row * 20 // ROWS * 7] for row in range(ROWS)]
    assert _split(week=weeks, x=NOISE)[1].by["time"] == "week"


@pytest.mark.parametrize(("last", "decides"), [(450, True), (451, False)])
def test_half_of_the_rows_at_most_is_judged_by(last, decides):
    days = [*DAYS[: ROWS - last], *[DAYS[ROWS - last]] * last]
    assert ("time" in _split(day=days, x=NOISE)[1].by) is decides


NUMBERS = np.linspace(0, 1, ROWS // 3)


@pytest.mark.parametrize(
    ("later", "decides"),
    [(NUMBERS, True), (NUMBERS + 0.28, True), (NUMBERS + 0.3, False), (NUMBERS - 0.3, False)],
)
def test_number_to_predict_may_move_by_one_deviation(later, decides):
    label = np.concatenate([NUMBERS, NUMBERS, later])
    label[[5, 700]] = np.nan  # in neither part
    plan, split = _split(label=label, task="regression", day=DAYS, x=NOISE)
    assert ("time" in split.by) is decides
    moved = (
        "Rows from 2022-08-23 on have very different values of churned than earlier rows, so day does not "
        "decide the split: the model will interpolate between known rows, and may fail on later ones "
        "(data.split_by in docs/data.md)."
    )
    assert (moved in plan.notes) is not decides


def test_later_rows_need_two_classes_that_earlier_ones_have():
    mostly = ["no"] * 9 + ["yes"]
    assert "time" not in _split(label=np.array(mostly * 60 + ["no"] * 300), day=DAYS, x=NOISE)[1].by
    unknown = np.array(mostly * 40 + ["no", None] * 250, dtype=object)
    assert "time" not in _split(label=unknown, day=DAYS, x=NOISE)[1].by
    new = np.array(["no", "yes"] * 448 + ["maybe"] * 4)
    assert "time" not in _split(label=new, task="multiclass", day=DAYS, x=NOISE)[1].by
    gone = np.array([*["zero"] * 10, *["no", "yes"] * 445])
    assert _split(label=gone, task="multiclass", day=DAYS, x=NOISE)[1].by["time"] == "day"
    gaps = np.array(["no", "yes", None] * 300, dtype=object)
    assert _split(label=gaps, day=DAYS, x=NOISE)[1].by["time"] == "day"


@pytest.mark.parametrize(("share", "decides"), [(0.7, True), (0.73, False)])
def test_share_of_a_class_may_move_by_a_fifth(share, decides):
    late = (np.arange(300) < share * 300).astype(int)
    label = np.array(["no", "yes"])[np.concatenate([np.arange(600) % 2, late])]
    assert ("time" in _split(label=label, day=DAYS, x=NOISE)[1].by) is decides


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
        "Rows from 2022-08-24 on have very different values of churned than earlier rows, so day does not"
    )
    assert not any("very different" in note for note in _split(day=DAYS, x=NOISE)[0].notes)


def test_rows_of_one_person_stay_together_and_the_person_is_no_feature():
    plan, split = _split(nr=[13.0 + row // 8 * 7 for row in range(ROWS)], x=NOISE)
    told = "by nr: the rows of each of its 113 values stay together"
    assert split == Split(
        {"key": "nr"}, told, {}, len({row // 8 for row in range(ROWS)}), keeps_groups_together=True
    )
    [person] = [d for d in plan.decisions if d.facts.name == "nr"]
    assert person.role is Role.LEFT_OUT
    assert person.why == (
        "identifies groups of 8.0 rows on average: it decides the split, and is not a feature"
    )
    assert [d.facts.name for d in plan.decisions if d.role is Role.LEFT_OUT] == ["nr"]


@pytest.mark.parametrize(("missing", "by"), [(45, {"key": "user_id"}), (46, {})])
def test_rows_of_one_person_stay_together_if_few_rows_name_none(missing, by):
    users = [None] * missing + [f"u{row // 3}" for row in range(ROWS - missing)]
    plan, split = _split(user_id=users, x=NOISE)
    assert split.by == by
    assert ("stay together; 45 rows without one, too" in split.why) is bool(by)
    assert [d.facts.name for d in plan.with_role(Role.LEFT_OUT)] == ["user_id"]
    assert any("5% of all rows have none" in note for note in plan.notes) is not bool(by)


@pytest.mark.parametrize("others", [("order_id", "customer_id"), ("customer_id", "order_id")])
def test_rows_of_a_customer_stay_together_with_all_of_their_orders(others):
    ids = {"order_id": [row // 2 for row in range(ROWS)], "customer_id": [row // 6 for row in range(ROWS)]}
    assert _split(**{name: ids[name] for name in others}, x=NOISE)[1].by == {"key": "customer_id"}
    ids["customer_id"] = [row % 150 for row in range(ROWS)]  # of one order, there are several
    assert _split(**{name: ids[name] for name in others}, x=NOISE)[1].by == {"key": others[0]}


def test_an_id_of_a_group_is_no_number_where_another_column_decides():
    users = [row // 3 for row in range(ROWS)]
    shops = [f"s{row % 40}" for row in range(ROWS)]
    for others in ({"sold": DAYS}, {"person": [f"p{row // 9}" for row in range(ROWS)]}):
        plan, split = _split(**others, user_id=users, shop_id=shops, x=NOISE)
        assert split.column == next(iter(others))
        roles = {d.facts.name: d.role for d in plan.decisions}
        assert (roles["user_id"], roles["shop_id"]) == (Role.LEFT_OUT, Role.CATEGORY)
    assert _split(sold=DAYS, user_id=users, kept=["user_id"])[0].with_role(Role.NUMBER)


@pytest.mark.parametrize(
    "name", ["amount_paid", "bid", "income_per_person", "costPerClient", "week_number", "NO"]
)
def test_a_number_whose_name_only_ends_like_that_of_an_id_is_a_feature(name):
    values = np.random.default_rng(3).integers(0, 300, ROWS)
    for others in ({}, {"sold": DAYS}):
        plan, split = _split(**others, **{name: values}, x=NOISE)
        assert split.column != name
        assert name in [decision.facts.name for decision in plan.with_role(Role.NUMBER)]


def test_rows_that_stay_together_may_repeat_as_others_may():
    shelf = {"price": [row % 3 for row in range(ROWS)]}
    _, by_group = _split(id=[row // 8 for row in range(ROWS)], **shelf)
    assert (by_group.by, by_group.gate) == ({"key": "id"}, {"max_duplicate_share": 1.0})
    assert by_group.why == (
        "by id: the rows of each of its 113 values stay together; 99% of the rows repeat another in the "
        "columns that are read"
    )
    _, by_time = _split(day=np.repeat(DAYS[: ROWS // 10], 10), **shelf)
    assert by_time.by.keys() == {"time", "starts"}
    assert by_time.gate == {
        "max_skew_l_infinity": 1.0, "max_skew_jensen_shannon": 1.0, "max_label_shift": 1.0,
        "max_duplicate_share": 0.5,
    }  # fmt: skip


def test_a_panel_is_seen_whatever_its_columns_are_called():
    pig, week = np.repeat(np.arange(90), 10), np.tile(np.arange(10), 90)
    plan, split = _split(Pig=4600 + pig, week=week, x=NOISE)
    assert (split.by, split.unit_count, split.keeps_groups_together) == ({"key": "Pig"}, 90, True)
    [left] = [d for d in plan.decisions if d.facts.name == "Pig"]
    assert (left.role, left.why) == (
        Role.LEFT_OUT,
        "identifies groups of 10.0 rows on average, in the order of week: it decides the split, and is not a "
        "feature",
    )
    assert _split(kept=["Pig"], Pig=4600 + pig, week=week, x=NOISE)[1].by == {}


def test_the_label_says_nothing_of_a_panels_order():
    label = np.array(["a", "b", "c"] * 300, dtype=object)
    assert _split(label=label, colour=[f"c{row // 3}" for row in range(ROWS)], x=NOISE)[1].by == {}


def test_a_group_that_the_user_keeps_stays_a_feature():
    assert _split(kept=["nr"], nr=[13.0 + row // 8 * 7 for row in range(ROWS)], x=NOISE)[1].by == {}


@pytest.mark.parametrize(("groups", "is_panel"), [(ROWS, False), (ROWS - 1, True), (30, True), (29, False)])
def test_a_group_of_a_named_id_has_at_most_thirty_rows_and_one_of_them_two(groups, is_panel):
    split = _split(nr=[13.0 + row % groups * 7 for row in range(ROWS)], x=NOISE)[1]
    assert split.keeps_groups_together is is_panel
    assert (split.by == {"key": "nr"}) is (groups != 29), "an id of single rows decides by its hash"


@pytest.mark.parametrize(
    "name", ["customer.id", "Subject ID", "patient-no", "email", "contact_e-mail", "userId"]
)
def test_an_id_is_known_by_its_name_however_that_is_written(name):
    people = [f"x{row // 8}" for row in range(ROWS)]
    assert _split(**{name: people, "x": NOISE})[1].by == {"key": name}


def test_what_is_no_group_leaves_it_to_the_next_column():
    people = [13.0 + row // 8 * 7 for row in range(ROWS)]
    gaps = [*[np.nan] * 46, *people[46:]]
    halves = [row // 8 * 7 + 0.5 for row in range(ROWS)]
    empty = [None] * ROWS
    assert _split(kept=["nr"], nr=people, user_id=gaps, subject=halves, x=NOISE)[1].by == {}
    found = _split(
        kept=["nr"],
        nr=people,
        key=empty,
        user_id=gaps,
        subject=halves,
        label_x=people,
        person=people,
        x=NOISE,
    )
    assert found[1].by == {"key": "person"}
    assert _split(person=people)[1].by != {"key": "person"}, "or there would be no feature left"


def test_few_values_of_many_rows_each_are_no_groups():
    assert _split(store_id=[10 + row % 20 for row in range(ROWS)], x=NOISE)[1].by == {}


def test_missing_cells_are_equal_to_each_other_where_rows_are_compared():
    texts = np.array(["a", "a", None, None], dtype=object)
    assert repeated_share([np.array([np.nan, np.nan, 1.0, np.inf]), texts]) == 0.25
    assert repeated_share([np.array([np.nan, 0.0])]) == 0.0, "nor is a missing one nothing"
    assert repeated_share([np.array([])]) == 0.0
