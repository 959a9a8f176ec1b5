"""The newest value of a time column."""

import time

import numpy as np
import pytest

from slipway.components.data_gate.finding import Finding, RowQuery
from slipway.components.data_gate.rule_limits import Freshness
from slipway.components.data_gate.rules.freshness import find_staleness, newest

DAY = 86_400
NOW = 1_795_000_000  # 18 November 2026


def stale(split, values, *, before=None, elapsed_days=None, **limits):
    reference = {"train": split(t=before)} if before is not None else {}
    elapsed_s = None if elapsed_days is None else elapsed_days * DAY
    wanted = Freshness(column="t", **limits)
    return list(find_staleness({"train": split(t=values)}, reference, wanted, now_s=NOW, elapsed_s=elapsed_s))


@pytest.mark.parametrize(
    ("age_days", "limit", "is_found"),
    [
        (1, 7, False),
        (7, 7, False),
        (8, 7, True),
        (400, 7, True),
        (400, None, False),
        (0, 0.5, False),
        (0, 0, False),
    ],
)
def test_age_of_the_newest_value_is_held_against_the_limit(split, age_days, limit, is_found):
    values = [NOW - 1000 * DAY, NOW - age_days * DAY]
    findings = stale(split, values, max_age_days=limit)
    assert bool(findings) == is_found
    if is_found:
        assert findings[0].measured == pytest.approx(age_days)
        assert findings[0].key == "data_gate.freshness.max_age_days"


def test_advice_names_a_limit_that_is_above_the_present_one(split):
    before = NOW - DAY * np.linspace(10, 11, 1000)
    [finding] = stale(split, [*(before - 1.4 * DAY), before.max()], before=before)
    assert finding.measured == pytest.approx(1.27, abs=0.02)
    assert finding.remedy.endswith("raise data_gate.freshness.max_behind_days above 1.3")


@pytest.mark.parametrize("zone", ["", "Z", " UTC", "+00:00"])
def test_the_zone_may_be_written_in_any_way(split, zone):
    text = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(NOW - 10 * DAY)) + zone
    [finding] = stale(split, {text: 5}, max_age_days=7)
    assert finding.measured == pytest.approx(10)


@pytest.mark.parametrize("values", [[NOW + 3 * DAY], [NOW * 1000], [1e300]])
def test_newest_value_in_the_future_is_found_whatever_the_limits(split, values):
    [finding] = stale(split, values)
    assert "is in the future" in finding.what


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ([NOW - 5 * DAY, NOW + 3 * DAY, NOW + 4 * DAY], ", as about "),
        ([NOW * 1000, NOW * 1000 + 5], ", as 2 of 2 rows (100%) do"),
    ],
)
def test_times_in_the_future_are_counted_and_their_rows_asked_for(split, values, words):
    [finding] = stale(split, values)
    assert words in finding.what
    assert finding.query == RowQuery("t", above=NOW + DAY)


def test_newest_rows_are_asked_for(split):
    newest_s = NOW - 400 * DAY
    [old] = stale(split, [NOW - 900 * DAY, newest_s], max_age_days=7)
    assert old.query == RowQuery("t", above=newest_s - DAY)
    [behind] = stale(split, [newest_s], before=[NOW - 100 * DAY])
    assert behind.query == RowQuery("t", above=newest_s - DAY)
    times = {"2026-01-01": 5, "2025-12-31T12:00:00": 2, "2025-12-31": 3, "2024-01-01": 9}
    [dates] = stale(split, times, max_age_days=7)
    assert dates.query == RowQuery("t", values=("2025-12-31T12:00:00", "2026-01-01"))


def test_clock_a_little_ahead_is_no_future(split):
    assert not stale(split, [NOW + 3600])
    assert not stale(split, [NOW + DAY])


@pytest.mark.parametrize(
    ("behind_days", "is_found"), [(-30, False), (0, False), (1, False), (2, True), (900, True)]
)
def test_data_that_ends_before_the_reference_is_found(split, behind_days, is_found):
    before = NOW - 100 * DAY
    findings = stale(split, [before - behind_days * DAY], before=[before])
    assert bool(findings) == is_found


@pytest.mark.parametrize(
    ("ahead_days", "elapsed_days", "is_found"),
    [
        (0, 0, False), (31, 0, False), (32, 0, True), (365, 365, False), (730, 365, True), (1, 400, False),
        (730, None, False),
    ],
)  # fmt: skip
def test_data_cannot_move_on_faster_than_time_does(split, ahead_days, elapsed_days, is_found):
    before = NOW - 1000 * DAY
    findings = stale(split, [before + ahead_days * DAY], before=[before], elapsed_days=elapsed_days)
    assert bool(findings) == is_found
    if is_found:
        assert findings[0].key == "data_gate.freshness.max_ahead_days"
        assert findings[0].measured == ahead_days - elapsed_days


