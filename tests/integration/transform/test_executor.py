"""Our Transform beside TFX's own, on the same examples.

What asks TFX's own is external: `make test` compares all analyzers with NumPy, and engines and processes with
one another.
"""

import functools
import json
import random
from collections import Counter
from itertools import islice, pairwise
from pathlib import Path
from types import SimpleNamespace

import pytest

pytestmark = pytest.mark.slow

SCHEMA = """
feature { name: "amount" type: FLOAT presence { min_fraction: 1.0 } shape { dim { size: 1 } } }
feature { name: "key" type: BYTES presence { min_fraction: 1.0 } shape { dim { size: 1 } } }
feature { name: "count" type: INT presence { min_fraction: 1.0 } shape { dim { size: 1 } } }
feature { name: "text" type: BYTES value_count { min: 0 max: 1 } }
feature { name: "words" type: BYTES }
feature { name: "values" type: FLOAT }
feature { name: "numbers" type: INT }
feature { name: "unused" type: BYTES }
"""
# Where one column is told how it becomes a tensor, all are.
_DENSE = "dense_tensor { column_name: '%s' shape { dim { size: 1 } } }"
_SPARSE = "varlen_sparse_tensor { column_name: '%s' }"
_RAGGED = "ragged_tensor { feature_path { step: '%s' } row_partition_dtype: INT64 }"
TENSORS = {
    _DENSE: ("amount", "key", "count"),
    _SPARSE: ("text", "words", "values", "unused"),
    _RAGGED: ("numbers",),
}
ROWS = {"train": (400, 3), "eval": (70, 1)}


def example(rng, tf):
    """A row; what may be missing is, in some."""
    value = tf.train.Feature

    def texts(*given):
        return value(bytes_list=tf.train.BytesList(value=[each.encode() for each in given]))

    features = {
        "amount": value(float_list=tf.train.FloatList(value=[rng.gauss(3, 2)])),
        "key": texts(rng.choice("xyz")),
        "count": value(int64_list=tf.train.Int64List(value=[int(rng.expovariate(0.2))])),
        "words": texts(*rng.choices(["wide", "höch", "", "low", "w w", "rare"], k=rng.randint(0, 4))),
        "numbers": value(int64_list=tf.train.Int64List(value=rng.choices(range(-5, 5), k=rng.randint(0, 3)))),
    }
    if rng.random() < 0.7:
        features["text"] = texts(rng.choice("abcd"))
    if rng.random() < 0.5:
        features["values"] = value(float_list=tf.train.FloatList(value=[rng.random() for _ in range(3)]))
    return tf.train.Example(features=tf.train.Features(feature=features))


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Examples in several files, and their schema."""
    import tensorflow as tf

    folder = tmp_path_factory.mktemp("made")
    rng = random.Random(1)  # noqa: S311
    for split, (rows, files) in ROWS.items():
        (folder / f"examples/Split-{split}").mkdir(parents=True)
        for number in range(files):
            path = folder / f"examples/Split-{split}/data_tfrecord-{number:05d}-of-{files:05d}.gz"
            with tf.io.TFRecordWriter(str(path), tf.io.TFRecordOptions(compression_type="GZIP")) as writer:
                for _ in range(rows // files):
                    writer.write(example(rng, tf).SerializeToString())
    (folder / "schema").mkdir()
    tensors = "".join(
        f"tensor_representation {{ key: '{name}' value {{ {kind % name} }} }}"
        for kind, names in TENSORS.items()
        for name in names
    )
    group = f"tensor_representation_group {{ key: '' value {{ {tensors} }} }}"
    (folder / "schema/schema.pbtxt").write_text(SCHEMA + group)
    return folder


def artifact(kind, folder, **properties):
    from tfx.types import standard_artifacts

    found = getattr(standard_artifacts, kind)()
    found.uri = str(folder)
    for key, value in properties.items():
        setattr(found, key, value)
    return found


def inputs(made):
    examples = artifact("Examples", made / "examples", split_names='["train", "eval"]')
    examples.set_string_custom_property("file_format", "tfrecords_gzip")
    examples.set_string_custom_property("payload_format", "FORMAT_TF_EXAMPLE")
    return {"examples": [examples], "schema": [artifact("Schema", made / "schema")]}


def transform(executor, made, folder, *, runner="FnApiRunner", **parameters):
    from tfx.dsl.components.base.base_beam_executor import BaseBeamExecutor

    arguments = [f"--runner={runner}", "--sdk_container_image=none"]
    context = BaseBeamExecutor.Context(beam_pipeline_args=arguments, tmp_dir=str(folder), unique_id="1")
    outputs = {
        "transform_graph": [artifact("TransformGraph", folder / "graph")],
        "transformed_examples": [artifact("Examples", folder / "transformed")],
    }
    usual = {"disable_statistics": 1, "force_tf_compat_v1": 0, "custom_config": "null"}
    executor(context).Do(inputs(made), outputs, {**usual, **parameters})
    assert sorted(json.loads(outputs["transformed_examples"][0].split_names)) == ["eval", "train"]
    return folder


@pytest.fixture(
    scope="module", params=[pytest.param("preprocessing_fn", marks=pytest.mark.external), "only_numbers"]
)
def function(request):
    """The dotted path of a preprocessing_fn."""
    return f"many_analyzers.{request.param}"


@pytest.fixture(scope="module")
def by_ours(made, project, tmp_path_factory):
    """The output of our executor for a function, in one process; each file is its own shard."""
    from slipway.components import beam_engine_workers, shards
    from slipway.components.transform import executor

    @functools.cache
    def result(function):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(shards, "LEAST_BYTES", 1)
            patch.setattr(beam_engine_workers, "process_count", lambda *_, **__: 1)
            patch.syspath_prepend(project / "tests/integration/transform")
            return transform(
                executor.Executor, made, tmp_path_factory.mktemp("ours"), preprocessing_fn=function
            )

    return result


@pytest.fixture(scope="module")
def both(function, by_ours, made, project, tmp_path_factory):
    """The outputs of TFX's executor and of ours."""
    from tfx.components.transform.executor import Executor as Stock

    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(project / "tests/integration/transform")
        stock = transform(Stock, made, tmp_path_factory.mktemp("stock"), preprocessing_fn=function)
    return [stock, by_ours(function)]


