"""Batch prediction over the formats of tables: every row is predicted or rejected, in order."""

import gc
import io
import json
import re
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from small_workload import small_workload

from slipway.components.errors import ComponentError, SlipwayError
from slipway.pipeline.commands.predict import predict
from slipway.pipeline.config.request_log import RequestLogConfig
from slipway.pipeline.errors import UsageError
from slipway.pipeline.runs.run_id import parts_of

pytestmark = pytest.mark.slow


@pytest.fixture
def config():
    return small_workload()


@pytest.fixture
def run(config, tmp_path):
    def call(source, **options):
        defaults = {"to": None, "version": None, "file_format": None, "beam_args": []}
        return predict(config, tmp_path / "output", source=str(source), **{**defaults, **options})

    return call


def parquet(rows):
    sink = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows), sink)
    return sink.getvalue()


def lines(folder, kind):
    files = sorted(folder.glob(f"{kind}-*"))
    return [json.loads(line) for file in files for line in file.read_bytes().splitlines()]


def predictions(done):
    return [(line["row"], line["prediction"]) for line in lines(done.folder, "predictions")]


def test_answers_are_logged_where_the_workload_asks_for_it(config, pushed, tmp_path):
    version = pushed(3).version
    config = config.model_copy(update={"request_log": RequestLogConfig(columns=["fare"])})
    (tmp_path / "in.csv").write_text("fare,company,tips\n1,a,0\nx,b,0\n2,c,0\n")
    how = {"to": None, "version": None, "file_format": None, "beam_args": []}
    predict(config, tmp_path / "output", source=str(tmp_path / "in.csv"), **how)
    found = lines(tmp_path / "output/requests/toy", "requests")
    assert [line.pop("logged_at")[:2] for line in found] == ["20", "20"]
    own = {"logged_version": version}
    assert found == [
        {**own, "fare": 1.0, "logged_prediction": [3.0]},
        {**own, "fare": 2.0, "logged_prediction": [6.0]},
    ]


def test_rows_of_a_csv_are_predicted_or_rejected_with_their_place(run, pushed, tmp_path):
    version = pushed(3).version
    file = tmp_path / "in.csv"
    file.write_text("fare,company,tips\n1,a,0\nx,b,0\n2,c\n3,,0\n,d,0\n4,e,0\n", encoding="utf-8")
    done = run(file)
    assert predictions(done) == [(0, [3.0]), (3, [9.0]), (5, [12.0])]
    # Not by the second alone: of two that begin in one, the other would find its folder taken at its end.
    assert parts_of(done.folder.name)
    rejects = lines(done.folder, "rejects")
    assert [(each["row"], each["reason"], each.get("line")) for each in rejects] == [
        (1, "not a number", 3),
        (2, "too few fields", 4),
        (4, "the model refuses it", None),
    ]
    assert "fare" in rejects[2]["detail"]
    assert done.summary["version"] == version
    assert (done.summary["predicted"], sum(done.summary["rejected"].values())) == (3, 3)
    assert "3 rows predicted" in done.text()
    assert [json.loads(line)["row"] for line in done.first] == [0, 3, 5]
    assert done.summary["rejects"] == ["rejects-00000-of-00001.jsonl"]
    assert f"The first: {file} line 3, column fare: not a number ('x')." in done.text()


def test_all_formats_give_the_same_predictions(run, pushed, tmp_path):
    from slipway.components.saved_model.quiet_tensorflow import import_tensorflow

    tf = import_tensorflow()
    pushed(3)
    rows = [{"fare": float(number), "company": "a"} for number in range(5)]
    csv = tmp_path / "a.csv"
    csv.write_text(
        "fare,company\n" + "".join(f"{r['fare']},{r['company']}\n" for r in rows), encoding="utf-8"
    )
    jsonl = tmp_path / "a.jsonl"
    jsonl.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "a.parquet")
    with tf.io.TFRecordWriter(str(tmp_path / "a.tfrecord")) as writer:
        for row in rows:
            feature = {"fare": tf.train.Feature(float_list=tf.train.FloatList(value=[row["fare"]]))}
            writer.write(tf.train.Example(features=tf.train.Features(feature=feature)).SerializeToString())
    expected = [(number, [3.0 * number]) for number in range(5)]
    for name in ("a.csv", "a.jsonl", "a.parquet", "a.tfrecord"):
        assert predictions(run(tmp_path / name, to=tmp_path / f"out-{name}")) == expected, name


def test_columns_that_the_model_does_not_take_are_passed_over_and_the_order_is_free(run, pushed, tmp_path):
    pushed(3)
    file = tmp_path / "in.csv"
    file.write_text("note,company,fare\nhello,a,2\n", encoding="utf-8")
    assert predictions(run(file)) == [(0, [6.0])]


