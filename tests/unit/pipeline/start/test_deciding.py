import numpy as np
import pytest
from column_facts import column_facts

from slipway.pipeline.errors import UsageError
from slipway.pipeline.start.deciding import Role, decide
from slipway.pipeline.start.facts import facts_of

ROWS = 1000


def _cycle(*values):
    return [values[row % len(values)] for row in range(ROWS)]


LABEL = column_facts("churned", _cycle("no", "yes"))
NOISE = np.random.default_rng(1).normal(size=ROWS)


def _role(column, **options):
    other = column_facts("other", NOISE.tolist())
    plan = decide(
        [column, other, LABEL], label="churned", task="binary", leaks=options.pop("leaks", {}), **options
    )
    return plan.decisions[0]


def test_name_of_a_million_letters_is_seen_through_in_one_pass():
    """One that is looked through to its end from each of its parts takes longer than a test may."""
    found = _role(column_facts("row" + "_per" * 250_000 + "!", range(ROWS)))
    assert (found.role, found.why) == (Role.LEFT_OUT, "an id: 1,000 different numbers in 1,000 rows")


@pytest.mark.parametrize(
    ("name", "values", "role", "why"),
    [
        ("size", NOISE.tolist(), Role.NUMBER, "numbers from"),
        ("income", np.exp(3 * NOISE).tolist(), Role.AMOUNT, "half below"),
        ("plan", _cycle("basic", "pro", "team"), Role.CATEGORY, "3 different texts"),
        (
            "firm",
            _cycle(*(f"The firm of number {n} and sons" for n in range(50))),
            Role.CATEGORY,
            "50 different",
        ),
        ("age", _cycle(*range(18, 58)), Role.NUMBER, "numbers from 18 to 57"),
        ("visits", _cycle(*range(33)), Role.NUMBER, "numbers from 0 to 32; nothing in churned shows that"),
        ("calls", _cycle(*[0] * 20, 1, 2, 3), Role.AMOUNT, "half at 0; nothing in churned shows that they"),
        ("district", _cycle(*(17031000000 + 977 * n for n in range(90))), Role.CATEGORY, "90 different"),
        ("tract", [17031000000 + 977 * (row % 95) for row in range(ROWS)], Role.CATEGORY, "95 different"),
        ("born", _cycle("1990-01-01", "1991-05-06"), Role.MOMENT, "dates, split into their parts"),
        (
            "joined",
            [f"{1 + row % 28}/05/2021 06:28" for row in range(ROWS)],
            Role.LEFT_OUT,
            "one format can be named",
        ),
        (
            "signed_up",
            _cycle(
                *(day for n in range(1, 28) for day in (f"{n}/12/2021", f"{n} Dec 2021", f"May {n}, 2022"))
            ),
            Role.LEFT_OUT,
            "dates in several formats",
        ),
        (
            "sent",
            [f"Fri, {1 + row % 28:02} Mar 2024 10:{row % 60:02}:30 GMT" for row in range(ROWS)],
            Role.LEFT_OUT,
            "an unknown one: write them as YYYY-MM-DD",
        ),
        (
            "eintritt",
            [
                f"{1 + row % 28}. {('Januar', 'März', 'Mai', 'Dezember')[row % 4]} {2000 + row % 25}"
                for row in range(ROWS)
            ],
            Role.LEFT_OUT,
            "an unknown one: write them as YYYY-MM-DD",
        ),
        (
            "shipped",
            _cycle(*(f"2024-{1 + n % 12:02}-{1 + n // 12:02}" for n in range(300)), "TBD"),
            Role.LEFT_OUT,
            "dates except 'TBD'; correct or empty these cells, and start again",
        ),
        (
            "version",
            [f"1.{row % 10}.{row % 25}" for row in range(ROWS)],
            Role.CATEGORY,
            "50 different texts",
        ),
        (
            "valuation",
            [f"${row / 10}M" if row % 2 else f"€{row}" for row in range(ROWS)],
            Role.LEFT_OUT,
            "amounts in several currencies or notations, such as '€0' and '$0.1M'",
        ),
        ("customer_id", list(range(5000, 5000 + 7 * ROWS, 7)), Role.LEFT_OUT, "an id"),
        ("line", list(range(1, ROWS + 1)), Role.LEFT_OUT, "an id"),
        ("gdp", [1_000_000_000_000 + 7919 * row for row in range(ROWS)], Role.NUMBER, "numbers from 1e+12"),
        ("started", [20_240_131_100_000 + 7919 * row for row in range(ROWS)], Role.NUMBER, "numbers from"),
        ("patient_id", [None, *(1e15 + row for row in range(1, ROWS))], Role.LEFT_OUT, "an id: 999"),
        ("CustomerID", [7 * row % 4001 for row in range(ROWS)], Role.LEFT_OUT, "an id: 1,000"),
        ("EmployeeNumber", [7 * row % 4001 for row in range(ROWS)], Role.LEFT_OUT, "an id: 1,000"),
        ("customer", [7 * row % 4001 for row in range(ROWS)], Role.LEFT_OUT, "an id: 1,000"),
        ("order.id", [7 * row % 4001 for row in range(ROWS)], Role.LEFT_OUT, "an id: 1,000"),
        ("income per person", [7 * row % 4001 for row in range(ROWS)], Role.NUMBER, "numbers from 0 to 3997"),
        ("paid", [7 * row % 4001 for row in range(ROWS)], Role.NUMBER, "numbers from 0 to 3997"),
        (
            "size",
            [f"{row % 400 / 10} {'kg' if row % 3 else 'lb'}" for row in range(ROWS)],
            Role.LEFT_OUT,
            "'kg' and 'lb'",
        ),
        ("width", [f"{row}{'.,'[row % 2]}5" for row in range(ROWS)], Role.LEFT_OUT, "some with a comma"),
        (
            "dose",
            _cycle(*(f"{n} {unit}" for n in range(1, 13) for unit in ("mg", "g"))),
            Role.CATEGORY,
            "24 different texts, numbers in several units: 'g' and 'mg'; to read them as numbers, write them "
            "in one unit, and start again",
        ),
        (
            "depth",
            _cycle(*(f"{n}{sign}5" for n in range(1, 13) for sign in ".,")),
            Role.CATEGORY,
            "24 different texts, numbers, some with a decimal point and some with a comma",
        ),
        (
            "place",
            [f"48.{row}, 11.5" for row in range(ROWS)],
            Role.LEFT_OUT,
            "write them in two columns, and",
        ),
        (
            "city",
            _cycle("48.1, 11.5", "52.5, 13.4"),
            Role.CATEGORY,
            "two numbers in each text, such as '48.1",
        ),
        ("views", _cycle("1.2M", "3k", "500"), Role.CATEGORY, "units: none and 'M' and 'k'; to read them as"),
        ("size", _cycle("32", "34M", "38B", "40k"), Role.CATEGORY, "4 different texts"),
        (
            "log",
            [f"2024-01-{1 + row % 28:02} 10:20 ERROR service {row} has failed" for row in range(ROWS - 9)]
            + [f"continued line {row} of the trace" for row in range(9)],
            Role.TEXT,
            "",
        ),
        ("code", [f"A{row:05}" for row in range(ROWS)], Role.LEFT_OUT, "an id"),
        (
            "remark",
            [f"the {row}. thing that this person said" for row in range(ROWS)],
            Role.TEXT,
            "free text, 7 words on average: its words and word pairs",
        ),
        (
            "amount",
            [*(f"{row}.25" for row in range(ROWS - 1)), "Total"],
            Role.LEFT_OUT,
            "numbers except 'Total'; fix these cells, "
            "or if they mean no value, in a CSV name them with --null-value, and start again",
        ),
        (
            "years",
            [*_cycle(*map(str, range(60)))[:-4], "a", "b", "c", "90+"],
            Role.CATEGORY,
            "64 different texts, numbers except '90+', 'a', 'b' and 1 more",
        ),
        ("car", [f"ford no{row}" for row in range(ROWS)], Role.TEXT, "free text, 2 words"),
        (
            "part",
            [f"4711-{40 + row % 60}-{row % 7}1" for row in range(ROWS)],
            Role.CATEGORY,
            "different texts",
        ),
        ("country", _cycle("CH"), Role.LEFT_OUT, "the same in every row: CH"),
        (
            "country",
            [*["CH"] * (ROWS - 49), *[None] * 49],
            Role.LEFT_OUT,
            "the same in every row that has a value: CH",
        ),
        ("vip", _cycle("x", None), Role.CATEGORY, "x in 500 of 1,000 rows, empty in the others"),
        ("opted_in", [*["x"] * (ROWS - 50), *[None] * 50], Role.CATEGORY, "x in 950 of 1,000 rows"),
        ("sick", _cycle(None, 1.0, None), Role.CATEGORY, "1.0 in 333 of 1,000 rows, empty in the others"),
        ("quit", _cycle(None, "2024-01-01"), Role.CATEGORY, "2024-01-01 in 500 of 1,000 rows"),
        ("fax", [None] * (ROWS - 1) + ["1"], Role.LEFT_OUT, "a value in 1 of 1,000 rows only"),
        ("nothing", [None] * ROWS, Role.LEFT_OUT, "empty in every row"),
    ],
)
def test_each_kind_of_column_gets_its_role(name, values, role, why):
    decision = _role(column_facts(name, values))
    assert decision.role is role
    assert why in decision.why


