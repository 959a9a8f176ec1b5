"""Docker or Podman on this machine: each task of a rehearsal in a container of its image.

A container gets what the service would give it: its image's files, read-only, and its variables, the
artifacts' folder in the place of the bucket, a folder of its own at /tmp, and the job's memory and cores. It
has no network, except where something of the workload is elsewhere.
"""

import contextlib
import os
import select
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from slipway.components.errors import ComponentError, GateStopError
from slipway.pipeline.cloud.container.failure import FAILURE_VARIABLE, left_failure
from slipway.pipeline.cloud.pipeline_job import PipelineContainerSpec
from slipway.pipeline.cloud.rehearsal.container_environment import from_outside
from slipway.pipeline.engine.processes.os_processes import children
from slipway.pipeline.exit_codes import GATE_STOPPED
from slipway.pipeline.runs.run_target import ImageModuleRun, ImageRun

_LABEL = "slipway.rehearsal"
_GB = 10**9
_TEMPORARY = "/tmp"  # noqa: S108 (the container's)
_FAILURE = "failure.json"
_KEY, _GCLOUD = "GOOGLE_APPLICATION_CREDENTIALS", "CLOUDSDK_CONFIG"
_LOGIN = "application_default_credentials.json"
"""In gcloud's folder: what `gcloud auth application-default login` leaves for programs."""
# Nothing is pulled, and what is printed stays in no log of Podman's or Docker's.
CLOSED = (
    *("--rm", "--pull", "never", "--read-only", "--log-driver", "none"),
    *("--cap-drop", "all", "--security-opt", "no-new-privileges"),
)
_LOOK_S = 0.2
"""Between two looks for processes that were left behind and have ended."""
_TAIL = 4096
"""Bytes of a container's last words that an error may quote."""
_KILLED, _OUT_OF_TIME = 137, 124
"""Exit codes: of a process that got SIGKILL (128 + 9), as the kernel sends it for want of memory; and of
coreutils' `timeout`."""


@dataclass(frozen=True)
class Containers:
    """Where the tasks' containers run.

    Attributes:
        program: path of Podman or Docker.
        image: id of the image that was asked for its code.
        user: number of the user that the image's commands run as.
        rehearsals: the folder of rehearsals, by which containers that were left are known.
        folders: of this machine, in the containers under the same paths.
        is_online: whether they share this machine's network, loopback with it, where stores of tests are.
    """

    program: str
    image: str
    user: int
    rehearsals: str
    folders: tuple[str, ...]
    is_online: bool

    def run(
        self, name: str, container: PipelineContainerSpec, words: Sequence[str], *, writable: Iterable[Path]
    ) -> None:
        """Runs one command to its end; what it prints is passed on.

        Args:
            name: of the container; no other may have it.
            container: of the job; its limits.
            writable: folders, new or of the rehearsal alone, that the command may write into.

        Raises:
            GateStopError: a gate in it refused.
            ComponentError: it ended with another error.
        """
        for folder in (*map(Path, self.folders), *writable):
            folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="container-") as temporary:
            own = Path(temporary)
            variables = self._bring_account(own, os.environ)
            self._give(own, whole=True)
            for folder in writable:
                self._give(folder, whole=folder.is_relative_to(self.rehearsals))
            command = self.command(
                name, container, words, temporary=own, variables=variables, cores=os.cpu_count() or 1
            )
            with (
                _ended_by_sigterm(lambda: self._remove(name)),  # first: the container may start at once
                # There, for Podman's watcher leaves a file where it is when memory is short.
                subprocess.Popen(command, stderr=subprocess.PIPE, cwd=own) as process,
            ):
                tail = b""
                for block in _printed(process):
                    os.write(2, block)
                    tail = (tail + block)[-_TAIL:]
            if process.returncode:
                raise left_failure(own / _FAILURE) or _failure(container, words, process.returncode, tail)

    def command(
        self,
        name: str,
        container: PipelineContainerSpec,
        words: Sequence[str],
        *,
        temporary: Path,
        variables: Mapping[str, str],
        cores: int,
    ) -> list[str]:
        """The command that runs the container.

        Args:
            temporary: a folder of its own.
            variables: beside the image's own; only paths are on the command line, where others could read it.
            cores: of this machine: more cannot be given.
        """
        limits = container.get("resources", {})
        is_podman = Path(self.program).name == "podman"
        command = [self.program, "run", *CLOSED, "--name", name, "--label", f"{_LABEL}={self.rehearsals}"]
        command += ["--security-opt", "label=disable", "--network", "host" if self.is_online else "none"]
        command += ["--http-proxy=false"] if is_podman else []
        if os.getuid() != 0:
            # Whoever rehearses owns what the tasks write.
            command += ["--user", f"{os.getuid()}:{os.getgid()}"]
            command += ["--userns", "keep-id"] if is_podman else []
        if "memoryLimit" in limits:
            memory = str(int(limits["memoryLimit"] * _GB))
            command += ["--memory", memory, "--memory-swap", memory]
        if "cpuLimit" in limits:
            command += ["--cpus", str(min(limits["cpuLimit"], cores))]
        command += ["--env", f"{FAILURE_VARIABLE}={_TEMPORARY}/{_FAILURE}"]
        for variable, value in variables.items():
            command += ["--env", f"{variable}={value}" if value.startswith(f"{_TEMPORARY}/") else variable]
        for source, place in ((str(temporary), _TEMPORARY), *((each, each) for each in self.folders)):
            command += ["--mount", f"type=bind,src={source},dst={place}"]
        # A process that is the first of a container ignores SIGTERM; `timeout` passes it on. As at a service,
        # the command takes the place of the image's ENTRYPOINT.
        limited = words[1:] if words[:1] == ["timeout"] else ["0", *words]
        return [*command, "--entrypoint", "timeout", self.image, *limited]

    def _bring_account(self, temporary: Path, here: Mapping[str, str]) -> dict[str, str]:
        """The variables of a container with the network, and copies of the files that they name."""
        variables = from_outside(here) if self.is_online else {}
        key, folder = Path(variables.get(_KEY, "")), Path(variables.get(_GCLOUD, ""))
        if key.is_file():
            shutil.copy2(key, temporary / _KEY)
            variables[_KEY] = f"{_TEMPORARY}/{_KEY}"
        if (login := folder / _LOGIN).is_file():
            # Of gcloud's folder this alone: beside it are all accounts that were ever logged in.
            (temporary / _GCLOUD).mkdir()
            shutil.copy2(login, temporary / _GCLOUD)
            variables[_GCLOUD] = f"{_TEMPORARY}/{_GCLOUD}"
        return variables

    def _give(self, folder: Path, *, whole: bool) -> None:
        """Has the containers' user own a folder, where this process is root and may give it away.

        Args:
            whole: with all that is in it, which nobody else can have put there.
        """
        if os.getuid() != 0:
            return
        os.chown(folder, self.user, -1, follow_symlinks=False)
        # By open folders, not by paths: another task, which works there as well, could put a link in the way.
        for _, folders, files, here in os.fwalk(folder) if whole else ():
            for name in (*folders, *files):
                with contextlib.suppress(FileNotFoundError):  # the other task's, gone since
                    os.chown(name, self.user, -1, dir_fd=here, follow_symlinks=False)

    def _remove(self, name: str) -> None:
        output([self.program, "rm", "--force", name])


