"""What `predict` refuses before it loads a model, and what it says when it is done."""

import json
import signal
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from small_workload import small_workload

from slipway.components.data_gate.statistics import FeatureStatistics, SplitStatistics
from slipway.components.errors import ComponentError, SlipwayError
from slipway.components.ingest.blocks import FileError, InputFile
from slipway.components.ingest.column_names import boolean_columns
from slipway.components.ingest.column_types import ColumnType
from slipway.components.ingest.example_message import MESSAGES, parse_example
from slipway.components.ingest.formats import FORMATS
from slipway.components.ingest.options import Options
from slipway.components.ingest.storage import list_files
from slipway.components.ingest.typed_rows import typed_rows
from slipway.components.predictor.input_columns import InputError
from slipway.components.predictor.predict_files import Counts, InputTask, columns_of
from slipway.components.pusher.manifest import Manifest
from slipway.components.pusher.publish_to_folder import publish
from slipway.components.request_log.request_log import RequestLog
from slipway.pipeline.commands import predict as predict_module
from slipway.pipeline.commands.predict import Predicted, Reader, _copied, _options, predict
from slipway.pipeline.config.train import TransformConfig
from slipway.pipeline.errors import UsageError
from slipway.pipeline.watch import training_data


@pytest.fixture
def refusal(tmp_path):
    """The error of `predict` with a version that would be refused when it is loaded."""
    version = tmp_path / "output/serving/toy/1"
    version.mkdir(parents=True)
    (version / "saved_model.pb").write_bytes(b"no model")
    rows = tmp_path / "rows.csv"
    rows.write_text("fare\n1\n", encoding="utf-8")

    def call(config=None, *, source=rows, to=None, file_format=None):
        options = {"version": None, "file_format": file_format, "beam_args": []}
        with pytest.raises(UsageError) as caught:
            predict(config or small_workload(), tmp_path / "output", source=str(source), to=to, **options)
        return caught.value

    return call


@pytest.mark.parametrize(
    ("name", "rule"), [("rows.csv/x", "Not a directory"), ("n" * 300, "File name too long")]
)
def test_folder_that_cannot_be_made_is_refused_in_words_before_the_model_is_loaded(
    refusal, tmp_path, name, rule
):
    error = refusal(to=tmp_path / name)
    assert error.message == f"{tmp_path / name} cannot be created for the predictions: {rule}."
    assert "--to" in error.hint
    assert sorted(path.name for path in tmp_path.iterdir()) == ["output", "rows.csv"]


def test_numbers_and_dates_are_written_as_in_training_whatever_the_format_of_the_rows():
    written = {"numbers": {"fare": {"unit": "$"}}, "dates": {"day": "%d.%m.%Y"}, "null_values": ["NA"]}
    options = _options(small_workload(data={"delimiter": ";", "limits": {"columns": 9}, **written}), "jsonl")
    assert options.limits.columns == 9  # the error about a larger file names this key
    assert (options.numbers, options.dates) == (written["numbers"], written["dates"])
    assert options.null_values == ("NA",)
    assert options.delimiter == ","


@pytest.mark.parametrize(
    ("trained_on", "rows_in", "missing"),
    [
        ("csv", "jsonl", {"city", "note", "age", "share"}),
        ("csv", "parquet", {"city", "note", "age", "share"}),
        ("csv", "csv", {"city", "note", "age", "share"}),
        ("jsonl", "csv", {"note", "price"}),  # an empty cell of a CSV is missing, whatever the rule
        ("jsonl", "parquet", {"price"}),
    ],
)
def test_row_lacks_the_values_that_it_would_have_lacked_in_training(tmp_path, trained_on, rows_in, missing):
    row = {"city": "NA", "note": "", "age": -1, "share": -1.0, "price": "$5", "kept": "na", "count": 1}
    if trained_on == "jsonl":
        row["price"] = "NA"  # there, only the columns of numbers and dates can lack a value in this way
    kinds = dict.fromkeys(("age", "count"), ColumnType.INT) | dict.fromkeys(
        ("share", "price"), ColumnType.FLOAT
    )
    columns = {name: kinds.get(name, ColumnType.TEXT) for name in row}
    path = tmp_path / f"rows.{rows_in}"
    if rows_in == "csv":
        cells = ["-1" if value == -1 else str(value) for value in row.values()]
        path.write_text(f"{','.join(row)}\n{','.join(cells)}\n", encoding="utf-8")
    elif rows_in == "jsonl":
        path.write_text(json.dumps(row) + "\n", encoding="utf-8")
    else:
        pq.write_table(pa.Table.from_pylist([row]), path)
    written = {"null_values": ["NA", "-1"], "numbers": {"price": {"unit": "$"}}}
    options = _options(small_workload(data={"format": trained_on, **written}), rows_in)
    file, form = InputFile(path.name, path), FORMATS[rows_in]
    [block] = form.read(file, options, form.infer(file, options, columns))
    typed, wrong = typed_rows(block, columns)
    assert not block.rejects
    assert not wrong
    assert {name for name, values in typed.items() if values.null_count} == missing


