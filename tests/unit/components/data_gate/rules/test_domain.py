"""Values outside the domain that the schema gives them."""

from dataclasses import replace

import numpy as np
import pytest

from slipway.components.data_gate.finding import Edit, Finding, RowQuery
from slipway.components.data_gate.rule_limits import Limits
from slipway.components.data_gate.rules.anomaly_group import AnomalyGroup, Context
from slipway.components.data_gate.rules.domain import outside_domain, outside_range
from slipway.components.data_gate.schema import Anomaly, FeatureSchema
from slipway.components.data_gate.statistics import FeatureStatistics, SplitStatistics

TEXTS = "ENUM_TYPE_UNEXPECTED_STRING_VALUES"
PAYMENT = FeatureSchema("pay", "BYTES", domain=frozenset({"Cash", "Card"}), domain_name="pay")
FARE = FeatureSchema("fare", "FLOAT", min=0.0, max=100.0)


def anomaly(feature, kind, *, split="train"):
    return Anomaly(feature, split, kind, "error", "Short words", "A sentence.")


def find(anomalies, statistics, *, schema=(), limits=None, schema_file="schemas/t.pbtxt", **context):
    allowed = {each.name: each for each in schema}
    made = Context(statistics, allowed, limits or Limits(), schema_file, **context)
    rule = outside_domain if anomalies[0].type == TEXTS else outside_range
    found = rule(AnomalyGroup(anomalies, made))
    return [] if found is None else [found]


def test_value_outside_its_domain_is_reported_once_with_count_and_edit(split):
    statistics = {
        "train": split(pay={"Cash": 96, "Pcard": 3, "Bitcoin": 1}),
        "eval": split(pay={"Cash": 49, "Pcard": 1}),
    }
    found = [anomaly("pay", TEXTS), anomaly("pay", TEXTS, split="eval")]
    [finding] = find(found, statistics, schema=[PAYMENT])
    assert finding.headline == (
        'pay (train, eval): 5 of 150 rows (3.33%) hold "Pcard", "Bitcoin", not in its domain; limit 0'
    )
    assert finding.remedy == (
        'correct them, or in schemas/t.pbtxt: add "Pcard", "Bitcoin" to the domain of pay'
    )
    [edit] = finding.edits
    assert (edit.kind, edit.values) == ("add_values", ("Bitcoin", "Pcard"))
    assert set(finding.query.values) == {"Pcard", "Bitcoin"}


def test_many_new_values_mean_that_the_domain_itself_is_too_narrow(split):
    statistics = {"train": split(pay={"Cash": 754} | {f"new{i}": 1 for i in range(25)})}
    [finding] = find([anomaly("pay", TEXTS)], statistics, schema=[PAYMENT])
    assert finding.edits == (Edit("set_mass", "pay", number=0.96),)
    assert "min_domain_mass: 0.96" in finding.remedy
    assert "and 20 more" in finding.what
    few = {"train": split(pay={"Cash": 754} | {f"new{i}": 1 for i in range(20)})}
    [finding] = find([anomaly("pay", TEXTS)], few, schema=[PAYMENT])
    assert [edit.kind for edit in finding.edits] == ["add_values"]


def test_domain_is_widened_as_the_split_with_most_new_values_needs_it(split):
    new = {f"new{i}": 1 for i in range(25)}
    statistics = {"train": split(pay={"Cash": 975} | new), "eval": split(pay={"Cash": 75} | new)}
    found = [anomaly("pay", TEXTS), anomaly("pay", TEXTS, split="eval")]
    [finding] = find(found, statistics, schema=[PAYMENT])
    assert finding.edits == (Edit("set_mass", "pay", number=0.75),)
    assert finding.measured == pytest.approx(50 / 1100)


IN_WORDS_OF_TFDV = ["short words: A sentence."]


def test_value_that_the_statistics_do_not_list_is_reported_in_the_words_of_tfdv(split):
    listed = {"train": split(pay={"Cash": 99})}
    found = find([anomaly("pay", TEXTS)], listed, schema=[PAYMENT])
    assert [finding.what for finding in found] == IN_WORDS_OF_TFDV
    assert not find(
        [anomaly("pay", TEXTS)], listed, schema=[PAYMENT], limits=Limits(max_out_of_domain_share=0.1)
    )


def listed(counts, *, values):
    """Statistics of a column whose rarer texts are not listed."""
    made = FeatureStatistics("pay", "text", values, values, values, unique=9_999, counts=counts)
    return {"train": SplitStatistics(values, {"pay": made})}