@pytest.mark.parametrize(
    ("values", "why"),
    [
        (range(2), "2 different whole numbers, each of which may be a code"),
        (range(7), "7 different whole numbers, each of which may be a code: churned does not change evenly"),
        (range(33), "33 different whole numbers, codes it seems: neighbours differ in churned like any two"),
    ],
)
def test_whole_numbers_that_the_label_shows_to_be_codes_are_categories(values, why):
    decision = _role(column_facts("x", _cycle(*values)), codes={"x"})
    assert (decision.role, decision.values) == (Role.CATEGORY, len(values))
    assert why in decision.why


def test_whole_numbers_of_which_each_has_few_rows_are_numbers_even_if_they_may_be_codes():
    decision = _role(column_facts("age", _cycle(*range(18, 58))), codes={"age"})
    assert (decision.role, decision.why) == (Role.NUMBER, "numbers from 18 to 57")


def test_a_number_that_is_different_in_each_row_is_no_id_unless_it_counts_or_is_called_one():
    assert _role(column_facts("weight_g", list(range(5000, 5000 + 7 * ROWS, 7)))).role is Role.NUMBER


def test_a_column_that_gives_the_label_away_is_left_out_with_the_reason():
    decision = _role(column_facts("refund", NOISE.tolist()), leaks={"refund": "alone it predicts churned"})
    assert (decision.role, decision.why) == (Role.LEFT_OUT, "alone it predicts churned")