TRAINED_ON = {"Area m²": "FLOAT", "rooms": "INT", "city": "BYTES", "price": "FLOAT", "id": "BYTES"}


@pytest.fixture
def trained(refusal, tmp_path, saved):
    """Publishes a model of houses: Area m² and city may be empty, price is the label, id is not served."""
    inputs = {"Area_m_": {"dtype": "float"}, "rooms": {"dtype": "int64"}, "city": {"dtype": "string"}}
    provenance = {
        "schema": {"columns": TRAINED_ON, "needed": ["rooms"]},
        "model": {"signatures": {"serve_raw": {"inputs": inputs, "outputs": {}}}},
    }
    publish(saved, base=tmp_path / "output/serving/toy", provenance=provenance)

    def call(content, name="rows.csv"):
        (tmp_path / name).write_text(content, encoding="utf-8")
        return refusal(source=tmp_path / name)

    return call


@pytest.fixture
def saved(tmp_path):
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "saved_model.pb").write_bytes(b"no model")
    return folder


def test_file_without_a_column_that_may_be_empty_is_refused_with_the_nearest_and_the_remedy(
    trained, tmp_path
):
    error = trained("Area m2,rooms,city\n80,3,Ulm\n")
    assert error.exit_code == 2
    assert error.message == (
        f"{tmp_path}/rows.csv lacks a column that the model needs: Area m² (nearest: Area m2)."
    )
    assert error.hint.endswith("if it is unknown for every row, add the column and leave it empty")


def test_file_that_fits_another_workload_is_reported_so_where_most_columns_are_missing(
    trained, tmp_path, saved
):
    provenance = {"schema": {"columns": {"cities": "BYTES"}, "needed": ["cities"]}}
    publish(saved, base=tmp_path / "output/serving/towns", provenance=provenance)
    assert "predict towns --input" in trained("cities\nUlm\n").hint
    assert "rename the columns" in trained("rooms,Area m²,cities\n3,80,Ulm\n").hint


def test_models_beside_a_destination_of_ones_own_are_not_those_of_the_output_folder(refusal, tmp_path, saved):
    """A command with --output would not find them; nor can every folder there be read."""
    for name in ("toy", "towns"):
        provenance = {"schema": {"columns": {name: "BYTES", "x": "INT"}, "needed": [name]}}
        publish(saved, base=tmp_path / "models" / name, provenance=provenance)
    (tmp_path / "rows.csv").write_text("towns\nUlm\n", encoding="utf-8")
    own = small_workload(push={"destination": str(tmp_path / "models/toy")})
    error = refusal(own)
    assert "lacks a column that the model needs: toy" in error.message
    assert "predict towns" not in error.hint


def test_json_lines_of_which_no_row_has_the_key_are_refused(trained):
    rows = '{"rooms": 3, "city": null, "Area m2": 1}\n{"rooms": 2}\n'
    assert (
        "lacks a column that the model needs: Area m² (nearest: Area m2)." in trained(rows, "a.jsonl").message
    )


@pytest.mark.parametrize(
    ("name", "content", "rule"),
    [("rows.csv", "", "is empty"), ("a.jsonl", "", "holds no JSON object"), ("a.parquet", "x", "")],
)
def test_file_that_cannot_be_read_is_wrong_input_as_one_of_another_table_is(trained, name, content, rule):
    error = trained(content, name)
    assert error.exit_code == 2
    assert name in error.message
    assert rule in error.message