@pytest.mark.parametrize(
    ("counts", "words", "measured"),
    [
        # All of the domain is listed, so that all of the others are outside.
        ({"Cash": 400, "Card": 300, "new0": 1, "new1": 1}, "300 of 1,000 rows (30%)", 0.3),
        # Card is not listed, and may be one of the others.
        ({"Cash": 700, "new0": 5, "new1": 5}, "at least 295 of 1,000 rows (29.50%)", 0.295),
    ],
)
def test_values_outside_that_the_statistics_do_not_list_count(counts, words, measured):
    statistics = listed(counts, values=1_000)
    found = {
        limit: find(
            [anomaly("pay", TEXTS)],
            statistics,
            schema=[PAYMENT],
            limits=Limits(max_out_of_domain_share=limit),
        )
        for limit in (0.1, 0.3)
    }
    [finding] = found[0.1]
    assert finding.what == f'{words} hold "new0", "new1", not in its domain'
    assert finding.measured == pytest.approx(measured)
    assert [edit.kind for edit in finding.edits] == ["set_mass"]
    assert not found[0.3]


def test_only_values_that_are_not_listed_may_be_outside():
    statistics = listed({"Cash": 400, "Card": 300}, values=1_000)
    some, more = (Limits(max_out_of_domain_share=share) for share in (0.1, 0.3))
    [finding] = find([anomaly("pay", TEXTS)], statistics, schema=[PAYMENT], limits=some)
    assert finding.what == IN_WORDS_OF_TFDV[0]
    assert not find([anomaly("pay", TEXTS)], statistics, schema=[PAYMENT], limits=more)


@pytest.mark.parametrize(
    ("kind", "schema"),
    [
        (TEXTS, []),
        (TEXTS, [replace(PAYMENT, domain=None)]),
        (TEXTS, [replace(PAYMENT, name="x")]),
        ("FLOAT_TYPE_BIG_FLOAT", []),
    ],
)
def test_what_the_schema_says_nothing_about_is_reported_in_the_words_of_tfdv(split, kind, schema):
    found = find([anomaly("x", kind)], {"train": split(pay={"Pcard": 9})}, schema=schema)
    assert [finding.what for finding in found] == IN_WORDS_OF_TFDV
    there = {"train": split(pay={"Pcard": 9})}
    found = find([anomaly("pay", TEXTS)], there, schema=[replace(PAYMENT, domain=None)])
    assert [finding.what for finding in found] == IN_WORDS_OF_TFDV


def test_split_without_the_column_is_passed_over(split):
    statistics = {"train": split(pay={"Cash": 9, "Pcard": 1}), "eval": split(x=[1])}
    found = [anomaly("pay", TEXTS), anomaly("pay", TEXTS, split="eval"), anomaly("pay", TEXTS, split="gone")]
    [finding] = find(found, statistics, schema=[PAYMENT])
    assert finding.what.startswith("1 of 10 rows (10%)")


@pytest.mark.parametrize(("limit", "is_found"), [(0.0, True), (0.005, True), (0.01, False)])
def test_some_values_outside_may_be_let_pass(split, limit, is_found):
    statistics = {"train": split(pay={"Cash": 990, "Pcard": 10})}
    limits = Limits(max_out_of_domain_share=limit)
    assert bool(find([anomaly("pay", TEXTS)], statistics, schema=[PAYMENT], limits=limits)) == is_found


@pytest.mark.parametrize(
    ("values", "kind", "words", "edits"),
    [
        (
            [0.0] * 50 + [100.0] * 49 + [150.0],
            "FLOAT_TYPE_BIG_FLOAT",
            "above 100, as far as 150",
            [("max", 150.0)],
        ),
        (
            [0.0] * 50 + [100.0] * 49 + [-5.0],
            "FLOAT_TYPE_SMALL_FLOAT",
            "below 0, as far as -5",
            [("min", -5.0)],
        ),
        (
            [1.0] * 98 + [-5.0, 150.0],
            "FLOAT_TYPE_BIG_FLOAT",
            "outside 0 to 100, as far as -5 to 150",
            [("min", -5.0), ("max", 150.0)],
        ),
    ],
)
def test_numbers_outside_their_range_are_counted_in_the_sample(split, values, kind, words, edits):
    statistics = {"train": split(fare=values)}
    [finding] = find([anomaly("fare", kind)], statistics, schema=[FARE], sample={"fare": np.array(values)})
    count = len(edits)
    assert finding.what == f"{count} of 100 rows ({count}.00%) lie {words}"
    below, above = (0.0 if "min" in finding.remedy else None), (100.0 if "max" in finding.remedy else None)
    assert finding.query == RowQuery("fare", below=below, above=above)
    assert [(edit.text, edit.number) for edit in finding.edits] == edits


