"""Runs each task of a rehearsal in a container of its image, with Docker or Podman on this machine.

A container gets what the service would give it: its image's files, read-only, and its variables, the
artifacts' folder in place of the bucket, its own folder at /tmp, and the job's memory and cores. It has no
network, unless the workload uses something that is elsewhere, and then one of its own.
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
from slipway.components.store_address import AZ, GS, MINIO, S3
from slipway.pipeline.cloud.container.failure import FAILURE_VARIABLE, read_failure_file
from slipway.pipeline.cloud.pipeline_job import PipelineContainerSpec
from slipway.pipeline.cloud.rehearsal.container_environment import CERTIFICATES, from_outside, names_loopback
from slipway.pipeline.engine.processes.os_processes import children
from slipway.pipeline.exit_codes import GATE_STOPPED
from slipway.pipeline.runs.run_target import ImageModuleRun, ImageRun

_LABEL = "slipway.rehearsal"
_GB = 10**9
_TEMPORARY = "/tmp"  # noqa: S108 (the container's)
_FAILURE = "failure.json"
_KEY, _GCLOUD = "GOOGLE_APPLICATION_CREDENTIALS", "CLOUDSDK_CONFIG"
_LOGIN = "application_default_credentials.json"
"""The file in gcloud's folder that `gcloud auth application-default login` writes for programs."""
# No image is pulled, and the output is kept in no log of Podman's or Docker's.
CLOSED = (
    *("--rm", "--pull", "never", "--read-only", "--log-driver", "none"),
    *("--cap-drop", "all", "--security-opt", "no-new-privileges"),
)
_LOOK_S = 0.2
"""Seconds between two checks for orphaned processes that have ended."""
ANSWER_S = 60.0
"""Seconds after which Docker, whose daemon may hang, or Podman is no longer waited for."""
_TAIL = 4096
"""Bytes at the end of a container's output that an error may quote."""
_KILLED, _OUT_OF_TIME = 137, 124
"""Exit codes of a process that got SIGKILL (128 + 9), which the kernel sends if memory runs out, and of
coreutils' `timeout`."""


@dataclass(frozen=True)
class Containers:
    """The program, image and folders with which the tasks' containers run.

    Attributes:
        program: the path of Podman or Docker.
        image: the id of the image whose code was checked.
        user: the user id that the image's commands run as.
        rehearsals: the folder of rehearsals, by which leftover containers are recognised.
        folders: folders of this machine, which are mounted in the containers under the same paths.
        is_online: whether the containers reach what is outside of this machine.
        stores: the kinds of stores beside gs:// that they open, see `stores_of`.
    """

    program: str
    image: str
    user: int
    rehearsals: str
    folders: tuple[str, ...]
    is_online: bool
    stores: tuple[str, ...] = ()

    def run(
        self, name: str, container: PipelineContainerSpec, words: Sequence[str], *, writable: Iterable[Path]
    ) -> None:
        """Run one command to its end; its output is passed on.

        Args:
            name: the container's name, which must be unique.
            container: the container's specification in the job, with its limits.
            writable: folders that the command may write into; each is new or belongs to the rehearsal
                alone.

        Raises:
            GateStopError: a gate in the container refused.
            ComponentError: the command ended with another error.
        """
        for folder in (*map(Path, self.folders), *writable):
            folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="container-") as temporary:
            own = Path(temporary)
            variables = self._bring_account(own, os.environ)
            self._make_mount_points(own)
            self._give(own, whole=True)
            for folder in writable:
                self._give(folder, whole=folder.is_relative_to(self.rehearsals))
            command = self.command(
                name, container, words, temporary=own, variables=variables, cores=os.cpu_count() or 1
            )
            with (
                _ended_by_sigterm(lambda: self._remove(name)),  # before the container can start
                # In `own`: Podman's monitor leaves a file in its working directory if memory runs out.
                subprocess.Popen(command, stderr=subprocess.PIPE, cwd=own) as process,
            ):
                tail = b""
                for block in _printed(process):
                    os.write(2, block)
                    tail = (tail + block)[-_TAIL:]
            if process.returncode:
                raise read_failure_file(own / _FAILURE) or _failure(
                    container, words, process.returncode, tail
                )

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
        """Return the command that runs the container.

        Args:
            temporary: the container's own folder.
            variables: variables beside the image's own; only paths are put on the command line, where
                others could read them.
            cores: the number of this machine's cores; a container cannot get more.
        """
        limits = container.get("resources", {})
        is_podman = Path(self.program).name == "podman"
        command = [self.program, "run", *CLOSED, "--name", name, "--label", f"{_LABEL}={self.rehearsals}"]
        command += ["--security-opt", "label=disable", "--network", self._network(variables)]
        command += ["--http-proxy=false"] if is_podman else []
        command += user_options(self.program)
        if "memoryLimit" in limits:
            command += memory_options(int(limits["memoryLimit"] * _GB))
        if "cpuLimit" in limits:
            command += core_options(min(limits["cpuLimit"], cores))
        command += ["--env", f"{FAILURE_VARIABLE}={_TEMPORARY}/{_FAILURE}"]
        for variable, value in variables.items():
            command += ["--env", f"{variable}={value}" if value.startswith(f"{_TEMPORARY}/") else variable]
        for source, place in ((str(temporary), _TEMPORARY), *((each, each) for each in self.folders)):
            command += ["--mount", f"type=bind,src={source},dst={place}"]
        # The first process of a container ignores SIGTERM; `timeout` passes the signal on. As on a service,
        # the command replaces the image's ENTRYPOINT.
        limited = words[1:] if words[:1] == ["timeout"] else ["0", *words]
        return [*command, "--entrypoint", "timeout", self.image, *limited]

    def _network(self, variables: Mapping[str, str]) -> str:
        """Return none, a network of the container's own, or this machine's if a variable names loopback."""
        if not self.is_online:
            return "none"
        if names_loopback(variables):
            return "host"
        return "private" if Path(self.program).name == "podman" else "bridge"

    def _bring_account(self, temporary: Path, here: Mapping[str, str]) -> dict[str, str]:
        """Return the variables of a container with network access, and copy the files that they name."""
        variables = from_outside(here, stores=self.stores) if self.is_online else {}
        folder = Path(variables.get(_GCLOUD, ""))
        for name in (_KEY, CERTIFICATES):
            if (file := Path(variables.get(name, ""))).is_file():
                shutil.copy2(file, temporary / name)
                variables[name] = f"{_TEMPORARY}/{name}"
        if (login := folder / _LOGIN).is_file():
            # Only this file of gcloud's folder, which also holds every account that ever logged in.
            (temporary / _GCLOUD).mkdir()
            shutil.copy2(login, temporary / _GCLOUD)
            variables[_GCLOUD] = f"{_TEMPORARY}/{_GCLOUD}"
        return variables

    def _make_mount_points(self, own: Path) -> None:
        """Make the places of the mounted folders that lie below /tmp, which is `own` in the container.

        Without root, those that Podman made would belong to another user, and could not be removed.
        """
        for each in map(Path, self.folders):
            if each.is_relative_to(_TEMPORARY):
                (own / each.relative_to(_TEMPORARY)).mkdir(parents=True, exist_ok=True)

    def _give(self, folder: Path, *, whole: bool) -> None:
        """Make the containers' user the owner of a folder, if this process is root and may do so.

        Args:
            whole: whether to include everything in the folder, which nobody else can have put there.
        """
        if os.getuid() != 0:
            return
        os.chown(folder, self.user, -1, follow_symlinks=False)
        # By open directories, not by paths: another task that works there could put a link in the way.
        for _, folders, files, here in os.fwalk(folder) if whole else ():
            for name in (*folders, *files):
                with contextlib.suppress(FileNotFoundError):  # removed by the other task
                    os.chown(name, self.user, -1, dir_fd=here, follow_symlinks=False)

    def _remove(self, name: str) -> None:
        output([self.program, "rm", "--force", name])


