import numpy as np
import pytest

from slipway.pipeline.start.facts import facts_of
from slipway.pipeline.start.notes import (
    epoch_notes,
    missing_class_notes,
    notes_of,
    point_notes,
    second_header_note,
    spelling_notes,
    totals_note,
    zone_notes,
)

SOLD = np.arange(1.0, 40.0)


def _with_last(last):
    return {"shop": np.array(["A"] * 40, dtype=object), "sold": np.append(SOLD, last)}


def _second_header(**columns):
    return second_header_note({name: np.array(values, dtype=object) for name, values in columns.items()})


SPEEDS = list(map(str, range(100, 140)))


@pytest.mark.parametrize(
    ("numbers", "is_told"),
    [
        ([950, 870, 640, 1.25, 2.004, 1.117], True),
        ([950, 870, 640, 3.25, -2.004, 1.117, np.nan], True),
        ([950, 870, 640, 1.25, 2.5, 1.117], False),
        ([950, 870, 640, 0.251, 2.004, 1.117], False),
        ([950, 870, 640, 1.2501, 2.004, 1.117], False),
        ([950, 870, 1640, 1.251, 2.004, 1.117], False),
        ([950, 870, np.inf, 640, 1.251, 2.004, 1.117], False),
        ([95, 87, 64, 1.251, 2.004, 1.117], False),
        ([np.nan], False),
    ],
)
def test_points_that_may_separate_thousands_are_told(numbers, is_told):
    notes = point_notes([facts_of("area", "float", np.array(numbers))])
    assert [note[:19] for note in notes] == (["area holds 640 and "] if is_told else [])


def test_a_first_row_of_units_is_told():
    [note] = _second_header(speed=["[m/s]", *SPEEDS], price=["EUR", *SPEEDS], kind=["-", *"ab" * 20])
    assert "only one without a number in speed '[m/s]' and price 'EUR': it seems" in note


def test_several_first_rows_of_words_are_told():
    days = [f"2024-03-{number[1:]} 10:20" for number in SPEEDS]
    words = ["How long?", '{"ImportId": 7}']
    answers = [str(row % 5) for row in range(40)]
    [note] = _second_header(
        day=[*words, *days], took=[*words, *SPEEDS], q1=[*words, *answers], q2=[*words, *SPEEDS]
    )
    assert note == (
        "The first 2 rows are the only ones without a number in day 'How long?' and took 'How long?' and q1 "
        "'How long?' and 1 more: they seem to belong to the column names, such as units. Remove these rows, "
        "and create the workload again."
    )


@pytest.mark.parametrize(
    "columns",
    [
        {"speed": ["slow", *SPEEDS], "price": [*SPEEDS, "140"]},
        {"speed": [*SPEEDS, "[m/s]"], "price": [*SPEEDS, "EUR"]},
        {"speed": ["[m/s]", *SPEEDS[1:], "fast"], "price": ["EUR", *SPEEDS[1:], "high"]},
        {"kind": ["-", *"ab" * 20], "name": ["-", *"cd" * 20]},
        {"zip": ["NA", *SPEEDS], "area": ["-", *SPEEDS]},
        {"note": ["late", None, *[""] * 40], "remark": ["cold", *[None] * 41]},
    ],
)
def test_other_first_rows_are_rows(columns):
    assert _second_header(**columns) == []


@pytest.mark.parametrize("last", [SOLD.sum(), SOLD.sum() + 0.004])
def test_a_last_row_of_totals_is_told(last):
    assert (
        "The last row is a total: its sold is the sum of the rows above." in totals_note(_with_last(last))[0]
    )


def test_all_totals_are_named_and_empty_cells_passed_over():
    columns = {"sold": np.append(SOLD, SOLD.sum()), "left": np.array([np.nan, *SOLD[1:], SOLD[1:].sum()])}
    assert "its sold and left are the sums of the rows above" in totals_note(columns)[0]


@pytest.mark.parametrize("last", [7.0, np.nan, 0.0, SOLD.sum() + 1])
def test_other_last_rows_are_rows(last):
    assert totals_note(_with_last(last)) == []


