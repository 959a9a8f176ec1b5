import json
from dataclasses import replace

import pytest

from slipway.components.data_gate.rule_limits import Limits
from slipway.components.data_gate.statistics import FeatureStatistics, SplitStatistics
from slipway.pipeline.errors import UsageError
from slipway.pipeline.watch.judge_requests import WatchRequest, watch
from slipway.pipeline.watch.late_labels import AGAIN
from slipway.pipeline.watch.log_folder import Logs
from slipway.pipeline.watch.page import gather, write_page


@pytest.fixture
def watch_request(tmp_path):
    return lambda **more: WatchRequest("taxi", 7, Logs.of(tmp_path / "log"), "day", Limits(), **more)


def test_nothing_has_drifted_in_more_of_the_same(watch_request, training, write_log):
    for day in range(3):
        write_log(day)
    found = watch(watch_request(), training)
    assert found.sentence == (
        "Nothing has drifted in the requests to version 7 of taxi: 3,000 rows, 2 columns, "
        "2026-11-22 to 2026-11-24."
    )
    assert found.exit_code == 0


def test_what_drifted_is_reported_since_when_and_with_rows(watch_request, training, write_log):
    for day in range(4):
        write_log(day, factor=1.0 if day < 2 else 2.0)
    found = watch(watch_request(), training)
    assert found.sentence == (
        "1 of 2 columns drifted in the requests to version 7 of taxi: fare since 2026-11-24."
    )
    assert found.exit_code == 3
    assert "requests-3.jsonl line" in found.text()
    told = json.loads(json.dumps(found.to_json()))
    assert [each["column"] for each in told["drifted"]] == ["fare"]
    assert [each["drifted"] for each in told["windows"]] == [[], [], ["fare"], ["fare"]]


@pytest.mark.parametrize("rows", [1000, 30])
def test_rows_dated_in_the_future_are_not_the_newest_and_are_counted(
    watch_request, training, write_log, rows
):
    """Of one server whose clock is wrong: as the newest window, they would be judged in place of today's."""
    write_log(0)
    write_log(1, factor=2.0)
    write_log(400, rows=rows)
    now_s = 1_795_305_600 + 86_400 * 1.5
    found = watch(watch_request(), training, clock=lambda: now_s)
    assert [each.column for each in found.drifted] == ["fare"]
    assert found.rows == 2000
    words = f"rows dated after the current day, by another clock ({rows:,})"
    assert found.text().endswith(f"\nLeft out or incomplete: {words}.")
    assert {row.file for row in found.drifted[0].finding.rows} == {"requests-1.jsonl"}


@pytest.mark.parametrize("min_rows", [20, 0])
def test_log_that_is_all_in_the_future_is_not_judged(watch_request, training, write_log, min_rows):
    write_log(3)
    watched = replace(watch_request(), limits=Limits(min_rows=min_rows))
    with pytest.raises(
        UsageError, match=r"holds 0 rows .* besides 1,000 rows dated after .*, too few"
    ) as found:
        watch(watched, training, clock=lambda: 1_795_305_600)
    assert found.value.hint.endswith("set the clocks right")


def test_few_newest_rows_are_told_to_be_judged_with_those_of_long_ago(watch_request, training, write_log):
    write_log(0)
    write_log(1)
    write_log(90, rows=3)
    found = watch(watch_request(), training, clock=lambda: 1_900_000_000)
    assert found.sentence.endswith("2,003 rows, 2 columns, 2026-11-22 to 2027-02-20.")
    merged = "The newest rows were judged together, for lack of rows in each day: 2026-11-23 to 2027-02-20."
    assert found.text().endswith(f"\n{merged}")
    assert gather(found)["windows"][-1]["name"] == "2026-11-23 to 2027-02-20"
    assert gather(found)["merged"] == merged
    assert [each["last"] for each in found.to_json()["windows"]] == ["2026-11-22", "2027-02-20"]


def test_columns_that_are_skipped_or_not_logged_are_not_compared(watch_request, training, write_log):
    write_log(0, factor=2.0)
    found = watch(watch_request(skip={"fare"}), training)
    assert (found.columns, found.not_logged, found.exit_code) == (("company",), (), 0)


