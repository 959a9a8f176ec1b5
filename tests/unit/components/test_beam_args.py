import os

import pytest

from slipway.components.beam_args import JOBS_VARIABLE, most_workers, read_options


def test_options_are_read_as_beam_reads_them():
    args = ["--runner", "flink", "--update", "--parallelism=4", "--parallelism", "8"]
    assert read_options(args) == {"runner": "flink", "update": "", "parallelism": "8"}


@pytest.mark.parametrize(
    ("args", "workers"),
    [
        ([], 0),
        (["--direct_num_workers=0"], 0),
        (["--direct_num_workers=3"], 3),
        (["--direct_num_workers=3", "--direct_num_workers", "2"], 2),
    ],
)
def test_the_last_number_of_workers_counts_and_none_is_one_per_core(args, workers):
    assert most_workers(args) == workers


@pytest.mark.parametrize(
    ("jobs", "args", "workers"),
    [
        ("", [], 0),
        ("0", [], 0),
        ("1", [], 1),
        ("3", [], 3),
        ("4", [], 0),
        ("9", [], 0),
        ("1", ["--direct_num_workers=2"], 2),
    ],
)
def test_fewer_jobs_than_cores_are_the_most_processes_unless_an_option_says_otherwise(
    monkeypatch, jobs, args, workers
):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(4)))
    monkeypatch.setenv(JOBS_VARIABLE, jobs)
    assert most_workers(args) == workers
