"""The component against the stock CsvExampleGen as oracle, and what only a whole run shows.

Drawn tables, and all trips, are external; `make test` compares trips that a key splits, and sees each kind of
cell in tests/unit/components/ingest/test_csv_table.py and test_exact_values.py.
"""

import csv
import gzip
import importlib.util
import io
import itertools
import json
import os
import random
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from slipway.components.errors import ComponentError
from slipway.components.ingest.options import Options
from slipway.components.ingest.source_limits import SourceLimits
from slipway.components.ingest.tfrecord import frame, read_records
from slipway.pipeline.wiring.beam_engine import NO_PACKAGE

pytestmark = [
    pytest.mark.slow,
    # TFX's and TensorFlow's own imports warn of what they will change in themselves.
    pytest.mark.filterwarnings("default"),
]


@pytest.fixture(scope="module")
def tfx():
    """TFX's and our executor with what they need, imported once."""
    os.environ.setdefault("TF_USE_LEGACY_KERAS", "0")
    from tensorflow.core.example import example_pb2
    from tfx.components.example_gen.csv_example_gen.executor import Executor as Stock
    from tfx.dsl.components.base.base_beam_executor import BaseBeamExecutor
    from tfx.proto import example_gen_pb2
    from tfx.types import standard_artifacts
    from tfx.utils import proto_utils

    from slipway.components.ingest.executor import Executor
    from slipway.schemas.artifacts import Quarantine

    return SimpleNamespace(
        BaseBeamExecutor=BaseBeamExecutor,
        Executor=Executor,
        Quarantine=Quarantine,
        Stock=Stock,
        example_gen_pb2=example_gen_pb2,
        example_pb2=example_pb2,
        proto_utils=proto_utils,
        standard_artifacts=standard_artifacts,
    )


@pytest.fixture(scope="module")
def run(tfx, tmp_path_factory):
    """Runs an executor over the files of a folder; returns the folder of its artifacts."""

    def ran(folder, patterns, *, stock=False, splits=None, key=None, schema_file=None, beam=(), **options):
        out = tmp_path_factory.mktemp("stock" if stock else "ours")
        proto = tfx.example_gen_pb2
        inputs = proto.Input(splits=[proto.Input.Split(name=name, pattern=p) for name, p in patterns.items()])
        weights = {"train": 2, "eval": 1} if splits is None else splits
        config = proto.SplitConfig(
            splits=[proto.SplitConfig.Split(name=name, hash_buckets=n) for name, n in weights.items()],
            partition_feature_name=key,
        )
        outputs = proto.Output(split_config=config if weights else None)
        examples, quarantine = tfx.standard_artifacts.Examples(), tfx.Quarantine()
        examples.uri, quarantine.uri = str(out / "examples"), str(out / "quarantine")
        context = tfx.BaseBeamExecutor.Context(
            beam_pipeline_args=["--runner=FnApiRunner", NO_PACKAGE, *beam],
            tmp_dir=str(out / "tmp"),
            unique_id="1",
        )
        executor = (tfx.Stock if stock else tfx.Executor)(context)
        executor.Do(
            {},
            {"examples": [examples], **({} if stock else {"quarantine": [quarantine]})},
            {
                "input_base": str(folder),
                "input_config": tfx.proto_utils.proto_to_json(inputs),
                "output_config": tfx.proto_utils.proto_to_json(outputs),
                "output_data_format": proto.FORMAT_TF_EXAMPLE,
                "output_file_format": proto.FORMAT_TFRECORDS_GZIP,
                "ingest": json.dumps(Options(**options).to_json()),
                "schema_file": schema_file,
            },
        )
        return out

    return ran


@pytest.fixture(scope="module")
def examples(tfx):
    """The examples of each split, in deterministic serialisation and counted."""

    def read(out):
        found = {}
        for folder in sorted((out / "examples").iterdir()):
            counted = Counter()
            for file in folder.iterdir():
                with gzip.open(file) if file.suffix == ".gz" else file.open("rb") as stream:
                    for _, record in read_records(stream, max_bytes=1 << 30):
                        message = tfx.example_pb2.Example.FromString(record)
                        counted[message.SerializeToString(deterministic=True)] += 1
            found[folder.name] = counted
        return found

    return read