def test_many_rows_and_files_keep_their_order(run, pushed, tmp_path):
    pushed(2)
    folder = tmp_path / "many"
    folder.mkdir()
    for index in range(3):
        rows = "".join(f"{number},a\n" for number in range(5000))
        (folder / f"{index}.csv").write_text("fare,company\n" + rows, encoding="utf-8")
    done = run(folder)
    assert done.summary["predicted"] == 15000
    assert [path.name for path in sorted(done.folder.glob("predictions-*"))] == [
        f"predictions-{index:05d}-of-00003.jsonl" for index in range(3)
    ]
    assert predictions(done)[:5000] == [(number, [2.0 * number]) for number in range(5000)]


def test_file_of_which_the_model_takes_no_row_is_an_error_and_leaves_nothing(run, pushed, tmp_path):
    pushed(3)
    file = tmp_path / "in.csv"
    file.write_text("fare,company\n,a\n,b\n", encoding="utf-8")
    with pytest.raises(ComponentError, match=r"in\.csv: the model refuses each of the first 2 rows: .*fare"):
        run(file, to=tmp_path / "out")
    assert not (tmp_path / "out").exists()
    assert not list(tmp_path.glob(".out*"))


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("in.csv", b"fair,company\n1,a\n"),
        ("in.jsonl", b'{"fair": 1, "company": "a"}\n'),
        ("in.parquet", None),
    ],
)
def test_file_of_another_table_is_reported_by_its_columns_before_anything_runs(
    run, pushed, tmp_path, capfd, name, content
):
    pushed(3)
    file = tmp_path / name
    file.write_bytes(content or parquet([{"fair": 1.0, "company": "a"}]))
    with pytest.raises(UsageError) as refused:
        run(file, to=tmp_path / "out")
    assert refused.value.message == f"{file} lacks a column that the model needs: fare (nearest: fair)."
    assert refused.value.hint.endswith("rename the columns of the file: no row may lack fare")
    assert capfd.readouterr().err == ""
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("b.csv", b"fare,companies\n1,a\n"),
        ("b.jsonl", b'{"fare": 1, "companies": "a"}\n{"fare": 2}\n'),
        ("b.parquet", parquet([{"fare": 1.0, "companies": "a"}])),
    ],
)
def test_no_file_may_lack_a_column_that_may_be_empty(run, pushed, tmp_path, name, content):
    pushed(3)
    suffix = Path(name).suffix
    whole = {".csv": b"fare,company\n1,\n", ".jsonl": b'{"fare": 1, "company": null}\n'}
    first = tmp_path / f"a{suffix}"
    first.write_bytes(whole.get(suffix) or parquet([{"fare": 1.0, "company": None}]))
    assert predictions(run(first, to=tmp_path / "empty")) == [(0, [3.0])]
    (tmp_path / name).write_bytes(content)
    with pytest.raises(UsageError) as refused:
        run(tmp_path / f"?{suffix}", to=tmp_path / "out")
    lacks = "lacks a column that the model needs: company (nearest: companies)."
    assert refused.value.message == f"{tmp_path / name} {lacks}"
    assert "leave it empty" in refused.value.hint
    assert not (tmp_path / "out").exists()


def test_file_with_a_header_only_is_reported_and_one_with_nothing_is_wrong_usage(run, pushed, tmp_path):
    pushed(3)
    (tmp_path / "in.csv").write_text("fare,company\n", encoding="utf-8")
    done = run(tmp_path / "in.csv")
    assert (done.summary["predicted"], done.summary["without_rows"]) == (0, [str(tmp_path / "in.csv")])
    assert "in.csv: no rows" in done.text()
    (tmp_path / "in.csv").write_bytes(b"")
    with pytest.raises(UsageError, match=r"in\.csv is empty"):
        run(tmp_path / "in.csv")


def test_file_of_another_workload_is_reported_with_the_command_for_it(run, pushed, saved_model, tmp_path):
    from slipway.components.pusher.publish_to_folder import publish

    pushed(3)
    provenance = {"workload": "wine", "schema": {"columns": {"ash": "FLOAT"}, "needed": ["ash"]}}
    publish(saved_model(5), base=tmp_path / "output/serving/wine", provenance=provenance)
    file = tmp_path / "in.csv"
    file.write_text("ash\n1\n", encoding="utf-8")
    with pytest.raises(UsageError) as refused:
        run(file)
    assert f"predict wine --input {file}" in refused.value.hint


def test_predictions_name_the_class_where_the_workload_names_them(run, pushed, tmp_path, capfd):
    version = pushed(0.3, classes=["no", "yes"]).version
    file = tmp_path / "in.csv"
    file.write_text("fare,company\n1,a\n2,b\ninf,c\n", encoding="utf-8")
    done = run(file)
    assert [each["class"] for each in lines(done.folder, "predictions")] == ["no", "yes", None]
    assert capfd.readouterr().err.splitlines()[0] == f"toy version {version}: predicts {file}"


def test_predictions_of_several_outputs_name_the_class_of_each_that_has_names(run, pushed, tmp_path):
    pushed(2, heads=True, output_classes={"payment": ["cash", "card", "app"], "cost": ["a", "b", "c"]})
    file = tmp_path / "in.csv"
    file.write_text("fare,company\n0.5,a\n3,b\ninf,c\n", encoding="utf-8")
    found = lines(run(file).folder, "predictions")
    assert [each["class"] for each in found] == [{"payment": "cash"}, {"payment": "app"}, {"payment": None}]
    assert found[0]["prediction"]["cost"] == [1.0]