@pytest.mark.parametrize("values", [[0.0] * 40, [*[0.0] * 38, 5.0, 5.0], [np.nan] * 40, [1.0, 2.0, 3.0]])
def test_zeros_and_few_rows_are_no_total(values):
    assert totals_note({"sold": np.array(values)}) == []


def _sheet(*texts_and_numbers):
    return {
        "region": np.array([text for text, _ in texts_and_numbers], dtype=object),
        "sold": np.array([number for _, number in texts_and_numbers]),
    }


def test_totals_between_the_rows_are_told_by_their_rows():
    sheet = _sheet(
        ("A", 1.0), ("A", 2.5), ("A Total", 3.5), ("B", 4.0), ("B", np.nan), ("B", 5.0), ("B Total", 9.0),
        ("Grand Total", 12.5),
    )  # fmt: skip
    [note] = totals_note(sheet)
    assert note.startswith("Rows 3, 7 and 8 are totals of the rows above: row 3 holds region 'A Total'.")


@pytest.mark.parametrize("name", ["Total", "SUM", "Summe", "Total Nord", "Nord Ergebnis", " sub-total:"])
def test_one_row_of_a_total_is_told(name):
    [note] = totals_note(_sheet(("A", 1.0), ("A", 2.5), (name, 3.5), ("B", 4.0)))
    assert note.startswith(f"Row 3 is a total of the rows above: it holds region {name!r}.")


def test_subtotals_of_other_than_sums_are_told_by_their_name():
    assert totals_note(_sheet(("A", 1.0), ("A", 2.5), ("Subtotal", 1.75), ("B", 4.0)))


def test_a_last_row_that_is_called_total_is_told_once():
    [note] = totals_note({**_with_last(SOLD.sum()), "shop": np.array([*"A" * 39, "Total"], dtype=object)})
    assert note.startswith("Row 40 is a total")


def test_few_sums_among_many_rows_of_one_text_are_chance():
    rng = np.random.default_rng(1)
    kinds = np.array(rng.choice(["sum", "mean", "max"], 3000), dtype=object)
    assert totals_note({"statistic": kinds, "count": rng.integers(0, 6, 3000).astype(float)}) == []


def test_totals_that_are_values_like_others_are_rows():
    covers = _sheet(("total", 1.0), ("partial", 2.0), ("total", 3.0), ("partial", 9.0), ("total", 4.0))
    assert totals_note(covers) == []
    assert totals_note(_sheet(("A", 3.0), ("Total", 3.0), ("B", 2.0), ("Sum", 2.0))) == []
    assert totals_note(_sheet(("A", 0.0), ("A", 0.0), ("Total", 0.0))) == []
    reviews = _sheet(("a total mess", 1.0), ("fine", 0.0), ("good", 1.0), ("a mess in total", 1.0))
    assert totals_note(reviews) == []


@pytest.mark.parametrize("huge", [np.inf, -np.inf, 1.7e308])
def test_numbers_whose_sum_is_not_finite_are_no_totals(huge):
    values = np.array([1.0, huge, 2.0] * 10 + [huge])
    texts = np.array(["A"] * 30 + ["Total"], dtype=object)
    assert totals_note({"sold": values, "shop": texts}) == []


def test_an_infinite_number_below_finite_ones_is_no_total():
    values = np.array([1.0, 2.0, 3.0] * 13 + [np.inf])
    assert totals_note({"sold": values}) == []
    texts = np.array(["A"] * 39 + ["Total"], dtype=object)
    assert totals_note({"sold": values, "shop": texts}) == []


def _classes(*texts, is_csv=True):
    label = facts_of("churned", "text", np.array(texts, dtype=object))
    return missing_class_notes(label, is_csv=is_csv)