@pytest.fixture(scope="module")
def taxi():
    tfx_folder = Path(importlib.util.find_spec("tfx").origin).parent
    return tfx_folder / "examples/chicago_taxi_pipeline/data/simple"


@pytest.fixture
def some_trips(taxi, tmp_path):
    """A folder with so many of them that what goes by their values has something to go by."""
    folder = tmp_path / "some"
    folder.mkdir()
    with (taxi / "data.csv").open() as trips:
        (folder / "data.csv").write_text("".join(itertools.islice(trips, 2001)))
    return folder


def totals(found):
    return {name: rows.total() for name, rows in found.items()}


def content(out):
    return {str(path.relative_to(out)): path.read_bytes() for path in out.rglob("*") if path.is_file()}


@pytest.mark.external
def test_examples_of_the_taxi_are_those_of_the_stock_component(run, examples, taxi):
    ours = run(taxi, {"all": "data.csv"})
    found = examples(ours)
    assert found == examples(run(taxi, {"all": "data.csv"}, stock=True))
    assert totals(found) == {"Split-train": 10036, "Split-eval": 4966}
    assert content(run(taxi, {"all": "data.csv"})) == content(ours)


def test_rows_are_split_by_a_key_as_the_stock_component_does(run, examples, some_trips):
    ours = examples(run(some_trips, {"all": "data.csv"}, key="company"))
    assert ours == examples(run(some_trips, {"all": "data.csv"}, key="company", stock=True))
    assert ours["Split-train"].total() > ours["Split-eval"].total() > 100


CELLS = {
    "int": lambda r: str(r.randrange(-(10 ** r.randrange(1, 18)), 10 ** r.randrange(1, 18))),
    "wide": lambda r: str(r.choice([2**63 - 1, -(2**63), 2**63, 10**18, 10**19, 10**20, 1])),
    "float": lambda r: repr(r.choice([r.random(), r.gauss(0, 1e10), 1e-40, 1e30, 5.0])),
    "odd": lambda r: r.choice(["1_000", "+5", " 6", "7 ", "1e5", "-0", "0", ".5", "5.", "1E-3", "+1.5"]),
    "special": lambda r: r.choice(["nan", "inf", "-inf", "Infinity", "NaN", "1.5"]),
    "word": lambda r: r.choice(["NA", "null", "None", "true", "0x1F", "nan(1)", "1.2.3", "--1", "१२", "é"]),
    "text": lambda r: "".join(r.choices('abc ,"\n é\u2028🎉\t;', k=r.randrange(1, 9))),
    "lines": lambda r: r.choice(["a\r\nb", "a\nb", 'say "hi"', '"', '""', ",", "x" * 3000]),
}


def _cell(kinds, r, empty):
    return "" if r.random() < empty else CELLS[r.choice(kinds)](r)


@pytest.mark.external
@given(seed=st.integers(0, 2**32))
@settings(max_examples=6, suppress_health_check=list(HealthCheck))
def test_examples_of_any_table_are_those_of_the_stock_component(run, examples, tmp_path_factory, seed):
    # One stock run costs seconds: each table has many columns, each of them a case of its own.
    r = random.Random(seed)  # noqa: S311
    kinds = [r.sample(sorted(CELLS), r.choice([1, 1, 2, 3])) for _ in range(40)]
    shares = [r.choice([0, 0, 0.2, 0.9, 1]) for _ in kinds]
    folder = tmp_path_factory.mktemp("tables")
    names = [f"c{i}" for i in range(len(kinds))]
    for part in range(r.choice([1, 3])):
        out = io.StringIO(newline="")
        writer = csv.writer(out, lineterminator=r.choice(["\n", "\r\n"]))
        writer.writerow(names)
        for _ in range(r.randrange(1, 60)):
            writer.writerow([_cell(kind, r, empty) for kind, empty in zip(kinds, shares, strict=True)])
            if r.random() < 0.1:
                out.write("\n")
        (folder / f"{part}.csv").write_bytes(out.getvalue().encode())
    ours = run(folder, {"all": "*.csv"}, max_bad_share=0, block_bytes=r.choice([200, 5000, 1 << 20]))
    assert examples(ours) == examples(run(folder, {"all": "*.csv"}, stock=True))


