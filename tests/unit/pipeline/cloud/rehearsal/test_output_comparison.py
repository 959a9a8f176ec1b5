"""Artifacts of two runs, compared by content."""

import gzip
import itertools
import json
import math
import random
import struct

import pytest
from example_by_hand import example
from tensorflow_metadata.proto.v0 import anomalies_pb2, statistics_pb2

from slipway.components.ingest.tfrecord import frame
from slipway.pipeline.cloud.rehearsal.output_comparison import METRICS_TOLERANCE, compare_outputs


@pytest.fixture
def differences(tmp_path):
    """What is told about an artifact that `write(folder, *values)` makes locally and in a rehearsal."""

    def compare(kind, write, local, rehearsed):
        places = {}
        for run, values in (("local", local), ("rehearsed", rehearsed)):
            folder = tmp_path / run
            folder.mkdir(exist_ok=True)
            write(folder, values)
            places[run] = {"out": [{"uri": str(folder), "type": kind}]}
        [comparison] = compare_outputs("Node", places["local"], places["rehearsed"])
        assert (comparison.node, comparison.output) == ("Node", "out")
        return list(comparison.differences)

    return compare


def write_examples(folder, shards):
    (folder / "Split-train").mkdir(parents=True)
    for index, records in enumerate(shards):
        (folder / "Split-train" / f"data-{index}.gz").write_bytes(gzip.compress(frame(records)))


def write_statistics(folder, mean):
    (folder / "Split-train").mkdir()
    statistics = statistics_pb2.DatasetFeatureStatisticsList()
    feature = statistics.datasets.add().features.add()
    feature.path.step.append("fare")
    feature.num_stats.mean = mean
    feature.num_stats.common_stats.num_non_missing = 7
    (folder / "Split-train" / "FeatureStats.pb").write_bytes(statistics.SerializeToString())


def write_schema(folder, name):
    (folder / "schema.pbtxt").write_text(f'feature {{ name: "{name}" type: INT }}')


def write_transform_graph(folder, words):
    (folder / "transform_fn" / "assets").mkdir(parents=True)
    (folder / "transform_fn" / "assets" / "company").write_text(words)
    (folder / "transformed_metadata").mkdir()
    write_schema(folder / "transformed_metadata", "fare")


def write_blessing(folder, auc):
    (folder / "BLESSED").touch()
    (folder / "verdict.json").write_text(json.dumps({"metrics": {"auc": auc}}))


def write_anomalies(folder, name):
    (folder / "Split-eval").mkdir()
    anomalies = anomalies_pb2.Anomalies()
    if name:
        anomalies.anomaly_info[name].description = "new"
    (folder / "Split-eval" / "SchemaDiff.pb").write_bytes(anomalies.SerializeToString())


def test_examples_in_other_shards_and_another_order_are_equal(differences):
    assert differences("Examples", write_examples, [[b"a", b"b", b"b"]], [[b"b"], [b"b", b"a"]]) == []


def test_order_of_features_and_rounding_mean_nothing(differences):
    ours = [example(fare=0.25, tips=1), example(fare=-3.905384, tips=0)]
    theirs = [example(tips=0, fare=-3.905385), example(tips=1, fare=0.25)]
    assert differences("Examples", write_examples, [ours], [theirs]) == []


@pytest.mark.parametrize("changed", [{"fare": 0.2501}, {"tips": 2}, {"company": b"x"}, {"more": 1}])
def test_any_other_value_is_a_difference(differences, changed):
    row = {"fare": 0.25, "tips": 1, "company": b"y"}
    told = differences("Examples", write_examples, [[example(**row)]], [[example(**row | changed)]])
    assert told == ["train: 1 of 1 records differ"]


def test_rows_that_rounding_sorts_otherwise_are_equal(differences):
    """As of two trips with one fare, whose logarithms TensorFlow rounds by their places in a batch."""
    low, high = struct.unpack("<2f", struct.pack("<2i", 0x3F8CCCCD, 0x3F8CCCCE))
    ours = [example(cost=low, distance=7.0), example(cost=high, distance=2.0)]
    theirs = [example(cost=low, distance=2.0), example(cost=high, distance=7.0)]
    assert differences("Examples", write_examples, [ours], [theirs]) == []


def test_rows_that_rounding_sorts_otherwise_in_two_numbers_are_equal(differences):
    rng = random.Random(2)  # noqa: S311

    def rows():
        """A row for each pair of costs and distances, each rounded in one way or another."""
        kinds = itertools.product((1.1, 3.5), (2.0, 7.0), (0.25, math.nan, math.inf), (1.0, 5.0))
        found = [[number * (1 + rng.choice([-1, 0, 1]) * 2**-22) for number in kind] for kind in kinds]
        rng.shuffle(found)
        return [example(a=a, b=b, c=c, d=d) for a, b, c, d in found for _ in range(3)]

    ours, theirs = rows(), rows()
    assert sorted(ours) != sorted(theirs)
    assert differences("Examples", write_examples, [ours], [theirs]) == []


