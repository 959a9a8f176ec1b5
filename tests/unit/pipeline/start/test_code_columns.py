import numpy as np
import pytest

from slipway.pipeline.start.code_columns import columns_of_codes
from slipway.pipeline.start.facts import facts_of

ROWS = 3000
RANDOM = np.random.default_rng(1)


def _are_codes(values, label, *, are_classes):
    kinds = {"x": "int", "label": "text" if label.dtype == object else "float"}
    columns = {"x": values.astype(np.float64), "label": label}
    facts = [facts_of(name, kind, columns[name]) for name, kind in kinds.items()]
    return columns_of_codes(facts, columns, "label", are_classes=are_classes) == {"x"}


def _answers(scores):
    """Return a label of two classes whose odds rise with scores of about -2 to 2."""
    return np.where(RANDOM.random(ROWS) < 1 / (1 + np.exp(-scores)), "yes", "no").astype(object)


def _drawn(count):
    return RANDOM.integers(0, count, ROWS)


AGES, STARS, WEEKDAYS, HOURS, SHOPS, PRODUCTS = map(_drawn, (60, 5, 7, 24, 50, 20))
OF_SHOP, OF_PRODUCT = RANDOM.normal(size=50), RANDOM.normal(size=20)


@pytest.mark.parametrize(
    ("values", "course", "are_codes"),
    [
        (AGES, AGES / 20 - 1.5, False),
        (AGES, ((AGES - 30) / 15) ** 2 - 1, False),
        (STARS, STARS / 2 - 1, False),
        (WEEKDAYS, 1.0 * (WEEKDAYS > 4), True),
        (HOURS, np.cos(2 * np.pi * HOURS / 24), True),
        (PRODUCTS, OF_PRODUCT[PRODUCTS], True),
        (SHOPS, OF_SHOP[SHOPS], True),
        (SHOPS, np.zeros(ROWS), False),
        (STARS, np.zeros(ROWS), False),
    ],
    ids=["rising", "in a curve", "few, rising", "weekdays", "hours", "few codes", "many codes",
         "many, of no use", "few, of no use"],
)  # fmt: skip
def test_the_label_tells_codes_from_amounts(values, course, are_codes):
    assert _are_codes(values, _answers(course), are_classes=True) is are_codes
    assert _are_codes(values, course + RANDOM.normal(size=ROWS), are_classes=False) is are_codes


def test_the_shares_of_several_classes_tell_codes_too():
    classes = np.where(RANDOM.random(ROWS) < 0.5, (OF_SHOP[SHOPS] * 2).round(), 9).astype(str).astype(object)
    assert _are_codes(SHOPS, classes, are_classes=True)
    assert not _are_codes(AGES, classes, are_classes=True)


def test_rows_without_a_value_or_a_label_count_for_nothing():
    values, label = SHOPS.astype(np.float64), OF_SHOP[SHOPS] + RANDOM.normal(size=ROWS)
    values[::3], label[1::3] = np.nan, np.nan
    assert _are_codes(values, label, are_classes=False)


def test_two_numbers_may_be_codes_and_a_column_with_too_few_rows_for_each_tells_nothing():
    noise = RANDOM.normal(size=ROWS)
    assert _are_codes(_drawn(2), noise, are_classes=False)
    rare = np.where(np.arange(ROWS) < 18, np.arange(ROWS) % 3, 3)
    assert not _are_codes(rare, rare + noise, are_classes=False)


def test_a_label_that_the_values_explain_whole_tells_nothing():
    assert not _are_codes(STARS, STARS.astype(np.float64), are_classes=False)


def test_a_slip_in_the_label_or_a_few_huge_amounts_neither_hide_codes_nor_make_them():
    for values, course in ((SHOPS, OF_SHOP[SHOPS]), (PRODUCTS, OF_PRODUCT[PRODUCTS])):
        label = course + RANDOM.normal(size=ROWS)
        label[7] = 1e6
        assert _are_codes(values, label, are_classes=False)
    claims = np.where(RANDOM.random(ROWS) < 0.2, RANDOM.lognormal(6, 1.5, ROWS) * np.exp(OF_SHOP[SHOPS]), 0)
    assert _are_codes(SHOPS, claims, are_classes=False)
    tenures = np.minimum(RANDOM.geometric(1 / 15, ROWS), 72)
    for slip in np.flatnonzero(tenures > 50)[:20]:
        label = RANDOM.normal(size=ROWS)
        label[slip] = 1e6
        assert not _are_codes(tenures, label, are_classes=False)


def test_an_amount_that_is_nearly_always_the_same_tells_codes_too():
    label = np.where(RANDOM.random(ROWS) < 0.05 * (SHOPS % 10 == 0), 1.0, 0.0)
    assert np.quantile(label, 0.99) == 0
    assert _are_codes(SHOPS, label, are_classes=False)


def test_numbers_that_are_written_with_a_point_are_no_codes():
    columns = {"x": PRODUCTS.astype(np.float64), "label": _answers(OF_PRODUCT[PRODUCTS])}
    for kind, codes in (("int", {"x"}), ("float", set())):
        facts = [facts_of("x", kind, columns["x"]), facts_of("label", "text", columns["label"])]
        assert columns_of_codes(facts, columns, "label", are_classes=True) == codes


@pytest.mark.parametrize("missing", [0, 50])
def test_what_is_the_same_in_all_rows_of_a_person_counts_once_for_each(missing):
    person = np.arange(ROWS) // 20
    names = np.array([None] * missing + [f"p{each}" for each in person[missing:]], dtype=object)
    liking, age = RANDOM.normal(size=ROWS)[person], AGES[person].astype(np.float64)
    columns = {"order": np.arange(ROWS) // 2.0, "user": names, "age": age, "shop": SHOPS.astype(np.float64)}
    columns["label"] = _answers(liking * 2 + OF_SHOP[SHOPS])
    facts = [
        facts_of(name, "text" if column.dtype == object else "int", column)
        for name, column in columns.items()
    ]
    assert columns_of_codes(facts, columns, "label", are_classes=True) == {"age", "shop"}
    assert columns_of_codes(facts, columns, "label", are_classes=True, ids=["order", "user"]) == {"shop"}