def test_beam_workers_write_what_this_machine_writes_by_itself(run, tmp_path):
    for name in "abc":
        rows = "".join(f"{i},{name}{i}\n" for i in range(3000))
        (tmp_path / f"{name}.csv").write_text("n,s\n" + rows + ("x,y\n1\n" if name == "c" else ""))
    how = {"block_bytes": 4000, "max_bad_share": 0.1}
    here = run(tmp_path, {"all": "*.csv"}, **how)
    # Any runner but the local engine's; this one needs no service.
    beam = run(tmp_path, {"all": "*.csv"}, beam=["--runner=BundleBasedDirectRunner"], **how)
    assert content(beam) == content(here)


def test_rows_count_once_where_beam_repeats_tasks_that_have_ended_or_been_cut_short(
    run, tmp_path, monkeypatch
):
    from slipway.components.ingest import executor

    for name in "ab":
        (tmp_path / f"{name}.csv").write_text(
            "n,s\n" + "".join(f"{i},{name}{i}\n" for i in range(3000)) + "x\n"
        )
    how = {"max_bad_share": 0.1, "beam": ["--runner=BundleBasedDirectRunner"], "block_bytes": 4000}
    once = run(tmp_path, {"all": "*.csv"}, **how)
    process, finish, attempts = executor._Convert.process, executor._finish, []
    cuts = iter([True, True])

    def told(*_, **__):
        if next(cuts, False):
            raise OSError("this worker is gone")

    def processed(*given):
        attempts.append(given)
        return process(*given)

    def finished(*given):
        finish(*given)
        for attempt in attempts:  # that the engine had given up, and that goes on
            process(*attempt)

    monkeypatch.setattr(executor, "tell", told)
    monkeypatch.setattr(executor._Convert, "process", processed)
    monkeypatch.setattr(executor, "_finish", finished)
    again = run(tmp_path, {"all": "*.csv"}, **how)
    assert len(attempts) > 1
    written = {name: data for name, data in content(again).items() if ".unfinished" not in name}
    assert written == content(once)


def test_splits_by_file_shards_and_compression(run, examples, tmp_path):
    for name, rows in (("train-1", 10), ("train-2", 20), ("eval", 5)):
        (tmp_path / f"{name}.csv").write_text("a\n" + "".join(f"{i}\n" for i in range(rows)))
    patterns = {"train": "train-*.csv", "eval": "eval.csv"}
    out = run(tmp_path, patterns, splits={}, min_shards=4, compression="none")
    assert totals(examples(out)) == {"Split-train": 30, "Split-eval": 5}
    for split in ("train", "eval"):
        names = sorted(path.name for path in (out / "examples" / f"Split-{split}").iterdir())
        assert names == [f"data_tfrecord-{i:05d}-of-00004" for i in range(4)]


def test_file_of_two_splits_is_refused(run, tmp_path):
    for name in ("a", "b"):
        (tmp_path / f"{name}.csv").write_text("a\n1\n")
    with pytest.raises(ComponentError) as caught:
        run(tmp_path, {"train": "*.csv", "eval": "b.csv"}, splits={})
    assert caught.value.message == f"{tmp_path}/b.csv matches the patterns of two splits, train and eval"
    assert caught.value.hint == "name patterns in data.split_by.files that have no file in common"


