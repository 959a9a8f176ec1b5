"""Following a base: what cannot be loaded is tried again, and the follower never ends."""

import json
import threading
from contextlib import contextmanager
from itertools import pairwise

import pytest

from slipway.components.errors import ComponentError
from slipway.components.serving import live_model
from slipway.components.serving.live_model import LONGEST_PAUSE_S, POLL_S, LiveModel


class Base:
    """Versions that hold a manifest: what each one's fetch raises, or None; counts the fetches."""

    base = "memory"

    def __init__(self, folder, **provenance):
        self.faults, self.fetches = {1: None}, []
        self.folder, self.provenance = folder, provenance

    def numbers(self):
        return sorted(self.faults)

    @contextmanager
    def fetched(self, version):
        self.fetches.append(version)
        if self.faults[version] is not None:
            raise self.faults[version]
        there = self.folder / str(version)
        there.mkdir(exist_ok=True)
        (there / "manifest.json").write_text(json.dumps(self.provenance))
        yield there


@pytest.fixture
def base(tmp_path):
    return Base(tmp_path)


@pytest.fixture
def follow(monkeypatch):
    """Makes a follower that looks when it is told to, at the time that `now` holds."""
    monkeypatch.setattr(live_model.threading.Thread, "start", lambda thread: None)

    def call(base):
        now, told = [0.0], []
        live = LiveModel(base, tell=told.append, load=lambda folder: folder.name, clock=lambda: now[0])
        live.now, live.told = now, told
        return live

    return call


@pytest.mark.parametrize(
    "fault", [ComponentError("saved_model.pb is missing"), ConnectionResetError("reset"), KeyError("odd")]
)
def test_version_that_failed_once_is_served_when_it_can_be(follow, base, fault):
    live = follow(base)
    base.faults[2] = fault
    live.follow_once()
    assert live.served.version == 1
    base.faults[2] = None
    live.now[0] += POLL_S
    live.follow_once()
    assert live.served.version == 2
    assert len(live.told) == 3
    assert "Not serving version 2" in live.told[1]


def test_pauses_double_up_to_the_longest_and_the_same_words_are_reported_once(follow, base):
    live = follow(base)
    base.faults[2] = ComponentError("damaged")
    tried_at = []
    for second in range(2000):
        live.now[0] = float(second)
        before = len(base.fetches)
        live.follow_once()
        if len(base.fetches) > before:
            tried_at.append(second)
    pauses = [later - earlier for earlier, later in pairwise(tried_at)]
    assert pauses[:4] == [2, 4, 8, 16]
    assert max(pauses) == LONGEST_PAUSE_S
    assert live.told == ["Serving version 1.", "Not serving version 2, will retry: damaged"]


def test_version_that_is_gone_is_forgotten_and_tried_at_once_when_it_is_there_again(follow, base):
    live = follow(base)
    base.faults[2] = ComponentError("damaged")
    live.follow_once()
    del base.faults[2]
    live.follow_once()
    base.faults[2] = None
    live.follow_once()
    assert live.served.version == 2


@pytest.mark.parametrize("classes", [None, 7, "ab", {"a": 1}, [1, 2], []])
def test_classes_that_are_no_list_of_names_end_nothing(follow, tmp_path, classes):
    assert follow(Base(tmp_path, classes=classes)).served.classes == {}


def test_classes_that_are_named_are_kept(follow, tmp_path):
    assert follow(Base(tmp_path, classes=["no", "yes"])).served.classes == {"": ("no", "yes")}


@pytest.mark.parametrize("kind", ["needed", "dates"])
@pytest.mark.parametrize("named", [None, 7, [7]])
def test_columns_that_are_no_list_of_names_end_nothing(follow, tmp_path, kind, named):
    served = follow(Base(tmp_path, schema={kind: named})).served
    assert (served.needed, served.dates) == (set(), set())


@pytest.mark.parametrize("schema", [None, 7, ["city"], {}])
def test_a_schema_that_names_no_columns_ends_nothing(follow, tmp_path, schema):
    served = follow(Base(tmp_path, schema=schema)).served
    assert (served.needed, served.dates) == (set(), set())


def test_needed_columns_and_dates_are_those_of_the_version_that_answers(follow, tmp_path):
    base = Base(tmp_path, schema={"needed": ["city", "fare"], "dates": ["day"]})
    live = follow(base)
    assert live.served.needed == {"city", "fare"}
    assert live.served.dates == {"day"}
    base.faults[2], base.provenance = None, {"schema": {"needed": ["fare"]}}
    live.follow_once()
    assert (live.served.version, live.served.needed, live.served.dates) == (2, {"fare"}, set())


def test_follower_outlives_a_base_that_raises_anything_and_tells_it_once(base, monkeypatch, caplog):
    broken, told = ComponentError("the store does not answer."), []
    looks = iter([[1], broken, broken, RuntimeError("the store's client broke"), [1], [1, 2]])

    def numbers():
        found = next(looks, [1, 2])
        if isinstance(found, Exception):
            raise found
        return found

    base.numbers, base.faults[2] = numbers, None
    monkeypatch.setattr(live_model, "POLL_S", 0.001)
    live = LiveModel(base, tell=told.append, load=lambda folder: folder.name)
    while live.served.version != 2:
        assert live._follower.is_alive()
    live.close()
    assert told == [
        "Serving version 1.",
        "Cannot look for a newer version, will retry: the store does not answer.",
        "Cannot look for a newer version, will retry: RuntimeError: the store's client broke",
        "Looking for newer versions again.",
        "Serving version 2.",
    ]
    assert not caplog.text


def test_end_does_not_wait_for_a_store_that_does_not_answer(base, monkeypatch):
    monkeypatch.setattr(live_model, "POLL_S", 0.001)
    monkeypatch.setattr(live_model, "END_WAIT_S", 0.01)
    live = LiveModel(base, tell=lambda line: None, load=lambda folder: folder.name)
    is_asked, answers = threading.Event(), threading.Event()

    def numbers():
        is_asked.set()
        answers.wait()
        return [1]

    base.numbers = numbers
    is_asked.wait()
    live.close()
    assert live._follower.is_alive()
    answers.set()
    live._follower.join()