def test_all_analyzers_find_what_numpy_finds(by_ours, made):
    import numpy as np
    from tensorflow.train import Example

    folder = by_ours("many_analyzers.preprocessing_fn")
    given = sorted(made.glob("examples/Split-train/*"))
    before = [Example.FromString(each) for path in given for each in read(path)]
    after = list(map(Example.FromString, records(folder, "train")))

    def column(rows, name):
        return np.array([values(row, name) for row in rows], float)[:, 0]

    amount, count = column(before, "amount"), column(before, "count")
    keys = np.array([values(row, "key")[0] for row in before])
    near = functools.partial(pytest.approx, abs=1e-4)
    assert column(after, "z") == near((amount - amount.mean()) / amount.std())
    assert column(after, "min_max") == near((amount - amount.min()) / np.ptp(amount))
    for key in (b"x", b"y", b"z"):
        of_key = amount[keys == key]
        assert column(after, "z_per_key")[keys == key] == near((of_key - of_key.mean()) / of_key.std())
        parts = np.bincount(column(after, "bucket_per_key")[keys == key].astype(int))
        assert parts.tolist() == near([len(of_key) / 3] * 3, abs=4)
    assert np.bincount(column(after, "bucket").astype(int)).tolist() == near([len(amount) / 5] * 5, abs=4)
    assert set(column(after, "size")) == {len(amount)}
    every = [value for row in before for value in values(row, "values")]
    assert column(after, "mean") == near(np.full(len(amount), np.mean(every)))
    # Words and numbers by how often they stand there, the others behind them; no text is -1.
    often = Counter(word for row in before for word in values(row, "words") if word).most_common()
    codes = Counter(code for row in after for code in values(row, "codes"))
    assert [codes[code] for code in range(4)] == [times for _, times in often[:4]]
    for row, others in zip(after, before, strict=True):
        given = values(others, "words")
        assert Counter(values(row, "pairs")) == Counter(given + [b" ".join(two) for two in pairwise(given)])
    often = Counter(pair for row in after for pair in values(row, "pairs") if pair).most_common()
    codes = Counter(code for row in after for code in values(row, "pair_codes"))
    assert [codes[code] for code in range(4)] == [times for _, times in often[:4]]
    for code, (number, _) in enumerate(Counter(count.tolist()).most_common(3)):
        assert ((column(after, "top") == code) == (count == number)).all()
    assert (column(after, "code") == -1).tolist() == [not values(row, "text") for row in before]
    tabled = {(): -1, (b"a",): 1, (b"b",): 2, (b"c",): -1, (b"d",): -1}
    assert column(after, "known").tolist() == [tabled[tuple(values(row, "text"))] for row in before]
    again = column(after, "again")
    assert (again.min(), again.max()) == near((0, 1))