def test_rows_are_split_by_time(run, examples, tmp_path):
    days = [f"2024-01-{day:02d}" for day in range(1, 29)]
    rows = "".join(f"{day},{i}\n" for i, day in enumerate(days))
    (tmp_path / "a.csv").write_text(f"day,n\n{rows},99\n")
    by = {"time": "day", "starts": {"train": None, "eval": "2024-01-20"}}
    out = run(tmp_path, {"all": "a.csv"}, split_by=by, max_bad_share=0.1)
    counted = examples(out)
    assert totals(counted) == {"Split-train": 19, "Split-eval": 9}
    assert all(b"2024-01-2" in record for record in counted["Split-eval"])
    summary = json.loads((out / "quarantine/summary.json").read_text())
    assert summary["rejected"] == {"no value to split by": 1}


def test_schema_types_the_columns(run, examples, tmp_path):
    (tmp_path / "a.csv").write_text("zip,n\n1,2\n3,x\n")
    schema = tmp_path / "schema.pbtxt"
    schema.write_text('feature { name: "zip" type: BYTES } feature { name: "n" type: INT }')
    out = run(tmp_path, {"all": "a.csv"}, schema_file=str(schema), max_bad_share=0.5)
    [record] = [record for rows in examples(out).values() for record in rows]
    assert b"\n\x01n\x12\x05\x1a\x03\n\x01\x02" in record
    assert b"\n\x03zip\x12\x05\n\x03\n\x011" in record
    [line] = (out / "quarantine/rows-00000.jsonl").read_text().splitlines()
    assert (json.loads(line)["line"], json.loads(line)["column"]) == (3, "n")


def test_too_many_bad_rows_stop_the_run_with_counts_and_places(run, tmp_path):
    (tmp_path / "a.csv").write_text("a,b\n1,2\n3\n4,5,6\n")
    with pytest.raises(ComponentError) as caught:
        run(tmp_path, {"all": "a.csv"})
    limit = "more than data.max_bad_share (0.10%)"
    assert f"2 of 3 rows (66.67%) could not be read, {limit}" in caught.value.message
    assert "1 too few fields, 1 too many fields" in caught.value.message
    assert "a.csv line 3: too few fields (1 fields, not 2): 3" in caught.value.message


def test_quarantine_of_a_stopped_run_is_kept_in_its_folder(warm_runner, taxi, tmp_path):
    rows = (taxi / "data.csv").read_text().splitlines(keepends=True)[:101]
    (tmp_path / "a.csv").write_text("".join(rows) + "not,a,trip\n" * 7)
    output = tmp_path / "out"
    args = ["--set", f"data.source={tmp_path}/a.csv", "--to", "Ingest", "--output", str(output)]
    stopped = warm_runner("run", *args)
    assert stopped.returncode == 1
    [folder] = output.glob("runs/*/left/Ingest")
    assert f"all of them: {folder}/" in stopped.stderr
    kept = [json.loads(line) for line in (folder / "rows-00000.jsonl").read_text().splitlines()]
    assert [(row["line"], row["raw"]) for row in kept] == [(102 + i, "not,a,trip") for i in range(7)]
    assert json.loads((folder / "summary.json").read_text())["rejected"] == {"too few fields": 7}
    # Once it completes, the rows are in the artifact, and nothing stale lies beside the run.
    resumed = warm_runner("resume", "--output", str(output))
    assert resumed.returncode == 1
    (tmp_path / "a.csv").write_text("".join(rows))
    resumed = warm_runner("resume", "--output", str(output))
    assert resumed.returncode == 0, resumed.stderr
    assert not folder.exists()


def test_file_that_cannot_be_read_is_reported_without_a_traceback_of_beam(run, tmp_path):
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(b"a\n" + b"1\n" * 10_000)[:-9])
    with pytest.raises(ComponentError, match=r"a\.csv\.gz is damaged or cut short after \d+ bytes") as caught:
        run(tmp_path, {"all": "*.gz"})
    assert "Traceback" not in str(caught.value)


