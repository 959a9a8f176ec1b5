"""Which files are read together, and by how many processes."""

import os

import pytest

from slipway.components import python_process, shards
from slipway.components.errors import ComponentError
from slipway.components.shards import (
    BYTES_PER_PROCESS_VARIABLE,
    LEAST_BYTES,
    MOST_SHARDS,
    Rows,
    process_count,
    redone_in_words,
    shards_of,
)

BYTES_PER_PROCESS = 10_000


@pytest.fixture(autouse=True)
def machine(monkeypatch):
    monkeypatch.setattr(shards, "available_memory_bytes", lambda: 100 << 30)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(4)))
    monkeypatch.setattr(python_process, "fork_channel", object())


def dealt(*sizes):
    return shards_of("train", [f"f{place}" for place in range(len(sizes))], sizes)


def test_small_files_are_read_together():
    (one,) = dealt(10, 20, 30)
    assert one.files == ("f0", "f1", "f2")
    assert one.size_bytes == 60


def test_neighbours_are_read_together_and_each_file_once():
    found = dealt(*[LEAST_BYTES // 2] * 5)
    assert [shard.files for shard in found] == [("f0", "f1"), ("f2", "f3"), ("f4",)]
    assert [shard.first for shard in found] == [0, 2, 4]


def test_many_large_files_make_few_shards():
    found = dealt(*[10 * LEAST_BYTES] * 100)
    assert len(found) <= MOST_SHARDS
    assert sum(len(shard.files) for shard in found) == 100


def test_no_files_make_no_shards():
    assert dealt() == []


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        ((), 4),
        (("--direct_num_workers=2",), 2),
        (("--direct_num_workers", "3"), 3),
        (("--direct_num_workers=0",), 4),
        (("--runner=x",), 4),
    ],
)
def test_as_many_processes_as_cores_or_as_asked(args, expected):
    assert process_count(dealt(*[LEAST_BYTES] * 8), args, bytes_per_process=BYTES_PER_PROCESS) == expected


def test_no_more_processes_than_shards_data_and_memory(monkeypatch):
    large = dealt(*[LEAST_BYTES] * 8)
    assert process_count(large[:3], (), bytes_per_process=BYTES_PER_PROCESS) == 3
    assert process_count(dealt(LEAST_BYTES, LEAST_BYTES), (), bytes_per_process=LEAST_BYTES) == 2
    assert process_count(dealt(LEAST_BYTES, 10), (), bytes_per_process=LEAST_BYTES) == 1
    assert process_count([], (), bytes_per_process=BYTES_PER_PROCESS) == 1
    monkeypatch.setattr(shards, "available_memory_bytes", lambda: (1 << 30) + 1)
    assert process_count(large, (), bytes_per_process=BYTES_PER_PROCESS) == 2
    monkeypatch.setattr(shards, "available_memory_bytes", lambda: 0)
    assert process_count(large, (), bytes_per_process=BYTES_PER_PROCESS) == 1


def test_without_the_engine_a_process_is_worth_more_data(monkeypatch):
    several = dealt(*[LEAST_BYTES] * 2)
    assert process_count(several, (), bytes_per_process=LEAST_BYTES) == 2
    monkeypatch.setattr(python_process, "fork_channel", None)
    assert process_count(several, (), bytes_per_process=LEAST_BYTES) == 1


def test_a_variable_says_what_a_process_is_worth(monkeypatch):
    monkeypatch.setenv(BYTES_PER_PROCESS_VARIABLE, "100")
    small = dealt(100, 50, 50, 100)
    assert [shard.files for shard in small] == [("f0",), ("f1", "f2"), ("f3",)]
    assert process_count(small, (), bytes_per_process=LEAST_BYTES) == 3
    monkeypatch.setenv(BYTES_PER_PROCESS_VARIABLE, str(10 * LEAST_BYTES))
    assert len(dealt(LEAST_BYTES, LEAST_BYTES)) == 2
    assert process_count(dealt(LEAST_BYTES, LEAST_BYTES), (), bytes_per_process=LEAST_BYTES) == 1


@pytest.mark.parametrize("named", ["8MB", "0", "-1", "1.5"])
def test_a_variable_that_names_no_number_of_bytes_is_refused(monkeypatch, named):
    monkeypatch.setenv(BYTES_PER_PROCESS_VARIABLE, named)
    with pytest.raises(
        ComponentError, match=f"{BYTES_PER_PROCESS_VARIABLE} is '{named}', but must be a number of bytes"
    ):
        dealt(10)
    with pytest.raises(ComponentError):
        process_count([], (), bytes_per_process=BYTES_PER_PROCESS)


def test_rows_of_all_shards_are_reported(monkeypatch):
    told = []
    monkeypatch.setattr(shards, "tell", lambda text, **numbers: told.append((text, numbers)))
    first, second = dealt(LEAST_BYTES, LEAST_BYTES)
    rows = Rows([first, second])
    rows.tell(first, 1000, 5)
    rows.tell(second, 500, 1)
    assert told[-1] == ("1,500 rows", {"done": 6, "total": 2 * LEAST_BYTES})


def test_what_was_done_again_is_said():
    assert redone_in_words(0) == ""
    assert redone_in_words(2) == "; 2 parts redone by one process, in smaller batches"
