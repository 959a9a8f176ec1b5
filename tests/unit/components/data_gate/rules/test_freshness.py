"""The newest value of a time column."""

import pytest

from components.data_gate.limits import Freshness
from components.data_gate.rules.freshness import find_staleness, newest

DAY = 86_400
NOW = 1_795_000_000  # 18 November 2026


def stale(split, values, *, before=None, **limits):
    reference = {"train": split(t=before)} if before is not None else {}
    return list(
        find_staleness({"train": split(t=values)}, reference, Freshness(column="t", **limits), now_s=NOW)
    )


@pytest.mark.parametrize(
    ("age_days", "limit", "is_found"),
    [(1, 7, False), (7, 7, False), (8, 7, True), (400, 7, True), (400, None, False), (0, 0.5, False)],
)
def test_age_of_the_newest_value_is_held_against_the_limit(split, age_days, limit, is_found):
    values = [NOW - 1000 * DAY, NOW - age_days * DAY]
    findings = stale(split, values, max_age_days=limit)
    assert bool(findings) == is_found
    if is_found:
        assert findings[0].measured == pytest.approx(age_days)
        assert findings[0].key == "data_gate.freshness.max_age_days"


@pytest.mark.parametrize("values", [[NOW + 3 * DAY], [NOW * 1000], [1e300]])
def test_newest_value_in_the_future_is_found_whatever_the_limits(split, values):
    [finding] = stale(split, values)
    assert "lies in the future" in finding.what


def test_clock_a_little_ahead_is_no_future(split):
    assert not stale(split, [NOW + 3600])


@pytest.mark.parametrize(
    ("behind_days", "is_found"), [(-30, False), (0, False), (1, False), (2, True), (900, True)]
)
def test_data_that_ends_before_the_reference_is_found(split, behind_days, is_found):
    before = NOW - 100 * DAY
    findings = stale(split, [before - behind_days * DAY], before=[before])
    assert bool(findings) == is_found


@pytest.mark.parametrize(
    ("texts", "newest_s"),
    [
        ({"2026-11-01": 3, "2026-11-17": 1}, 1_794_873_600),
        ({"2026-11-17T00:00:00Z": 1}, 1_794_873_600),
        ({"2026-11-17 01:00:00+01:00": 1, "nonsense": 5}, 1_794_873_600),
    ],
)
def test_dates_as_text_are_read(split, texts, newest_s):
    assert newest({"train": split(t=texts)}, "t") == newest_s


def test_column_without_times_is_found(split):
    [finding] = stale(split, {"monday": 3})
    assert "holds no time" in finding.what
    [finding] = find_staleness({"train": split(x=[1])}, {}, Freshness(column="t"), now_s=NOW)
    assert "holds no time" in finding.what


def test_nothing_is_looked_at_unless_asked(split):
    assert not list(find_staleness({"train": split(t=[1e300])}, {}, None, now_s=NOW))
