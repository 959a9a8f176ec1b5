"""The gate's answer as a whole."""

import json
from dataclasses import replace

import numpy as np
import pytest
from counted import lines_run, peak_bytes

from slipway.components.data_gate.finding import Finding, RowQuery
from slipway.components.data_gate.rule_limits import Freshness, Limits
from slipway.components.data_gate.rules.rows import QuarantineSummary
from slipway.components.data_gate.schema import Anomaly, FeatureSchema
from slipway.components.data_gate.verdict import BLESSED, DataGateVerdict
from slipway.components.data_profile.label_score import LabelScore

RNG = np.random.default_rng(0)
BEGIN = RNG.bit_generator.state


@pytest.fixture(autouse=True)
def drawn_from_the_begin():
    """Each test draws the same numbers, whichever tests ran before it."""
    RNG.bit_generator.state = BEGIN


def trips(split, *, rows=3000, **changes):
    values = {
        "fare": RNG.lognormal(2, 0.5, rows),
        "pay": {"Cash": rows // 2, "Card": rows - rows // 2},
        "label": RNG.random(rows) < 0.2,
    }
    return {name: split(**{**values, **changes}) for name in ("train", "eval")}


def test_clean_data_passes_without_a_reference_and_says_so(split, verdict):
    answer = verdict(trips(split))
    assert answer.passed
    assert answer.findings == ()
    assert answer.message == "nothing found in 6,000 rows, 3 columns, no earlier data to compare with"


def test_findings_stop_and_what_is_only_worth_knowing_does_not(split, verdict):
    limits = Limits(max_bad_share=0.001)
    answer = verdict(
        trips(split), quarantine=QuarantineSummary(10_000, {"not a number": 1}, ("line 7",)), limits=limits
    )
    assert answer.passed
    assert [finding.stops for finding in answer.findings] == [False]
    some = QuarantineSummary(100, {"not a number": 1}, ("line 7",))
    assert not verdict(trips(split), quarantine=some, limits=limits).passed


def test_accepted_data_passes_with_its_findings_and_the_reason_on_record(split, verdict):
    answer = verdict(trips(split, label=[1] * 3000), accepted="agreed with Ann")
    assert answer.passed
    assert len(answer.stopping) == 1
    document = json.loads(json.dumps(answer.to_json()))
    assert document["accepted"] == "agreed with Ann"
    assert document["message"].endswith("accepted: agreed with Ann")


def test_what_makes_the_others_follow_comes_first_and_notes_last(split, verdict):
    statistics = trips(split, rows=6000, label=[1] * 6000, fare=RNG.lognormal(5, 1, 6000))
    answer = verdict(
        statistics,
        reference=trips(split, rows=1000),
        reference_name="the data that passed last",
        anomalies=[Anomaly("pay", "train", "SCHEMA_NEW_COLUMN", "warning", "New", "New.")],
    )
    assert [finding.rule for finding in answer.findings] == ["rows", "label", "drift", "schema"]
    assert ", against the data that passed last" in answer.message


def test_feature_that_gives_away_what_is_made_of_the_label_is_reported_once(split, verdict):
    fare, tips = RNG.lognormal(2, 0.5, 3000), RNG.lognormal(1, 0.5, 3000)
    big = (tips > 0.5 * fare).astype(float)
    sample = {"fare": fare, "flag": big, "copy": tips, "label": tips}
    made = verdict(trips(split), sample=sample, transformed_label=("big_tip", big))
    assert [(f.rule, f.feature) for f in made.findings] == [("leak", "copy"), ("leak", "flag")]
    assert "predicts big_tip" in made.findings[1].what
    assert made.findings[1].query == RowQuery("flag", beside="label")
    [copy] = verdict(trips(split), sample=sample).findings
    assert (copy.feature, copy.what.partition(" with ")[0]) == ("copy", "alone it predicts label")
    assert [
        f.feature for f in verdict(trips(split), sample=sample, transformed_label=("tip", tips)).findings
    ] == ["copy"]
    assert not verdict(trips(split), sample={"flag": big}, transformed_label=("big_tip", big)).findings


def test_train_is_compared_with_what_is_served_but_for_the_label(split, verdict):
    served = split(fare=RNG.lognormal(5, 1, 3000), label=[1] * 3000)
    answer = verdict(trips(split), serving=served)
    assert [(finding.rule, finding.feature) for finding in answer.findings] == [("serving", "fare")]
    assert not verdict(trips(split), serving=served, limits=Limits(max_skew_jensen_shannon=1.0)).findings


def test_time_column_and_label_are_not_compared_for_drift(split, verdict):
    then, now = trips(split, t=[1e9] * 3000), trips(split, t=[1.1e9] * 3000)
    drifted = verdict(now, reference=then)
    assert [finding.feature for finding in drifted.findings] == ["t"]
    assert verdict(now, reference=then, limits=Limits(freshness=Freshness(column="t"))).passed


def by_rule(answer):
    return {(finding.rule, finding.feature): finding for finding in answer.findings}


def test_rows_of_the_sample_show_what_repeats_and_which_labels_are_odd(split, verdict):
    told = RNG.random(3000) < 0.5
    label = np.where(RNG.random(3000) < 0.5, 1.0, 0.0)
    sample = {"pay": np.where(told, "Card", "Cash").astype(object), "label": label}
    answer = verdict(
        trips(split), sample=sample, repeated=600, sampled=3000, first_repeated=[3, 5],
        reference=trips(split), reference_label_score=LabelScore(0.9, 0.001),
    )  # fmt: skip
    found = by_rule(answer)
    repeats = found["duplicates", ""]
    assert repeats.what.startswith("600 of 3,000 rows (20%) repeat")
    assert [row["label"] for row in repeats.query.like] == [label[3], label[5]]
    assert answer.label_score.score < 0.5
    noise = found["label", "label"]
    assert noise.what.startswith("the other columns explain ")
    assert (noise.query.beside, len(noise.query.like)) == ("pay", 5)
    without = by_rule(verdict(trips(split), repeated=600, sampled=3000, first_repeated=[3, 5]))
    assert without["duplicates", ""].query is None


def test_schema_says_what_is_missed_where_and_what_is_reported_once(split, verdict):
    few = {"fare": split(3000, fare=RNG.lognormal(2, 0.5, 1500)).features["fare"]}
    statistics = trips(split, **few, label=split(3000, label=[0, 1] * 1000).features["label"])
    schema = {
        "fare": FeatureSchema("fare", "FLOAT", min=0.0, max=1e3, min_fraction=1.0),
        "label": FeatureSchema("label", min_fraction=1.0, has_shape=True),
        "pay": FeatureSchema("pay", "BYTES", domain=frozenset({"Cash"}), domain_name="pay"),
    }
    kinds = {
        "fare": "FEATURE_TYPE_LOW_FRACTION_PRESENT",
        "label": "INVALID_FEATURE_SHAPE",
        "pay": "ENUM_TYPE_UNEXPECTED_STRING_VALUES",
        "miles": "SCHEMA_MISSING_COLUMN",
    }
    anomalies = [Anomaly(name, "train", kind, "error", "Short", "Long.") for name, kind in kinds.items()]
    before = trips(split, miles=[1.0] * 3000, gone=[1.0] * 3000)
    answer = verdict(
        statistics, schema=schema, schema_file="s/t.pbtxt", anomalies=anomalies, reference=before,
        reference_name=BLESSED, limits=Limits(max_label_shift=1.0, max_missing_rise=1.0),
    )  # fmt: skip
    found = by_rule(answer)
    assert set(found) == {
        ("label", "label"), ("schema", "miles"), ("columns", "gone"), ("domain", "pay"), ("missing", "fare")
    }  # fmt: skip
    assert found["label", "label"].is_final
    assert "baseline --clear" in found["columns", "gone"].remedy
    assert all("s/t.pbtxt" in found[key].remedy for key in [("missing", "fare"), ("domain", "pay")])


def test_a_label_of_another_type_is_reported_before_the_training(split, verdict):
    now = trips(split, label=[0.0, 1.0] * 1500)
    answer = verdict(now, reference=trips(split, label=[0.5, 1.0] * 1500), reference_name=BLESSED)
    found = by_rule(answer)["columns", "label"]
    assert found.what == "it holds whole numbers, in the reference numbers"
    answer = verdict(trips(split, label={}), reference=now, reference_name=BLESSED)
    assert ("columns", "label") not in by_rule(answer)


def test_time_since_the_reference_was_judged_is_what_data_may_be_ahead(split, verdict):
    limits = Limits(freshness=Freshness(column="t"))
    now, then = (trips(split, t=[1.79e9 - days * 86400.0] * 3000) for days in (0, 100))
    for days, is_found in ((90, False), (10, True)):
        answer = verdict(now, reference=then, limits=limits, reference_at_s=1.8e9 - days * 86400)
        assert bool(answer.findings) is is_found


def test_verdict_is_plain_data_with_the_lines_of_the_screen(split, verdict):
    answer = verdict(trips(split, label=[1] * 3000))
    document = json.loads(json.dumps(answer.to_json()))
    assert document["lines"][0] == "label (train, eval): all 6,000 labels are 1: there is nothing to learn"
    assert document["findings"][0]["rule"] == "label"
    assert {key: document[key] for key in document if key not in ("findings", "lines")} == {
        "passed": False,
        "message": "1 finding in 6,000 rows, 3 columns, no earlier data to compare with",
        "accepted": "",
        "override": "accept_data",
        "reference": "",
        "rows": 6000,
        "features": 3,
        "dates": [],
    }
    assert verdict(trips(split), reference_name="nothing that is there").reference_name == ""


def test_limits_are_read_from_plain_values_and_no_others():
    limits = Limits.from_json({"max_row_change": 0.9, "freshness": {"column": "t"}})
    with pytest.raises(TypeError, match="sample_rows"):
        Limits.from_json({"sample_rows": 5})
    assert limits.max_row_change == 0.9
    assert limits.freshness == Freshness(column="t")


def wide(split, feature, features, kind):
    """Evidence about so many features: three splits, a reference, what serving is asked, and a sample."""

    def label(rows):
        return RNG.normal(size=rows) if kind == "number" else (RNG.random(rows) < 0.3).astype(float)

    def statistics():
        # Some, over and over: it is judging that is measured, not drawing numbers.
        numbers = [feature("", RNG.normal(size=1000)) for _ in range(20)]
        text = feature("", {f"v{k}": 20 for k in range(50)})
        found = [text if i % 4 == 0 else numbers[i % 20] for i in range(features)]
        return split(
            label=label(1000), **{f"x{i}": replace(each, name=f"x{i}") for i, each in enumerate(found)}
        )

    texts = RNG.integers(0, 50, 2_000).astype(str).astype(object)
    sample = {f"x{i}": texts if i % 4 == 0 else RNG.normal(size=2_000) for i in range(features)}
    sample["label"] = label(2_000)
    now, reference = ({name: statistics() for name in ("train", "eval", "test")} for _ in range(2))
    return {
        "statistics": now,
        "reference": reference,
        "reference_label_score": LabelScore(0.0, 0.01),
        "reference_at_s": 1.7e9,
        "schema": {name: FeatureSchema(name) for name in now["train"].features},
        "serving": statistics(),
        "sample": sample,
        "sampled": 2_000,
        "transformed_label": ("big", 1.0 - (sample["label"] > 0.5)),
    }


@pytest.mark.parametrize("kind", ["number", "class"])
def test_what_all_rules_cost_grows_with_the_features_and_not_with_their_square(split, feature, verdict, kind):
    few, many = wide(split, feature, 50, kind), wide(split, feature, 200, kind)
    assert verdict(**few).passed
    lines = [lines_run(lambda found=found: verdict(**found)) for found in (few, many)]
    held = [peak_bytes(lambda found=found: verdict(**found)) for found in (few, many)]
    print(f"{kind}: lines {lines}, bytes {held}")
    # 2200 measured. One line for each pair of features would add 250.
    assert lines[1] - lines[0] < 150 * 2300
    assert lines[0] < 150_000
    # What is held is for one feature at a time.
    assert held[1] < 1.1 * held[0]


def test_columns_of_dates_are_those_whose_texts_are_dates_in_all_splits(split, verdict):
    days = {"2024-01-31": 2, "2024-02-01 10:30:00": 1}
    other = {"31.01.2024": 3}
    train = split(day=days, due=days, city={"Ulm": 3}, label=[0, 1, 1])
    judged = verdict({"train": train, "eval": split(day=days, due=other, city={"Ulm": 3}, label=[0, 1, 1])})
    assert judged.to_json()["dates"] == ["day"]


def test_what_a_later_node_cannot_read_is_stopped_whatever_reason_is_given():
    needed = Finding("label", "y", ("train",), "1 of 100 rows has no label", is_final=True)
    answer = DataGateVerdict(findings=(needed,), rows=100, features=2, accepted="agreed with Ann")
    assert not answer.passed
    assert answer.to_json()["override"] == ""
    assert "accepted" not in answer.message
