"""Violations of the schema, with numbers and the edit that accepts them."""

import pytest

from slipway.components.data_gate.finding import Edit, Finding, RowQuery
from slipway.components.data_gate.rule_limits import Limits
from slipway.components.data_gate.rules.anomaly_group import Context
from slipway.components.data_gate.rules.schema_violations import find_anomalies
from slipway.components.data_gate.schema import Anomaly, FeatureSchema

TEXTS = "ENUM_TYPE_UNEXPECTED_STRING_VALUES"
PAYMENT = FeatureSchema("pay", "BYTES", domain=frozenset({"Cash", "Card"}), domain_name="pay")
FARE = FeatureSchema("fare", "FLOAT", min=0.0, max=100.0)


def anomaly(feature, kind, *, split="train", severity="error"):
    return Anomaly(feature, split, kind, severity, "Short words", "A sentence.")


def find(anomalies, statistics, *, schema=(), limits=None, schema_file="schemas/t.pbtxt", **context):
    allowed = {each.name: each for each in schema}
    made = Context(statistics, allowed, limits or Limits(), schema_file, **context)
    return list(find_anomalies(anomalies, made))


def test_each_kind_of_a_feature_is_reported_once_over_all_splits(split):
    values = {"pay": {"Cash": 9, "Pcard": 1}, "fare": [1.0] * 8 + [-5.0, 150.0]}
    found = [
        anomaly("pay", TEXTS), anomaly("pay", TEXTS, split="eval"),
        anomaly("fare", "FLOAT_TYPE_BIG_FLOAT"), anomaly("fare", "FLOAT_TYPE_SMALL_FLOAT", split="eval"),
    ]  # fmt: skip
    told = find(found, {"train": split(**values), "eval": split(**values)}, schema=[PAYMENT, FARE])
    assert [(finding.feature, finding.rule, finding.splits) for finding in told] == [
        ("pay", "domain", ("train", "eval")),
        ("fare", "domain", ("train", "eval")),
    ]


@pytest.mark.parametrize(
    ("kind", "edit", "words"),
    [
        ("SCHEMA_MISSING_COLUMN", "deprecate", "the schema has this column, the data does not"),
        ("SCHEMA_NEW_COLUMN", "add_feature", "the data has this column, the schema does not"),
    ],
)
def test_lost_and_new_columns_are_reported_with_their_edit(split, kind, edit, words):
    statistics = {"train": split(x=[1, 2, 3])}
    [finding] = find([anomaly("x", kind)], statistics)
    assert finding.what == words
    assert [each.kind for each in finding.edits] == [edit]


@pytest.mark.parametrize(("values", "type_name"), [([1, 2], "INT"), ([1.5, 2], "FLOAT"), ({"a": 2}, "BYTES")])
def test_new_column_gets_the_type_of_its_values(split, values, type_name):
    [finding] = find([anomaly("x", "SCHEMA_NEW_COLUMN")], {"train": split(x=values)})
    assert finding.edits[0].text == type_name


@pytest.mark.parametrize(
    ("least", "severity", "stops"),
    [("error", "error", True), ("error", "warning", False), ("warning", "warning", True),
     ("warning", "error", True), ("none", "error", False)],
)  # fmt: skip
def test_severity_decides_whether_an_anomaly_stops(split, least, severity, stops):
    found = [anomaly("x", "SCHEMA_NEW_COLUMN", severity=severity)]
    [finding] = find(found, {"train": split(x=[1])}, limits=Limits(anomalies=least))
    assert finding.stops == stops


def test_anomaly_that_no_rule_knows_is_reported_in_the_words_of_tfdv():
    [finding] = find([anomaly("x", "LOW_SUPPORTED_IMAGE_FRACTION")], {})
    assert finding.headline == "x (train): short words: A sentence."


def test_missing_values_are_not_told_twice(split):
    found = [anomaly("x", "INVALID_FEATURE_SHAPE"), anomaly("x", "FEATURE_TYPE_LOW_FRACTION_PRESENT")]
    assert not find(found, {"train": split(x=[1])}, already_reported={"x"})
    assert len(find(found, {"train": split(x=[1])})) == 2
    others = [*found, anomaly("x", "SCHEMA_NEW_COLUMN")]
    assert len(find(others, {"train": split(x=[1])}, already_reported={"x"})) == 1


def test_inferred_schema_has_no_file_to_edit(split):
    [finding] = find([anomaly("x", "SCHEMA_NEW_COLUMN")], {"train": split(x=[1])}, schema_file="")
    assert finding.edits == ()
    assert "inferred" in finding.remedy
    [lost] = find([anomaly("x", "SCHEMA_MISSING_COLUMN")], {"train": split(x=[1])}, schema_file="")
    assert lost.edits == ()


def test_columns_of_the_schema_alone_or_of_the_data_alone_are_reported_whole(split):
    assert find([anomaly("x", "SCHEMA_MISSING_COLUMN")], {"train": split(x=[1])}) == [
        Finding(
            "schema",
            "x",
            ("train",),
            "the schema has this column, the data does not",
            remedy="put the column back, or in schemas/t.pbtxt: mark x as DEPRECATED",
            edits=(Edit("deprecate", "x"),),
        )
    ]
    assert find([anomaly("x", "SCHEMA_NEW_COLUMN")], {"train": split(x=[1.5])}) == [
        Finding(
            "schema",
            "x",
            ("train",),
            "the data has this column, the schema does not",
            remedy="leave it out with data.columns, or in schemas/t.pbtxt: add the feature x (FLOAT)",
            edits=(Edit("add_feature", "x", text="FLOAT"),),
            query=RowQuery("x"),
        )
    ]
    assert find([anomaly("x", "LOW")], {}) == [
        Finding(
            "schema",
            "x",
            ("train",),
            "short words: A sentence.",
            remedy="correct the data, or the schema",
            query=RowQuery("x"),
        )
    ]
    assert find([anomaly("", "LOW")], {}, schema_file="") == [
        Finding(
            "schema", "", ("train",), "short words: A sentence.", remedy="correct the data, or the schema"
        )
    ]
