"""Nodes that fail in every way at once: each is told with its cause, and what is well goes on."""

import subprocess

import pytest

from slipway.components.project import PROJECT_ROOT

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("warm_engine")]


@pytest.fixture(scope="module")
def failed(warm_engine, toy_of_module) -> subprocess.CompletedProcess[str]:
    """The run in which they fail."""
    return toy_of_module.run("faults", "--jobs", "4")


@pytest.fixture(scope="module")
def resumed(toy_of_module, failed) -> subprocess.CompletedProcess[str]:
    """The same run, gone on with as it printed, when the toys are well."""
    first = toy_of_module.record()
    toy_of_module.get_well()
    result = toy_of_module.as_printed(failed.stderr)
    result.first = first  # type: ignore[attr-defined]
    return result


def test_it_ends_with_code_1_and_nothing_is_left_running(failed, toy_of_module):
    assert failed.returncode == 1
    names = "Abort, Disk, Exit, Fork, Interrupt, Kill, Raise, Remove, Segfault"
    assert f"Failed: {names}, after 1 of 12 nodes. What is finished is kept." in failed.stderr
    assert toy_of_module.left() == []


@pytest.mark.parametrize(
    ("line", "hint"),
    [
        ("Raise: tests/data/toy/toy_pipeline.py:", ""),
        ("ValueError: the toy is broken", ""),
        ("Exit: tests/data/toy/toy_pipeline.py:", ""),
        ("SystemExit: bye", ""),
        ("Interrupt: tests/data/toy/toy_pipeline.py:", ""),
        ("KeyboardInterrupt", ""),
        ("Remove: its output 'made' is gone: ", "look in its code for what removes or renames that path"),
        ("Kill: killed (SIGKILL", "dmesg"),
        ("Abort: crashed in native code (SIGABRT", ""),
        ("Segfault: crashed in native code (SIGSEGV", ""),
        ("Fork: crashed in native code (SIGSEGV", ""),
        ("OSError: [Errno 28] No space left on device", "make room on the disk"),
    ],
)
def test_each_cause_is_reported_in_a_line(failed, line, hint):
    assert line in failed.stderr
    assert hint in failed.stderr


def test_the_line_of_the_users_code_is_the_one_that_raised(failed):
    told = next(line for line in failed.stderr.splitlines() if line.startswith("  Raise: "))
    path, number = told.removeprefix("  Raise: ").split(":")[:2]
    line = (PROJECT_ROOT / path).read_text().splitlines()[int(number) - 1]
    assert 'raise ValueError("the toy is broken' in line


def test_what_does_not_depend_on_a_failure_is_done(failed, resumed):
    assert resumed.first.node("Well").state == "complete"


def test_what_depends_on_a_failure_is_left_out_with_the_first_cause(failed, resumed):
    for node_id in ("Push", "After"):
        assert (resumed.first.node(node_id).state, resumed.first.node(node_id).why) == (
            "skipped",
            "Raise failed",
        )


def test_the_printed_command_goes_on_with_the_run(resumed, toy_of_module):
    assert resumed.returncode == 0, resumed.stderr
    record = toy_of_module.record()
    assert (record.run_id, record.state) == (resumed.first.run_id, "complete")
    assert {node.state for node in record.nodes} == {"complete"}


def test_what_was_done_is_not_done_again(resumed, toy_of_module):
    assert toy_of_module.lines("made").count("well 1") == 1


def test_what_must_happen_happens_once(resumed, toy_of_module):
    assert toy_of_module.lines("pushed") == ["good"]
