"""A wait for a store is told, and ends with the request; what arrives is no wait."""

import json
import threading

import pytest

from slipway.components import store_waits
from slipway.components.progress import PROGRESS_VARIABLE

LIMIT_S = 60.0
"""Seconds after which a test gives up waiting for a word."""


@pytest.fixture
def said(monkeypatch):
    """What was told, as a list, whose event `more` is set by each further word."""

    class Said(list):
        more = threading.Event()

        def append(self, words):
            super().append(words)
            self.more.set()

    found = Said()
    found.more = threading.Event()
    monkeypatch.setattr(store_waits, "FIRST_S", 0.01)
    monkeypatch.setattr(store_waits, "_say", found.append)
    return found


def test_wait_is_told_with_what_how_long_and_the_limit(said):
    with store_waits.told_wait("gs://b/d/*.csv", limit_s=300.0):
        assert said.more.wait(LIMIT_S)
    first, _, rest = said[0].partition(", ")
    assert first == "waiting for gs://b/d/*.csv"
    assert rest.endswith(" s so far; given up after about 300 s without an answer")


def tellers():
    return [thread for thread in threading.enumerate() if thread.name == "told_wait"]


def test_nothing_is_told_of_a_quick_answer_nor_after_it(said, monkeypatch):
    monkeypatch.setattr(store_waits, "FIRST_S", 3600.0)
    with store_waits.told_wait("gs://b"):
        assert len(tellers()) == 1
    assert (tellers(), said) == ([], [])


def test_error_of_the_request_comes_through_and_ends_the_telling(said):
    with pytest.raises(ValueError, match="refused"), store_waits.told_wait("gs://b"):
        raise ValueError("refused")
    assert tellers() == []


def test_nothing_is_told_while_more_arrives(said):
    asked = iter(range(10**6))
    enough = threading.Event()

    def arrived():
        found = next(asked)
        if found == 20:
            enough.set()
        return found

    with store_waits.told_wait("s3://b/1.csv", arrived=arrived):
        assert enough.wait(LIMIT_S)
    assert said == []


def test_control_characters_of_an_address_are_escaped(said):
    with store_waits.told_wait("gs://b/\x1b[2J"):
        assert said.more.wait(LIMIT_S)
    assert said[0].startswith("waiting for gs://b/\\x1b[2J, ")
    assert said[0].endswith(" s so far")


def test_words_go_beside_the_node_or_without_an_engine_to_stderr(monkeypatch, tmp_path, capsys):
    monkeypatch.delenv(PROGRESS_VARIABLE, raising=False)
    store_waits._say("waiting for gs://b")
    assert capsys.readouterr().err == "waiting for gs://b\n"
    monkeypatch.setenv(PROGRESS_VARIABLE, str(tmp_path / "progress"))
    store_waits._say("waiting for gs://b")
    assert capsys.readouterr().err == ""
    assert json.loads((tmp_path / "progress").read_text())["text"] == "waiting for gs://b"
