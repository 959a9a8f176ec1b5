"""Causes of failures: one line, the user's place, and a word for every signal."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from slipway.components import errors
from slipway.components.errors import ComponentError, GateStopError
from slipway.components.project import PROJECT_ROOT
from slipway.pipeline.engine.failure import describe_exception, describe_exit
from slipway.pipeline.runs.record import RunRecord

USER = """
def fail():
    raise ValueError("first line\\nsecond line")

def chain():
    try:
        fail()
    except ValueError as error:
        raise RuntimeError("wrapped") from error

def hide():
    try:
        fail()
    except ValueError:
        raise RuntimeError("alone") from None

def call(function):
    return function()
"""


@pytest.fixture
def user(tmp_path):
    """A user's module, and its functions by name."""
    names: dict = {}
    exec(compile(USER, str(tmp_path / "work" / "model.py"), "exec"), names)  # noqa: S102 (the text above)
    return names


def caught(function, *arguments) -> BaseException:
    with pytest.raises(BaseException) as error:  # noqa: PT011 (any)
        function(*arguments)
    # The frame of this file would pass for the user's.
    error.value.__traceback__ = error.value.__traceback__.tb_next
    return error.value


def test_the_message_is_the_first_line_and_the_place_is_the_users(user, tmp_path):
    cause = describe_exception(caught(user["fail"]), root=tmp_path)
    assert cause == {"message": "ValueError: first line", "hint": "", "where": "work/model.py:3"}


def test_heading_is_reported_with_what_it_announces(tmp_path):
    cause = describe_exception(RuntimeError("These failed:\n\n  the first\nand more"), root=tmp_path)
    assert cause["message"] == "RuntimeError: These failed: the first"


def test_reason_is_reported_without_what_tensorflow_and_keras_put_around_it(tmp_path):
    graph = (
        'Graph execution error:\n\n  File "a.py", line 3, in call\n\nCould not find variable dense/kernel.'
    )
    layer = "Exception encountered when calling Own.call().\n\n\x1b[1mno shape\x1b[0m\n\nArguments"
    for text, words in ((graph, "Could not find variable dense/kernel."), (layer, "no shape")):
        assert describe_exception(ValueError(text), root=tmp_path)["message"] == f"ValueError: {words}"


def test_a_line_that_would_fill_the_screen_is_cut(tmp_path):
    message = describe_exception(ValueError("x" * 100_000), root=tmp_path)["message"]
    assert message == f"ValueError: {'x' * 1000}... (the log has the rest)"


def test_an_exception_whose_text_cannot_be_made_is_reported_by_its_name(tmp_path):
    class BrokenError(Exception):
        def __str__(self):
            raise KeyError

    message = describe_exception(BrokenError(), root=tmp_path)["message"]
    assert message == "BrokenError: its message cannot be shown: __str__ raised KeyError"


def test_error_that_only_an_earlier_node_can_mend_carries_its_name(tmp_path):
    error = ComponentError("it changed", hint="train again", start="Trainer")
    cause = describe_exception(error, root=tmp_path)
    assert cause == {"message": "it changed", "hint": "train again", "where": "", "start": "Trainer"}


def test_a_column_that_is_not_there_is_reported_with_the_nearest_and_those_that_are(tmp_path, monkeypatch):
    file = tmp_path / "work.py"
    file.write_text('def preprocessing_fn(inputs):\n    return {"x": inputs["fares"]}\n')
    names: dict = {}
    exec(compile(file.read_text(), str(file), "exec"), names)  # noqa: S102 (the text above)
    error = caught(names["preprocessing_fn"], {"fare": 1, "tips": 2})
    assert describe_exception(error, root=tmp_path) == {
        "message": "KeyError: inputs has no 'fares'; nearest: 'fare'",
        "hint": "inputs has fare, tips",
        "where": "work.py:2",
    }


def test_error_in_code_that_autograph_has_rewritten_is_told_by_its_own_words_and_the_users_line(tmp_path):
    written = compile(
        "def f(error):\n    raise error", f"{tmp_path}/__autograph_generated_fileab12.py", "exec"
    )
    names: dict = {}
    exec(written, names)  # noqa: S102 (the text above)
    text = (
        "in user code:\n\n"
        f'    File "{tmp_path}/work.py", line 9, in preprocessing_fn  *\n        return outer(inputs)\n'
        f'    File "{tmp_path}/work.py", line 4, in outer  *\n        return inputs["fares"]\n\n'
        "    KeyError: 'fares'\n"
    )
    told = {"message": "KeyError: 'fares'", "hint": "", "where": "work.py:4"}
    for error in (KeyError(text), RuntimeError(text)):
        assert describe_exception(caught(names["f"], error), root=tmp_path) == told
    bare = describe_exception(caught(names["f"], ValueError("no lines")), root=tmp_path)
    assert (bare["message"], bare["where"]) == ("ValueError: no lines", ""), "a file that is gone is no place"


def test_a_place_outside_the_folder_is_reported_in_full(user, tmp_path):
    cause = describe_exception(caught(user["fail"]), root=tmp_path / "elsewhere")
    assert cause["where"] == f"{tmp_path}/work/model.py:3"


def test_a_failure_below_the_users_call_is_reported_at_the_users_call(user, tmp_path):
    cause = describe_exception(caught(user["call"], lambda: Path("/does/not/exist").stat()), root=tmp_path)
    assert cause["message"].startswith("FileNotFoundError: [Errno 2]")
    assert cause["where"].startswith(str(Path(__file__)))  # the lambda of this test


