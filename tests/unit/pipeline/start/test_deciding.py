import shlex
import subprocess
import sys

import numpy as np
import pytest

from slipway.pipeline.errors import UsageError
from slipway.pipeline.start.deciding import Role, decide
from slipway.pipeline.start.facts import facts_of
from slipway.pipeline.start.label import OneCsv, decide_task

ROWS = 1000


def _facts(name, values):
    if any(isinstance(value, str) for value in values):
        return facts_of(name, "text", np.array(values, dtype=object))
    kind = "int" if all(value is not None and float(value).is_integer() for value in values) else "float"
    numbers = [np.nan if value is None else value for value in values]
    return facts_of(name, kind, np.array(numbers, dtype=np.float64))


def _cycle(*values):
    return [values[row % len(values)] for row in range(ROWS)]


LABEL = _facts("churned", _cycle("no", "yes"))
NOISE = np.random.default_rng(1).normal(size=ROWS)


def _role(column, **options):
    other = _facts("other", NOISE.tolist())
    plan = decide(
        [column, other, LABEL], label="churned", task="binary", leaks=options.pop("leaks", {}), **options
    )
    return plan.decisions[0]


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
        ("visits", _cycle(*range(33)), Role.CATEGORY, "33 different whole numbers"),
        ("weekday", _cycle(*range(7)), Role.CATEGORY, "7 different whole numbers"),
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
            "version",
            [f"1.{row % 10}.{row % 25}" for row in range(ROWS)],
            Role.CATEGORY,
            "50 different texts",
        ),
        (
            "valuation",
            [f"${row / 10}M" if row % 2 else f"€{row}" for row in range(ROWS)],
            Role.LEFT_OUT,
            "amounts in several currencies or notations, such as '$0.1M' and '$0.3M'",
        ),
        ("customer_id", list(range(5000, 5000 + 7 * ROWS, 7)), Role.LEFT_OUT, "an id"),
        ("line", list(range(1, ROWS + 1)), Role.LEFT_OUT, "an id"),
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
            "24 different texts, numbers in several units: 'g' and 'mg'",
        ),
        (
            "depth",
            _cycle(*(f"{n}{sign}5" for n in range(1, 13) for sign in ".,")),
            Role.CATEGORY,
            "24 different texts, numbers, some with a decimal point and some with a comma",
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
            "text: numbers except 'Total'; fix these cells, and start again",
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
    decision = _role(_facts(name, values))
    assert decision.role is role
    assert why in decision.why


def test_a_number_that_is_different_in_each_row_is_no_id_unless_it_counts_or_is_called_one():
    assert _role(_facts("weight_g", list(range(5000, 5000 + 7 * ROWS, 7)))).role is Role.NUMBER


def test_a_column_that_gives_the_label_away_is_left_out_with_the_reason():
    decision = _role(_facts("refund", NOISE.tolist()), leaks={"refund": "alone it predicts churned"})
    assert (decision.role, decision.why) == (Role.LEFT_OUT, "alone it predicts churned")


def test_what_is_to_be_kept_is_kept():
    decision = _role(_facts("line", list(range(1, ROWS + 1))), kept=["line"])
    assert decision.role is Role.NUMBER


def test_rare_values_share_a_category():
    values = ["common"] * 900 + ["second"] * 90 + [f"rare {row}" for row in range(10)]
    decision = _role(_facts("plan", values))
    assert decision.values == 2
    assert "the 10 rarest share one category" in decision.why


def test_features_get_plain_names_that_differ():
    columns = [_facts(name, NOISE.tolist()) for name in ("Größe (cm)", "gr e cm", "2nd", "churned ")]
    plan = decide([*columns, LABEL], label="churned", task="binary", leaks={})
    assert [decision.feature for decision in plan.decisions] == [
        "gr_e_cm",
        "gr_e_cm_2",
        "x_2nd",
        "churned_2",
        "churned",
    ]


@pytest.mark.parametrize(
    ("values", "task"),
    [
        (["no", "yes"], "binary"),
        (["a", "b", "c"], "multiclass"),
        ([0, 1], "binary"),
        ([0.0, 1.5], "binary"),
        ([0, 1, 2], "multiclass"),
        ([3, 5, 8], None),
        (list(range(15)), None),
        (list(range(100)), "regression"),
        ([0.5, 1.5, 2.5], "regression"),
    ],
)
def test_the_label_tells_the_task_where_it_is_clear(values, task):
    assert decide_task(_facts("label", values), "auto") == task


@pytest.mark.parametrize(
    ("values", "task"), [([0, 1, 2, None], "multiclass"), ([10, 20, 30, None], "regression")]
)
def test_whole_numbers_beside_empty_cells_are_classes_where_they_count_up(values, task):
    assert decide_task(_facts("label", values), "auto") == task


@pytest.mark.parametrize(
    ("values", "asked", "words"),
    [
        (
            [None, *(f"c{n}" for n in range(50))],
            "auto",
            "differs in every row, such as 'c0': what never recurs",
        ),
        (["yes", "yes"], "auto", "the same in every row, .*: there is nothing to predict"),
        (["yes", None], "auto", "the same in every row that has a value, yes: there is nothing"),
        ([None, None], "auto", "is empty: there is nothing"),
        (["a", "b"], "regression", "holds text, such as 'a'"),
        (["a", "b", "c"], "binary", "3 different values; binary needs two"),
        ([f"c{n}" for n in range(101)], "auto", "too many for classes"),
        ([10**17 + 1, 10**17 + 99] * 20, "auto", "whole numbers beyond 9,007,199,254,740,992"),
        ([10**17 + 1, 10**17 + 99, 3] * 20, "multiclass", "whole numbers beyond 9,007,199,254,740,992"),
        (["a", "", "b"] * 20, "auto", "is a text without letters in 20 rows: each class needs a name"),
    ],
)
def test_a_label_that_cannot_be_one_is_refused(values, asked, words):
    with pytest.raises(UsageError, match=words):
        decide_task(_facts("label", values), asked)


def test_a_label_with_a_value_or_none_is_asked_for_the_other_answer():
    with pytest.raises(UsageError, match="nothing to predict") as refused:
        decide_task(_facts("label", ["x", None, None]), "auto")
    assert refused.value.hint.endswith("or write the other answer into the 2 cells without a value")


@pytest.mark.parametrize(
    ("values", "remedy"),
    [
        ([f"c{n}" for n in range(101)], "the rare ones share a name"),
        ([*(f"${n}.50" for n in range(2000)), "Total"], "numbers except 'Total': fix these cells"),
        ([f"2024-{1 + n % 12:02}-{1 + n // 12:02}" for n in range(200)], "the days since a fixed date"),
        (list(range(101)), "--task regression"),
    ],
)
def test_a_label_of_too_many_values_gets_a_remedy_that_works(values, remedy):
    with pytest.raises(UsageError, match="too many for classes; the limit is 100") as refused:
        decide_task(_facts("label", values), "multiclass")
    assert remedy in refused.value.hint


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (["0", "0", "1", "true", "false"], "'0' and 'false' for no, '1' and 'true' for yes"),
        (["Y", "no", "yes", "no"], "3 spellings: 'no' for no, 'Y' and 'yes' for yes"),
        (["No", "no ", "Yes"], "'No' and 'no ' for no"),
    ],
)
def test_two_answers_in_several_spellings_are_refused_with_both(values, words):
    with pytest.raises(UsageError, match="holds two answers in") as refused:
        decide_task(_facts("paid", values), "auto")
    assert words in str(refused.value)
    assert "--task multiclass" in refused.value.hint
    assert decide_task(_facts("paid", values), "multiclass") == "multiclass"


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (
            [
                "churned",
                "CHURNED",
                "Churned ",
                "churned",
                "churned",
                "CHURNED",
                "stays",
                "stays",
                "Stays",
                "moved",
            ],
            "3 answers in 6 spellings: 'churned' and 'CHURNED' and 'Churned ' for churned, "
            "'stays' and 'Stays' for stays. A model",
        ),
        (
            ["caf\u00e9", "the", "cafe\u0301", "caf\u00e9"],  # as of two systems; both look the same
            "'caf\u00e9' and 'cafe\\u0301' for caf\u00e9, 'the' for the",
        ),
        (
            ["Male", "female", "male"],
            "two answers in 3 spellings: 'Male' and 'male' for male, 'female' for female",
        ),
        (
            [f"{n}{end}" for n in "abcde" for end in ("x", "X")],
            "for ax, 'bX' and 'bx' for bx, 'cX' and 'cx' for cx, and more",
        ),
    ],
)
def test_answers_that_differ_only_in_case_and_spaces_are_refused(values, words):
    with pytest.raises(UsageError) as refused:
        decide_task(_facts("state", values), "auto")
    assert words in str(refused.value)
    assert decide_task(_facts("state", values), "multiclass") == "multiclass"