@pytest.mark.parametrize(
    ("classes", "is_told"),
    [
        (["red", "blue", "green", "red;blue"], True),
        (["red", "blue", "blue, red", "green, blue, red"], True),
        (["red", "blue", "red;blue"], True),
        (["red", "blue", "red; dark"], False),
        (["red;S", "red;M", "blue;S", "blue;M", "green;S"], False),
        (["red", "blue", ";", "red;blue"], False),
    ],
)
def test_classes_that_are_combinations_of_labels_are_told(classes, is_told):
    label = facts_of("tags", "text", np.array(classes * 10, dtype=object))
    told = [
        note for note in notes_of(label, "multiclass", {}, {}, {}) if "seems to hold several labels" in note
    ]
    assert bool(told) == is_told


def test_classes_that_are_words_for_no_value_are_told():
    [note] = _classes(*["yes", "no", "n/a", "?", "?"] * 4)
    assert note == (
        "churned '?' and 'n/a' (12 rows) are classes of their own. If they mean that the answer is not "
        "known, start again with --null-value='?' --null-value=n/a: such rows are left out then."
    )
    assert "churned '  ' (1 row) is a class" in _classes("yes", "no", "  ")[0]
    assert (
        "churned 'Unknown' (1 row) is a class of its own. If it means" in _classes("yes", "no", "Unknown")[0]
    )
    assert "empty these cells" in _classes("yes", "no", "?", is_csv=False)[0]


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ([0, 1, -1, -1], "churned -1 (2 rows) is a class of its own. If it means that the answer is not "
         "known, start again with --null-value=-1, if no other column has it as a number, or empty these "
         "cells: such rows are left out then."),
        ([1, 2, 3, -99], "churned -99 (1 row) is a class"),
        ([-1, 1], ""),
        ([-2, -1, 0, 1], ""),
        ([-2, 0, 1], ""),
        ([0, 1, 2], ""),
    ],
)  # fmt: skip
def test_a_lone_negative_class_may_be_a_code_for_no_answer(values, told):
    label = facts_of("churned", "int", np.array(values, dtype=np.float64))
    notes = missing_class_notes(label, is_csv=True)
    assert [note[: len(told)] for note in notes] == ([told] if told else [])


@pytest.mark.parametrize("texts", [("yes", "no"), ("x", "-"), ("yes", "NA"), ("low", "high", "not known")])
def test_other_classes_are_classes(texts):
    assert _classes(*texts) == []


def test_numbers_that_may_be_times_are_told_with_the_days_and_a_name():
    numbers = np.arange(1.7e15, 1.7e15 + 20 * 8.64e10, 8.64e10)
    [note] = epoch_notes([facts_of("seen", "int", numbers), facts_of("sold", "int", SOLD)])
    assert note.startswith("seen may hold microseconds since 1970, 2023-11-14 to 2023-12-03; its name")
    assert "call the column seen_time" in note


def test_categories_that_differ_in_blanks_and_case_are_told_once_a_column():
    columns = {"city": ["Bonn", " bonn", "BONN", "Ulm", "ulm"], "shop": ["A", "B"]}
    facts = [facts_of(name, "text", np.array(each, dtype=object)) for name, each in columns.items()]
    assert spelling_notes(facts) == [
        "city ' bonn', 'BONN' and 'Bonn' are different categories, and so is 1 other group: spell them the "
        "same if they mean the same."
    ]


@pytest.mark.parametrize(
    ("times", "told"),
    [
        (["2024-03-01 10:20+01:00", "2024-03-01 10:20-05"], ["+0100, -0500"]),
        (["2024-03-01 10:20Z", "2024-03-01 10:20"], ["+0000, none"]),
        (["2024-03-01 10:20 -0500", "2024-03-01 10:20 -0400"], ["-0400, -0500"]),
        (["2024-03-01T10:20Z", "2024-03-01 10:20 UTC", "2024-03-01 10:20+00", "2024-03-01 10:20+00:00"], []),
        (["2024-03-01 10:20", "2024-03-01"], []),
    ],
)
def test_times_of_several_zones_are_told(times, told):
    notes = zone_notes([facts_of("seen", "text", np.array(times, dtype=object))])
    assert [note.partition("(")[2].partition(")")[0] for note in notes] == told