def test_neither_the_label_nor_what_serving_leaves_out_is_asked_for(trained, tmp_path, saved):
    whole = tmp_path / "rows.csv"
    whole.write_text("city,rooms,Area m²\nUlm,3,\n", encoding="utf-8")
    options = {"to": None, "version": None, "file_format": None, "beam_args": []}
    (newest,) = (tmp_path / "output/serving/toy").glob("[0-9][0-9]*")
    (newest / "saved_model.pb").write_bytes(b"damaged")  # what is refused next
    with pytest.raises(SlipwayError, match=r"saved_model\.pb does not match"):
        predict(small_workload(), tmp_path / "output", source=str(whole), **options)


KINDS = {"Area m²": ColumnType.FLOAT, "rooms": ColumnType.INT, "city": ColumnType.TEXT}


@pytest.fixture
def read(tmp_path):
    """The rows of the second of two files, of which the first is whole."""

    def call(content, name="b.csv", *, pass_through=(), truths=None, dates=(), **options):
        (tmp_path / f"a{Path(name).suffix}").write_text("Area m²,rooms,city\n80,3,Ulm\n", encoding="utf-8")
        (tmp_path / name).write_text(content, encoding="utf-8")
        files = tuple(list_files(str(tmp_path / f"?{Path(name).suffix}")))
        known = {**KINDS, "price": ColumnType.FLOAT, "id": ColumnType.INT}
        reader = Reader(
            files,
            Options(**options),
            KINDS,
            known,
            ("rooms",),
            pass_through,
            truths=truths or {},
            dates=dates,
        )
        return list(reader(InputTask(1, str(tmp_path / name), 2)))

    return call


def test_later_file_without_a_column_is_refused_where_it_is_read(read):
    with pytest.raises(InputError, match=r"b\.csv lacks a column .*: Area m² \(nearest: Area m2\)"):
        read("Area m2,rooms,city\n80,3,Ulm\n")
    with pytest.raises(InputError, match=r"b\.csv is empty"):
        read("")


def test_file_with_other_separators_is_told_as_one(read):
    with pytest.raises(InputError, match="lacks columns") as caught:
        read("Area m²;rooms;city\n80;3;Ulm\n")
    assert caught.value.hint == "its columns seem to be separated by ';': write them with ',' between"
    with pytest.raises(InputError, match="lacks columns") as caught:
        read("Area m²\n80\n")  # one column, whose name holds a space
    assert "separated" not in caught.value.hint


def test_word_for_a_missing_value_is_missing_in_a_column_of_numbers_whatever_the_training_read(read):
    """It cannot have been a value there, as a text or a number may have been."""
    content = "Area m²,rooms,city\nNA,3,NA\n-1,3,Ulm\n"
    [rows] = read(content, null_values=("NA", "-1"), trained_as="parquet")
    assert not rows.rejects
    assert b"NA" in rows.records[0]
    features = [parse_example(record).features.feature for record in rows.records]
    assert [list(each["Area m²"].float_list.value) for each in features] == [[], [-1.0]]


def test_true_and_false_are_not_taken_for_texts_that_no_training_had(read, tmp_path):
    """A CSV has True or yes, as text; JSON Lines would give true, and Parquet 1."""
    row = '{"Area m²": 80, "rooms": 3, "city": true, "id": false}\n'
    for trained_as in ("csv", "parquet"):
        with pytest.raises(InputError, match="column 'city' holds true and false, and the model was trained"):
            read(row, "b.jsonl", format="jsonl", trained_as=trained_as)
    read(row, "b.jsonl", format="jsonl")
    read(row.replace("true", '"true"'), "b.jsonl", format="jsonl", trained_as="csv", pass_through=("id",))
    pq.write_table(pa.table({"city": [True], "rooms": [True], "id": ["a"]}), tmp_path / "c.parquet")
    file = InputFile("c.parquet", tmp_path / "c.parquet")
    assert boolean_columns(file, Options(format="parquet")) == {"city", "rooms"}
    table = pa.table({"Area m²": [80.0], "rooms": [3], "city": [True]})
    for trained_as, texts in (("jsonl", "'true' and 'false'"), ("csv", "'True' and 'False'")):
        pq.write_table(table, tmp_path / "d.parquet")
        reader = Reader(
            tuple(list_files(str(tmp_path / "d.parquet"))),
            Options(format="parquet", trained_as=trained_as),
            KINDS,
            KINDS,
        )
        with pytest.raises(InputError) as caught:
            list(reader(InputTask(0, "d.parquet", 1)))
        assert caught.value.hint.endswith(texts)
    assert boolean_columns(file, Options()) == set()