def times(seed, *, rows=5000, old=0.0):
    """A year of times up to 10 days ago, of which a share was moved two years back."""
    rng = np.random.default_rng(seed)
    found = NOW - rng.uniform(10, 375, rows) * DAY
    moved = rng.random(rows) < old
    found[moved] -= 730 * DAY
    return [*found, NOW - 10 * DAY]


@pytest.mark.parametrize("seed", range(10))
def test_random_samples_of_the_same_times_pass(split, seed):
    assert not stale(split, times(seed), before=times(seed + 100), elapsed_days=0)


def test_rows_moved_into_the_past_are_found_though_the_newest_is_there(split):
    [finding] = stale(split, times(1, old=0.2), before=times(2))
    assert "half of the values are older than" in finding.what
    _, high = finding.query.within
    assert high <= NOW - 730 * DAY + 375 * DAY, "of the rows that were moved"
    assert finding.key == "data_gate.freshness.max_behind_days"


def test_middle_may_fall_where_the_newest_is_as_late_as_is_allowed(split):
    before = np.linspace(NOW - 100 * DAY, NOW - 10 * DAY, 1001)
    now = np.linspace(NOW - 500 * DAY, NOW - 11 * DAY, 1001)
    [finding] = stale(split, now, before=before)
    assert finding.what.startswith("half of the values are older than 2026-04-07, ")


def test_times_of_two_kinds_are_compared_by_their_newest_alone(split):
    numbers, texts = [NOW - 10 * DAY] * 9, {"2026-11-08": 9}
    assert not stale(split, numbers, before=texts)
    assert not stale(split, texts, before=numbers)


def test_what_lies_in_the_future_is_counted_from_a_day_after_now(split):
    [many] = stale(split, [NOW - DAY / 2] * 5000 + [NOW + 3 * DAY] * 5000)
    assert ", as about 5,014 of 10,000 rows" in many.what
    [one] = stale(split, [NOW - 5 * DAY] * 100_000 + [NOW + 1.0001 * DAY])
    assert "1 of 100,001 rows (under 0.01%)" in one.what


def test_dates_are_those_of_utc_whatever_the_machines_zone(split, monkeypatch):
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    try:
        assert newest({"train": split(t={"2026-11-17": 1})}, "t") == 1_794_873_600
        [finding] = stale(split, [NOW - NOW % DAY - DAY + 23 * 3600], max_age_days=0)
        assert "the newest value, 2026-11-17, is" in finding.what
    finally:
        monkeypatch.undo()
        time.tzset()


@pytest.mark.parametrize(
    ("time_s", "date"),
    [(-62_135_596_800, "0001-01-01"), (-62_135_596_801, "-6.214e+10"), (253_402_300_799, "9999-12-31")],
)
def test_dates_are_of_the_years_1_to_9999(split, time_s, date):
    [finding] = stale(split, [time_s], max_age_days=7)
    assert finding.what.startswith(f"the newest value, {date}, ")


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


def test_old_data_is_reported_whole(split):
    assert stale(split, [NOW - 900 * DAY, NOW - 400 * DAY], max_age_days=7) == [
        Finding(
            "freshness",
            "t",
            (),
            "the newest value, 2025-10-14, is 400 days old",
            measured=400.0,
            limit=7,
            key="data_gate.freshness.max_age_days",
            remedy="provide newer data, or raise data_gate.freshness.max_age_days",
            query=RowQuery("t", above=1760353600.0),
        )
    ]
    assert stale(split, [NOW - 2 * DAY], max_age_days=1) == [
        Finding(
            "freshness",
            "t",
            (),
            "the newest value, 2026-11-16, is 2 days old",
            measured=2.0,
            limit=1,
            key="data_gate.freshness.max_age_days",
            remedy="provide newer data, or raise data_gate.freshness.max_age_days",
            query=RowQuery("t", above=1794740800.0),
        )
    ]
    assert stale(split, [NOW - 1.5 * DAY], max_age_days=1) == [
        Finding(
            "freshness",
            "t",
            (),
            "the newest value, 2026-11-16, is 36 hours old",
            measured=1.5,
            limit=1,
            key="data_gate.freshness.max_age_days",
            remedy="provide newer data, or raise data_gate.freshness.max_age_days",
            query=RowQuery("t", above=1794784000.0),
        )
    ]