def test_count_from_a_part_of_the_rows_says_that_it_is_one(split):
    statistics = {"train": split(fare=[1.0] * 96 + [150.0] * 4)}
    sample = {"fare": np.array([1.0] * 24 + [150.0])}
    [finding] = find([anomaly("fare", "FLOAT_TYPE_BIG_FLOAT")], statistics, schema=[FARE], sample=sample)
    assert finding.what.startswith("about 4 of 100 rows")
    none = {"fare": np.array([1.0] * 25)}
    [finding] = find([anomaly("fare", "FLOAT_TYPE_BIG_FLOAT")], statistics, schema=[FARE], sample=none)
    assert finding.what.startswith("about 3 of 100 rows"), "the statistics show as many"


@pytest.mark.parametrize("column", [np.array([]), np.array(["1"], dtype=object)])
def test_sample_that_holds_no_number_counts_nothing(split, column):
    statistics = {"train": split(fare=[1.0] * 96 + [150.0] * 4)}
    [finding] = find(
        [anomaly("fare", "FLOAT_TYPE_BIG_FLOAT")], statistics, schema=[FARE], sample={"fare": column}
    )
    assert finding.what.startswith("at least 3 of 100 rows")


@pytest.mark.parametrize(
    ("values", "least"), [([50.0] * 96 + [150.0] * 4, 3), ([-5.0] * 40 + [50.0] * 60, 39), ([50.0, 150.0], 1)]
)
def test_share_outside_the_range_is_not_let_pass_because_no_sample_shows_it(split, values, least):
    statistics = {"train": split(len(values), fare=values)}
    own = Limits(max_out_of_domain_share=0.01)
    [finding] = find([anomaly("fare", "FLOAT_TYPE_BIG_FLOAT")], statistics, schema=[FARE], limits=own)
    assert finding.what.startswith(f"at least {least} of {len(values)} rows")
    first = {"fare": np.array([50.0] * (len(values) - 1))}
    [finding] = find(
        [anomaly("fare", "FLOAT_TYPE_BIG_FLOAT")], statistics, schema=[FARE], limits=own, sample=first
    )
    assert finding.what.startswith(f"about {least} of {len(values)} rows")


@pytest.mark.parametrize(
    ("train", "rows", "anomalous", "words"),
    [
        # Half of the rows of eval, which are a tenth of all.
        ([1.0] * 900, 900, "eval", "at least 49 of 1,000 rows"),
        # Half of the values of train, of which nine tenths are empty.
        ([1.0] * 45 + [150.0] * 45, 900, "train", "at least 44 of 1,000 rows"),
    ],
)
def test_other_splits_and_empty_cells_are_not_outside_the_range(split, train, rows, anomalous, words):
    statistics = {"train": split(rows, fare=train), "eval": split(fare=[1.0] * 50 + [150.0] * 50)}
    [finding] = find([anomaly("fare", "FLOAT_TYPE_BIG_FLOAT", split=anomalous)], statistics, schema=[FARE])
    assert finding.what.startswith(words)


@pytest.mark.parametrize(
    ("allowed", "values", "words", "edit"),
    [
        ((5.0, None), [0.0, 9.0], "below 5, as far as 0", "set the min of fare to 0"),
        ((None, 0.0), [-9.0, 3.0], "above 0, as far as 3", "set the max of fare to 3"),
        ((-5.0, 0.0), [-9.0, 3.0], "outside -5 to 0, as far as -9 to 3", "set the max of fare to 3"),
    ],
)
def test_range_that_is_open_or_ends_at_nothing_is_reported_with_its_bounds(
    split, allowed, values, words, edit
):
    schema = [FeatureSchema("fare", "FLOAT", min=allowed[0], max=allowed[1])]
    column = np.array(values * 5)
    found = find(
        [anomaly("fare", "FLOAT_TYPE_BIG_FLOAT")], {"train": split(fare=column)}, schema=schema,
        sample={"fare": column},
    )  # fmt: skip
    assert [finding.what.partition(" lie ")[2] for finding in found] == [words]
    assert found[0].what.startswith("10 of 10" if "outside" in words else "5 of 10")
    assert found[0].remedy.endswith(edit)


def test_share_outside_the_range_may_be_let_pass(split):
    statistics, sample = {"train": split(fare=[1.0] * 99 + [150.0])}, {"fare": np.array([1.0] * 99 + [150.0])}
    for limit, count in ((0.01, 0), (0.009, 1)):
        own = Limits(max_out_of_domain_share=limit)
        found = find(
            [anomaly("fare", "FLOAT_TYPE_BIG_FLOAT")], statistics, schema=[FARE], sample=sample, limits=own
        )
        assert len(found) == count