def test_a_file_that_cannot_be_parsed_is_the_place_and_not_its_importer(user, tmp_path):
    file = str(tmp_path / "work" / "constants.py")
    cause = describe_exception(
        caught(user["call"], lambda: compile("a = 1\nb = = 2", file, "exec")), root=tmp_path
    )
    assert (cause["message"].partition(":")[0], cause["where"]) == ("SyntaxError", "work/constants.py:2")


def test_a_file_that_cannot_be_parsed_is_the_place_of_an_error_that_wraps_it_too(user, tmp_path):
    def wrapped():
        try:
            compile("b = = 2", str(tmp_path / "work" / "constants.py"), "exec")
        except SyntaxError as error:
            raise RuntimeError("the model cannot be imported") from error

    cause = describe_exception(caught(user["call"], wrapped), root=tmp_path)
    assert cause["where"] == "work/constants.py:1"


def test_library_frames_are_passed_over(user, tmp_path):
    cause = describe_exception(caught(user["call"], subprocess.Popen), root=tmp_path)
    assert cause["where"] == "work/model.py:18"
    below = describe_exception(caught(json.loads, "{"), root=tmp_path)
    assert (below["message"].partition(":")[0], below["where"]) == ("JSONDecodeError", "")


def test_an_exception_without_text_is_reported_by_its_name(tmp_path):
    assert describe_exception(KeyError(), root=tmp_path)["message"] == "KeyError"


def test_a_chained_exception_points_to_the_deepest_user_frame_of_the_latest(user, tmp_path):
    cause = describe_exception(caught(user["chain"]), root=tmp_path)
    assert (cause["message"], cause["where"]) == ("RuntimeError: wrapped", "work/model.py:9")


def test_a_context_that_was_hidden_is_not_told(user, tmp_path):
    assert describe_exception(caught(user["hide"]), root=tmp_path)["where"] == "work/model.py:15"


def test_the_engines_own_frames_are_no_place(tmp_path):
    assert describe_exception(caught(RunRecord("r", "w").node, "x"), root=PROJECT_ROOT)["where"] == ""


def test_a_component_of_ours_is_the_place_only_where_there_is_no_user_code(user, tmp_path):
    ours: dict = {}
    source = "def call(function):\n    return function()\n\ndef fail():\n    1 / 0\n"
    exec(compile(source, str(Path(errors.__file__).with_name("made_up.py")), "exec"), ours)  # noqa: S102
    bug = describe_exception(caught(ours["fail"]), root=PROJECT_ROOT)
    assert (
        Path(PROJECT_ROOT, bug["where"].removesuffix(":5")).resolve()
        == PROJECT_ROOT / "components/made_up.py"
    )
    through_the_user = describe_exception(caught(user["call"], ours["fail"]), root=tmp_path)
    assert through_the_user["where"] == "work/model.py:18"


def test_our_own_error_is_reported_as_it_is(tmp_path):
    cause = describe_exception(ComponentError("no rows", hint="look at data.source"), root=tmp_path)
    assert cause == {"message": "no rows", "hint": "look at data.source", "where": ""}


def test_error_of_ours_that_was_raised_with_anything_is_reported_as_texts(tmp_path):
    cause = describe_exception(ComponentError(7, hint=None), root=tmp_path)
    assert cause == {"message": "7", "hint": "", "where": ""}


def test_a_full_disk_is_the_cause_also_where_something_else_failed_after_it(tmp_path):
    def write():
        raise OSError(28, "No space left on device", "/data/shard")

    def publish():
        try:
            write()
        except OSError:
            raise RuntimeError("database or disk is full")  # noqa: B904 (as TFX does)

    cause = describe_exception(caught(publish), root=tmp_path)
    assert cause["message"] == "OSError: [Errno 28] No space left on device: '/data/shard'"
    assert cause["hint"] == "make room on the disk"


def test_a_metadata_store_without_room_gets_the_same_hint(tmp_path):
    def connect():
        raise RuntimeError("Failed to establish connection: database or disk is full query: INSERT")

    assert describe_exception(caught(connect), root=tmp_path)["hint"] == "make room on the disk"


@pytest.mark.parametrize("signum", sorted(signal.valid_signals()))
def test_every_signal_has_words(signum):
    message = describe_exit(-signum, peak_bytes=0)["message"]
    assert "SIG" in message


@pytest.mark.parametrize(
    "signum", [signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGILL, signal.SIGFPE]
)
def test_a_native_crash_is_called_one(signum):
    assert describe_exit(-signum, peak_bytes=0)["message"] == f"crashed in native code ({signum.name})"


def test_a_kill_names_memory_as_a_possible_cause():
    cause = describe_exit(-signal.SIGKILL, peak_bytes=3 * 2**30)
    assert cause["message"].startswith("killed (SIGKILL; its memory peaked at 3.0 GiB)")
    assert "dmesg" in cause["hint"]


def test_a_process_without_a_result_is_reported_with_its_code():
    assert describe_exit(7, peak_bytes=0)["message"] == "its process ended with code 7 and no result"


def test_python_itself_agrees_on_the_code_of_a_signal():
    code = subprocess.run(
        [sys.executable, "-c", "import os; os.abort()"], stderr=subprocess.DEVNULL
    ).returncode
    assert "SIGABRT" in describe_exit(code, peak_bytes=0)["message"]


def test_gate_that_says_no_brings_its_verdict_along():
    error = GateStopError("2 findings", hint="mend them", verdict={"lines": ["tips"]})
    assert describe_exception(error, root=PROJECT_ROOT) == {
        "message": "2 findings",
        "hint": "mend them",
        "where": "",
        "verdict": {"message": "2 findings", "lines": ["tips"]},
    }
