import json

import pytest

from slipway.components.request_log.kept_back import kept_back
from slipway.components.request_log.request_log import LogSettings, RequestLog


@pytest.fixture
def settings(tmp_path):
    return LogSettings(str(tmp_path / "new/log"), ("fare",))


def write(settings, answer):
    log = RequestLog(settings)
    log.write_examples(1, [b""], [answer])
    log.close()


def answers(folder):
    lines = [line for file in sorted(folder.glob("*.jsonl")) for line in file.read_bytes().splitlines()]
    return [json.loads(line)["logged_prediction"] for line in lines]


def test_rows_are_in_the_log_once_they_are_to_be(settings, tmp_path):
    with kept_back(settings) as rows:
        write(rows.settings, 0.25)
        write(rows.settings, 0.5)
        assert answers(tmp_path / "new/log") == []
        rows.log()
        assert answers(tmp_path / "new/log") == [0.25, 0.5]
    assert answers(tmp_path / "new/log") == [0.25, 0.5]
    assert not list((tmp_path / "new/log").glob(".*"))


def test_after_an_error_nothing_is_left_but_what_was_there(settings, tmp_path):
    with pytest.raises(KeyboardInterrupt), kept_back(settings) as rows:  # noqa: PT012
        write(rows.settings, 0.25)
        raise KeyboardInterrupt
    assert not (tmp_path / "new").exists()
    write(settings, 0.5)
    with pytest.raises(KeyboardInterrupt), kept_back(settings) as rows:  # noqa: PT012
        write(rows.settings, 0.25)
        raise KeyboardInterrupt
    assert answers(tmp_path / "new/log") == [0.5]


def test_what_a_killed_process_left_goes_and_what_is_being_written_stays(settings, tmp_path):
    left = tmp_path / "new/log/.unlogged.0123abcd"
    left.mkdir(parents=True)
    (left / "requests-20260101-000000-000000-1.jsonl").touch()
    with kept_back(settings) as first:
        assert not left.exists()
        write(first.settings, 0.25)
        with kept_back(settings):
            pass
        first.log()
    assert answers(tmp_path / "new/log") == [0.25]


def test_where_nothing_was_answered_there_is_no_log(settings, tmp_path):
    with kept_back(settings) as rows:
        rows.log()
    assert not (tmp_path / "new").exists()