def test_true_and_false_are_found_in_any_block_and_in_lists(read, tmp_path):
    row = '{"Area m²": 80, "rooms": 3, "city": %s}\n'
    for late in ("true", "[false, true]"):
        with pytest.raises(InputError, match="column 'city' holds true and false"):
            read(row % '"Ulm"' * 20 + row % late, "b.jsonl", format="jsonl", trained_as="csv", block_bytes=64)
    pq.write_table(pa.table({"city": [[True]], "rooms": [[1]]}), tmp_path / "c.parquet")
    file = InputFile("c.parquet", tmp_path / "c.parquet")
    assert boolean_columns(file, Options(format="parquet")) == {"city"}


def test_true_and_false_are_read_where_the_training_spelled_them_as_json_does(read):
    row = '{"Area m²": 80, "rooms": 3, "city": true}\n'

    def trained_on(*texts):
        return read(row, "b.jsonl", format="jsonl", trained_as="csv", truths={"city": texts})

    [rows] = trained_on("true", "false")
    assert b"true" in rows.records[0]
    with pytest.raises(InputError) as caught:
        trained_on("TRUE", "FALSE")
    assert caught.value.hint.endswith("such as 'TRUE' and 'FALSE'")
    with pytest.raises(InputError):
        trained_on("true", "True")


@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet"])
def test_texts_among_dates_are_rejected_where_the_training_had_dates_only(form, tmp_path):
    texts = ["2024-01-31", "1/31/2024", "", None, "2024-01-31T10:20:30Z", "2024-1-5"]
    table = pd.DataFrame({"Area m²": 80.0, "rooms": 3, "city": texts})
    write = {"csv": table.to_csv, "jsonl": table.to_json, "parquet": table.to_parquet}[form]
    how = {"jsonl": {"orient": "records", "lines": True}}.get(form, {"index": False})
    path = tmp_path / f"a.{form}"
    write(path, **how)
    reader = Reader(tuple(list_files(str(path))), Options(format=form), KINDS, KINDS, dates=("city", "gone"))
    [rows] = reader(InputTask(0, path.name, 1))
    assert rows.rows.tolist() == [0, 2, 3, 4]
    assert [(each["row"], each["column"], each["reason"], each["detail"]) for each in rows.rejects] == [
        (1, "city", "not a date, as all in training", "'1/31/2024'"),
        (5, "city", "not a date, as all in training", "'2024-1-5'"),
    ]


def test_spelling_and_dates_of_the_training_are_those_of_its_statistics(monkeypatch):
    features = {
        "city": FeatureStatistics("city", "text", rows=3, present=3, counts={"Ulm": 2.0, "yes": 1.0}),
        "open": FeatureStatistics("open", "text", rows=3, present=3, counts={"TRUE": 2.0, "": 1.0}),
        "day": FeatureStatistics("day", "text", rows=3, present=3, counts={"2024-01-31": 2.0, "": 1.0}),
        "due": FeatureStatistics("due", "text", rows=3, present=3, counts={"2024-01-31": 2.0, "TBD": 1.0}),
    }
    monkeypatch.setattr(
        training_data, "training_statistics", lambda *named: SplitStatistics(rows=3, features=features)
    )
    found = predict_module._texts_in_training(Path("out"), None, 1)
    assert found.truths == {"open": ("TRUE",)}
    assert found.dates == ("day",)


def test_dates_are_those_that_the_manifest_names_wherever_the_training_was(tmp_path):
    manifest = Manifest({}, {"schema": {"dates": ["day"]}})
    assert predict_module._texts_in_training(tmp_path, manifest, 1).dates == ("day",)


def test_spelling_of_a_training_that_is_elsewhere_is_not_known(tmp_path, monkeypatch):
    assert predict_module._texts_in_training(tmp_path, None, 1).truths == {}

    def refused(*_):
        raise PermissionError(13, "Permission denied", "runs")

    monkeypatch.setattr(training_data, "training_statistics", refused)
    assert predict_module._texts_in_training(tmp_path, None, 1).truths == {}


