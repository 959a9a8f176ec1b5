import json

import pytest
from tensorflow_metadata.proto.v0 import statistics_pb2

from slipway.components.data_gate.protos import split_statistics
from slipway.pipeline.report.data import data, shown_splits
from slipway.pipeline.report.feature_histograms import features
from slipway.pipeline.report.page import _environment as page_environment
from slipway.pipeline.runs.history import History
from slipway.pipeline.runs.record import NodeRecord


def numbers(name: str, *buckets: tuple[float, float, float], rows: int, kind: str = "FLOAT"):
    """A column of numbers whose quantiles lie in these buckets: low, high, count."""
    message = statistics_pb2.FeatureNameStatistics(name=name, type=kind)
    stats = message.num_stats
    present = int(sum(count for _, _, count in buckets))
    stats.common_stats.num_non_missing = stats.common_stats.tot_num_values = present
    stats.min = min((low for low, _, _ in buckets), default=0)
    stats.max = max((high for _, high, _ in buckets), default=0)
    stats.mean = (stats.min + stats.max) / 2
    histogram = stats.histograms.add(type="QUANTILES")
    for low, high, count in buckets:
        histogram.buckets.add(low_value=low, high_value=high, sample_count=count)
    return statistics_pb2.DatasetFeatureStatistics(num_examples=rows, features=[message])


def texts(name: str, counts: dict[str, int], *, rows: int):
    message = statistics_pb2.FeatureNameStatistics(name=name, type="STRING")
    stats = message.string_stats
    stats.common_stats.num_non_missing = stats.common_stats.tot_num_values = sum(counts.values())
    stats.unique = len(counts)
    for label, count in counts.items():
        stats.rank_histogram.buckets.add(label=label, sample_count=count)
    return statistics_pb2.DatasetFeatureStatistics(num_examples=rows, features=[message])


def features_of(findings=(), **splits):
    read = {
        split: split_statistics(
            statistics_pb2.DatasetFeatureStatisticsList(datasets=[each]).SerializeToString()
        )
        for split, each in splits.items()
    }
    return features(read, findings=findings)


def test_two_splits_of_a_number_share_their_bins():
    (found,) = features_of(
        train=numbers("x", (0, 6.1, 10), rows=10), eval=numbers("x", (6.1, 12.2, 5), rows=10)
    )

    train, evaluated = found.splits
    assert found.ends == ("0", "12.2")
    assert train.shares == pytest.approx([1 / 6] * 6 + [0] * 6)
    assert evaluated.shares == pytest.approx([0] * 6 + [1 / 6] * 6)
    assert (train.missing, evaluated.missing) == (0, 0.5)


def test_yes_and_no_have_a_bar_each_as_high_as_their_share():
    (found,) = features_of(
        train=numbers("b", (0, 0, 150), (1, 1, 850), rows=1000, kind="INT"),
        eval=numbers("b", (0, 0, 159), (1, 1, 841), rows=1000, kind="INT"),
    )

    assert found.labels == ("0", "1")
    assert [split.shares for split in found.splits] == [
        pytest.approx((0.15, 0.85)),
        pytest.approx((0.159, 0.841)),
    ]


def test_a_split_without_the_largest_value_is_drawn_as_it_is():
    """Each split's histogram has buckets of its own, which begin and end elsewhere."""
    (found,) = features_of(
        train=numbers("n", (0, 0, 90), (1, 1, 9), (100, 100, 1), rows=100),
        eval=numbers("n", (0, 0, 90), (1, 1, 10), rows=100),
    )

    assert found.labels[0] == "0 to 8"
    assert [split.shares[0] for split in found.splits] == [pytest.approx(0.99), pytest.approx(1.0)]


def test_weekdays_have_seven_bars():
    days = numbers("day", *((day, day, 10) for day in range(1, 8)), rows=70, kind="INT")

    (found,) = features_of(train=days)

    assert found.labels == tuple("1234567")
    assert found.splits[0].shares == pytest.approx([1 / 7] * 7)


def test_many_whole_numbers_fall_into_ranges_of_equally_many():
    (found,) = features_of(train=numbers("n", *((n, n, 1) for n in range(100)), rows=100, kind="INT"))

    assert found.labels[:2] == ("0 to 8", "9 to 17")
    assert found.splits[0].shares[:-1] == pytest.approx([0.09] * 11)
    assert sum(found.splits[0].shares) == pytest.approx(1)


