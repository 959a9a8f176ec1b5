"""What a command does where its reader is gone, its disk full, its streams closed or its encoding narrow."""

import json
import os
import subprocess
import sys

import pytest

from slipway.pipeline.runs.record import NodeRecord, RunRecord
from slipway.pipeline.screen.run_display import choose_display
from slipway.pipeline.terminal.standard_streams import ResultError, prepare_streams


@pytest.fixture
def output(tmp_path):
    """An output folder that holds one run."""
    folder = tmp_path / "runs" / "20261122-183305-f995"
    folder.mkdir(parents=True)
    record = RunRecord(folder.name, "taxi", state="complete", exit_code=0, nodes=[NodeRecord("Ingest")])
    record.nodes[0].state = "complete"
    (folder / "run.json").write_text(json.dumps(record.to_json()), encoding="utf-8")
    return tmp_path


@pytest.fixture
def in_shell(project, output):
    """Runs a line of the shell in which RUNNER stands for the command line and OUT for the folder."""

    def call(line, **variables):
        names = {"RUNNER": f"{sys.executable} local_runner.py", "OUT": f"--output {output}"}
        return subprocess.run(
            ["bash", "-c", line], cwd=project, env={**os.environ, **names, **variables},
            capture_output=True, text=True, check=False,
        )  # fmt: skip

    return call


class _Broken:
    """A stream that nobody reads."""

    def __init__(self, error):
        self.error = error

    def write(self, text):
        raise self.error

    def flush(self):
        raise self.error

    def isatty(self):
        return False


def test_letters_that_an_encoding_lacks_are_written_as_escapes(in_shell):
    shown = in_shell("$RUNNER show $OUT", PYTHONIOENCODING="ascii")

    assert (shown.returncode, shown.stderr) == (0, "")
    assert "\\u2713 Ingest" in shown.stdout


@pytest.mark.parametrize("command", ["show", "runs"])
def test_result_that_cannot_be_written_is_reported_in_words(in_shell, command):
    done = in_shell(f"$RUNNER {command} $OUT > /dev/full")

    assert done.returncode == 1
    assert done.stderr.splitlines()[0] == (
        "error: The result cannot be written to standard output: No space left on device."
    )
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr


def test_reader_that_has_seen_enough_changes_no_exit_code(in_shell):
    read = in_shell("$RUNNER show $OUT | head -0; echo ${PIPESTATUS[0]}")
    refused = in_shell("$RUNNER show nope $OUT 2>&1 | head -0; echo ${PIPESTATUS[0]}")

    assert (read.stdout, read.stderr) == ("0\n", "")
    assert (refused.stdout, refused.stderr) == ("2\n", "")


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_command_works_with_streams_that_are_closed(in_shell, closed):
    assert in_shell(f"$RUNNER show $OUT {closed}").returncode == 0


def test_message_never_goes_where_results_go(in_shell):
    refused = in_shell("$RUNNER show nope $OUT 2>&-")

    assert (refused.returncode, refused.stdout) == (2, "")


def test_closed_streams_numbers_are_not_given_to_other_files(project):
    program = (
        "import os; from slipway.pipeline.terminal.standard_streams import prepare_streams; "
        "prepare_streams(); print(os.open('/dev/null', os.O_RDONLY) > 2)"
    )
    done = subprocess.run(
        ["bash", "-c", f'{sys.executable} -c "{program}" <&- 2>&-'],
        cwd=project, capture_output=True, text=True, check=False,
    )  # fmt: skip

    assert done.stdout == "True\n"


@pytest.mark.parametrize(
    "error", [BrokenPipeError(32, "Broken pipe"), OSError(28, "No space left on device")]
)
def test_run_goes_on_where_nobody_can_be_told_of_it(monkeypatch, error):
    monkeypatch.setattr(sys, "stderr", _Broken(error))
    prepare_streams()
    display = choose_display(sys.stderr)
    record = RunRecord("20261122-183305-f995", "taxi", nodes=[NodeRecord("Ingest")])

    display.planned(record, {})
    display.changed(record, record.nodes[0])
    display.ends(record)


def test_result_is_an_error_only_where_its_reader_did_not_leave(monkeypatch):
    monkeypatch.setattr(sys, "stdout", _Broken(OSError(5, "Input/output error")))
    prepare_streams()
    with pytest.raises(ResultError, match="Input/output error"):
        print("a result")
    print("what comes after it goes nowhere")

    monkeypatch.setattr(sys, "stdout", _Broken(BrokenPipeError(32, "Broken pipe")))
    prepare_streams()
    print("a result")


def test_current_folder_that_was_removed_ends_in_words(in_shell, project, tmp_path):
    gone = tmp_path / "gone"
    gone.mkdir()

    done = in_shell(f"cd {gone}; rmdir {gone}; {sys.executable} {project}/local_runner.py show")

    assert (done.returncode, done.stderr.splitlines()) == (
        2,
        [
            "error: The current folder was removed, perhaps by another terminal.",
            "hint: cd to a folder that exists",
        ],
    )