def _printed(process: subprocess.Popen[bytes]) -> Iterator[bytes]:
    """What a process writes to stderr, until it closes that.

    A task's process is the parent of what its children leave behind. Podman leaves its watcher, and waits up
    to 20 s for it to be gone, which it is when somebody has asked how it ended.
    """
    assert process.stderr is not None  # noqa: S101  (for the type checker)
    stderr = process.stderr.fileno()
    while True:
        if select.select([stderr], [], [], _LOOK_S)[0]:
            if not (block := os.read(stderr, 1 << 16)):
                return
            yield block
        for pid in children(os.getpid()):
            if pid != process.pid:
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(pid, os.WNOHANG)


@contextmanager
def _ended_by_sigterm(end: Callable[[], None]) -> Iterator[None]:
    """Calls a function when this process is told to end, which the container alone might not hear."""

    def ended(_signum: int, _frame: object) -> None:
        end()
        signal.signal(signal.SIGTERM, before)
        os.kill(os.getpid(), signal.SIGTERM)

    before = signal.signal(signal.SIGTERM, ended)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def remove_left(program: str, rehearsals: Path) -> None:
    """Removes the containers of rehearsals that still run, as after a kill.

    Args:
        program: Podman or Docker.
        rehearsals: the folder of rehearsals; none of them is running.
    """
    found = output([program, "ps", "--all", "--quiet", "--filter", f"label={_LABEL}={rehearsals}"])
    if left := found.stdout.split():
        output([program, "rm", "--force", *left])


def containers_of(target: ImageRun | ImageModuleRun, *, rehearsals: Path) -> Containers | None:
    """The containers of a rehearsal; None where its tasks run as processes of this machine.

    Args:
        rehearsals: the folder of rehearsals.
    """
    if not isinstance(target, ImageRun) or not target.containers:
        return None
    destination = target.settings.push.destination
    return Containers(
        program=target.containers,
        image=target.container_image,
        user=target.container_user,
        rehearsals=str(rehearsals),
        folders=tuple(each for each in (target.root, destination) if each and "://" not in each),
        is_online=_is_elsewhere(target),
    )


def _is_elsewhere(target: ImageRun) -> bool:
    """Whether tasks read or write outside this machine: artifacts, data, checkpoints, weights, ..."""
    settings = target.settings
    used = settings.model_dump_json(exclude={"cloud", "push", "description"})
    return any("gs://" in text for text in (target.root, target.source[0], used)) or (
        settings.data.format == "bigquery"
    )


def _failure(
    container: PipelineContainerSpec, words: Sequence[str], code: int, tail: bytes
) -> ComponentError | GateStopError:
    """The error of a container that left none."""
    last = last_line(tail.decode(errors="replace"))
    said = f": {last}" if last else ""
    is_limited = words[:1] == ["timeout"]
    if code == GATE_STOPPED:
        return GateStopError(f"the container's gate refused{said}", verdict={})
    if code == _OUT_OF_TIME and is_limited:
        return ComponentError("the container was ended by its task's time limit")
    if code == _KILLED:
        memory = container.get("resources", {}).get("memoryLimit")
        given = f", which had {memory:g} GB," if memory else ""
        limit = " or by its time limit" if is_limited else ""
        return ComponentError(
            f"the container{given} was killed, as happens when memory runs out{limit}",
            hint="give it more: cloud.tasks.<NODE>.memory_gb",
        )
    return ComponentError(f"the container ended with code {code}{said}")


def last_line(text: str) -> str:
    """The last line of what a program has said that is not empty, shortened."""
    return next((line.strip()[:500] for line in reversed(text.splitlines()) if line.strip()), "")


def output(command: Sequence[str]) -> "subprocess.CompletedProcess[str]":
    """Runs a command to its end, and returns what it said."""
    return subprocess.run(command, check=False, capture_output=True, text=True, stdin=subprocess.DEVNULL)