def test_a_long_tail_does_not_put_all_values_into_one_bar():
    tail = [(step / 98, (step + 1) / 98, 1) for step in range(98)]

    (found,) = features_of(train=numbers("fare", (0, 0, 1), *tail, (1, 1000, 1), rows=100))

    assert found.ends == ("0", "0.9167 or more")
    assert found.splits[0].shares[1:11] == pytest.approx([0.98 / 12] * 10, rel=0.02)
    assert sum(found.splits[0].shares) == pytest.approx(1)


def test_a_text_that_only_one_split_knows_has_a_share_of_zero_in_the_other():
    (found,) = features_of(train=texts("c", {"a": 3, "b": 1}, rows=4), eval=texts("c", {"z": 2}, rows=4))

    assert found.labels == ("a", "b", "z")
    assert [split.shares for split in found.splits] == [(0.75, 0.25, 0), (0, 0, 1)]
    assert [split.distinct for split in found.splits] == [2, 1]


def test_texts_of_the_reference_are_no_numbers_where_the_column_had_another_type():
    (found,) = features_of(train=numbers("c", (1, 2, 4), rows=4), reference=texts("c", {"a": 3}, rows=4))

    now, before = found.splits
    assert (now.numbers, before.numbers, before.distinct) == (("1", "1.5", "2"), None, 1)


def test_texts_of_which_a_row_holds_several_have_shares_of_the_values():
    lists = texts("tags", {"a": 6, "b": 2}, rows=4)
    lists.features[0].string_stats.common_stats.num_non_missing = 4

    (found,) = features_of(train=lists)

    assert found.splits[0].shares == (0.75, 0.25)
    assert found.splits[0].missing == 0


def of_lists(one, *, values: int, most: int):
    """The statistics of a column with the numbers of values that TFDV counts where rows hold several."""
    stats = (
        one.features[0].num_stats if one.features[0].HasField("num_stats") else one.features[0].string_stats
    )
    stats.common_stats.num_non_missing = one.num_examples
    stats.common_stats.tot_num_values, stats.common_stats.max_num_values = values, most
    lengths = stats.common_stats.num_values_histogram
    lengths.buckets.add(low_value=0, high_value=0, sample_count=1)
    lengths.buckets.add(low_value=0, high_value=most, sample_count=one.num_examples - 1)
    return one


def test_lists_are_shown_with_their_values_and_lengths(tmp_path):
    statistics = of_lists(numbers("amounts", (0, 2, 6), (2, 4, 2), rows=5), values=8, most=3)
    tags = of_lists(texts("tags", {"a": 7, "b": 3}, rows=5), values=10, most=1200)
    statistics.features.extend([tags.features[0], texts("plain", {"x": 5}, rows=5).features[0]])
    keep_statistics(tmp_path / "now" / "Split-train", statistics)
    record = History(tmp_path).new_run("baskets")
    artifact = {"uri": str(tmp_path / "now"), "type": "ExampleStatistics", "properties": {}}
    record.nodes = [NodeRecord("StatisticsGen", state="complete", outputs={"statistics": [artifact]})]

    found = data(record)

    amounts, plain, of_tags = (feature.splits[0] for feature in found.features)
    assert (amounts.missing, amounts.numbers, amounts.lengths) == (0.2, ("0", "2", "4"), "2, at most 3")
    assert sum(amounts.shares) == pytest.approx(1)
    assert (of_tags.missing, of_tags.distinct, of_tags.shares) == (0.2, 2, (0.7, 0.3))
    assert (of_tags.lengths, plain.lengths) == ("2.5, at most 1,200", "")
    page = str(page_environment().get_template("data.html.j2").module.data_section(found))
    assert '<th scope="col" class="number">values in a row</th>' in page
    assert '<td class="number">2.5, at most 1,200</td>' in page
    assert "text; 20.00% missing; 2 distinct; values in a row: 2.5, at most 1,200</p>" in page
    assert "text; 0.00% missing; 1 distinct</p>" in page


def test_features_with_findings_come_first():
    both = numbers("a", (0, 1, 2), rows=2)
    both.features.append(numbers("b", (0, 1, 2), rows=2).features[0])

    assert [f.name for f in features_of(train=both, findings=["b"])] == ["b", "a"]