@pytest.mark.parametrize("other", [2.001, math.nan, math.inf])
def test_of_rows_that_rounding_sorts_otherwise_those_that_differ_are_counted(differences, other):
    low, high = struct.unpack("<2f", struct.pack("<2i", 0x3F8CCCCD, 0x3F8CCCCE))
    ours = [example(cost=low, distance=7.0), *[example(cost=high, distance=2.0)] * 2]
    theirs = [
        *[example(cost=low, distance=2.0)],
        example(cost=low, distance=other),
        example(cost=high, distance=7.0),
    ]
    assert differences("Examples", write_examples, [ours], [theirs]) == ["train: 1 of 3 records differ"]


def test_rows_without_a_number_are_equal_wherever_they_are(differences):
    ours = [example(cost=cost, distance=math.nan) for cost in (3.0, math.nan, 1.0, 2.0)]
    theirs = [example(cost=cost * (1 + 2**-22), distance=math.nan) for cost in (2.0, 1.0, 3.0, math.nan)]
    assert differences("Examples", write_examples, [ours], [theirs]) == []


def test_examples_that_differ_are_counted(differences):
    assert differences("Examples", write_examples, [[b"a", b"b"]], [[b"a", b"c"]]) == [
        "train: 1 of 2 records differ"
    ]


def test_examples_that_lack_are_counted(differences):
    assert differences("Examples", write_examples, [[b"a", b"b"]], [[b"a"]]) == [
        "train: 2 records locally, 1 rehearsed"
    ]


def test_split_on_one_side_only_is_named(differences):
    def write(folder, split):
        write_examples(folder, [[b"a"]])
        (folder / "Split-train").rename(folder / split)

    told = differences("Examples", write, "Split-train", "Split-test")
    assert told == ["test is rehearsed only", "train is local only"]


def test_statistics_agree_within_rounding_and_a_difference_is_named_with_its_place(differences):
    assert differences("ExampleStatistics", write_statistics, 0.1 + 0.2, 0.3) == []


def test_order_of_the_features_in_statistics_does_not_count(differences):
    def write(folder, names):
        (folder / "Split-train").mkdir(exist_ok=True)
        statistics = statistics_pb2.DatasetFeatureStatisticsList()
        dataset = statistics.datasets.add()
        for name in names:
            feature = dataset.features.add(name=name)
            feature.num_stats.mean = len(name)
        (folder / "Split-train" / "FeatureStats.pb").write_bytes(statistics.SerializeToString())

    assert differences("ExampleStatistics", write, ["a", "bb"], ["bb", "a"]) == []
    assert len(differences("ExampleStatistics", write, ["a", "bb"], ["bb", "c"])) == 2


@pytest.mark.parametrize(
    ("kind", "other", "is_told"),
    [("STANDARD", 144.009, False), ("STANDARD", 144.1, True), ("QUANTILES", 144.009, True)],
)
def test_counts_of_equally_wide_buckets_agree_within_single_precision(differences, kind, other, is_told):
    def write(folder, count):
        write_statistics(folder, 0.5)
        file = folder / "Split-train" / "FeatureStats.pb"
        statistics = statistics_pb2.DatasetFeatureStatisticsList.FromString(file.read_bytes())
        histogram = statistics.datasets[0].features[0].num_stats.histograms.add()
        histogram.type = statistics_pb2.Histogram.HistogramType.Value(kind)
        histogram.buckets.add().sample_count = count
        histogram.buckets.add()
        file.write_bytes(statistics.SerializeToString())

    told = differences("ExampleStatistics", write, 144.006, other)
    assert bool(told) == is_told
    assert all("histograms[0].buckets[0].sampleCount: 144.006 locally" in each for each in told)


def test_difference_in_statistics_is_named_with_its_place(differences):
    [told] = differences("ExampleStatistics", write_statistics, 0.5, 0.6)
    assert told == "train.datasets[0].features.fare.numStats.mean: 0.5 locally, 0.6 rehearsed"


@pytest.mark.parametrize(
    ("kind", "write", "local", "rehearsed", "told"),
    [
        ("Schema", write_schema, "fare", "tips", 'schema.feature[0].name: "fare" locally, "tips" rehearsed'),
        ("TransformGraph", write_transform_graph, "a\nb", "a\nc", "vocabularies.company: "),
        ("ExampleAnomalies", write_anomalies, "", "fare", "eval.anomalyInfo: null locally, "),
        ("ModelBlessing", write_blessing, 0.9, 0.95, "metrics.auc: 0.9 locally, 0.95 rehearsed"),
    ],
)
def test_each_type_s_content_is_looked_at(differences, kind, write, local, rehearsed, told):
    [found] = differences(kind, write, local, rehearsed)
    assert found.startswith(told)