def test_times_in_the_future_are_reported_whole(split):
    assert stale(split, [NOW - 5 * DAY, NOW + 3 * DAY, NOW + 4 * DAY]) == [
        Finding(
            "freshness",
            "t",
            (),
            "the newest value, 2026-11-22, is in the future, as about 2 of 3 rows (66.67%) do",
            remedy="check that it is in seconds since 1970, and the clock that wrote it",
            query=RowQuery("t", above=1795086400.0),
        )
    ]
    assert stale(split, [NOW * 1000, NOW * 1000 + 5]) == [
        Finding(
            "freshness",
            "t",
            (),
            "the newest value, 1.795e+12, is in the future, as 2 of 2 rows (100%) do",
            remedy="check that it is in seconds since 1970, and the clock that wrote it",
            query=RowQuery("t", above=1795086400.0),
        )
    ]
    assert stale(split, {"2027-01-01": 5}) == [
        Finding(
            "freshness",
            "t",
            (),
            "the newest value, 2027-01-01, is in the future",
            remedy="check that it is in seconds since 1970, and the clock that wrote it",
            query=RowQuery("t", values=("2027-01-01",)),
        )
    ]


def test_data_that_ends_before_the_reference_or_ran_ahead_of_it_is_reported_whole(split):
    assert stale(split, [NOW - 400 * DAY], before=[NOW - 100 * DAY]) == [
        Finding(
            "freshness",
            "t",
            (),
            "the newest value, 2025-10-14, is 300 days older than the reference's, 2026-08-10",
            measured=300.0,
            limit=1.0,
            key="data_gate.freshness.max_behind_days",
            remedy="check that this is the right file; otherwise raise data_gate.freshness.max_behind_days",
            query=RowQuery("t", above=1760353600.0),
        )
    ]
    assert stale(split, [NOW - 200 * DAY], before=[NOW - 1000 * DAY], elapsed_days=400) == [
        Finding(
            "freshness",
            "t",
            (),
            (
                "the newest value went from 2024-02-22 in the reference to 2026-05-02, 400 days more "
                "than have passed since it was judged"
            ),
            measured=400.0,
            limit=31.0,
            key="data_gate.freshness.max_ahead_days",
            remedy=(
                "check whether the times were shifted; if you work through a history faster "
                "than it was recorded, raise data_gate.freshness.max_ahead_days above 400"
            ),
            query=RowQuery("t", above=1777633600.0),
        )
    ]


def test_times_that_moved_into_the_past_are_reported_whole(split):
    now, before = (np.linspace(NOW - days * DAY, NOW - 10 * DAY, 10_001) for days in (500, 100))
    assert stale(split, now, before=before) == [
        Finding(
            "freshness",
            "t",
            (),
            (
                "half of the values are older than 2026-03-18, in the reference older than 2026-09-22: 188 "
                "days earlier"
            ),
            measured=pytest.approx(188.40058),
            limit=1.0,
            key="data_gate.freshness.max_behind_days",
            remedy=(
                "check whether times were shifted, or old rows came in again; otherwise raise "
                "data_gate.freshness.max_behind_days above 188"
            ),
            query=RowQuery("t", within=(1760267392.0, 1764924288.0)),
        )
    ]


def test_column_that_holds_no_time_is_reported_whole(split):
    assert stale(split, {"monday": 3}) == [
        Finding(
            "freshness",
            "t",
            (),
            "holds no time: it must hold seconds since 1970 or ISO 8601 dates",
            remedy="correct data_gate.freshness.column",
        )
    ]


def test_times_before_the_first_year_and_at_the_epoch_are_times(split):
    assert stale(split, [-1e11], max_age_days=7) == [
        Finding(
            "freshness",
            "t",
            (),
            "the newest value, -1e+11, is 1,178,183 days old",
            measured=pytest.approx(1178182.87),
            limit=7,
            key="data_gate.freshness.max_age_days",
            remedy="provide newer data, or raise data_gate.freshness.max_age_days",
            query=RowQuery("t", above=-100000086400.0),
        )
    ]
    assert stale(split, {"1970-01-01": 3}, max_age_days=7) == [
        Finding(
            "freshness",
            "t",
            (),
            "the newest value, 1970-01-01, is 20,775 days old",
            measured=pytest.approx(20775.463),
            limit=7,
            key="data_gate.freshness.max_age_days",
            remedy="provide newer data, or raise data_gate.freshness.max_age_days",
            query=RowQuery("t", values=("1970-01-01",)),
        )
    ]