def test_a_feature_without_any_value_has_no_chart():
    (found,) = features_of(train=numbers("x", rows=3))

    assert not found.has_chart
    assert found.splits[0].missing == 1


def test_one_value_alone_has_one_bar():
    (found,) = features_of(train=numbers("x", (5.5, 5.5, 7), rows=7))

    assert (found.labels, found.splits[0].shares) == (("5.5",), (1.0,))


def test_infinite_values_have_no_chart():
    (found,) = features_of(train=numbers("x", (float("-inf"), 0, 1), (0, 1, 2), rows=3))

    assert not found.has_chart


def test_findings_of_a_gate_that_stopped_the_run_are_reported(tmp_path):
    history = History(tmp_path)
    record = history.new_run("taxi")
    record.nodes = [NodeRecord("DataGate", type="DataGate", state="failed", is_stop=True)]
    findings = [{"feature": "tips", "what": "strange"}] * 120
    history.keep_verdict(
        record.run_id, "DataGate", {"message": "many", "passed": False, "findings": findings}
    )

    gate = data(record).gates[0]

    assert (gate.passed, gate.message, len(gate.findings), gate.left_out) == (False, "many", 100, 20)


def test_the_quarantine_is_reported(tmp_path):
    folder = tmp_path / "quarantine"
    folder.mkdir()
    summary = {
        "rows_in": 9,
        "rows_out": {"train": 3},
        "unlabelled": 4,
        "rejected": {"no number": 2},
        "first_rejected": ["a.csv line 3: no number"],
    }
    (folder / "summary.json").write_text(json.dumps(summary), encoding="utf-8")
    record = History(tmp_path).new_run("taxi")
    artifact = {"uri": str(folder), "type": "schemas.Quarantine", "properties": {}}
    record.nodes = [NodeRecord("Ingest", state="complete", outputs={"quarantine": [artifact]})]

    found = data(record).quarantine

    assert (found.rows_in, found.unlabelled, found.reasons, found.samples) == (
        9,
        4,
        {"no number": 2},
        ("a.csv line 3: no number",),
    )


def test_a_run_without_data_tells_nothing(tmp_path):
    assert data(History(tmp_path).new_run("taxi")) is None


def keep_statistics(folder, statistics):
    folder.mkdir(parents=True)
    listed = statistics_pb2.DatasetFeatureStatisticsList(datasets=[statistics])
    (folder / "FeatureStats.pb").write_bytes(listed.SerializeToString())


def run_with_statistics(tmp_path):
    history = History(tmp_path)
    record = history.new_run("taxi")
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


def test_statistics_of_a_sample_are_not_taken_for_all_rows(tmp_path):
    _, record = run_with_statistics(tmp_path)
    (tmp_path / "quarantine").mkdir()
    summary = {"rows_in": 41, "rows_out": {"train": 40}, "rejected": {"not a number": 1}}
    (tmp_path / "quarantine" / "summary.json").write_text(json.dumps(summary))
    reference = tmp_path / "verdict" / "reference"
    keep_statistics(reference / "Split-train", texts("c", {"a": 1, "z": 1}, rows=2))
    (reference / "profile.json").write_text(json.dumps({"rows": {"train": 20}}))
    for node, kind, uri in (
        ("Ingest", "schemas.Quarantine", tmp_path / "quarantine"),
        ("DataGate", "schemas.DataVerdict", tmp_path / "verdict"),
    ):
        artifact = {"uri": str(uri), "type": kind, "properties": {}}
        record.nodes.append(NodeRecord(node, state="complete", outputs={"made": [artifact]}))

    found = data(record)

    assert (found.rows, found.sampled, found.reference) == ({"train": 40}, {"train": 4}, 20)
    page = page_environment().get_template("data.html.j2").module
    assert "<p>40 rows in train (statistics of 4 of them). Compared with 20 rows" in str(
        page.data_section(found)
    )


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
    names = ("train", "eval", "test", "reference")
    splits = features_of(**{name: numbers("x", (0, 1, 2), rows=2) for name in names})[0].splits

    assert [found.split for found in shown_splits(splits)] == ["train", "eval", "reference"]