@pytest.mark.parametrize("processes", [1, 2])
def test_function_without_tables_is_traced_once_more_only_for_what_needs_a_result(
    made, project, tmp_path, monkeypatch, forked, processes
):
    from slipway.components import beam_engine_workers, shards
    from slipway.components.transform import executor

    monkeypatch.syspath_prepend(project / "tests/integration/transform")
    import many_analyzers

    monkeypatch.setattr(shards, "LEAST_BYTES", 1)
    monkeypatch.setattr(beam_engine_workers, "process_count", lambda *_, **__: processes)
    many_analyzers.TRACED.clear()
    transform(executor.Executor, made, tmp_path, preprocessing_fn="many_analyzers.only_numbers")
    assert len(many_analyzers.TRACED) == 2


def files(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def records(folder, split):
    import tensorflow as tf

    paths = sorted(map(str, (folder / "transformed" / f"Split-{split}").iterdir()))
    return list(tf.data.TFRecordDataset(paths, "GZIP").as_numpy_iterator())


@pytest.mark.external
def test_graph_has_the_same_files_schema_and_vocabularies(both):
    stock, ours = (folder / "graph" for folder in both)
    assert files(ours) == files(stock)
    for name in files(ours):
        if name.endswith(".pbtxt") or name.endswith("asset_map") or "/assets/" in name:
            assert read(ours / name) == read(stock / name), name


def read(path):
    import tensorflow as tf

    if path.name.endswith(".gz"):
        return list(tf.data.TFRecordDataset(str(path), "GZIP").as_numpy_iterator())
    return path.read_bytes()


@pytest.mark.external
def test_rows_are_the_same_in_the_same_order_up_to_the_rounding_of_floats(both):
    from tensorflow.train import Example

    for split, (rows, files) in ROWS.items():
        stock, ours = (list(map(Example.FromString, records(folder, split))) for folder in both)
        assert len(ours) == len(stock) == rows // files * files
        for mine, theirs in zip(ours, stock, strict=True):
            assert_near(mine, theirs, but=BY_BATCH)


@pytest.mark.external
def test_rows_are_the_same_to_the_last_bits_where_the_graph_is(both, made, tmp_path):
    from google.protobuf import text_format
    from tensorflow.train import Example
    from tensorflow_metadata.proto.v0 import schema_pb2

    from slipway.components.transform.examples import Columns, write
    from slipway.components.transform.materialize import Finished

    stock, _ = both
    schema = text_format.Parse((made / "schema/schema.pbtxt").read_text(), schema_pb2.Schema())
    finished = Finished(str(stock / "graph"), Columns(schema))
    for split in ROWS:
        files = sorted(map(str, (made / f"examples/Split-{split}").iterdir()))
        (tmp_path / f"transformed/Split-{split}").mkdir(parents=True)
        for place, file in enumerate(files):
            write(f"{tmp_path}/transformed/Split-{split}/{place}.gz", finished.transformed(file))
        mine, theirs = (list(map(Example.FromString, records(each, split))) for each in (tmp_path, stock))
        for one, other in zip(mine, theirs, strict=True):
            # Not the very last: a logarithm of eight numbers at once is rounded otherwise than one alone.
            assert_near(one, other, relative=1e-6, absolute=1e-6)


def test_two_processes_give_the_same_values_to_the_last_bit(
    by_ours, function, made, project, tmp_path, monkeypatch, forked, beside
):
    from slipway.components import beam_engine_workers, shards
    from slipway.components.transform import executor

    monkeypatch.setattr(shards, "LEAST_BYTES", 1)
    monkeypatch.setattr(beam_engine_workers, "process_count", lambda *_, **__: 2)
    monkeypatch.syspath_prepend(project / "tests/integration/transform")
    by_two = transform(executor.Executor, made, tmp_path, preprocessing_fn=function)
    assert len(beside) == 1
    assert rows_of(by_two) == rows_of(by_ours(function))


def rows_of(folder):
    """All transformed rows; TFX's encoder writes the features of a row in any order."""
    from tensorflow.train import Example

    for split, (_, count) in ROWS.items():
        assert len(list((folder / f"transformed/Split-{split}").iterdir())) == count
    return [
        Example.FromString(each).SerializeToString(deterministic=True)
        for split in ROWS
        for each in records(folder, split)
    ]


def test_an_engine_of_beam_gives_the_same_values_to_the_last_bit(
    by_ours, function, made, project, tmp_path, monkeypatch
):
    from slipway.components import shards
    from slipway.components.transform import executor

    monkeypatch.setattr(shards, "LEAST_BYTES", 1)
    monkeypatch.syspath_prepend(project / "tests/integration/transform")
    monkeypatch.setattr(executor.tfx_executor.Executor, "Do", None)  # nothing is left to TFX's
    works, materialize = [], executor._materialize
    monkeypatch.setattr(
        executor, "_materialize", lambda *given: works.append(given[0]) or materialize(*given)
    )
    there = transform(
        executor.Executor, made, tmp_path, runner="BundleBasedDirectRunner", preprocessing_fn=function
    )
    assert [work.unfinished for work in works] == [f"{there}/graph/.temp_engine"], "see the next test"
    assert rows_of(there) == rows_of(by_ours(function))
    # Nothing is left of what the engine handed over.
    assert {path.name for path in (there / "graph").iterdir()} == {
        path.name for path in (by_ours(function) / "graph").iterdir()
    }


def test_task_that_an_engine_does_twice_leaves_the_file_of_the_one_that_ended(tmp_path, monkeypatch):
    from slipway.components.example_records import records
    from slipway.components.shards import Shard
    from slipway.components.transform.materialize import Materialize

    def transformed(file, *, parts):
        yield [file.encode()]
        if file == "killed":
            raise MemoryError

    (tmp_path / "unfinished").mkdir()
    monkeypatch.setattr(Materialize, "_finished", SimpleNamespace(transformed=transformed))
    prefixes = {"train": str(tmp_path / "rows")}
    work = Materialize("", b"", [], prefixes, unfinished=str(tmp_path / "unfinished"))
    work(Shard("train", 0, 1, ("done",), 4), lambda *_: None)
    with pytest.raises(MemoryError):
        work(Shard("train", 0, 1, ("killed",), 4), lambda *_: None)
    assert list(records(str(tmp_path / "rows-00000-of-00001.gz"))) == [[b"done"]]
    assert list((tmp_path / "unfinished").iterdir()) == []


def test_a_graph_that_draws_numbers_is_left_to_tfx_on_an_engine_of_beam(made, tmp_path, monkeypatch):
    from slipway.components.transform import executor
    from slipway.components.transform.graph import Preprocessing

    asked = []
    monkeypatch.setattr(executor.tfx_executor.Executor, "Do", lambda *_: asked.append("TFX"))
    monkeypatch.setattr(Preprocessing, "can_be_shared", False)
    monkeypatch.setattr(executor.Executor, "_function", lambda *_: dict)
    transform(executor.Executor, made, tmp_path, runner="BundleBasedDirectRunner")
    assert asked == ["TFX"]


def test_two_vocabularies_of_one_name_are_refused(made, project, tmp_path, monkeypatch):
    """TFX's own executor looks both columns up in whichever was written last."""
    from slipway.components.errors import ComponentError
    from slipway.components.transform.executor import Executor

    monkeypatch.syspath_prepend(project / "tests/integration/transform")
    with pytest.raises(ComponentError, match="names two different vocabularies same"):
        transform(Executor, made, tmp_path, preprocessing_fn="many_analyzers.one_name_for_two")
    assert files(tmp_path) == []


def test_split_without_a_file_is_refused(tmp_path):
    from slipway.components.errors import ComponentError
    from slipway.components.transform.executor import _files

    examples = artifact("Examples", tmp_path, split_names='["train", "eval"]')
    (tmp_path / "Split-train").mkdir()
    (tmp_path / "Split-train" / "rows-00000-of-00001.gz").touch()
    assert [len(each) for each in _files([examples], "train")] == [1, 1]
    with pytest.raises(ComponentError, match="the split 'eval' has no file of examples"):
        _files([examples], "eval")


def test_batches_are_as_small_as_wide_outputs_and_large_records_want_them(made):
    import tensorflow as tf

    from slipway.components.transform.examples import read
    from slipway.components.transform.materialize import _most_rows

    assert _most_rows([tf.zeros([1, 1])]) == 16_384
    assert _most_rows([tf.zeros([1, 1024, 1024]), tf.zeros([1, 1024, 1024])]) == 8
    paths = sorted(map(str, (made / "examples/Split-train").iterdir()))
    assert [len(some) for some in read(paths, 200)] == [200, 199]


def values(example, name):
    feature = example.features.feature.get(name)
    kind = feature and feature.WhichOneof("kind")
    return list(getattr(feature, kind).value) if kind else []


# Of TFT's analyzers the one that averages over batches, whatever their size, which Beam sets by the clock.
BY_BATCH = "robust"


def assert_near(ours, stock, *, relative=0.0, absolute=1e-5, but=""):
    assert sorted(ours.features.feature) == sorted(stock.features.feature)
    for name in set(ours.features.feature) - {but}:
        mine, theirs = values(ours, name), values(stock, name)
        if mine and isinstance(mine[0], float):
            theirs = pytest.approx(theirs, rel=relative, abs=absolute)
        assert mine == theirs, name


@pytest.mark.parametrize(
    ("noise", "is_shared"),
    [
        (lambda tf: 0.0, True),
        (lambda tf: tf.random.stateless_uniform([], seed=(1, 2)), True),
        (lambda tf: tf.random.uniform([], seed=3), False),
        (lambda tf: tf.random.get_global_generator().uniform([]), False),
        (lambda tf: tf.py_function(lambda: 0.0, [], tf.float32), False),
    ],
    ids=["none", "of the row alone", "drawn", "drawn by a generator", "of Python"],
)
def test_only_what_gives_every_process_the_same_is_shared_out(tmp_path, noise, is_shared):
    import tensorflow as tf

    from slipway.components.transform.graph import trace

    def preprocessing_fn(inputs):
        return {"x": inputs["x"] + noise(tf)}

    traced = trace(preprocessing_fn, {"x": tf.TensorSpec([None, 1], tf.float32)}, temporary=str(tmp_path))
    assert traced.can_be_shared is is_shared


def ingested(workload, project, source, folder):
    """Examples of a source and the schema of a workload, as its Ingest and SchemaGen write them."""
    from slipway.components.ingest.executor import _schema_types
    from slipway.components.ingest.local_ingest import run_tasks
    from slipway.components.ingest.planning import final_names, plan_tasks
    from slipway.components.ingest.storage import list_files
    from slipway.pipeline.config import load_workload
    from slipway.pipeline.wiring.ingest_options import ingest_options

    config = load_workload(project / f"workloads/{workload}/workload.yaml", root=project)
    options = ingest_options(config.data)
    splits = {split: str(folder / f"examples/Split-{split}") for split in ROWS}
    for each in (*splits.values(), folder / "schema"):
        Path(each).mkdir(parents=True)
    schema = folder / "schema/schema.pbtxt"
    schema.write_bytes((project / f"schemas/{workload}.pbtxt").read_bytes())
    tasks = plan_tasks({None: list_files(str(source))}, splits, quarantine=str(folder), min_shards=1)
    known = options.known(_schema_types(str(schema)))
    report = run_tasks(tasks, options, known, workers=1, clear=lambda: None)
    for written, name in final_names(report.shards, splits):
        Path(written).rename(name)
    return folder


@pytest.fixture(params=["taxi", "digits"])
def workload(request, project, taxi_csv, tmp_path):
    """A workload that comes with the project, and few of its rows."""
    import numpy as np

    if request.param == "taxi":
        source = tmp_path / "trips.csv"
        with taxi_csv.open() as trips:
            source.write_text("".join(islice(trips, 61)))
    else:
        source = tmp_path / "digits.npz"
        with np.load(project / "workloads/digits/digits.npz") as digits:
            np.savez(source, **{name: array[:20] for name, array in digits.items()})
    return request.param, ingested(request.param, project, source, tmp_path / "made")


@pytest.mark.external
def test_workloads_of_the_project_are_transformed_as_by_tfx(workload, project, tmp_path, monkeypatch):
    from tensorflow.train import Example
    from tfx.components.transform.executor import Executor as Stock

    from slipway.components.transform.executor import Executor

    name, made = workload
    monkeypatch.syspath_prepend(project / "tests/integration/transform")
    function = f"project_workloads.{name}"
    stock, ours = (
        transform(executor, made, tmp_path / place, preprocessing_fn=function)
        for place, executor in (("stock", Stock), ("ours", Executor))
    )
    for split in ROWS:
        theirs, mine = (list(map(Example.FromString, records(each, split))) for each in (stock, ours))
        assert len(mine) == len(theirs) > 10
        for one, other in zip(mine, theirs, strict=True):
            assert_near(one, other)
