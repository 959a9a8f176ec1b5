"""Our StatisticsGen beside TFX's own, on the same examples.

All files, and all options, are external; `make test` compares columns of each kind with the keys that a
workload has, a weight and slices, and histograms to the last bit in tests/unit/components/statistics_gen/.
"""

import csv
import json
import math
import os
import random
from itertools import islice
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.slow,
    # TFDV takes the mean of infinite numbers too.
    pytest.mark.filterwarnings("ignore:invalid value encountered:RuntimeWarning"),
]

FILES = {"taxi": 1, "digits": 1, "mixed": 3, "empty": 1}
# TFDV computes the equally wide histograms of float columns in single precision, we in double.
EQUALLY_WIDE, SINGLE, DOUBLE = "histograms[0]", 1e-4, 1e-9


def value(*given):
    from tensorflow.train import BytesList, Feature, FloatList, Int64List

    if all(isinstance(each, int) for each in given):
        return Feature(int64_list=Int64List(value=given))
    if all(isinstance(each, float) for each in given):
        return Feature(float_list=FloatList(value=given))
    return Feature(
        bytes_list=BytesList(value=[each if type(each) is bytes else each.encode() for each in given])
    )


def taxi_rows(file):
    """800 trips; numbers are numbers, and an empty cell is missing."""

    def typed(cell):
        try:
            return float(cell) if "." in cell else int(cell)
        except ValueError:
            return cell

    with file.open() as data:
        for row in islice(csv.DictReader(data), 800):
            found = {name: typed(cell) for name, cell in row.items() if cell}
            yield {
                name: value(float(each)) if name in ("fare", "tips", "trip_miles") else value(each)
                for name, each in found.items()
            }


def digits_rows():
    """Images: pixels as a list, and as bytes that are not text."""
    rng = random.Random(2)  # noqa: S311
    for _ in range(60):
        pixels = [rng.randint(0, 16) for _ in range(64)]
        yield {
            "image": value(*map(float, pixels)),
            "raw": value(bytes(map(int, [255, *pixels]))),
            "label": value(pixels[0] % 10),
        }


def mixed_rows():
    """Missing values, texts, lists, numbers that are none, and a column that only some files have."""
    rng = random.Random(3)  # noqa: S311
    for number in range(1_500):
        row = {
            "id": value(f"id-{number}"),
            "weight": value(rng.choice([0.5, 1.0, 2.5])),
            "code": value(rng.randint(1, 7)),
            "amount": value(rng.choice([math.nan, math.inf, -math.inf, 0.0] + [rng.gauss(0, 9)] * 20)),
            "words": value(*rng.choices(["wide", "höch", "", "low", "w w"], k=rng.randint(1, 4))),
            "numbers": value(*rng.choices(range(-5, 5), k=rng.randint(1, 3))),
            "constant": value(7.0),
            "nothing": value(),
        }
        if rng.random() < 0.7:
            row["text"] = value(rng.choice(["a", "b", b"\xff\xfe", "long " * 300]))
        if number >= 1_000:
            row["late"] = value(rng.randint(0, 10**15))
        yield row


@pytest.fixture(scope="module")
def made(tmp_path_factory, taxi_csv):
    """The examples, a folder for each split."""
    import tensorflow as tf

    folder = tmp_path_factory.mktemp("made")
    rows = {"taxi": taxi_rows(taxi_csv), "digits": digits_rows(), "mixed": mixed_rows(), "empty": ()}
    for split, each in rows.items():
        each = list(each)
        (folder / f"Split-{split}").mkdir()
        size = math.ceil(len(each) / FILES[split])
        for number in range(FILES[split]):
            path = folder / f"Split-{split}/data_tfrecord-{number:05d}-of-{FILES[split]:05d}.gz"
            with tf.io.TFRecordWriter(str(path), tf.io.TFRecordOptions(compression_type="GZIP")) as writer:
                for row in each[number * size : (number + 1) * size]:
                    example = tf.train.Example(features=tf.train.Features(feature=row))
                    writer.write(example.SerializeToString())
    return folder


