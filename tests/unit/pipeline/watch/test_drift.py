import numpy as np
import pyarrow as pa

from slipway.components.data_gate.finding import Finding
from slipway.components.data_gate.rule_limits import Limits
from slipway.pipeline.watch.column_statistics import at_cuts_of, statistics_of
from slipway.pipeline.watch.drift import Judged, drifted, judge_window


def judged(training, fares, companies=None):
    companies = companies or [None, "A", "A", "B"] * (len(fares) // 4)
    table = pa.table({"fare": pa.array(fares), "company": pa.array(companies, pa.string())})
    own = statistics_of(table)
    found = judge_window(at_cuts_of(training, table, own), own, training, Limits())
    return {name: (finding.rule, finding.splits) for name, finding in found.items()}


FARES = np.random.default_rng(0).random(2000) * 10


def test_more_of_the_same_has_not_drifted(training):
    assert judged(training, FARES) == {}


def test_another_shape_a_factor_and_other_texts_are_found(training):
    assert judged(training, FARES**2 / 10) == {"fare": ("drift", ())}
    assert judged(training, FARES * 3) == {"fare": ("scale", ())}
    assert judged(training, FARES, [None, "A", "C", "B"] * 500) == {"company": ("drift", ())}


def test_missing_values_are_reported_rather_than_drift(training):
    fares = pa.array(FARES**2 / 10, mask=np.arange(2000) % 4 == 0)
    assert judged(training, fares) == {"fare": ("missing", ())}


def test_text_among_dates_is_drift_where_it_is_not_rare():
    def days(*texts):
        return statistics_of(pa.table({"day": pa.array(texts)}))

    training = days(*["2024-01-31"] * 100)
    rare, frequent = (days(*["2024-01-31"] * (100 - n), *["1/31/2024"] * n) for n in (1, 10))
    assert judge_window(rare, rare, training, Limits()) == {}
    assert judge_window(frequent, frequent, training, Limits())["day"].rule == "missing"


def test_since_is_the_first_of_the_windows_in_a_row():
    def window(name, *columns):
        return Judged(name, 1000, {each: Finding("drift", each, (), "") for each in columns})

    days = [window("1", "a", "c"), window("2", "b"), window("3", "a", "b"), window("4", "a", "b")]
    assert [(each.column, each.since, each.is_from_begin) for each in drifted(days)] == [
        ("b", "2", False),
        ("a", "3", False),
    ]
    assert drifted([*days, window("5")]) == ()
    assert drifted(days[:1])[0].is_from_begin
