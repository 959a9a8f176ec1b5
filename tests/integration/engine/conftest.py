"""Runs toy pipelines (tests/data/toy) as a user does, and looks at what is left behind."""

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import pytest
from called import called, forked_servers
from warmed import start_warmed

from slipway import Warm
from slipway.components.project import PROJECT_ROOT
from slipway.pipeline.engine.processes.os_processes import children, leftovers
from slipway.pipeline.runs.history import History
from slipway.pipeline.runs.record import NodeRecord, RunRecord

TOYS = PROJECT_ROOT / "tests" / "data" / "toy"


def wait_until(true: Callable[[], Any], *, limit_s: float = 60.0) -> Any:
    """Waits for a condition; returns its value."""
    until = time.monotonic() + limit_s
    while not (value := true()):
        assert time.monotonic() < until, "it did not come true in time"
        time.sleep(0.05)
    return value


def printed_command(text: str) -> list[str]:
    """The words of the last command that a run has printed."""
    line = [line for line in text.splitlines() if line.startswith("hint: python ")][-1]
    return shlex.split(line.removeprefix("hint: "), comments=True)


@dataclass
class Toy:
    """One folder in which toy pipelines are run.

    Attributes:
        folder: what the toys read and write (TOY).
        output: `--output`.
        warm: forks the servers of commands, which run in this process where they are not only started; None:
            each is a process of its own, and so is its server.
    """

    warm: ClassVar[Warm | None] = None

    folder: Path
    output: Path

    @property
    def environment(self) -> dict[str, str]:
        """With the toys on the path, and this interpreter as `python`."""
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        return {**os.environ, "TOY": str(self.folder), "PYTHONPATH": str(TOYS), "PATH": path, "CI": "true"}

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """Starts a command of local_runner.py on the folder, in a process of its own."""
        if self.warm is not None:
            words = [*arguments, "--output", str(self.output)]
            return start_warmed(self.warm, words, environment=self.environment)
        command = [sys.executable, "local_runner.py", *arguments, "--output", str(self.output)]
        return subprocess.Popen(
            command,
            cwd=PROJECT_ROOT,
            env=self.environment,
            stderr=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def command(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Runs a command to its end."""
        if self.warm is not None:
            return self._here(*arguments, "--output", str(self.output))
        process = self.start(*arguments)
        out, err = process.communicate(timeout=300)
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)

    def run(self, name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Runs a toy pipeline."""
        return self.command("run", "--pipeline", f"toy_pipeline:{name}", *arguments)

    def as_printed(self, text: str) -> subprocess.CompletedProcess[str]:
        """Runs the last command that a run has printed, as a user pastes it."""
        words = printed_command(text)
        if self.warm is not None:
            assert words[1] == "local_runner.py"
            return self._here(*words[2:])
        return subprocess.run(
            words, cwd=PROJECT_ROOT, env=self.environment, capture_output=True, text=True, timeout=300
        )

    def _here(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Calls the command line in this process, as if it were another one."""
        finished = called("local_runner", *words, environment=self.environment)
        return subprocess.CompletedProcess(
            finished.args, finished.returncode, finished.stdout, finished.stderr
        )

    @property
    def history(self) -> History:
        """What its runs left."""
        return History(self.output)

    def record(self) -> RunRecord:
        """The latest run."""
        return next(self.history.runs())

    def node(self, node_id: str) -> NodeRecord:
        """A node of the latest run."""
        return self.record().node(node_id)

    def lines(self, name: str) -> list[str]:
        """What the toys noted in a file of the folder."""
        path = self.folder / name
        return path.read_text().splitlines() if path.exists() else []

    def begins(self, name: str) -> None:
        """Waits until the toys have made a file."""
        wait_until((self.folder / name).exists)

    def left(self) -> list[int]:
        """Processes of its runs that are alive."""
        return [*leftovers(self.output / "runs"), *self._forked()]

    def _forked(self) -> list[int]:
        """Those that the warm process forked, which do not show the variable that marks a run's.

        They end when their run does, but the warm process learns of it, and waits for them, a moment later.
        """
        if self.warm is None:
            return []
        until = time.monotonic() + 60
        while (forked := list(children(self.warm.pid))) and time.monotonic() < until:
            time.sleep(0.05)
        return forked

    def get_well(self) -> None:
        """From now on the toys do not fail."""
        (self.folder / "well").touch()


@pytest.fixture(scope="module")
def warm_engine(warm: Warm) -> Iterator[None]:
    """Commands run in this process, and the servers of their runs are forked: no run waits for TFX.

    How servers start and end by themselves is seen without it: by tests that ask for `cold`.
    """
    with forked_servers(lambda: warm), pytest.MonkeyPatch.context() as patch:
        patch.setattr(Toy, "warm", warm)
        yield


@pytest.fixture(scope="module")
def toy_of_module(tmp_path_factory: pytest.TempPathFactory) -> Toy:
    """One folder for all tests of a module: what is run once can be looked at from several sides."""
    return make_toy(tmp_path_factory.mktemp("toy"))


@pytest.fixture
def toy(tmp_path: Path) -> Iterator[Toy]:
    """A folder for one test; nothing may be left running in it."""
    made = make_toy(tmp_path)
    yield made
    left = made.left()
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    assert left == []


@pytest.fixture
def cold(toy: Toy, monkeypatch: pytest.MonkeyPatch) -> Toy:
    """The folder, whose commands and their servers are processes as users have them: each imports TFX."""
    monkeypatch.setattr(toy, "warm", None)
    return toy


def make_toy(folder: Path) -> Toy:
    """Makes the folder."""
    (folder / "imported").mkdir()
    (folder / "imported" / "data").write_text("imported")
    return Toy(folder, folder / "out")


@dataclass
class Watcher:
    """A display that keeps what it is told, and calls back."""

    changes: list[tuple[str, str, int]] = field(default_factory=list)
    on_change: Callable[[NodeRecord], None] = lambda node: None

    def begins(self, record: RunRecord) -> None:
        """Nothing to show."""

    def planned(self, record: RunRecord, expected_s: Any) -> None:
        """Nothing to show."""

    def waiting(self, record: RunRecord, what: str) -> None:
        """Nothing to show."""

    def changed(self, record: RunRecord, node: NodeRecord) -> None:
        """Keeps the change."""
        self.changes.append((node.id, node.state, node.attempts))
        self.on_change(node)

    def tick(self, record: RunRecord, progress: Any) -> None:
        """Nothing to show."""

    def ends(self, record: RunRecord) -> None:
        """Nothing to show."""


@pytest.fixture
def watcher() -> Watcher:
    """A display for runs in this process."""
    return Watcher()


@pytest.fixture
def in_process(toy: Toy, monkeypatch: pytest.MonkeyPatch) -> Toy:
    """The folder, set up so that `execute` in this process finds the toys."""
    for name in ("TOY", "PYTHONPATH"):
        monkeypatch.setenv(name, toy.environment[name])
    return toy


def events(toy: Toy) -> list[dict[str, Any]]:
    """The events of the latest run."""
    path = toy.output / "runs" / toy.record().run_id / "events.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()]