def computed(executor, made, folder, *, splits=tuple(FILES), runner="FnApiRunner", schema="", **parameters):
    """The artifact that an executor writes."""
    from tfx.dsl.components.base.base_beam_executor import BaseBeamExecutor
    from tfx.types import standard_artifacts

    def artifact(kind, uri):
        found = kind()
        found.uri = str(uri)
        return found

    examples = artifact(standard_artifacts.Examples, made)
    examples.split_names = json.dumps(splits)
    examples.span = 4
    examples.set_string_custom_property("file_format", "tfrecords_gzip")
    examples.set_string_custom_property("payload_format", "FORMAT_TF_EXAMPLE")
    inputs = {"examples": [examples]}
    if schema:
        inputs["schema"] = [artifact(standard_artifacts.Schema, folder / "schema")]
        (folder / "schema").mkdir(parents=True)
        (folder / "schema/schema.pbtxt").write_text(schema)
    statistics = artifact(standard_artifacts.ExampleStatistics, folder / "statistics")
    arguments = [f"--runner={runner}", "--sdk_container_image=none"]
    context = BaseBeamExecutor.Context(beam_pipeline_args=arguments, tmp_dir=str(folder), unique_id="1")
    executor(context).Do(inputs, {"statistics": [statistics]}, {"exclude_splits": "[]", **parameters})
    return statistics


def both(made, folder, **given):
    from tfx.components.statistics_gen.executor import Executor as Stock

    from slipway.components.statistics_gen.executor import Executor

    return [
        computed(each, made, folder / name, **given) for name, each in (("stock", Stock), ("ours", Executor))
    ]


def datasets(statistics, split):
    import tensorflow_data_validation as tfdv

    found = tfdv.load_stats_binary(f"{statistics.uri}/Split-{split}/FeatureStats.pb").datasets
    return {dataset.name: dataset for dataset in found}


def plain(message):
    """A message as nested dictionaries; features by their path."""
    from google.protobuf import json_format

    found = json_format.MessageToDict(message, preserving_proto_field_name=True)
    found["features"] = {tuple(each["path"]["step"]): each for each in found.get("features", [])}
    return found


def assert_near(mine, theirs, place=""):
    if isinstance(theirs, dict):
        assert mine.keys() == theirs.keys(), place
        for key in theirs:
            assert_near(mine[key], theirs[key], f"{place}.{key}")
    elif isinstance(theirs, list):
        assert len(mine) == len(theirs), place
        for number, (one, other) in enumerate(zip(mine, theirs, strict=True)):
            assert_near(one, other, f"{place}[{number}]")
    elif isinstance(theirs, float):
        relative = SINGLE if EQUALLY_WIDE in place else DOUBLE
        assert mine == pytest.approx(theirs, rel=relative, abs=relative), place
    else:
        assert mine == theirs, place


def options(**given):
    import tfx  # noqa: F401  (before TFDV: it patches what TFDV imports)

    import tensorflow_data_validation as tfdv  # isort: skip

    return tfdv.StatsOptions(**given).to_json()


@pytest.mark.external
def test_every_number_of_every_column_is_tfx_s(made, tmp_path):
    stock, ours = both(made, tmp_path, stats_options_json=options(num_quantiles_histogram_buckets=100))
    assert str(ours.mlmd_artifact).replace("/ours/", "/stock/") == str(stock.mlmd_artifact)
    files = [
        sorted(path.relative_to(each.uri) for path in Path(each.uri).rglob("*")) for each in (ours, stock)
    ]
    assert files[0] == files[1]
    for split in FILES:
        (mine,), (theirs,) = (datasets(each, split).values() for each in (ours, stock))
        assert_near(plain(mine), plain(theirs), split)


