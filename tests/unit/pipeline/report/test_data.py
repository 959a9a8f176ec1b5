import json

import pytest
from tensorflow_metadata.proto.v0 import statistics_pb2

from pipeline.local.history import History
from pipeline.local.record import NodeRecord
from pipeline.report.data import data, shown_splits
from pipeline.report.features import BINS, features, rebin


def numbers(name: str, low: float, high: float, *, rows: int, present: int):
    message = statistics_pb2.FeatureNameStatistics(name=name, type="FLOAT")
    stats = message.num_stats
    stats.common_stats.num_non_missing = stats.common_stats.tot_num_values = present
    stats.min, stats.mean, stats.max = low, (low + high) / 2, high
    histogram = stats.histograms.add(type="STANDARD")
    histogram.buckets.add(low_value=low, high_value=high, sample_count=present)
    return statistics_pb2.DatasetFeatureStatistics(num_examples=rows, features=[message])


def texts(name: str, counts: dict[str, int], *, rows: int):
    message = statistics_pb2.FeatureNameStatistics(name=name, type="STRING")
    stats = message.string_stats
    stats.common_stats.num_non_missing = stats.common_stats.tot_num_values = sum(counts.values())
    stats.unique = len(counts)
    for label, count in counts.items():
        stats.rank_histogram.buckets.add(label=label, sample_count=count)
    return statistics_pb2.DatasetFeatureStatistics(num_examples=rows, features=[message])


def test_two_splits_of_a_number_share_their_bins():
    (found,) = features(
        {"train": numbers("x", 0, 6, rows=10, present=10), "eval": numbers("x", 6, 12, rows=10, present=5)}
    )

    train, evaluated = found.splits
    assert found.edges == (0, 12)
    assert train.shares == pytest.approx([1 / 6] * 6 + [0] * 6)
    assert evaluated.shares == pytest.approx([0] * 6 + [1 / 6] * 6)
    assert (train.missing, evaluated.missing) == (0, 0.5)


def test_a_text_that_only_one_split_knows_has_a_share_of_zero_in_the_other():
    (found,) = features({"train": texts("c", {"a": 3, "b": 1}, rows=4), "eval": texts("c", {"z": 2}, rows=4)})

    assert found.labels == ("a", "b", "z")
    assert [split.shares for split in found.splits] == [(0.75, 0.25, 0), (0, 0, 1)]
    assert [split.distinct for split in found.splits] == [2, 1]


def test_features_with_findings_come_first():
    both = numbers("a", 0, 1, rows=2, present=2)
    both.features.append(numbers("b", 0, 1, rows=2, present=2).features[0])

    assert [f.name for f in features({"train": both}, findings=["b"])] == ["b", "a"]


def test_a_feature_without_any_value_has_no_chart():
    (found,) = features({"train": numbers("x", 0, 0, rows=3, present=0)})

    assert not found.has_chart
    assert found.splits[0].missing == 1


def test_one_value_alone_falls_into_one_bin():
    assert rebin([(5, 5, 7)], (5, 5)) == (1.0, *[0.0] * (BINS - 1))


def test_nothing_finite_has_no_shares():
    assert sum(rebin([(float("-inf"), 0, 1), (0, float("nan"), 2)], (0, 1))) == 0


def test_findings_of_a_gate_that_stopped_the_run_are_told(tmp_path):
    history = History(tmp_path)
    record = history.new_run("taxi", {"output": str(tmp_path)})
    record.nodes = [NodeRecord("DataGate", type="DataGate", state="failed", is_stop=True)]
    findings = [{"feature": "tips", "what": "strange"}] * 120
    history.keep_verdict(
        record.run_id, "DataGate", {"message": "many", "passed": False, "findings": findings}
    )

    gate = data(record).gates[0]

    assert (gate.passed, gate.message, len(gate.findings), gate.left_out) == (False, "many", 100, 20)


def test_the_quarantine_is_told(tmp_path):
    folder = tmp_path / "quarantine"
    folder.mkdir()
    summary = {
        "rows_in": 5,
        "rows_out": {"train": 3},
        "rejected": {"no number": 2},
        "first_rejected": [{"line": 3, "reason": "no number"}],
    }
    (folder / "summary.json").write_text(json.dumps(summary), encoding="utf-8")
    record = History(tmp_path).new_run("taxi", {"output": str(tmp_path)})
    artifact = {"uri": str(folder), "type": "schemas.Quarantine", "properties": {}}
    record.nodes = [NodeRecord("Ingest", state="complete", outputs={"quarantine": [artifact]})]

    found = data(record).quarantine

    assert (found.rows_in, found.reasons, found.samples) == (
        5,
        {"no number": 2},
        ("line 3, reason no number",),
    )


def test_a_run_without_data_tells_nothing(tmp_path):
    assert data(History(tmp_path).new_run("taxi", {"output": str(tmp_path)})) is None


def keep_statistics(folder, statistics):
    folder.mkdir(parents=True)
    listed = statistics_pb2.DatasetFeatureStatisticsList(datasets=[statistics])
    (folder / "FeatureStats.pb").write_bytes(listed.SerializeToString())


def run_with_statistics(tmp_path):
    history = History(tmp_path)
    record = history.new_run("taxi", {"output": str(tmp_path)})
    keep_statistics(tmp_path / "now" / "Split-train", texts("c", {"a": 3, "b": 1}, rows=4))
    artifact = {"uri": str(tmp_path / "now"), "type": "ExampleStatistics", "properties": {}}
    record.nodes = [NodeRecord("StatisticsGen", state="complete", outputs={"statistics": [artifact]})]
    return history, record


def test_the_reference_stands_beside_the_splits_with_the_gates_own_measure_of_drift(tmp_path):
    _, record = run_with_statistics(tmp_path)
    keep_statistics(tmp_path / "verdict" / "reference" / "Split-train", texts("c", {"a": 1, "z": 1}, rows=2))
    artifact = {"uri": str(tmp_path / "verdict"), "type": "schemas.DataVerdict", "properties": {}}
    record.nodes.append(NodeRecord("DataGate", state="complete", outputs={"verdict": [artifact]}))

    found = data(record)

    assert (found.rows, found.reference) == ({"train": 4}, 2)
    assert [split.split for split in found.features[0].splits] == ["train", "reference"]
    assert found.features[0].labels == ("a", "b", "z")
    assert (found.drifts["c"].measure, found.drifts["c"].value) == ("L-infinity", 0.5)


def test_a_gate_that_stopped_the_run_says_where_its_reference_lies(tmp_path):
    history, record = run_with_statistics(tmp_path)
    keep_statistics(tmp_path / "then" / "Split-train", texts("c", {"a": 8}, rows=8))
    record.nodes.append(NodeRecord("DataGate", type="DataGate", state="failed", is_stop=True))
    verdict = {"passed": False, "findings": [], "reference_folder": str(tmp_path / "then")}
    history.keep_verdict(record.run_id, "DataGate", verdict)

    found = data(record)

    assert (found.reference, found.drifts["c"].value) == (8, 0.25)


def test_without_a_reference_there_is_no_drift(tmp_path):
    _, record = run_with_statistics(tmp_path)

    assert (data(record).reference, data(record).drifts) == (None, {})


def test_a_chart_has_room_for_two_splits_and_the_reference():
    splits = features(
        {name: numbers("x", 0, 1, rows=2, present=2) for name in ("train", "eval", "test", "reference")}
    )[0].splits

    assert [found.split for found in shown_splits(splits)] == ["train", "eval", "reference"]