def test_column_that_only_later_objects_have_is_copied_to_the_predictions(read):
    """Objects without it come first: the names are those of the head of a file."""
    row = '{"Area m²": 80, "rooms": 3, "city": "Ulm"%s}\n'
    content = row % "" * 20 + row % ', "id": "p7"'
    found = read(content, "b.jsonl", pass_through=("id",), format="jsonl", block_bytes=64)
    records = [record for rows in found for record in rows.records]
    assert [b"p7" in record for record in records] == [False] * 20 + [True]


def test_column_of_empty_cells_is_read_as_it_is_written(read):
    [rows] = read("Area m²,rooms,city\n,3,\n")
    assert (len(rows.records), rows.rejects) == (1, [])
    [rows] = read('{"Area m²": null, "rooms": 3, "city": null}\n', "b.jsonl", format="jsonl")
    assert (len(rows.records), rows.rejects) == (1, [])


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("b.csv", "Area m²,rooms,city,price,id\n80,3,Ulm,unknown,a7\n"),
        ("b.jsonl", '{"Area m²": 80, "rooms": 3, "city": "Ulm", "price": "unknown", "id": "a7"}\n'),
    ],
)
def test_no_row_is_rejected_for_a_column_that_the_model_does_not_take(read, name, content):
    [rows] = read(content, name, format=Path(name).suffix.removeprefix("."))
    assert (len(rows.records), rows.rejects) == (1, [])


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("b.csv", "Area m²,rooms,city,id,note\n80,3,Ulm,p7,1\n90,4,Ulm,8,\n"),
        (
            "b.jsonl",
            '{"Area m²": 80, "rooms": 3, "city": "Ulm", "id": "p7", "note": 1}\n'
            '{"Area m²": 90, "rooms": 4, "city": "Ulm", "id": 8, "note": null}\n',
        ),
    ],
)
def test_no_row_is_rejected_for_a_column_that_passes_through(read, name, content):
    columns = ("id", "note", "rooms", "gone")
    [rows] = read(content, name, pass_through=columns, format=name.rpartition(".")[2])
    assert rows.rejects == []
    kinds = {"id": int, "note": str, "rooms": str}
    assert [columns_of(each, kinds) for each in rows.records] == [
        {"id": "p7", "note": "1", "rooms": 3},
        {"id": 8, "note": None, "rooms": 4},
    ]


@pytest.mark.parametrize(
    ("schema", "copied"),
    [({"w": ColumnType.FLOAT, "id": ColumnType.INT}, ("id", "query", "w")), ({}, ("id", "query"))],
    ids=["raw", "computed"],
)
def test_id_group_and_weight_are_copied_but_no_weight_that_is_computed(schema, copied):
    named = {"preprocessing_fn": "w.f.g", "weight": "w", "group": "query", "pass_through": ["id", "query"]}
    assert _copied(TransformConfig.model_validate(named), schema) == copied
    assert _copied(TransformConfig.model_validate({"preprocessing_fn": "w.f.g"}), schema) == ()


def told(**summary):
    whole = {"predicted": 1, "version": "7", "rejected": {}, "not_finite": 0, "without_rows": []}
    return Predicted(Path("out"), {**whole, **summary}).text().splitlines()


REJECT = {"file": "a.csv", "row": 3, "line": 5, "column": "fare", "reason": "not a number", "detail": "'x'"}


@pytest.mark.parametrize(
    ("rejected", "words"),
    [({"not a number": 1}, "1 row rejected: 1 "), ({"x": 1, "y": 2}, "3 rows rejected: 1 x")],
)
def test_rejected_rows_are_reported_in_their_number(rejected, words):
    first, second, *_ = told(rejected=rejected, first_rejected=[REJECT], rejects=["rejects-0.jsonl"])
    assert first == "1 row predicted by version 7."
    assert second.startswith(words)


@pytest.mark.parametrize(
    ("reject", "words"),
    [
        (REJECT, "a.csv line 5, column fare: not a number ('x')"),
        ({**REJECT, "line": None}, "a.csv row 3 (from 0), column fare: not a number ('x')"),
        (
            {"file": "a.csv", "row": 3, "reason": "refused", "detail": "no\nfare"},
            "a.csv row 3 (from 0): refused (no fare)",
        ),
    ],
)
def test_first_rejected_row_is_reported_with_its_place_and_value(reject, words):
    _, _, first, _ = told(rejected={"x": 1}, first_rejected=[reject], rejects=["rejects-0.jsonl"])
    assert first == f"The first: {words}. Each is in rejects-0.jsonl."
    *_, first, _ = told(
        rejected={"x": 2}, first_rejected=[reject], rejects=["rejects-0.jsonl", "rejects-1.jsonl"]
    )
    assert first.endswith("Each is in rejects-0.jsonl and 1 more.")