@pytest.mark.external
def test_schema_weights_slices_and_wanted_columns_too(made, tmp_path):
    from tfx_bsl.public.proto.slicing_spec_pb2 import SlicingConfig, SlicingSpec

    schema = """
    feature { name: "code" type: INT int_domain { is_categorical: true } }
    feature { name: "text" type: BYTES image_domain {} }
    """
    slices = SlicingConfig(slicing_specs=[SlicingSpec(feature_keys=[name]) for name in ("code", "words")])
    stock, ours = both(
        made,
        tmp_path,
        splits=("mixed", "taxi"),
        schema=schema,
        exclude_splits='["taxi"]',
        stats_options_json=options(
            weight_feature="weight",
            slicing_config=slices,
            feature_allowlist=["code", "weight", "text", "words", "amount"],
            num_top_values=4,
            num_rank_histogram_buckets=6,
        ),
    )
    assert json.loads(ours.split_names) == ["mixed"]
    mine, theirs = datasets(ours, "mixed"), datasets(stock, "mixed")
    assert len(theirs) == 1 + 7 + 5
    assert_near(
        {key: plain(each) for key, each in mine.items()}, {key: plain(each) for key, each in theirs.items()}
    )


@pytest.mark.external  # asks TFX; slices and weights of ours are seen in tests/unit/components/statistics_gen
def test_keys_of_a_workload_give_what_tfx_gives_for_them(made, tmp_path):
    from slipway.pipeline.config.statistics import StatisticsConfig
    from slipway.pipeline.dag import _stats_options

    wanted = StatisticsConfig(weight="weight", slices=(("code",),))
    written = _stats_options(wanted).to_json()
    stock, ours = both(made, tmp_path, splits=("mixed",), stats_options_json=written)
    mine, theirs = datasets(ours, "mixed"), datasets(stock, "mixed")
    assert {"All Examples", "code_3"} <= theirs.keys()
    assert_near(
        {key: plain(each) for key, each in mine.items()}, {key: plain(each) for key, each in theirs.items()}
    )


def test_sample_is_a_share_of_the_rows(made, tmp_path):
    from slipway.components.statistics_gen.executor import Executor

    found = computed(
        Executor,
        made,
        tmp_path,
        splits=("taxi", "mixed"),
        stats_options_json=options(sample_rate=0.5),
        sample_rate_by_split='{"taxi": 0.1}',
    )
    rows = {split: datasets(found, split)[""].num_examples for split in ("taxi", "mixed")}
    assert 40 < rows["taxi"] < 130
    assert 650 < rows["mixed"] < 850
    assert json.loads(found.get_json_value_custom_property("sample_rate_by_split")) == {
        "taxi": 0.1,
        "mixed": 0.5,
    }


def test_what_it_does_not_know_is_left_to_tfx(made, tmp_path, monkeypatch):
    from tfx.components.statistics_gen.executor import Executor as Stock

    from slipway.components.statistics_gen.executor import Executor

    asked = []
    monkeypatch.setattr(Stock, "Do", lambda *_: asked.append("TFX"))
    computed(Executor, made, tmp_path, stats_options_json=options(label_feature="code"))
    assert asked == ["TFX"]


def test_options_of_tfdv_that_python_3_12_has_are_read():
    """TFDV 1.21, which is installed there, has no `experimental_slice_sqls`."""
    from types import SimpleNamespace

    from tfx.types.standard_artifacts import Examples

    from slipway.components.statistics_gen.executor import Executor

    read = Executor()._reason_for_stock_executor
    options = SimpleNamespace(slicing_config=None, schema=None)
    assert read(Examples(), options, ["train"], {}, has_two_schemas=False) is None
    options.experimental_slice_sqls = ["SELECT 1"]
    assert read(Examples(), options, ["train"], {}, has_two_schemas=False) == "slices by SQL are requested"


def test_an_engine_of_beam_gives_the_same_bytes(made, tmp_path, monkeypatch):
    from slipway.components import shards
    from slipway.components.statistics_gen.executor import Executor

    monkeypatch.setattr(shards, "LEAST_BYTES", 1)
    asked = options(num_quantiles_histogram_buckets=100)
    here, there = (
        Path(computed(Executor, made, tmp_path / runner, runner=runner, stats_options_json=asked).uri)
        for runner in ("FnApiRunner", "BundleBasedDirectRunner")
    )
    files = [sorted(path.relative_to(each) for path in each.rglob("*")) for each in (here, there)]
    assert files[0] == files[1]  # nothing is left of what the engine handed over
    for split in FILES:
        name = f"Split-{split}/FeatureStats.pb"
        assert (there / name).read_bytes() == (here / name).read_bytes()


