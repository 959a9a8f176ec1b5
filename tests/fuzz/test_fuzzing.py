"""A fixed number of the cases of `make fuzz`, the same in each run, and every earlier finding."""

import functools
import math
import os
import random
import subprocess
import sys

import pytest

from fuzzing.__main__ import CORPUS
from fuzzing.finding import cases, explore_apart, kept_findings, problem_with
from fuzzing.mutation import mutated
from fuzzing.targets import PROJECT, Target, targets

TARGETS = targets()
CASES = [50, pytest.param(150, marks=pytest.mark.external)]  # the same first ones, and more


@pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS)
def test_well_formed_input_is_read(target):
    assert [problem_with(target, seed) for seed in target.seeds] == [""] * len(target.seeds)


@pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS)
def test_what_was_once_found_is_read_or_refused_in_words(target):
    found = {data: problem_with(target, data) for data in kept_findings(target, CORPUS)}

    assert set(found.values()) <= {""}


@pytest.fixture(scope="module")
def explored(tmp_path_factory):
    """What was found in so many cases of all targets, in one process: imports take longer than cases."""

    @functools.cache
    def found(most):
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("PYTHONPATH", os.pathsep.join([str(PROJECT), str(PROJECT / "tests" / "fuzz")]))
            return explore_apart(
                list(TARGETS.values()),
                seed=1,
                cases_at_most=most,
                seconds=math.inf,
                corpus=CORPUS,
                folder=tmp_path_factory.mktemp("explored"),
            )

    return found


@pytest.mark.slow
@pytest.mark.parametrize("most", CASES)
@pytest.mark.parametrize("target", TARGETS)
def test_damaged_input_is_a_value_a_rejected_row_or_an_error_in_words(target, most, explored):
    assert target in explored(most), f"not reached: {list(explored(most).items())[-1]}"
    count, finding = explored(most)[target]

    assert finding is None, f"{finding.data!r}\n{finding.what}"
    assert count == most


def test_the_same_seed_gives_the_same_cases():
    def first(seed):
        made = cases(TARGETS["csv"], seed=seed)
        return [next(made) for _ in range(50)]

    assert first(1) == first(1) != first(2)


def test_every_change_of_bytes_stays_within_64_kib():
    rng = random.Random(0)  # noqa: S311

    assert max(len(mutated(b"x" * 65536, rng)) for _ in range(500)) == 65536
    assert {len(mutated(b"", rng)) > 0 for _ in range(50)} == {True, False}


def test_an_error_that_is_none_of_ours_is_a_finding():
    def hold(data):
        raise KeyError("fare")

    assert problem_with(Target("x", (b"",), hold), b"").endswith("KeyError: 'fare'\n")


@pytest.mark.slow
def test_a_process_that_dies_is_a_finding_with_the_case_it_died_of(tmp_path, monkeypatch):
    (tmp_path / "fuzzing").mkdir()
    for name in ("__init__", "finding", "mutation"):
        source = PROJECT / "tests" / "fuzz" / "fuzzing" / f"{name}.py"
        (tmp_path / "fuzzing" / f"{name}.py").write_bytes(source.read_bytes())
    (tmp_path / "fuzzing" / "targets.py").write_text(
        "import os\nfrom dataclasses import dataclass\n"
        "@dataclass\nclass Target:\n    name: str\n    seeds: tuple\n    hold: object\n    tokens = ()\n"
        "def targets():\n    return {'x': Target('x', (b'deadly',), lambda data: os.abort())}\n",
        encoding="utf-8",
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))

    chosen = [Target(name, (b"deadly",), lambda data: None) for name in ("x", "y")]
    explored = explore_apart(
        chosen,
        seed=1,
        cases_at_most=3,
        seconds=60,
        corpus=tmp_path,
        folder=tmp_path,
    )

    assert list(explored) == ["x"], "of those after it nothing is known"
    count, finding = explored["x"]
    assert (count, finding.data) == (0, b"deadly")
    assert "died" in finding.what


def test_an_unknown_target_is_refused_with_those_there_are():
    done = subprocess.run(
        [sys.executable, "-m", "fuzzing", "xlsx"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(PROJECT), str(PROJECT / "tests" / "fuzz")])},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 2
    assert "no target 'xlsx'; there are csv, csv_gz, jsonl" in done.stderr