@pytest.mark.parametrize(
    ("predicted", "rejected", "code"), [(0, {"not a number": 2}, 1), (1, {"not a number": 2}, 0), (0, {}, 0)]
)
def test_it_fails_if_every_row_was_rejected(predicted, rejected, code):
    assert Predicted(Path("out"), {"predicted": predicted, "rejected": rejected}).exit_code == code


def test_file_without_rows_is_reported():
    assert told(predicted=0, without_rows=["a.csv"])[1] == "a.csv: no rows."
    assert told(without_rows=["a.csv", "b.csv"])[1] == "a.csv and 1 more: no rows."
    assert len(told()) == 2


def test_flat_folder_of_images_is_refused_as_the_images_by_name_are(refusal, tmp_path):
    folder = tmp_path / "images"
    folder.mkdir()
    (folder / "a.png").write_bytes(b"png")
    config = small_workload(data={"format": "images"})
    by_folder, by_name = refusal(config, source=folder), refusal(config, source=folder / "*.png")
    assert by_folder.message.startswith("images files cannot be read by predict")
    assert "Parquet" in by_folder.hint
    assert (by_folder.message, by_folder.hint) == (by_name.message, by_name.hint)
    assert by_folder.exit_code == 2


@pytest.mark.parametrize("is_folder", [True, False])
def test_format_that_there_is_not_is_refused_with_those_that_there_are(refusal, tmp_path, is_folder):
    error = refusal(source=tmp_path if is_folder else tmp_path / "rows.csv", file_format="orc")
    assert error.message == "orc files cannot be read by predict; it reads csv, jsonl, parquet, tfrecord."
    assert error.hint == "name the format of your files, as --format csv"


def test_folder_for_a_workload_of_queries_needs_its_format(refusal, tmp_path):
    config = small_workload(data={"format": "bigquery", "source": None, "query": "SELECT 1"})
    assert refusal(config, source=tmp_path).hint == "name the format of your files, as --format csv"


@pytest.mark.parametrize(
    ("told", "hint"),
    [
        ("agree to the conditions on its page", "agree to the conditions on its page"),
        ("check data.source", "check --input"),
        ("", "check --input"),
    ],
)
def test_place_that_cannot_be_listed_is_refused_with_its_own_remedy(refusal, monkeypatch, told, hint):
    def refuse(pattern):
        raise FileError(f"{pattern} is gated", hint=told)

    monkeypatch.setattr(predict_module, "list_files", refuse)
    error = refusal(source="hf://datasets/a/b/c.csv")
    assert (error.message, error.hint) == ("hf://datasets/a/b/c.csv is gated", hint)


def test_folder_without_tables_is_reported_by_what_was_looked_for(refusal, tmp_path):
    (tmp_path / "empty").mkdir()
    assert refusal(source=tmp_path / "empty").message == f"{tmp_path}/empty/*.csv matches no file"


def test_rows_with_no_number_for_an_answer_are_reported(tmp_path):
    summary = {"version": 1, "predicted": 7, "not_finite": 2, "rejected": {}, "without_rows": []}
    assert "2 of them have no finite prediction" in Predicted(tmp_path, summary).text()
    assert "no number" not in Predicted(tmp_path, {**summary, "not_finite": 0}).text()


def test_the_first_answers_are_shown_and_the_folder_stays_the_last_line(tmp_path):
    summary = {"version": 7, "predicted": 4, "not_finite": 0, "rejected": {}, "without_rows": []}
    long = '{"row":1,"prediction":[' + ",".join(["0.125"] * 100) + "]}"

    lines = Predicted(tmp_path, summary, ('{"row":0,"prediction":[0.5]}', long)).text().splitlines()

    assert lines[:2] == ["4 rows predicted by version 7.", '  {"row":0,"prediction":[0.5]}']
    assert lines[2].endswith("...")
    assert len(lines[2]) < 210
    assert lines[-1] == str(tmp_path)


