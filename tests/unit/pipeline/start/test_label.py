"""Which column `new` takes for the label."""

import shlex
import subprocess
import sys

import pytest
from column_facts import column_facts

from slipway.pipeline.errors import UsageError
from slipway.pipeline.start.label import OneCsv, decide_task, no_value_notes


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
    assert decide_task(column_facts("label", values), "auto") == task


@pytest.mark.parametrize(
    ("values", "task"), [([0, 1, 2, None], "multiclass"), ([10, 20, 30, None], "regression")]
)
def test_whole_numbers_beside_empty_cells_are_classes_where_they_count_up(values, task):
    assert decide_task(column_facts("label", values), "auto") == task


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
        decide_task(column_facts("label", values), asked)


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ([*map(str, range(40)), "TBD"], "holds numbers except 'TBD': a regression predicts numbers."),
        (["6", "6", "7", "TBD"], "holds text, such as 'TBD': a regression predicts numbers."),
        (["1.5", "1,5"] * 20, "holds numbers, some with a decimal point and some with a comma: a regression"),
    ],
)
def test_what_keeps_a_label_from_being_a_number_is_named(values, told):
    with pytest.raises(UsageError, match=told) as refused:
        decide_task(column_facts("label", values), "regression")
    assert refused.value.hint.endswith(", and start again; or leave --task out, and each text is a class")


def test_a_label_with_a_value_or_none_is_asked_for_the_other_answer():
    with pytest.raises(UsageError, match="nothing to predict") as refused:
        decide_task(column_facts("label", ["x", None, None]), "auto")
    assert refused.value.hint.endswith("or write the other answer into the 2 cells without a value")


def test_dates_are_no_classes_unless_they_are_few_or_it_is_asked_for():
    days = column_facts("delivered", [f"2024-01-{day:02}" for day in range(1, 29)] * 5)
    with pytest.raises(UsageError, match="delivered holds 28 different dates, which are hardly") as refused:
        decide_task(days, "auto")
    assert "days since a fixed date" in refused.value.hint
    assert decide_task(days, "multiclass") == "multiclass"
    years = [f"20{year}-01-{day:02}" for year in range(10, 20) for day in range(1, 29)]
    with pytest.raises(UsageError, match="280 different values: too many for classes") as refused:
        decide_task(column_facts("delivered", years), "auto")
    assert "multiclass" not in refused.value.hint, "it would be refused, too"
    cohorts = column_facts("cohort", ["2024-01-01", "2024-04-01", "2024-07-01"] * 5)
    assert decide_task(cohorts, "auto") == "multiclass"


def test_a_label_whose_other_answer_is_read_as_no_value_is_told_so():
    values = ["damaged", None, None]
    with pytest.raises(UsageError, match="nothing to predict") as refused:
        decide_task(column_facts("state", values), "auto", no_values={"none": "hours"})
    assert refused.value.hint == (
        "state 'none' is read as no value, as in hours. If it is an answer, write it differently in state, "
        "and start again."
    )


def test_words_in_a_label_that_mean_no_value_are_told_with_the_columns_that_have_them():
    label = column_facts("state", ["a", "b", None])
    [note] = no_value_notes(label, {"-": "width", "none": "hours", "NA": "width", "  ": "height"})
    assert note.startswith(
        "state '-' and 'none' and 'NA' are read as no value, as in width and hours. If they"
    )
    assert no_value_notes(label, {}) == no_value_notes(label, {"  ": "height"}) == []


@pytest.mark.parametrize(
    ("values", "remedy"),
    [
        ([f"c{n}" for n in range(101)], "the rare ones share a name"),
        (
            [*(f"${n}.50" for n in range(2000)), "Total"],
            "numbers except 'Total': fix these cells, "
            "or if they mean no value, in a CSV name them with --null-value, or remove their rows",
        ),
        (
            [f"{n / 10}{'kM'[n % 2]}" for n in range(200)],
            "in several units: 'M' and 'k': write them in one unit",
        ),
        ([f"2024-{1 + n % 12:02}-{1 + n // 12:02}" for n in range(200)], "the days since a fixed date"),
        (list(range(101)), "--task regression"),
    ],
)
def test_a_label_of_too_many_values_gets_a_remedy_that_works(values, remedy):
    with pytest.raises(UsageError, match="too many for classes; the limit is 100") as refused:
        decide_task(column_facts("label", values), "multiclass")
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
        decide_task(column_facts("paid", values), "auto")
    assert words in str(refused.value)
    assert "--task multiclass" in refused.value.hint
    assert decide_task(column_facts("paid", values), "multiclass") == "multiclass"


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
        decide_task(column_facts("state", values), "auto")
    assert words in str(refused.value)
    assert decide_task(column_facts("state", values), "multiclass") == "multiclass"


def test_a_label_that_is_the_same_in_the_first_rows_may_have_other_values_behind_them():
    with pytest.raises(UsageError) as refused:
        decide_task(column_facts("y", ["no"] * 30), "auto", is_whole=False)
    assert str(refused.value.message) == (
        "y is the same in every row, no, of the first 30 rows; only these are looked at."
    )
    assert refused.value.hint.startswith("shuffle the rows")


@pytest.mark.parametrize(
    "values",
    [["a", "A", "b"], ["N", "Y", "T"], ["yes", "no", "unknown"], ["1", "true", "t"], ["0", "false", "-1"]],
)
def test_codes_and_third_answers_are_classes(values):
    assert decide_task(column_facts("paid", values), "auto") == "multiclass"


def test_typed_remedy_makes_two_answers_of_a_table(tmp_path):
    table = tmp_path / "the table.csv"
    table.write_text("x;it's paid\n007;0\nNA;true\n;false\n", encoding="utf-8")
    with pytest.raises(UsageError) as refused:
        decide_task(column_facts("it's paid", ["0", "true", "false"]), "auto", file=OneCsv(str(table), ";"))
    command = shlex.split(refused.value.hint.partition("   #")[0])
    subprocess.run([sys.executable, *command[1:]], cwd=tmp_path, check=True)
    written = (tmp_path / "one-spelling.csv").read_text(encoding="utf-8")
    assert written == "x;it's paid\n007;0\nNA;true\n;0\n"


def test_typed_remedy_keeps_the_columns_of_rows_that_end_with_a_delimiter(tmp_path):
    table = tmp_path / "table.csv"
    table.write_text("x,c,label\n0,c,0,\n1,a,true,\n2,b,false,\n", encoding="utf-8")
    with pytest.raises(UsageError) as refused:
        decide_task(column_facts("label", ["0", "true", "false"]), "auto", file=OneCsv(str(table)))
    command = shlex.split(refused.value.hint.partition("   #")[0])
    subprocess.run([sys.executable, *command[1:]], cwd=tmp_path, check=True)
    written = (tmp_path / "one-spelling.csv").read_text(encoding="utf-8")
    assert written == "x,c,label\n0,c,0\n1,a,true\n2,b,0\n"
