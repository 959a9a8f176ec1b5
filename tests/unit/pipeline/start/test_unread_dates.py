"""Columns of texts that are dates to a reader only."""

import pytest

from slipway.pipeline.start.unread_dates import unread_dates

DAYS = [f"2024-01-{day:02}" for day in range(1, 28)]
GERMAN = [f"{day:02}.01.2024" for day in range(1, 28)]


@pytest.mark.parametrize(
    "texts",
    [
        DAYS + GERMAN,
        [*GERMAN, "31.02.2024"],
        [f"{day} Dezember 2021" for day in range(1, 20)],
        [f"March {day}, 2024 at 10:20 AM CET" for day in range(1, 20)],
        [f"Fri Mar {day:02} 10:20:30 CET 2024" for day in range(1, 20)],
        [f"Fri Mar {day:02} 2024 10:20:30 GMT+0100 (Central European Standard Time)" for day in range(1, 20)],
        [f"Friday, March {day}, 2024 at 10:20:30 AM Central European Standard Time" for day in range(1, 20)],
        [f"{day:02}/Mar/2024:10:20:30 +0100" for day in range(1, 20)],
        [*DAYS, "2024-02-01 or in the week after it"],
    ],
)
def test_dates_of_several_formats_are_told_with_the_remedy(texts):
    assert unread_dates(texts).startswith("dates in several formats or in an unknown one: write them as YYYY")


@pytest.mark.parametrize(
    ("others", "shown"),
    [
        (["TBD"], "'TBD'"),
        (["TBD", "open"], "'TBD' and 'open'"),
        (["TBD", "open", "-/-"], "'TBD', 'open' and"),
    ],
)
@pytest.mark.parametrize(
    "after",
    [
        "",
        " 10:20:00 UTC",
        " 10:20 PM",
        " 10:20:00.5 +01:00",
        " um 10:20 Uhr",
        " 10:20 Europe/Berlin",
    ],
)
def test_a_few_words_among_dates_are_named(others, shown, after):
    told = unread_dates([*(day + after for day in DAYS), *others])
    assert told.startswith(f"dates except {shown}")
    assert told.endswith("; correct or empty these cells, and start again")


@pytest.mark.parametrize(
    "texts",
    [
        [*DAYS, "a", "b", "c", "d"],  # 27 of 31
        [*DAYS[:4], "TBD"],
        [f"1.{n}.{n}" for n in range(30)],  # versions
        [f"4711-{n}-78" for n in range(30, 60)],
        ["red", "blue"],
        [*(f"2024-01-05 10:20 ERROR service {n} has failed" for n in range(30)), "line 3 of the trace"],
        [*(f"03/14/2023: patient {n} reports pain" for n in range(30)), "as before"],
        [f"{day} delivered to the shop" for day in DAYS],
        [f"{day}: the {number}th delivery" for number, day in enumerate(GERMAN)],
    ],
)
def test_other_texts_are_no_dates(texts):
    assert unread_dates(texts) == ""


@pytest.mark.parametrize("filling", [" ", "\t", "T", "1", "a", "pm ", "T/", "(", "time "])
def test_a_text_of_a_million_characters_after_a_day_is_judged_at_once(filling):
    """A search that begins anew at each of them would take hours."""
    unread_dates([*DAYS, "TBD", f"2024-02-01{filling * 1_000_000}?"])