@pytest.fixture
def logging_predict(tmp_path, saved, monkeypatch):
    """Predicts two rows, of which the first one is answered and logged before `then` is called."""

    def call(then):
        def answer(*arguments):
            folder, log = arguments[3], arguments[5]
            (folder / "predictions-00000-of-00001.jsonl").touch()
            if log.settings:
                worker = RequestLog(log.settings)
                row = MESSAGES["Example"]()
                row.features.feature["fare"].float_list.value.append(1.0)
                worker.write_examples(log.version, [row.SerializeToString()], [[0.5]])
                worker.close()
            return then()

        monkeypatch.setattr(predict_module, "_predict", answer)
        publish(saved, base=tmp_path / "output/serving/toy", provenance={})
        (tmp_path / "rows.csv").write_text("fare\n1\n2\n", encoding="utf-8")
        config = small_workload(request_log={"columns": ["fare"]})
        options = {"to": tmp_path / "to/here", "version": None, "file_format": None, "beam_args": []}
        return predict(config, tmp_path / "output", source=str(tmp_path / "rows.csv"), **options)

    return call


def test_rows_are_not_logged_if_the_predictions_fail(logging_predict, tmp_path):
    """They are predicted again, and would be in the log twice."""

    def fail():
        raise ComponentError("the second file cannot be read", hint="write it again")

    with pytest.raises(ComponentError, match="second file"):
        logging_predict(fail)
    assert not (tmp_path / "output/requests").exists()


def test_rows_are_logged_once_all_are_predicted(logging_predict, tmp_path):
    done = logging_predict(lambda: Counts(predicted=2))
    [logged] = (tmp_path / "output/requests/toy").glob("requests-*.jsonl")
    [line] = logged.read_text(encoding="utf-8").splitlines()
    assert json.loads(line)["fare"] == 1.0
    assert logged.stat().st_mode & 0o777 == 0o600
    names = sorted(path.name for path in done.folder.iterdir())
    assert names == ["predictions-00000-of-00001.jsonl", "summary.json"]


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])
def test_told_to_end_while_its_rows_are_logged_it_logs_all(logging_predict, tmp_path, monkeypatch, signum):
    """Else a part would be logged, and the predictions be removed: the next one would log that part again."""
    rename = Path.rename

    def interrupted(path, target):
        if path.name.startswith("requests-"):
            signal.raise_signal(signum)
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", interrupted)
    done = logging_predict(lambda: Counts(predicted=2))
    assert len(list((tmp_path / "output/requests/toy").glob("requests-*.jsonl"))) == 1
    assert (done.folder / "summary.json").exists()


def test_rows_are_not_logged_if_the_predictions_cannot_be_put_in_place(logging_predict, tmp_path):
    def filled():
        (tmp_path / "to/here").mkdir()
        (tmp_path / "to/here/notes.txt").touch()
        return Counts(predicted=2)

    with pytest.raises(UsageError, match="predictions are complete"):
        logging_predict(filled)
    assert not (tmp_path / "output/requests").exists()


def test_predictions_are_kept_where_their_rows_cannot_be_logged(logging_predict, tmp_path, caplog):
    (tmp_path / "output").mkdir()
    (tmp_path / "output/requests").touch()
    done = logging_predict(lambda: Counts(predicted=2))
    assert "Requests are not logged" in caplog.text
    names = sorted(path.name for path in done.folder.iterdir())
    assert names == ["predictions-00000-of-00001.jsonl", "summary.json"]


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])
def test_nothing_half_done_is_left_where_it_is_told_to_end(tmp_path, saved, monkeypatch, signum):
    def half(*arguments):
        folder = arguments[3]
        (folder / "predictions-00000-of-00001.jsonl").write_text("half", encoding="utf-8")
        signal.raise_signal(signum)

    monkeypatch.setattr(predict_module, "_predict", half)
    publish(saved, base=tmp_path / "output/serving/toy", provenance={})
    (tmp_path / "rows.csv").write_text("fare\n1\n", encoding="utf-8")
    options = {"version": None, "file_format": None, "beam_args": []}

    with pytest.raises(KeyboardInterrupt):
        predict(
            small_workload(),
            tmp_path / "output",
            source=str(tmp_path / "rows.csv"),
            to=tmp_path / "to/here",
            **options,
        )

    assert list((tmp_path / "to").iterdir()) == []