def test_what_is_to_be_kept_is_kept():
    decision = _role(column_facts("line", list(range(1, ROWS + 1))), kept=["line"])
    assert decision.role is Role.NUMBER


def test_rare_values_share_a_category():
    values = ["common"] * 900 + ["second"] * 90 + [f"rare {row}" for row in range(10)]
    decision = _role(column_facts("plan", values))
    assert decision.values == 2
    assert "the 10 rarest share one category" in decision.why


def test_features_get_plain_names_that_differ():
    columns = [column_facts(name, NOISE.tolist()) for name in ("Größe (cm)", "gr e cm", "2nd", "churned ")]
    plan = decide([*columns, LABEL], label="churned", task="binary", leaks={})
    assert [decision.feature for decision in plan.decisions] == [
        "gr_e_cm",
        "gr_e_cm_2",
        "x_2nd",
        "churned_2",
        "churned",
    ]


def test_numbers_with_a_unit_or_separators_are_no_codes():
    shares, prices = np.array(_cycle(*range(33)), float), np.array(_cycle(*range(17_000, 19_000, 100)), float)
    for values in (shares, prices):
        assert _role(facts_of("x", "int", values), codes={"x"}).role is Role.CATEGORY
        assert _role(facts_of("x", "int", values, has_notation=True), codes={"x"}).role is Role.NUMBER


def test_features_of_columns_that_are_whole_questions_have_names_that_a_file_can_have():
    question = "How satisfied were you? " * 20
    columns = [column_facts(f"{question}{part}", NOISE.tolist()) for part in ("a", "b")]
    plan = decide([*columns, LABEL], label="churned", task="binary", leaks={})
    one, other, _ = [decision.feature for decision in plan.decisions]
    assert other == f"{one}_2"
    assert len(one) <= 100


def test_classes_that_differ_in_capitals_and_spaces_only_are_reported():
    label = column_facts("paid", _cycle("Yes", "no", " yes", "NO", "maybe"))
    plan = decide([column_facts("x", NOISE.tolist()), label], label="paid", task="multiclass", leaks={})
    assert [note for note in plan.notes if "are different classes" in note] == [
        "paid ' yes' and 'Yes' are different classes: spell them the same if they mean the same.",
        "paid 'NO' and 'no' are different classes: spell them the same if they mean the same.",
    ]