def test_an_engine_of_beam_tells_of_a_damaged_file_in_words(made, tmp_path):
    from slipway.components.errors import ComponentError
    from slipway.components.statistics_gen.executor import Executor

    damaged = tmp_path / "examples/Split-mixed/data_tfrecord-00000-of-00001.gz"
    damaged.parent.mkdir(parents=True)
    damaged.write_bytes(next((made / "Split-mixed").iterdir()).read_bytes()[:-100])
    with pytest.raises(ComponentError, match="cannot be read"):
        computed(
            Executor,
            damaged.parent.parent,
            tmp_path / "here",
            splits=("mixed",),
            runner="BundleBasedDirectRunner",
        )


DERIVED = 'feature { name: "code" type: INT validation_derived_source { deriver_name: "count" } }'


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ('feature { name: "code" type: INT }', "one schema in the StatsOptions and another as an input"),
        (DERIVED, "features that are derived"),
        (f'feature {{ name: "all" struct_domain {{ {DERIVED} }} }}', "features that are derived"),
    ],
)
def test_schema_that_tfx_treats_in_its_own_way_is_left_to_it(made, tmp_path, monkeypatch, given, why):
    from absl import logging
    from tensorflow_metadata.proto.v0 import schema_pb2
    from tfx.components.statistics_gen.executor import Executor as Stock

    from slipway.components.statistics_gen.executor import Executor

    asked, said = [], []
    monkeypatch.setattr(Stock, "Do", lambda *_: asked.append("TFX"))
    monkeypatch.setattr(logging, "info", lambda words, *values: said.append(words % values))
    other = schema_pb2.Schema(feature=[schema_pb2.Feature(name="code")])
    written = options(schema=other) if "another" in why else options()
    computed(Executor, made, tmp_path, splits=("mixed",), schema=given, stats_options_json=written)
    assert asked == ["TFX"]
    assert any(why in words for words in said)


def test_link_to_a_dashboard_that_fails_does_not_fail_the_node(made, tmp_path, monkeypatch):
    from tfx.utils import stats_utils

    from slipway.components.statistics_gen.executor import Executor

    def fails(_):
        raise ValueError("no dashboard here")

    monkeypatch.setattr(stats_utils, "generate_stats_dashboard_link", fails)
    found = computed(Executor, made, tmp_path, splits=("empty",))
    assert found.get_string_custom_property("stats_dashboard_link") == ""
    assert len(datasets(found, "empty")) == 1


def test_two_processes_give_the_same_bytes_and_what_one_cannot_do_is_done_again(
    made, tmp_path, monkeypatch, forked, beside
):
    from slipway.components import beam_engine_workers, shards
    from slipway.components.progress import PROGRESS_VARIABLE
    from slipway.components.statistics_gen import executor

    monkeypatch.setattr(shards, "LEAST_BYTES", 1)
    shown = tmp_path / "progress.json"
    monkeypatch.setenv(PROGRESS_VARIABLE, str(shown))
    asked = options(num_quantiles_histogram_buckets=100)
    found = []
    for processes in (1, 2):
        monkeypatch.setattr(beam_engine_workers, "process_count", lambda *_, n=processes, **__: n)
        statistics = computed(executor.Executor, made, tmp_path / str(processes), stats_options_json=asked)
        found.append([Path(statistics.uri, f"Split-{split}/FeatureStats.pb").read_bytes() for split in FILES])
        assert len(beside) == processes - 1
    assert os.getpid() not in beside
    assert found[0] == found[1]

    def no_memory(batch_of, sample, *, parts):
        if parts == 1:
            raise MemoryError
        return batches(batch_of, sample, parts=parts)

    batches = executor.batches
    monkeypatch.setattr(beam_engine_workers, "process_count", lambda *_, **__: 1)
    monkeypatch.setattr(executor, "batches", no_memory)
    statistics = computed(executor.Executor, made, tmp_path / "again", stats_options_json=asked)
    again = [Path(statistics.uri, f"Split-{split}/FeatureStats.pb").read_bytes() for split in FILES]
    assert again == found[0]  # the files are smaller than a smaller batch
    assert "redone by one process, in smaller batches" in json.loads(shown.read_text())["text"]