def test_latest_span_and_version_are_taken(tfx, tmp_path):
    from tfx.orchestration import metadata
    from tfx.orchestration.local.local_dag_runner import LocalDagRunner
    from tfx.orchestration.pipeline import Pipeline

    from slipway.components.ingest.component import Ingest

    for span, version, value in ((1, 1, 11), (2, 1, 21), (2, 3, 23)):
        folder = tmp_path / f"data/span-{span}/v{version}"
        folder.mkdir(parents=True)
        (folder / "x.csv").write_text("a\n" + f"{value}\n" * 10)
    pattern = tfx.example_gen_pb2.Input.Split(name="all", pattern="span-{SPAN}/v{VERSION}/*.csv")
    component = Ingest(
        input_base=str(tmp_path / "data"), input_config=tfx.example_gen_pb2.Input(splits=[pattern])
    )
    connection = metadata.sqlite_metadata_connection_config(str(tmp_path / "metadata.db"))
    LocalDagRunner().run(
        Pipeline(
            pipeline_name="spans",
            pipeline_root=str(tmp_path / "root"),
            components=[component],
            metadata_connection_config=connection,
            beam_pipeline_args=["--runner=FnApiRunner", NO_PACKAGE],
        )
    )
    with metadata.Metadata(connection) as handle:
        [found] = handle.store.get_artifacts_by_type("Examples")
        [quarantine] = handle.store.get_artifacts_by_type("schemas.Quarantine")
    assert (found.custom_properties["span"].int_value, found.custom_properties["version"].int_value) == (2, 3)
    counts = [quarantine.custom_properties[name].int_value for name in ("rows_in", "rows_rejected")]
    assert counts == [10, 0]
    [file] = json.loads((Path(quarantine.uri) / "summary.json").read_text())["files"]
    assert file["name"].endswith("span-2/v3/x.csv")


def test_workload_reads_from_cloud_storage(cloud, warm_runner, some_trips, tmp_path):
    data = (some_trips / "data.csv").read_bytes()
    head, *rows = data.splitlines(keepends=True)
    for part in range(3):
        cloud.put("bucket", f"trips/{part}.csv", head + b"".join(rows[part::3]))
    args = ["--output", str(tmp_path), "--to", "Ingest", "--set", "data.source=gs://bucket/trips/*.csv"]
    done = warm_runner("run", *args, STORAGE_EMULATOR_HOST=cloud.address)
    assert done.returncode == 0, done.stderr
    [summary] = tmp_path.rglob("summary.json")
    assert json.loads(summary.read_text())["rows_in"] == len(rows)
    again = warm_runner("plan", *args[:2], *args[4:], STORAGE_EMULATOR_HOST=cloud.address)
    assert "Ingest            reuse" in again.stdout, again.stdout
    cloud.put("bucket", "trips/1.csv", head + b"".join(rows[:5]))
    changed = warm_runner("plan", *args[:2], *args[4:], STORAGE_EMULATOR_HOST=cloud.address)
    assert "data changed: 1 of 3 files (gs://bucket/trips/1.csv)" in changed.stdout, changed.stdout


@pytest.mark.parametrize("object_server", ["s3"], indirect=True)
def test_spans_on_s3_are_resolved_as_on_disk_and_fingerprinted_by_etag(tfx, object_server):
    import obstore

    from slipway.components.ingest.driver import Driver
    from slipway.components.s3_and_azure_store import open_store

    bucket = object_server.make_bucket()

    def put(name, data=b"a\n1\n"):
        obstore.put(open_store(bucket), name, data)

    def fingerprint(pattern, span, version):
        splits = [tfx.example_gen_pb2.Input.Split(name="all", pattern=pattern)]
        processor = Driver(None).get_input_processor(splits, None, f"{bucket}/d")
        assert processor.resolve_span_and_version() == (span, version)
        return processor.get_input_fingerprint(span, version)

    for folder in ("2027-01-30/v1", "2027-01-31/v1", "2027-01-31/v2"):
        put(f"d/{folder}/x.csv")
    before = fingerprint("{YYYY}-{MM}-{DD}/v{VERSION}/*.csv", 20849, 2)
    assert fingerprint("{YYYY}-{MM}-{DD}/v{VERSION}/*.csv", 20849, 2) == before
    put("d/2027-01-31/v1/x.csv", b"a\n2\n")
    assert fingerprint("{YYYY}-{MM}-{DD}/v{VERSION}/*.csv", 20849, 2) == before
    put("d/2027-01-31/v2/x.csv", b"a\n2\n")
    assert fingerprint("{YYYY}-{MM}-{DD}/v{VERSION}/*.csv", 20849, 2) != before
    fingerprint("2027-01-30/v1/*.csv", 0, None)
    with pytest.raises(ValueError, match="Cannot find matching for split"):
        fingerprint("nothing-{SPAN}/*.csv", 0, None)