@pytest.mark.parametrize(("rows", "is_told"), [(4, True), (9, False)])
def test_of_many_classes_a_rare_one_has_less_than_half_of_an_equal_share(rows, is_told):
    others = [f"class {number}" for number in range(15)] * 15
    label = column_facts("kind", [*others, *["rare"] * rows])
    plan = decide([column_facts("x", NOISE.tolist()), label], label="kind", task="multiclass", leaks={})
    assert any("have kind rare: accuracy says little" in note for note in plan.notes) == is_told


def test_a_class_of_a_few_rows_in_thousands_is_counted_instead_of_0_percent():
    label = column_facts("churned", ["no"] * 2998 + ["yes"] * 2)
    plan = decide([column_facts("x", NOISE.tolist() * 3), label], label="churned", task="binary", leaks={})
    assert any(note.startswith("Only 2 of 3,000 rows have churned yes: accuracy") for note in plan.notes)


def test_what_makes_classes_of_numbers_is_told():
    label = column_facts("score", [*_cycle(*map(str, range(40))), "pending"])
    plan = decide([column_facts("x", NOISE.tolist()), label], label="score", task="multiclass", leaks={})
    assert plan.notes[0] == (
        "score holds numbers except 'pending', and each text is a class: to predict a number, fix these "
        "cells, or if they mean no value, in a CSV name them with --null-value, and start again."
    )


def test_a_table_without_a_feature_is_refused_with_the_reasons():
    with pytest.raises(UsageError, match=r"No column is left .*country: the same in every row") as refused:
        decide([column_facts("country", _cycle("CH")), LABEL], label="churned", task="binary", leaks={})
    assert "--keep" in str(refused.value.hint)


def test_classes_stand_in_the_order_of_their_values():
    label = column_facts("grade", _cycle(10, 2, 1))
    plan = decide([column_facts("x", NOISE.tolist()), label], label="grade", task="multiclass", leaks={})
    assert plan.classes == (1, 2, 10)


def test_no_feature_takes_the_name_of_a_part_of_another():
    day = column_facts("day", [f"2024-01-{1 + row % 28:02}" for row in range(ROWS)])
    month = column_facts("day_month", NOISE.tolist())
    plan = decide([day, month, LABEL], label="churned", task="binary", leaks={})
    assert [d.feature for d in plan.decisions] == ["day", "day_month_2", "churned"]


def test_no_feature_takes_the_name_of_a_layer_of_the_network():
    cast, dense = (column_facts(name, NOISE.tolist()) for name in ("Cast", "dense_1"))
    other = column_facts("broadcast", NOISE.tolist())
    plan = decide([cast, dense, other, LABEL], label="churned", task="binary", leaks={})
    assert [d.feature for d in plan.decisions] == ["cast_column", "dense_1_column", "broadcast", "churned"]


def test_notes_tell_what_the_user_should_know():
    values = ["no"] * 980 + ["yes"] * 15 + [None] * 5
    label = facts_of("churned", "text", np.array(values, dtype=object))
    plan = decide(
        [column_facts("x", NOISE.tolist()), column_facts("line", list(range(1, ROWS + 1))), label],
        label="churned",
        task="binary",
        leaks={},
        suspicions={"x": "score 0.9", "line": "score 0.9"},
        unread={"tags": "several values per row"},
    )
    notes = " ".join(plan.notes)
    assert "5 of 1,000 rows have no churned" in notes
    assert (
        "Only 1.5% of the rows have churned yes: accuracy says little. Look at auc, and at the pre" in notes
    )
    assert "occurs in 15 rows only" in notes
    assert "Much of churned can be predicted from one column alone: x (score 0.9)." in notes
    assert "line (" not in notes, "it is an id, and left out"
    assert "tags holds several values per row" in notes


def test_so_many_words_of_a_text_are_read_as_nearly_all_texts_have():
    short, long = (
        [f"red car {row}" for row in range(ROWS - 5)],
        ["many " * 1000 + str(row) for row in range(5)],
    )
    assert _role(column_facts("remark", short + long)).values == 5  # three words and two pairs
    long = _role(column_facts("remark", [f"{'word ' * 1900}{row}" for row in range(ROWS)]))
    assert long.values == 256
    assert long.why == (
        "free text, 1,901 words on average: of each, the first 256 words and word pairs are hashed"
    )


def test_texts_without_a_letter_are_read_nevertheless():
    assert _role(column_facts("remark", [f"{'- ' * (row + 2)}" for row in range(ROWS)])).values == 2