def test_a_label_that_is_the_same_in_the_first_rows_may_have_other_values_behind_them():
    with pytest.raises(UsageError) as refused:
        decide_task(_facts("y", ["no"] * 30), "auto", is_whole=False)
    assert str(refused.value.message) == (
        "y is the same in every row, no, of the first 30 rows; only these are looked at."
    )
    assert refused.value.hint.startswith("shuffle the rows")


@pytest.mark.parametrize(
    "values",
    [["a", "A", "b"], ["N", "Y", "T"], ["yes", "no", "unknown"], ["1", "true", "t"], ["0", "false", "-1"]],
)
def test_codes_and_third_answers_are_classes(values):
    assert decide_task(_facts("paid", values), "auto") == "multiclass"


def test_typed_remedy_makes_two_answers_of_a_table(tmp_path):
    table = tmp_path / "the table.csv"
    table.write_text("x;it's paid\n007;0\nNA;true\n;false\n", encoding="utf-8")
    with pytest.raises(UsageError) as refused:
        decide_task(_facts("it's paid", ["0", "true", "false"]), "auto", file=OneCsv(str(table), ";"))
    command = shlex.split(refused.value.hint.partition("   #")[0])
    subprocess.run([sys.executable, *command[1:]], cwd=tmp_path, check=True)
    written = (tmp_path / "one-spelling.csv").read_text(encoding="utf-8")
    assert written == "x;it's paid\n007;0\nNA;true\n;0\n"


