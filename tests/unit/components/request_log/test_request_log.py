import json
import threading

import numpy as np
import pytest

from slipway.components.request_log import request_log
from slipway.components.request_log.request_log import BackgroundLog, LogSettings, RequestLog

AT_S = 1_800_000_000.0


@pytest.fixture
def settings(tmp_path):
    return lambda **more: LogSettings(**{"folder": str(tmp_path), "columns": ("fare",), **more})


def lines(folder):
    return [json.loads(line) for file in sorted(folder.iterdir()) for line in file.read_bytes().splitlines()]


def request(rows):
    fares = np.arange(rows, dtype=np.float32).reshape(rows, 1)
    return {"fare": fares, "other": fares}, {"outputs": fares * 2}


def test_line_has_time_version_columns_and_answer(settings, tmp_path):
    log = RequestLog(settings(), clock=lambda: AT_S)
    log.write_arrays(7, AT_S, *request(1))
    log.close()
    assert lines(tmp_path) == [
        {
            "logged_at": "2027-01-15T08:00:00.000+00:00",
            "logged_version": 7,
            "fare": 0.0,
            "logged_prediction": [0.0],
        }
    ]


def test_rows_have_the_names_that_clients_gave_where_that_is_asked_for(settings, tmp_path):
    log = BackgroundLog(RequestLog(settings(ids=True)), tell=print)
    log.add(7, *request(1), name="a")
    log.add(7, *request(2), name="b")
    log.add(7, *request(1))
    log.close()
    assert [line["logged_id"] for line in lines(tmp_path)] == ["a", "b/0", "b/1", None]


def test_names_are_not_logged_unless_they_are_asked_for(settings, tmp_path):
    log = BackgroundLog(RequestLog(settings()), tell=print)
    log.add(7, *request(1), name="a")
    log.close()
    assert "logged_id" not in lines(tmp_path)[0]


def test_share_of_the_rows_is_drawn(settings):
    log = RequestLog(settings(share=0.1), seed=0)
    assert 900 < len(log.drawn(10_000)) < 1100
    assert len(RequestLog(settings()).drawn(5)) == 5


def test_examples_are_logged_with_their_own_answers(settings, tmp_path):
    log = RequestLog(settings(share=0.5), seed=1)
    log.write_examples(7, [b""] * 100, list(range(100)))
    answers = [line["logged_prediction"] for line in lines(tmp_path)]
    assert answers == sorted(set(answers))
    assert 30 < len(answers) < 70


def test_long_row_is_left_out(settings, tmp_path, monkeypatch):
    monkeypatch.setattr(request_log, "MOST_LINE_BYTES", 10)
    log = RequestLog(settings())
    log.write_arrays(7, AT_S, *request(3))
    assert log.left_out_counts == {request_log.TOO_LONG: 3}
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("columns", [("fare",), ("other", "fare")])
def test_row_with_an_infinite_number_is_left_out_and_not_logged_as_missing(settings, tmp_path, columns):
    told = []
    log = BackgroundLog(RequestLog(settings(columns=columns)), tell=told.append)
    inputs, outputs = request(4)
    inputs["fare"] = np.array([[1.0], [np.inf], [-np.inf], [np.nan]], dtype=np.float32)
    for _ in range(2):
        log.add(7, inputs, outputs)
    log.close()
    assert [line["fare"] for line in lines(tmp_path)] == [1.0, None] * 2
    assert told == [
        "Requests are left out of the log: rows with an infinite number, which JSON has not.",
        "The log of requests lacks 4 rows.",
    ]


def test_background_log_writes_what_waits_when_it_is_closed(settings, tmp_path):
    told = []
    log = BackgroundLog(RequestLog(settings()), tell=told.append)
    for _ in range(5):
        log.add(7, *request(10))
    log.close()
    assert len(lines(tmp_path)) == 50
    assert told == []


def test_request_that_is_answered_after_the_end_is_told(settings, tmp_path):
    """A connection that is open when `serve` is stopped is answered until the process has ended."""
    told = []
    log = BackgroundLog(RequestLog(settings()), tell=told.append)
    log.add(7, *request(1))
    log.close()
    log.add(7, *request(3))
    log.add(7, *request(2))
    assert len(lines(tmp_path)) == 1
    assert log.left_out == 5
    assert told == ["Requests are left out of the log: they were answered while the server was ending."]


def test_background_log_draws_inputs_and_answers_alike(settings, tmp_path):
    log = BackgroundLog(RequestLog(settings(share=0.2), seed=3), tell=print)
    log.add(7, *request(1000))
    log.close()
    found = lines(tmp_path)
    assert 100 < len(found) < 300
    assert all(line["logged_prediction"] == [2 * line["fare"]] for line in found)


def test_adding_never_waits_and_what_is_too_much_is_left_out(settings, monkeypatch):
    monkeypatch.setattr(request_log, "MOST_WAITING_BYTES", 3000)
    may_write, told = threading.Event(), []
    inner = RequestLog(settings())
    monkeypatch.setattr(inner, "write_arrays", lambda *_: may_write.wait())
    log = BackgroundLog(inner, tell=told.append)
    for _ in range(5):
        log.add(7, *request(100))  # 1,200 bytes each
    may_write.set()
    log.close()
    assert told == [
        "Requests are left out of the log: requests come faster than the disk can write them.",
        "The log of requests lacks 300 rows.",
    ]


def test_disk_that_fails_is_reported_once_and_stops_nothing(settings, tmp_path):
    told = []
    tmp_path.joinpath("file").write_text("in the way")
    log = BackgroundLog(RequestLog(settings(folder=str(tmp_path / "file"))), tell=told.append)
    log.add(7, *request(1))
    log.add(7, *request(2))
    log.close()
    assert told == ["Requests are left out of the log: File exists.", "The log of requests lacks 3 rows."]


def test_what_has_no_answer_for_each_row_is_not_logged(settings, tmp_path):
    log = BackgroundLog(RequestLog(settings()), tell=print)
    log.add(7, {"fare": np.float32(1.0)}, {"outputs": np.float32([1.0])})
    log.add(7, {"fare": np.float32([1.0, 2.0])}, {"outputs": np.float32(3.0)})
    log.close()
    assert lines(tmp_path) == []


def test_an_empty_text_is_one_in_a_column_that_every_row_of_the_version_has(tmp_path):
    log = BackgroundLog(RequestLog(LogSettings(str(tmp_path), ("city",))), tell=print)
    inputs = {"city": np.array([[b""]], dtype=object), "fare": np.float32([[1.0]])}
    outputs = {"outputs": np.float32([[0.5]])}
    log.add(7, inputs, outputs, needed=["city"])
    log.add(8, inputs, outputs)
    log.close()
    [file] = tmp_path.glob("*.jsonl")
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert [(line["logged_version"], line["city"]) for line in lines] == [(7, ""), (8, None)]