def user_options(program: str) -> list[str]:
    """Return the options by which the user who rehearses owns what the tasks write; none for root.

    Args:
        program: Podman or Docker.
    """
    if os.getuid() == 0:
        return []
    own = ["--user", f"{os.getuid()}:{os.getgid()}"]
    return [*own, "--userns", "keep-id"] if Path(program).name == "podman" else own


def memory_options(size_bytes: int) -> list[str]:
    """Return the options that limit a container's memory."""
    return ["--memory", str(size_bytes), "--memory-swap", str(size_bytes)]


def core_options(cores: float) -> list[str]:
    """Return the options that limit a container's cores."""
    return ["--cpus", str(cores)]


def _printed(process: subprocess.Popen[bytes]) -> Iterator[bytes]:
    """Yield what a process writes to stderr, until it closes stderr.

    A task's process becomes the parent of the orphans of its children. Podman leaves its monitor behind,
    and waits up to 20 s for it to be gone, which needs its exit status to be collected.
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
    """Call a function when this process gets SIGTERM, which the container itself might not get."""

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
    """Remove the containers of rehearsals that still run, e.g. after a rehearsal was killed.

    Args:
        program: Podman or Docker.
        rehearsals: the folder of rehearsals, none of which is running.
    """
    found = output([program, "ps", "--all", "--quiet", "--filter", f"label={_LABEL}={rehearsals}"])
    if left := found.stdout.split():
        output([program, "rm", "--force", *left])


def containers_of(target: ImageRun | ImageModuleRun, *, rehearsals: Path) -> Containers | None:
    """Return the containers of a rehearsal; None if its tasks run as processes of this machine."""
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
        stores=stores_of(target),
    )


def stores_of(target: ImageRun | ImageModuleRun) -> tuple[str, ...]:
    """Return the kinds of stores beside gs:// that tasks open, keys of `s3_and_azure_store.VARIABLES`.

    What another pipeline opens is not known; TFX has no access to these stores.
    """
    schemes = {"s3": (S3, MINIO), "az": (AZ,)}
    used = _addresses(target) if isinstance(target, ImageRun) else ""
    return tuple(kind for kind, begins in schemes.items() if any(each in used for each in begins))


def _is_elsewhere(target: ImageRun) -> bool:
    """Return True if tasks read or write outside this machine: artifacts, data, checkpoints, weights, ..."""
    return GS in _addresses(target) or bool(stores_of(target)) or target.settings.data.format == "bigquery"


def _addresses(target: ImageRun) -> str:
    """Return a text with all addresses that tasks read from or write to; a rehearsal pushes to a folder."""
    used = target.settings.model_dump_json(exclude={"cloud", "push", "description"})
    return f"{target.root} {target.source[0]} {used}"


def _failure(
    container: PipelineContainerSpec, words: Sequence[str], code: int, tail: bytes
) -> ComponentError | GateStopError:
    """Return the error of a container that left no error itself."""
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
    """Return the last line of a program's output that is not empty, shortened."""
    return next((line.strip()[:500] for line in reversed(text.splitlines()) if line.strip()), "")


def output(command: Sequence[str], *, limit_s: float = ANSWER_S) -> "subprocess.CompletedProcess[str]":
    """Run a command to its end; return its exit code and output.

    Args:
        limit_s: after so many seconds it is ended, as if it had failed with these words.
    """
    try:
        return subprocess.run(
            command, check=False, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=limit_s
        )
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(command, _OUT_OF_TIME, "", f"no answer within {limit_s:g} s")
