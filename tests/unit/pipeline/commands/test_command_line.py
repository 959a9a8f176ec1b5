"""What the command line answers to wrong words: an error, a hint, an exit code; never a traceback."""

import errno
import importlib.util
import json
import os
import subprocess
import sys
from types import SimpleNamespace

import pytest

from slipway.components.errors import ComponentError, GateStopError
from slipway.pipeline.commands import run, show
from slipway.pipeline.commands.command_line import CommandLine, call
from slipway.pipeline.errors import PipelineError, UsageError

O = ["--output", "{out}"]  # noqa: E741


@pytest.fixture(scope="module")
def runner(project):
    spec = importlib.util.spec_from_file_location("the_local_runner", project / "local_runner.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def local_runner(runner, project, tmp_path, monkeypatch, capsys):
    """Calls the command line in this process; gives exit code, stdout and stderr."""
    monkeypatch.chdir(project)

    def call(*words):
        argv = ["local_runner.py", *(word.format(out=tmp_path / "out") for word in words)]
        monkeypatch.setattr(sys, "argv", argv)
        with pytest.raises(SystemExit) as ended:
            runner.call(runner.app)
        told = capsys.readouterr()
        return ended.value.code, told.out, told.err

    return call


WRONG = {
    "an unknown command": (["runn"], "Closest: 'run', 'runs'."),
    "an unknown option": (["run", "--jobz", "3"], "No such option: --jobz"),
    "no number": (["run", "--jobs", "x", *O], "--jobs"),
    "too small a number": (
        ["run", "--jobs", "0", *O],
        "'--jobs': 0; Input should be greater than or equal to 1",
    ),
    "too few words": (["diff", "a"], "Missing argument"),
    "too many words": (["doctor", "x"], "unexpected extra argument"),
    "a missing option": (["predict", "taxi"], "Missing option '--input'"),
    "an unknown workload": (["run", "nope", *O], "nope does not exist"),
    "an unknown profile": (["plan", "taxi", "--profile", "nope", *O], "no profile 'nope'"),
    "an unknown key": (["plan", "taxi", "--set", "data.path=x", *O], "nearest: source"),
    "no key=value": (["plan", "taxi", "--set", "epochs", *O], "must be key=value"),
    "a wrong value": (["plan", "taxi", "--set", "train.epochs=many", *O], "must be a whole number"),
    "no such data": (["plan", "taxi", "--set", "data.source=no.csv", *O], "no.csv does not exist"),
    "no reason": (["run", "taxi", "--bless", " ", *O], "--bless needs a reason"),
    "what a pipeline has not": (["run", "--pipeline", "a:b", "--bless", "x", *O], "--pipeline has its own"),
    "a profile of a pipeline": (["run", "--pipeline", "a:b", "--profile", "x", *O], "--pipeline has none"),
    "a workload and a pipeline": (["plan", "digits", "--pipeline", "a:b", *O], "is run instead of one"),
    "more trials of a sweep": (["sweep", "--resume", "latest", "--trials", "9", *O], "--trials cannot be"),
    "nothing to resume": (["resume", *O], "has no runs yet"),
    "no run to show": (["show", "nope", *O], "has no runs yet"),
    "no run to compare": (["diff", "a", "b", *O], "has no runs yet"),
    "one version to compare": (["compare", "taxi", "17", *O], "compare needs two pushed versions"),
    "no version to compare": (["compare", "17", "18", *O], "taxi has no version"),
    "no run to report": (["report", *O], "has no runs yet"),
    "no runs to report": (["report", "--index", *O], "has no runs yet"),
    "a run of all runs": (["report", "x", "--index", *O], "--index is about all runs"),
    "both ways of a baseline": (["baseline", "--set", "a", "--clear", *O], "exclude each other"),
    "two runs of a baseline": (["baseline", "--set", "a", "--set", "b", *O], "the model of one run"),
    "an unknown key of a baseline": (["baseline", "--set", "data.path=x", *O], "nearest: source"),
    "nothing kept": (["gc", "--keep", "0", *O], "--keep 0"),
    "no version to go back to": (["rollback", "taxi", *O], "has no version"),
    "an unknown version": (["rollback", "taxi", "--to", "abc", *O], "'--to': abc; "),
    "an unknown place": (["verify", "nope", *O], "verify nope: there is no workload of that name"),
    "no workload": (["run", "", *O], "no workload is named"),
    "no version to check": (["verify", "taxi", *O], "has no version"),
    "no version to ask": (["predict", "taxi", "--input", "no.csv", *O], "has no version"),
    "no version to serve": (["serve", "taxi", *O], "has no version"),
    "no port": (["serve", "--port", "99999", *O], "'--port': 99999; "),
    "an unknown slice": (["preflight", "taxi", "--tpu", "v9", *O], "no slice 'v9'"),
    "no price": (["preflight", "taxi", "--price", "x", *O], "--price 'x'"),
    "output like a pattern": (
        ["runs", "--output", "/nowhere/out[1]"],
        "--output /nowhere/out[1]: TFX reads this path for a pattern",
    ),
    "output not in UTF-8": (["runs", "--output", os.fsdecode(b"/nowhere/\xe4")], "takes only paths in UTF-8"),
    "output in a store": (["runs", "--output", "s3://b/out"], "--output s3://b/out: TFX keeps metadata"),
    "output on the Hub": (["runs", "--output", "hf://datasets/o/n"], "--output hf://datasets/o/n: TFX keeps"),
    "no data": (["new", "x", "--data", "no.csv"], "no.csv does not exist"),
    "no name": (["new", "Big Name", "--data", "no.csv"], "is not a valid workload name"),
    "no run to take edits from": (["accept-schema", *O], "has no runs yet"),
    "no run to take a step of": (["step", "node", "a", "b", *O], "has no runs yet"),
}


@pytest.mark.parametrize(
    ("wrong", "code"), [("data.source=no.csv", 1), ("data.path=x", 2), ("train.epochs=many", 2)]
)
def test_run_in_steps_may_be_tried_again_only_if_its_data_is_not_there(local_runner, wrong, code):
    """Airflow fails a task at once whose step ends with 2."""
    ended, out, _ = local_runner("step", "begin", "taxi", "--set", wrong, *O)
    assert (ended, out) == (code, "")


@pytest.mark.parametrize(("words", "message"), WRONG.values(), ids=WRONG)
def test_wrong_words_are_an_error_a_hint_and_2(local_runner, words, message):
    code, out, err = local_runner(*words)
    assert code == 2
    assert out == ""
    first, *others = err.splitlines()
    assert first.startswith("error: ")
    assert message in first
    assert others[-1].startswith("hint: ")
    assert len(others[-1]) > len("hint: ")
    assert "Traceback" not in err


@pytest.mark.parametrize(
    "words",
    ["versions", "rollback", "verify", "predict --input x", "serve", "watch", "compare 17 18", "baseline"],
)
def test_commands_that_look_at_what_a_workload_has_pushed_take_its_settings(local_runner, words):
    """Nights may be run with `--set push.destination=...`."""
    code, _, err = local_runner(*words.split(), "--set", "push.destination=3", *O)
    assert code == 2
    assert err.startswith("error: --set push.destination=3: must be text")


def test_a_hint_names_the_settings_that_it_was_given(local_runner, tmp_path):
    code, _, err = local_runner("rollback", "taxi", "--set", f"push.destination={tmp_path / 'pushed'}", *O)
    assert code == 2
    assert f"error: {tmp_path / 'pushed'} has no version.\n" in err
    assert f"local_runner.py run taxi --set push.destination={tmp_path / 'pushed'} --output" in err


@pytest.mark.parametrize("words", [["run"], ["step", "begin"]], ids=" ".join)
def test_a_hook_that_is_not_there_is_refused_before_a_run(local_runner, tmp_path, words):
    code, _, err = local_runner(*words, "taxi", "--set", "push.hook=[no-such-program, x]", *O)
    assert code == 2
    assert "error: push.hook: 'no-such-program' is not a program on the PATH\n" in err
    assert not list((tmp_path / "out").glob("runs/*/run.json"))


@pytest.mark.parametrize("words", [["show", "nope", *O], ["run", "no-such-workload", *O]], ids=" ".join)
def test_verbose_shows_the_traceback_above_the_same_lines_and_code(local_runner, words):
    code, _, lines = local_runner(*words)
    verbose_code, out, err = local_runner(*words, "--verbose")
    assert (verbose_code, out) == (code, "")
    assert err.startswith("Traceback (most recent call last):\n")
    assert err.endswith(f"\n{lines}")


def test_a_command_of_its_own_program_has_verbose_without_declaring_it(monkeypatch, capsys):
    app = CommandLine()

    @app.command()
    def init(folder: str) -> None:
        raise PipelineError(f"{folder} is full")

    monkeypatch.setattr(sys, "argv", ["slipway", "there", "--verbose"])
    with pytest.raises(SystemExit):
        call(app)
    err = capsys.readouterr().err
    assert err.startswith("Traceback (most recent call last):\n")
    assert "\nerror: there is full\n" in err


def test_a_traceback_gives_a_terminal_nothing_to_obey(local_runner, monkeypatch):
    def fail(output):
        raise PipelineError("x\x1b]0;title\x07.csv is full")

    monkeypatch.setattr("slipway.pipeline.commands.show.listed", fail)
    _, _, err = local_runner("runs", "--verbose")
    assert err.count(r"PipelineError: x\x1b]0;title\x07.csv is full") == 1
    assert "\x1b" not in err


@pytest.mark.parametrize(
    ("error", "code", "hint"),
    [
        (UsageError("no", hint="do so"), 2, "do so"),
        (UsageError("no"), 2, "local_runner.py runs --help"),
        (PipelineError("no"), 1, "add --verbose to see where it comes from"),
        (ComponentError("no", hint="mend it"), 1, "mend it"),
        (GateStopError("no", verdict={}), 1, "add --verbose to see where it comes from"),
        (OSError(errno.EIO, "no"), 1, "check that disk: dmesg may say what failed"),
        (OSError(errno.EACCES, "no"), 1, "use it (chmod, chown), or run as a user who may"),
        (
            OSError(errno.ENOSPC, "no"),
            1,
            "make room on the disk: the command gc removes what no kept run needs",
        ),
    ],
)
def test_an_error_ends_with_its_code_and_a_hint(local_runner, monkeypatch, error, code, hint):
    def fail(output):
        raise error

    monkeypatch.setattr(show, "listed", fail)
    ended, _, err = local_runner("runs")
    assert ended == code
    assert err.splitlines()[0].rstrip(".") == "error: no"
    assert err.splitlines()[1].startswith("hint: ")
    assert err.splitlines()[1].endswith(hint)


def test_a_limit_of_threads_is_told_with_the_limits_that_it_may_be_and_no_other_error_is(
    local_runner, monkeypatch
):
    told = RuntimeError("can't start new thread")

    def fail(output):
        raise told

    monkeypatch.setattr(show, "listed", fail)
    ended, _, err = local_runner("runs")
    assert ended == 1
    assert err.splitlines() == [
        "error: The system starts no more threads.",
        "hint: raise the limit of processes: ulimit -u, or that of the container or the service",
    ]
    told = RuntimeError("ours")
    with pytest.raises(RuntimeError, match="ours"):
        local_runner("runs")


@pytest.mark.parametrize("words", [["runs"], ["plan", "taxi"], ["new", "x", "--data", "x.csv"]])
def test_current_folder_that_was_removed_is_told_at_once(local_runner, monkeypatch, tmp_path, words):
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert local_runner(*words) == (
        2,
        "",
        "error: The current folder was removed, perhaps by another terminal.\n"
        "hint: cd to a folder that exists\n",
    )


@pytest.mark.parametrize("code", [0, 1, 2, 3, 130])
def test_the_exit_code_is_that_of_the_run(local_runner, monkeypatch, code):
    monkeypatch.setattr(run, "resume", lambda *_, **__: code)
    assert local_runner("resume")[0] == code


@pytest.mark.parametrize(
    ("words", "is_fast", "search_s"),
    [
        ([], False, 30.0),
        (["--all"], False, 0.0),
        (["--fast"], True, 0.0),
        (["--fast", "--search", "9"], True, 9),
    ],
)
def test_a_fast_preflight_looks_for_no_batch_unless_it_is_asked(
    local_runner, monkeypatch, words, is_fast, search_s
):
    from slipway.pipeline.commands import preflight

    asked = []

    def refuse(workload, output, wanted, **_):
        asked.append((wanted.is_fast, wanted.search_s))
        raise UsageError("enough")

    monkeypatch.setattr(preflight, "preflight", refuse)
    local_runner("preflight", *words)

    assert asked == [(is_fast, search_s)]


def test_ctrl_c_ends_with_130(local_runner, monkeypatch):
    def interrupt(output):
        raise KeyboardInterrupt

    monkeypatch.setattr(show, "listed", interrupt)
    assert local_runner("runs")[0] == 130


def test_ctrl_c_before_the_words_are_read_ends_with_130_too(local_runner, monkeypatch):
    def interrupt(app):
        raise KeyboardInterrupt

    monkeypatch.setattr("typer.main.get_command", interrupt)
    assert local_runner("runs") == (130, "", "")


@pytest.mark.parametrize("words", [["runs", *O], ["versions", "taxi", *O], ["baseline", "taxi", *O]])
def test_what_shows_something_shows_it_as_json(local_runner, words):
    code, out, _ = local_runner(*words, "--json")
    assert code == 0
    assert isinstance(json.loads(out), (list, dict))


def test_every_command_that_shows_something_takes_json(runner):
    import typer

    commands = typer.main.get_command(runner.app).commands
    # What they do is a run, which `show` tells, or files; or they serve, or wait for runs.
    others = {"run", "resume", "step", "accept-schema", "serve", "new", "warm"}
    without = {name for name, each in commands.items() if "as_json" not in [p.name for p in each.params]}
    assert without == others


@pytest.fixture
def imported(project, tmp_path):
    """Gives the names of the modules that a command of local_runner.py imports, in a process of its own."""

    def names(*words):
        done = subprocess.run(
            [sys.executable, "-X", "importtime", str(project / "local_runner.py"), *words],
            cwd=tmp_path, capture_output=True, text=True, timeout=60, check=True,
        )  # fmt: skip
        return [line.rpartition("|")[2].strip() for line in done.stderr.splitlines()]

    return names


def test_a_command_that_reads_no_workload_file_does_not_wait_for_what_reads_one(imported):
    names = imported("runs", "--json")
    assert "slipway.pipeline.runs.history" in names
    slow = {"slipway.pipeline.config", "slipway.pipeline.plan.run_request", "slipway.components.pusher"}
    assert not {*slow, "tensorflow", "tfx"} & {*names}


@pytest.mark.parametrize("command", [[], ["run"], ["gc"], ["show"]])
def test_help_waits_for_no_command(imported, command):
    """What all commands share is 30 modules; the commands themselves are hundreds."""
    names = imported(*command, "--help")
    assert "slipway.pipeline.commands.options" in names
    ours = [name for name in names if name.startswith("slipway")]
    assert len(ours) <= 30
    assert not {"rich", "slipway.pipeline.runs", "yaml"} & {*names}
    assert command or "pydantic" not in names


@pytest.mark.parametrize("words", [["--data", "~/rows.csv"], ["--data=~/rows.csv"]])
def test_the_home_folder_is_found_in_quotes_and_behind_an_equals_sign(
    local_runner, tmp_path, monkeypatch, words
):
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "rows.csv").write_text("x,y\n1,2\n", encoding="utf-8")
    code, _, err = local_runner("new", "home", *words, "--label", "y")
    assert code == 2
    assert "1 row is too few" in err


def test_new_leaves_a_warm_process_for_the_run_that_follows(local_runner, monkeypatch):
    left = []
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.setenv("SLIPWAY_WARM_MINUTES", "7")
    monkeypatch.setattr("slipway.pipeline.commands.warm.leave", lambda minutes: left.append(minutes) or "")
    assert local_runner("new", "toy", "--data", "missing.csv")[0] == 2
    assert left == []
    begun = SimpleNamespace(text=lambda: "written")
    monkeypatch.setattr("slipway.pipeline.start.command.new", lambda name, **_: begun)
    assert local_runner("new", "toy", "--data", "rows.csv") == (0, "written\n", "")
    assert left == [7]