def test_zero_that_stands_for_an_empty_column_is_no_number_outside_its_range(split):
    statistics = {"train": split(100, fare=[])}
    allowed = FeatureSchema("fare", "FLOAT", min=41.0, max=42.0)
    assert not find([anomaly("fare", "FLOAT_TYPE_SMALL_FLOAT")], statistics, schema=[allowed])


def test_values_outside_their_domain_are_reported_whole(split):
    both = {
        "train": split(pay={"Cash": 96, "Pcard": 3, "Bitcoin": 1}),
        "eval": split(pay={"Cash": 49, "Pcard": 1}),
    }
    assert find([anomaly("pay", TEXTS), anomaly("pay", TEXTS, split="eval")], both, schema=[PAYMENT]) == [
        Finding(
            "domain",
            "pay",
            ("train", "eval"),
            '5 of 150 rows (3.33%) hold "Pcard", "Bitcoin", not in its domain',
            measured=pytest.approx(0.0333333333),
            limit=0.0,
            key="data_gate.max_out_of_domain_share",
            remedy='correct them, or in schemas/t.pbtxt: add "Pcard", "Bitcoin" to the domain of pay',
            edits=(Edit("add_values", "pay", values=("Bitcoin", "Pcard")),),
            query=RowQuery("pay", values=("Pcard", "Bitcoin")),
        )
    ]
    one, kinds = {"train": split(pay={"Cash": 96, "Pcard": 4})}, replace(PAYMENT, domain_name="kinds")
    assert find([anomaly("pay", TEXTS)], one, schema=[kinds]) == [
        Finding(
            "domain",
            "pay",
            ("train",),
            '4 of 100 rows (4.00%) hold "Pcard", not in its domain',
            measured=0.04,
            limit=0.0,
            key="data_gate.max_out_of_domain_share",
            remedy='correct it, or in schemas/t.pbtxt: add "Pcard" to the domain of pay ("kinds")',
            edits=(Edit("add_values", "pay", values=("Pcard",)),),
            query=RowQuery("pay", values=("Pcard",)),
        )
    ]
    own = Limits(anomalies="none", features={"pay": {"max_out_of_domain_share": 0.01}})
    assert find(
        [anomaly("pay", TEXTS)], one, schema=[replace(PAYMENT, domain_name="")], limits=own, schema_file=""
    ) == [
        Finding(
            "domain",
            "pay",
            ("train",),
            '4 of 100 rows (4.00%) hold "Pcard", not in its domain',
            measured=0.04,
            limit=0.01,
            key="data_gate.features.pay.max_out_of_domain_share",
            remedy="correct it; the schema is inferred from the data itself (schema: null)",
            query=RowQuery("pay", values=("Pcard",)),
            stops=False,
        )
    ]


def test_numbers_outside_their_range_are_reported_whole(split):
    fares = [1.0] * 98 + [-5.0, 150.0]
    assert find(
        [anomaly("fare", "FLOAT_TYPE_BIG_FLOAT")],
        {"train": split(fare=fares)},
        schema=[FARE],
        sample={"fare": np.array(fares)},
    ) == [
        Finding(
            "domain",
            "fare",
            ("train",),
            "2 of 100 rows (2.00%) lie outside 0 to 100, as far as -5 to 150",
            measured=0.02,
            limit=0.0,
            key="data_gate.max_out_of_domain_share",
            remedy=(
                "correct them, or in schemas/t.pbtxt: set the min of fare to -5 and set the max of "
                "fare to 150"
            ),
            edits=(
                Edit("set_range", "fare", number=-5.0, text="min"),
                Edit("set_range", "fare", number=150.0, text="max"),
            ),
            query=RowQuery("fare", below=0.0, above=100.0),
        )
    ]
    own = Limits(anomalies="none", features={"fare": {"max_out_of_domain_share": 0.005}})
    assert find(
        [anomaly("fare", "FLOAT_TYPE_BIG_FLOAT")],
        {"train": split(fare=[*fares[:99], 150.0][1:])},
        schema=[replace(FARE, min=None)],
        limits=own,
        schema_file="",
    ) == [
        Finding(
            "domain",
            "fare",
            ("train",),
            "at least 1 of 99 rows (1.01%) lie above 100, as far as 150",
            measured=pytest.approx(0.0101010101),
            limit=0.005,
            key="data_gate.features.fare.max_out_of_domain_share",
            remedy="correct them; the schema is inferred from the data itself (schema: null)",
            query=RowQuery("fare", above=100.0),
            stops=False,
        )
    ]
