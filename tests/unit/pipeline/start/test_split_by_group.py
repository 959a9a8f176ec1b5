"""Tables whose rows of a person, or the like, stay in one split."""

import numpy as np
import pytest
from split_tables import DAYS, NOISE, ROWS, split_table

from slipway.pipeline.start.deciding import Role
from slipway.pipeline.start.split_rule import Split


def test_rows_of_one_person_stay_together_and_the_person_is_no_feature():
    plan, split = split_table(nr=[13.0 + row // 8 * 7 for row in range(ROWS)], x=NOISE)
    told = "by nr: the rows of each of its 113 values stay together"
    assert split == Split({"key": "nr"}, told, {}, len({row // 8 for row in range(ROWS)}))
    [person] = [d for d in plan.decisions if d.facts.name == "nr"]
    assert person.role is Role.GROUP
    assert person.why == (
        "identifies groups of 8.0 rows on average: it decides the split, and is not a feature"
    )
    assert not plan.with_role(Role.LEFT_OUT)


@pytest.mark.parametrize(("missing", "by"), [(45, {"key": "user_id"}), (46, {})])
def test_rows_of_one_person_stay_together_if_few_rows_name_none(missing, by):
    users = [None] * missing + [f"u{row // 3}" for row in range(ROWS - missing)]
    plan, split = split_table(user_id=users, x=NOISE)
    assert split.by == by
    assert ("stay together; 45 rows without one, too" in split.why) is bool(by)
    assert [d.facts.name for d in plan.with_role(Role.GROUP if by else Role.LEFT_OUT)] == ["user_id"]
    assert any("5% of all rows have none" in note for note in plan.notes) is not bool(by)


@pytest.mark.parametrize("others", [("order_id", "customer_id"), ("customer_id", "order_id")])
def test_rows_of_a_customer_stay_together_with_all_of_their_orders(others):
    ids = {"order_id": [row // 2 for row in range(ROWS)], "customer_id": [row // 6 for row in range(ROWS)]}
    assert split_table(**{name: ids[name] for name in others}, x=NOISE)[1].by == {"key": "customer_id"}
    ids["customer_id"] = [row % 150 for row in range(ROWS)]  # of one order, there are several
    assert split_table(**{name: ids[name] for name in others}, x=NOISE)[1].by == {"key": others[0]}


def test_an_id_of_a_group_is_no_number_where_another_column_decides():
    users = [row // 3 for row in range(ROWS)]
    shops = [f"s{row % 40}" for row in range(ROWS)]
    for others in ({"sold": DAYS}, {"person": [f"p{row // 9}" for row in range(ROWS)]}):
        plan, split = split_table(**others, user_id=users, shop_id=shops, x=NOISE)
        assert split.column == next(iter(others))
        roles = {d.facts.name: d.role for d in plan.decisions}
        assert (roles["user_id"], roles["shop_id"]) == (Role.LEFT_OUT, Role.CATEGORY)
    assert split_table(sold=DAYS, user_id=users, kept=["user_id"])[0].with_role(Role.NUMBER)


@pytest.mark.parametrize("name", ["amount_paid", "income_per_person", "id_02", "city_id"])
def test_a_number_whose_name_only_ends_like_that_of_an_id_is_a_feature(name):
    values = np.random.default_rng(3).integers(0, 300, ROWS)
    for others in ({}, {"sold": DAYS}):
        plan, split = split_table(**others, **{name: values}, x=NOISE)
        assert split.column != name
        assert name in [decision.facts.name for decision in plan.with_role(Role.NUMBER)]


def test_a_panel_is_seen_whatever_its_columns_are_called():
    pig, week = np.repeat(np.arange(90), 10), np.tile(np.arange(10), 90)
    plan, split = split_table(Pig=4600 + pig, week=week, x=NOISE)
    assert (split.by, split.unit_count) == ({"key": "Pig"}, 90)
    [pig_column] = [d for d in plan.decisions if d.facts.name == "Pig"]
    assert (pig_column.role, pig_column.why) == (
        Role.GROUP,
        "identifies groups of 10.0 rows on average, in the order of week: it decides the split, and is not a "
        "feature",
    )
    assert split_table(kept=["Pig"], Pig=4600 + pig, week=week, x=NOISE)[1].by == {}


def test_the_label_says_nothing_of_a_panels_order():
    label = np.array(["a", "b", "c"] * 300, dtype=object)
    assert split_table(label=label, colour=[f"c{row // 3}" for row in range(ROWS)], x=NOISE)[1].by == {}


def test_a_group_that_the_user_keeps_stays_a_feature():
    assert split_table(kept=["nr"], nr=[13.0 + row // 8 * 7 for row in range(ROWS)], x=NOISE)[1].by == {}


@pytest.mark.parametrize(("groups", "is_panel"), [(ROWS, False), (ROWS - 1, True), (30, True), (29, False)])
def test_a_group_of_a_named_id_has_at_most_thirty_rows_and_one_of_them_two(groups, is_panel):
    plan, split = split_table(nr=[13.0 + row % groups * 7 for row in range(ROWS)], x=NOISE)
    assert bool(plan.with_role(Role.GROUP)) is is_panel
    assert (split.by == {"key": "nr"}) is (groups != 29), "an id of single rows decides by its hash"


@pytest.mark.parametrize("name", ["customer.id", "contact_e-mail", "Kunden-Nr.", "idpersona"])
def test_an_id_that_is_known_by_its_name_decides_the_split(name):
    people = [f"x{row // 8}" for row in range(ROWS)]
    assert split_table(**{name: people, "x": NOISE})[1].by == {"key": name}


def test_what_is_no_group_leaves_it_to_the_next_column():
    people = [13.0 + row // 8 * 7 for row in range(ROWS)]
    gaps = [*[np.nan] * 46, *people[46:]]
    halves = [row // 8 * 7 + 0.5 for row in range(ROWS)]
    empty = [None] * ROWS
    assert split_table(kept=["nr"], nr=people, user_id=gaps, subject=halves, x=NOISE)[1].by == {}
    found = split_table(
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
    assert split_table(person=people)[1].by != {"key": "person"}, "or there would be no feature left"


def test_few_values_of_many_rows_each_are_no_groups():
    assert split_table(store_id=[10 + row % 20 for row in range(ROWS)], x=NOISE)[1].by == {}