def test_column_that_only_some_files_have_is_told(watch_request, training, write_log):
    """As of the days before request_log.columns named it."""
    folder = write_log(0)
    rows = map(json.loads, (folder / "requests-0.jsonl").read_text().splitlines())
    (folder / "requests-0.jsonl").write_text(
        "".join(json.dumps({key: row[key] for key in row if key != "company"}) + "\n" for row in rows)
    )
    write_log(1)
    found = watch(watch_request(), training)
    assert found.columns == ("fare",)
    assert found.text().endswith(
        "\nLeft out or incomplete: files without company, which is not compared (1)."
    )


def test_rows_whose_value_has_another_type_are_told(watch_request, training, write_log):
    folder = write_log(0)
    with (folder / "requests-0.jsonl").open("a") as file:
        line = {"logged_at": "2026-11-22T00:00:00.000+00:00", "logged_version": 7, "company": ["A", "B"]}
        file.write(json.dumps(line) + "\n")
    found = watch(watch_request(), training)
    assert (found.rows, found.exit_code) == (1000, 0)
    assert found.text().endswith(
        "\nLeft out or incomplete: rows with a value of another type than in training (1)."
    )


def test_column_of_lists_that_are_mostly_empty_is_not_compared(watch_request, training, write_log):
    write_log(0, tags=["a", "b"])
    tags = FeatureStatistics("tags", "text", 10_000, 500, 1_000, unique=2, most_values=2)
    mostly_empty = SplitStatistics(10_000, {**training.features, "tags": tags})
    found = watch(watch_request(), mostly_empty)
    assert (found.columns, found.not_logged) == (("fare", "company"), ("tags",))


def test_rows_that_share_a_value_are_shown(watch_request, training, write_log):
    """At a decile of the training data, from which a range begins that holds no other row."""
    folder = write_log(0)
    rows = list(map(json.loads, (folder / "requests-0.jsonl").read_text().splitlines()))
    for row in rows:
        row["fare"] = 5.0 if 4 < row["fare"] < 7 else row["fare"]
    (folder / "requests-0.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    [found] = watch(watch_request(), training).drifted
    assert "lie from 5 to 6" in found.finding.what
    assert {row.value for row in found.finding.rows} == {"5.0"}


def test_column_that_is_no_input_and_never_has_a_value_is_not_compared(watch_request, training, write_log):
    """Such as another label, which request_log.columns names and no request has."""
    write_log(0, paid=None)
    paid = replace(training.features["company"], name="paid")
    wider = SplitStatistics(10_000, {**training.features, "paid": paid})
    found = watch(watch_request(inputs=("fare", "company")), wider)
    assert (found.columns, found.not_logged, found.drifted) == (("fare", "company"), ("paid",), ())
    for inputs in ((), ("fare", "company", "paid")):
        assert [each.column for each in watch(watch_request(inputs=inputs), wider).drifted] == ["paid"]


def test_empty_texts_are_no_value_in_the_training_as_in_the_log(watch_request, training, write_log):
    """Files of JSON Lines and Parquet hold them, and the log has null for them."""
    write_log(0)
    company = training.features["company"]
    empty = replace(company, present=10_000, values=10_000, unique=3, counts={**company.counts, "": 2_500.0})
    found = watch(watch_request(), SplitStatistics(10_000, {**training.features, "company": empty}))
    assert (found.columns, found.drifted) == (("fare", "company"), ())


def test_few_requests_are_not_judged(watch_request, training, write_log):
    write_log(0, rows=19)
    with pytest.raises(UsageError, match=r"19 rows .* too few to judge; data_gate.min_rows is 20"):
        watch(watch_request(), training)


def test_page_shows_all_and_escapes_it(watch_request, training, write_log, tmp_path):
    write_log(0, factor=2.0)
    found = replace(watch(replace(watch_request(), workload="<b>"), training), labelled_left_out={AGAIN: 3})
    text = write_page(found, tmp_path / "watch/page.html").read_text()
    assert "<b>" not in text
    assert "with at least 500 rows" in text
    assert "<p>Left out or incomplete: labelled rows whose key was logged again later (3).</p>" in text
    assert "&lt;b&gt;: is version 7 still right?" in text
    assert gather(found)["findings"][0]["since"] == "2026-11-22"
    assert "requests-0.jsonl" in gather(found)["findings"][0]["rows"]