def test_component_compiles_for_kubeflow(tfx, tmp_path):
    pytest.importorskip("kfp")
    from tfx.orchestration.kubeflow.v2 import kubeflow_v2_dag_runner as runner
    from tfx.orchestration.pipeline import Pipeline

    from slipway.components.ingest.component import Ingest

    component = Ingest(input_base="gs://bucket/data").with_id("Ingest")
    pipeline = Pipeline(pipeline_name="p", pipeline_root="gs://bucket/root", components=[component])
    config = runner.KubeflowV2DagRunnerConfig(default_image="image")
    compiled = runner.KubeflowV2DagRunner(config=config, output_dir=str(tmp_path), output_filename="p.json")
    spec = compiled.run(pipeline, write_out=True)["pipelineSpec"]
    assert set(spec["components"]["Ingest"]["outputDefinitions"]["artifacts"]) == {"examples", "quarantine"}
    container = spec["deploymentSpec"]["executors"]["Ingest_executor"]["container"]
    assert container["lifecycle"]["preCacheCheck"]["args"]


def test_examples_in_zstd_are_read_by_the_reader_of_tfxs_components(run, tmp_path):
    import apache_beam as beam
    from apache_beam.testing.util import assert_that, equal_to
    from tfx_bsl.tfxio.tf_example_record import TFExampleRecord

    (tmp_path / "a.csv").write_text("a\n" + "".join(f"{i}\n" for i in range(100)))
    out = run(tmp_path, {"all": "a.csv"}, splits={"all": 1}, compression="zstd")
    [file] = (out / "examples/Split-all").iterdir()
    assert file.suffix == ".zst"
    source = TFExampleRecord(str(file.parent / "*"), telemetry_descriptors=["test"])
    with beam.Pipeline(runner="FnApiRunner") as pipeline:
        values = pipeline | source.BeamSource() | beam.FlatMap(lambda batch: batch.column("a").to_pylist())
        assert_that(values, equal_to([[i] for i in range(100)]))


def test_files_without_a_row_are_named(run, tmp_path):
    for name in "ab":
        (tmp_path / f"{name}.csv.gz").write_bytes(gzip.compress(b"n,s\n"))
    with pytest.raises(ComponentError, match=r"/a\.csv\.gz and 1 more: it has no rows") as caught:
        run(tmp_path, {"all": "*.gz"})
    assert caught.value.hint == "a table needs rows below its header"


def test_features_of_all_files_of_examples_are_counted_together(run, tmp_path):
    from slipway.components.ingest.example_message import MESSAGES

    for name in "ab":
        example = MESSAGES["Example"]()
        example.features.feature[name].int64_list.value.append(1)
        (tmp_path / f"{name}.tfrecord").write_bytes(frame([example.SerializeToString()]))
    with pytest.raises(ComponentError, match=r"the source has 2 columns, more than data\.limits\.columns"):
        run(tmp_path, {"all": "*.tfrecord"}, format="tfrecord", limits=SourceLimits(columns=1))


@pytest.mark.usefixtures("tfx")
def test_what_stores_are_not_for_is_refused_in_words():
    from tfx.dsl.io import fileio

    import slipway.components.ingest.driver  # noqa: F401  # registers what TFX then finds

    with pytest.raises(ComponentError, match=r"s3://b/x: s3:// and az:// are for data\.source and push\."):
        fileio.exists("s3://b/x")
    with pytest.raises(ComponentError, match=r"hf://datasets/o/n: hf:// is for data\.source only"):
        fileio.exists("hf://datasets/o/n")