def test_typed_remedy_keeps_the_columns_of_rows_that_end_with_a_delimiter(tmp_path):
    table = tmp_path / "table.csv"
    table.write_text("x,c,label\n0,c,0,\n1,a,true,\n2,b,false,\n", encoding="utf-8")
    with pytest.raises(UsageError) as refused:
        decide_task(_facts("label", ["0", "true", "false"]), "auto", file=OneCsv(str(table)))
    command = shlex.split(refused.value.hint.partition("   #")[0])
    subprocess.run([sys.executable, *command[1:]], cwd=tmp_path, check=True)
    written = (tmp_path / "one-spelling.csv").read_text(encoding="utf-8")
    assert written == "x,c,label\n0,c,0\n1,a,true\n2,b,0\n"


def test_classes_that_differ_in_capitals_and_spaces_only_are_reported():
    label = _facts("paid", _cycle("Yes", "no", " yes", "NO", "maybe"))
    plan = decide([_facts("x", NOISE.tolist()), label], label="paid", task="multiclass", leaks={})
    assert [note for note in plan.notes if "are different classes" in note] == [
        "paid ' yes' and 'Yes' are different classes: spell them the same if they mean the same.",
        "paid 'NO' and 'no' are different classes: spell them the same if they mean the same.",
    ]


def test_a_table_without_a_feature_is_refused_with_the_reasons():
    with pytest.raises(UsageError, match=r"No column is left .*country: the same in every row") as refused:
        decide([_facts("country", _cycle("CH")), LABEL], label="churned", task="binary", leaks={})
    assert "--keep" in str(refused.value.hint)


def test_classes_stand_in_the_order_of_their_values():
    label = _facts("grade", _cycle(10, 2, 1))
    plan = decide([_facts("x", NOISE.tolist()), label], label="grade", task="multiclass", leaks={})
    assert plan.classes == (1, 2, 10)


def test_no_feature_takes_the_name_of_a_part_of_another():
    day = _facts("day", [f"2024-01-{1 + row % 28:02}" for row in range(ROWS)])
    month = _facts("day_month", NOISE.tolist())
    plan = decide([day, month, LABEL], label="churned", task="binary", leaks={})
    assert [d.feature for d in plan.decisions] == ["day", "day_month_2", "churned"]


def test_no_feature_takes_the_name_of_a_layer_of_the_network():
    cast, dense = (_facts(name, NOISE.tolist()) for name in ("Cast", "dense_1"))
    other = _facts("broadcast", NOISE.tolist())
    plan = decide([cast, dense, other, LABEL], label="churned", task="binary", leaks={})
    assert [d.feature for d in plan.decisions] == ["cast_column", "dense_1_column", "broadcast", "churned"]


def test_notes_tell_what_the_user_should_know():
    values = ["no"] * 980 + ["yes"] * 15 + [None] * 5
    label = facts_of("churned", "text", np.array(values, dtype=object))
    plan = decide(
        [_facts("x", NOISE.tolist()), _facts("line", list(range(1, ROWS + 1))), label],
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
    assert _role(_facts("remark", short + long)).values == 5  # three words and two pairs
    assert _role(_facts("remark", [f"{'word ' * 900}{row}" for row in range(ROWS)])).values == 256


def test_texts_without_a_letter_are_read_nevertheless():
    assert _role(_facts("remark", [f"{'- ' * (row + 2)}" for row in range(ROWS)])).values == 2
