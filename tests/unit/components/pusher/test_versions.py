"""The numbers of pushed versions."""

import time
from pathlib import Path

import pytest

from slipway.components.errors import ComponentError
from slipway.components.pusher.versions import LARGEST_VERSION, Published, next_version, version_number


@pytest.mark.parametrize(
    ("name", "version"),
    [
        ("1", 1),
        ("0017", 17),
        (str(LARGEST_VERSION), LARGEST_VERSION),
        (str(LARGEST_VERSION + 1), None),
        ("0", None),
        ("-1", None),
        ("1.0", None),
        ("", None),
        ("\u0661", None),  # a digit of Python's, not of a server's
        ("9" * 5000, None),
        (".1.part", None),
    ],
)
def test_name_stands_for_a_version_as_a_server_takes_it(name, version):
    assert version_number(name) == version


@pytest.mark.parametrize(
    ("taken", "version"),
    [
        ([], 1000),
        ([7, 999], 1000),
        ([1000], 1001),
        ([2000, 5], 2001),
        ([LARGEST_VERSION - 1], LARGEST_VERSION),
    ],
)
def test_new_version_is_the_time_or_above_all_that_are_taken(monkeypatch, taken, version):
    monkeypatch.setattr(time, "time", lambda: 1000.9)
    assert next_version(iter(taken), base="models") == version


def test_no_version_is_above_the_largest():
    with pytest.raises(ComponentError, match=r"^models holds the largest possible version"):
        next_version([LARGEST_VERSION], base="models")


def test_version_has_a_place_below_its_base():
    published = Published(version=3, base="gs://bucket/taxi", was_there=False)
    assert published.address == "gs://bucket/taxi/3"
    assert Published(version=3, base="/models", was_there=True).path == Path("/models/3")
