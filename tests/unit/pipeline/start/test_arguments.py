import numpy as np
import pytest

from slipway.pipeline.errors import UsageError
from slipway.pipeline.start.arguments import (
    are_a_row,
    check_columns,
    check_name,
    check_weight,
    refuse_columns_of_images,
)
from slipway.pipeline.start.facts import facts_of
from slipway.pipeline.start.reading import Table

ROWS = 30


def _table(**columns):
    columns = {name: np.array(values, dtype=np.float64) for name, values in columns.items()}
    kinds = dict.fromkeys(columns, "float")
    return Table(columns, kinds, rows=ROWS, is_whole=True, rejected=0, file_format="csv")


def _check(table, **options):
    facts = {name: facts_of(name, table.kinds[name], values) for name, values in table.columns.items()}
    check_columns("rows.csv", table, facts, **{"label": None, "weight": None, "keep": (), **options})


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("big-name", "is not a valid workload name"),
        ("Big Name", "'Big Name' is not a valid workload name"),
        ("../up", "is not a valid workload name"),
        ("a" * 64, "all lower case and at most 63"),
        ("class", "'class' is a Python keyword"),
    ],
)
def test_what_cannot_name_a_package_is_refused(name, words):
    check_name("customers_2")
    with pytest.raises(UsageError, match=words):
        check_name(name)


@pytest.mark.parametrize(
    ("values", "options", "words"),
    [
        (list("abc") * 10, {}, "--weight w: this column holds texts"),
        ([np.nan, *range(1, ROWS)], {}, "this column is empty in 1 row"),
        (range(-1, ROWS - 1), {}, "this column holds -1, but weights must be finite and >= 0"),
        ([1e39, *range(1, ROWS)], {}, "holds 1e\\+39, but weights must be finite and >= 0"),
        ([0] * ROWS, {}, "this column is 0 in every row"),
        (range(ROWS), {"kept": ["w"]}, "is also a feature by --keep"),
        (range(ROWS), {"label": "w"}, "this column is the column to predict"),
    ],
)
def test_a_column_that_no_row_can_be_weighed_by_is_refused(values, options, words):
    kind = "text" if "a" in values else "float"
    column = facts_of("w", kind, np.array(values, dtype=object if kind == "text" else np.float64))
    with pytest.raises(UsageError, match=words):
        check_weight(column, **{"label": "y", "kept": (), **options})


def test_a_column_that_is_not_there_is_refused_with_the_nearest_one():
    with pytest.raises(UsageError, match="has no column 'agee'; there are: age, sex") as refused:
        _check(_table(age=range(ROWS), sex=[0, 1] * 15), keep=["agee"])
    assert refused.value.hint == "the nearest is 'age'"


def test_numbers_that_no_feature_can_hold_are_not_kept():
    table = _table(rate=[1e300, *range(1, ROWS)])
    _check(table, weight="rate")
    with pytest.raises(UsageError, match="--keep rate: it runs from 1 to 1e\\+300"):
        _check(table, keep=["rate"])


@pytest.mark.parametrize(
    ("option", "value"), [("keep", ["a"]), ("weight", "a"), ("weight", ""), ("null_values", ["a"])]
)
def test_images_have_no_columns_to_name(option, value):
    none = {"keep": (), "weight": None, "null_values": ()}
    refuse_columns_of_images(**none)
    with pytest.raises(
        UsageError, match=f"--{option.replace('_values', '-value')} a?: images have no columns"
    ):
        refuse_columns_of_images(**{**none, option: value})


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (("1", "2.5", "0"), True),
        (("-3e5", "2024-03-01", "03/04/2024 10:00"), True),
        (("1", "2", "y"), False),
        (("a", "b", "2024"), False),
        (("1" * 100_000 + "x", "b", "c"), False),  # seen through in one pass, else it takes minutes
    ],
    ids=["numbers", "dates", "a name", "names", "a long name"],
)
def test_values_are_no_names(names, expected):
    columns = [facts_of(name, "float", np.arange(ROWS, dtype=np.float64)) for name in names]
    assert are_a_row(columns) is expected


def test_a_text_that_its_own_column_holds_is_no_name():
    age = facts_of("39", "float", np.arange(ROWS, dtype=np.float64))
    pay = facts_of("<=50K", "text", np.array(["<=50K", ">50K"] * (ROWS // 2), dtype=object))
    place = facts_of("Lima", "text", np.array([f"place {row}" for row in range(ROWS)], dtype=object))
    assert are_a_row([age, pay, place]), "of a column whose texts hardly recur, the name tells nothing"
    assert not are_a_row([age, place])
    assert not are_a_row(
        [age, pay, facts_of("sex", "text", np.array(["m", "f"] * (ROWS // 2), dtype=object))]
    )