@pytest.mark.parametrize(
    ("kind", "write", "value"),
    [
        ("Schema", write_schema, "fare"),
        ("TransformGraph", write_transform_graph, "a\nb"),
        ("ExampleAnomalies", write_anomalies, "fare"),
    ],
)
def test_equal_content_has_no_differences(differences, kind, write, value):
    assert differences(kind, write, value, value) == []


def test_metrics_agree_within_their_tolerance(differences):
    assert differences("ModelBlessing", write_blessing, 0.9, 0.9 + METRICS_TOLERANCE * 0.9) == []


def test_model_with_other_files_is_reported(differences):
    def write(folder, name):
        (folder / name).touch()

    assert differences("Model", write, "a", "b") == [
        'files.a: "" locally, null rehearsed',
        'files.b: null locally, "" rehearsed',
    ]


def test_artifact_that_one_of_the_runs_has_not_made_is_a_difference(tmp_path):
    (tmp_path / "value").write_text("1")
    made = {"uri": str(tmp_path / "value"), "type": "Integer"}
    [found] = compare_outputs("Node", {"out": [made, made]}, {"out": [made]})
    assert found.differences == ("2 artifacts locally, 1 rehearsed",)
    [found] = compare_outputs("Node", {"out": [made]}, {"out": []})
    assert found.differences == ("1 artifacts locally, 0 rehearsed",)


def test_type_without_a_rule_is_left_out():
    place = {"out": [{"uri": "/nowhere", "type": "TransformCache"}]}
    assert list(compare_outputs("Transform", place, place)) == []


def test_artifact_that_is_not_kept_as_tfx_keeps_it_is_not_compared(tmp_path):
    (tmp_path / "Split-eval").mkdir()
    for kind in ("Schema", "ExampleStatistics", "ExampleAnomalies", "TransformGraph"):
        place = {"made": [{"uri": str(tmp_path), "type": kind}]}
        [comparison] = compare_outputs("Node", place, place)
        assert comparison.unread.startswith("FileNotFoundError"), kind
    (tmp_path / "schema.pbtxt").write_text("no schema {")
    place = {"made": [{"uri": str(tmp_path), "type": "Schema"}]}
    [comparison] = compare_outputs("Node", place, place)
    assert "ParseError" in comparison.unread


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("notes", b"x"),
        ("table.csv", b"a,b\n1,2\n3,4\n5,6\n"),
        ("cut", struct.pack("<QI", 9, 0) + b"short"),
        ("broken.gz", gzip.compress(b"0123456789" * 9, mtime=0)[:30]),
        ("torn.gz", gzip.compress(b"0", mtime=0)[:10] + b"\xff" * 20),
        ("none.gz", b"plain"),
    ],
)
def test_examples_that_are_no_tfrecords_are_not_compared(tmp_path, name, content):
    (tmp_path / "Split-train").mkdir()
    (tmp_path / "Split-train" / name).write_bytes(content)
    place = {"made": [{"uri": str(tmp_path), "type": "Examples"}]}
    [comparison] = compare_outputs("Node", place, place)
    assert comparison.unread


@pytest.mark.parametrize(
    ("kind", "local", "rehearsed", "told"),
    [
        ("String", "True", "1", ('value: "True" locally, "1" rehearsed',)),
        ("JsonValue", "[1]", "[1]", ()),
        ("Float", "0.912", "0.915", ()),
        ("Float", "0.001", "0.009", ("value: 0.001 locally, 0.009 rehearsed",)),
        ("Float", "0.9", "0.5", ("value: 0.9 locally, 0.5 rehearsed",)),
    ],
)
def test_values_of_components_are_compared(tmp_path, kind, local, rehearsed, told):
    places = []
    for name, value in (("local", local), ("rehearsed", rehearsed)):
        (tmp_path / name).write_text(value)
        places.append({"made": [{"uri": str(tmp_path / name), "type": kind}]})
    [comparison] = compare_outputs("Node", *places)
    assert (comparison.differences, comparison.unread) == (told, "")


@pytest.mark.parametrize("value", ["/run/1/made", "see gs://bucket/run/1"])
def test_address_is_another_one_in_each_run_and_no_difference(tmp_path, value):
    (tmp_path / "made").write_text(value)
    place = {"made": [{"uri": str(tmp_path / "made"), "type": "String"}]}
    [comparison] = compare_outputs("Node", place, place)
    assert "it holds an address" in comparison.unread


def test_tuners_are_compared_by_what_they_choose_not_by_their_choice(differences):
    def write(folder, values):
        (folder / "best_hyperparameters.txt").write_text(json.dumps({"values": values}))

    assert differences("HyperParameters", write, {"rate": 0.1}, {"rate": 0.2}) == []
    assert differences("HyperParameters", write, {"rate": 0.1}, {"layers": 2}) == [
        'chosen.layers: null locally, "" rehearsed',
        'chosen.rate: "" locally, null rehearsed',
    ]