def test_names_that_are_not_those_of_the_answers_are_not_told(run, pushed, tmp_path):
    pushed(3, classes=["a", "b", "c"])
    (tmp_path / "in.csv").write_text("fare,company\n1,a\n", encoding="utf-8")
    assert lines(run(tmp_path / "in.csv").folder, "predictions") == [{"row": 0, "prediction": [3.0]}]


def test_damaged_version_predicts_nothing(run, pushed, tmp_path):
    (pushed(3).path / "saved_model.pb").write_bytes(b"evil")
    (tmp_path / "in.csv").write_text("fare,company\n1,a\n", encoding="utf-8")
    with pytest.raises(ComponentError, match=r"is not used: saved_model\.pb does not match"):
        run(tmp_path / "in.csv")


def test_missing_version_file_and_taken_folder_are_wrong_usage(run, pushed, tmp_path):
    (tmp_path / "in.csv").write_text("fare,company\n1,a\n", encoding="utf-8")
    with pytest.raises(UsageError, match="has no version"):
        run(tmp_path / "in.csv")
    pushed(3)
    with pytest.raises(UsageError, match="has no version 5"):
        run(tmp_path / "in.csv", version=5)
    with pytest.raises(UsageError, match="matches no file"):
        run(tmp_path / "nowhere.csv")
    with pytest.raises(UsageError, match="already exists"):
        run(tmp_path / "in.csv", to=tmp_path)


ROWS = [{"fare": float(number), "company": "a"} for number in range(100)]
NOISE = bytes(np.random.default_rng(7).integers(0, 256, 50_000, dtype=np.uint8))
HOSTILE_FILES = {
    "noise.csv": NOISE,
    "empty.csv": b"",
    "nul.csv": b"fare,company\n1\x00,a\n",
    "types.csv": b"fare,company\nx,a\n0x10,c\n--1,d\n",
    "twice.csv": b"fare,fare,company\n1,2,a\n",
    "long.csv": b'fare,company\n"' + b"a" * 20_000_000,
    "noise.jsonl": NOISE,
    "wrong.jsonl": b'{"fare": 1\nnull\n[1]\n"x"\n{"fare": {"a": 1}}\n{"fare": "x", "company": ""}\n'
    b'{"fare": [[1]]}\n',
    "deep.jsonl": b'{"fare": ' + b"[" * 200_000 + b"\n",
    "noise.parquet": NOISE,
    "framed.parquet": b"PAR1" + NOISE + b"\xff\xff\x00\x00PAR1",
    "cut.parquet": parquet(ROWS)[:-40],
    "texts.parquet": parquet([{"fare": "x", "company": "a"}]),
    "noise.tfrecord": NOISE,
    "length.tfrecord": b"\xff" * 8 + NOISE,
}


@pytest.mark.parametrize("name", HOSTILE_FILES)
def test_hostile_file_is_refused_or_its_rows_are_and_nothing_half_is_left(run, pushed, tmp_path, name):
    pushed(3)
    (tmp_path / name).write_bytes(HOSTILE_FILES[name])
    done, error = None, None
    try:
        done = run(tmp_path / name, to=tmp_path / "out")
    except SlipwayError as refused:
        error = refused
    if error:
        assert name in error.message
        assert len(error.message) < 1000
        assert not (tmp_path / "out").exists()
        assert not list(tmp_path.glob(".out*"))
    else:
        assert done.summary["predicted"] == 0
        assert len(lines(done.folder, "rejects")) == sum(done.summary["rejected"].values())
    (tmp_path / "good.csv").write_text("fare,company\n1,a\n", encoding="utf-8")
    assert predictions(run(tmp_path / "good.csv")) == [(0, [3.0])]


def test_prediction_that_is_no_number_is_null(run, pushed, tmp_path):
    pushed(3)
    (tmp_path / "in.csv").write_text("fare,company\ninf,a\n2,b\n", encoding="utf-8")
    assert predictions(run(tmp_path / "in.csv")) == [(0, [None]), (1, [6.0])]


def peak_bytes(work):
    """The most memory that this process held while it did the work."""
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # forgets the peak so far
    work()
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(re.search(r"VmHWM:\s+(\d+) kB", status)[1]) * 1024


def test_memory_does_not_grow_with_the_rows(run, pushed, tmp_path):
    pushed(3)
    line = f"1,{'a' * 500}\n"
    peaks = []
    for rows in (20_000, 20_000, 300_000):
        file = tmp_path / "in.csv"
        file.write_text("fare,company\n" + rows * line, encoding="utf-8")
        gc.collect()
        target = tmp_path / f"out-{len(peaks)}"
        peaks.append(peak_bytes(partial(run, file, to=target)))
        assert json.loads((target / "summary.json").read_text(encoding="utf-8"))["predicted"] == rows
    # 150 MB of rows; the first time warms up what is made once.
    assert peaks[2] - peaks[1] < 50 * 2**20
