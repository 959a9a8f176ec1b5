"""The command `doctor`: reports what this machine has for pipelines and training, and how to get the rest.

Nothing heavy is imported and no connection is made. With `deep`, each interpreter is started to list the
devices that it can use, and TPUs are contacted, each with a time limit.
"""

import json
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import Any, Literal, get_args

from slipway.components.available_memory import available_memory_bytes
from slipway.components.errors import ComponentError
from slipway.components.google_credentials import may_be_key
from slipway.components.home_folder import at_home
from slipway.components.project import INSTALL, PROJECT_ROOT
from slipway.components.trainer.devices.evidence import LOOKED_FOR, Evidence, find_evidence
from slipway.components.trainer.devices.hosts import find_hosts
from slipway.components.trainer.devices.machine import cpu_has_bfloat16, usable_cores
from slipway.components.trainer.devices.tpu_contact import require_reachable
from slipway.components.trainer.settings.compute import Backend
from slipway.pipeline.commands import warm
from slipway.pipeline.engine.processes import standby
from slipway.pipeline.errors import UsageError
from slipway.pipeline.terminal.invocation import command
from slipway.pipeline.tracking.spool import all_waiting
from slipway.pipeline.wiring.beam_engine import engine_programs, engine_remedy

PACKAGES = ("tfx", "tensorflow", "keras", "apache-beam", "tensorflow-transform", "numpy")
MIN_FREE_DISK_BYTES = 5 * 2**30
MIN_FREE_MEMORY_BYTES = 3 * 2**30
_ASK_LIMIT_S, _DEEP_LIMIT_S = 5.0, 60.0

State = Literal["ok", "none", "missing"]


@dataclass(frozen=True, kw_only=True)
class Finding:
    """The result of one check.

    Attributes:
        state: "ok"; "none": absent, and not needed by the default workload; "missing": absent but needed.
        found: the result in words; never the content of a secret.
        remedy: how to get what is absent; empty if it is there.

    Raises:
        ValueError: the state is "missing" and there is no remedy.
    """

    group: str
    name: str
    state: State
    found: str
    remedy: str = ""

    def __post_init__(self) -> None:
        if self.state == "missing" and not self.remedy:
            raise ValueError(f"{self.name} is missing, and nothing says what to do about it")


@dataclass(frozen=True)
class Diagnosis:
    """All findings, in order."""

    findings: tuple[Finding, ...]

    @property
    def is_ready(self) -> bool:
        """Whether the machine has everything that the default workload needs."""
        return all(finding.state != "missing" for finding in self.findings)

    def to_json(self) -> dict[str, object]:
        """Return all findings as plain data."""
        return {"ready": self.is_ready, "findings": [asdict(finding) for finding in self.findings]}

    def text(self) -> str:
        """Return one line per finding, with its remedy below."""
        marks = {"ok": "✓", "none": "-", "missing": "✗"}
        width = max(len(finding.name) for finding in self.findings)
        lines, group = [], ""
        for finding in self.findings:
            if finding.group != group:
                group = finding.group
                lines.append(group)
            lines.append(f"  {marks[finding.state]} {finding.name:<{width}}  {finding.found}".rstrip())
            if finding.remedy:
                lines.append(f"    {'':<{width}}  to have it: {finding.remedy}")
        return "\n".join(lines)


def examine(output: Path, environment: Mapping[str, str], *, deep: bool = False) -> Diagnosis:
    """Examine this machine.

    Args:
        deep: also start the interpreters and contact TPUs, which takes up to a minute each.
    """
    findings = [
        *_machine(output, environment),
        *_packages(),
        *_interpreters(deep=deep),
        *_accelerators(environment, deep=deep),
        *_credentials(environment),
        *_programs(environment),
        *_trackers(output),
    ]
    return Diagnosis(tuple(findings))


def _machine(output: Path, environment: Mapping[str, str]) -> Iterator[Finding]:
    group = "machine"
    libc = " ".join(platform.libc_ver())
    yield Finding(
        group=group, name="system", state="ok", found=f"{platform.system()} {platform.machine()}, {libc}"
    )
    bfloat16 = "with bfloat16" if cpu_has_bfloat16() else "without bfloat16"
    yield Finding(group=group, name="cores", state="ok", found=f"{usable_cores()} usable, {bfloat16}")
    there = next(folder for folder in (output.absolute(), *output.absolute().parents) if folder.exists())
    memory, disk = available_memory_bytes(), shutil.disk_usage(there).free
    end = f"end other programs; a run takes up to {_size(MIN_FREE_MEMORY_BYTES)}"
    for name, free, least, at, remedy in (
        ("memory", memory, MIN_FREE_MEMORY_BYTES, "", end),
        ("disk", disk, MIN_FREE_DISK_BYTES, f" at {there}", f"{command('gc')}, or another --output"),
    ):
        is_enough = free >= least
        yield Finding(
            group=group,
            name=name,
            state="ok" if is_enough else "missing",
            found=f"{_size(free)} free{at}",
            remedy="" if is_enough else remedy,
        )
    yield _warm_process(group, environment)


def _warm_process(group: str, environment: Mapping[str, str]) -> Finding:
    name = "warm process"
    try:
        found = ", ".join(map(str, standby.waiting()))
        minutes = warm.minutes_left(environment, at_terminal=sys.stderr.isatty())
    except UsageError as error:
        return Finding(group=group, name=name, state="none", found=error.message, remedy=error.hint)
    left = f"; each run leaves one for {minutes:g} minutes ({warm.MINUTES_VARIABLE})" if minutes else ""
    if found:
        words = f"{found}{left}; to end: {command('warm', '--end')}"
        return Finding(group=group, name=name, state="ok", found=words)
    remedy = f"{command('warm')}, so that runs start without importing TFX" if not minutes else ""
    return Finding(group=group, name=name, state="none", found=f"none{left}", remedy=remedy)


def _packages() -> Iterator[Finding]:
    for name in PACKAGES:
        version = _version(name)
        yield Finding(
            group="packages",
            name=name,
            state="ok" if version else "missing",
            found=version or "not installed",
            remedy="" if version else INSTALL,
        )


def _interpreters(*, deep: bool) -> Iterator[Finding]:
    """Yield a finding for every Python that could train, with its backends."""
    second = PROJECT_ROOT / ".venv-jax" / "bin" / "python"
    for name, python in (("this one", Path(sys.executable)), (".venv-jax", second)):
        if not python.exists():
            yield Finding(
                group="interpreters that train", name=name, state="none", found="not there",
                remedy="make jax, to train with train.backend: jax",
            )  # fmt: skip
            continue
        backends = _ask(python, _VERSIONS, _ASK_LIMIT_S).get("backends")
        if backends is None:
            yield Finding(
                group="interpreters that train", name=name, state="none",
                found=f"{python}: fails, or does not answer within {_ASK_LIMIT_S:g} s",
                remedy=f"see why: {python} -c 'import keras'",
            )  # fmt: skip
            continue
        found = ", ".join(f"{each} {version}" for each, version in backends.items()) or "no backend"
        yield Finding(group="interpreters that train", name=name, state="ok", found=f"{python}: {found}")
        if deep:
            yield from _uses(name, python, [each for each in get_args(Backend) if each in backends])


def _uses(name: str, python: Path, backends: Sequence[str]) -> Iterator[Finding]:
    """Yield the devices that each backend of an interpreter uses; the backends start in parallel."""
    with ThreadPoolExecutor() as pool:
        answers = list(pool.map(lambda each: _ask(python, _DEVICES[each], _DEEP_LIMIT_S), backends))
    for backend, answer in zip(backends, answers, strict=True):
        yield Finding(
            group="interpreters that train",
            name=f"{name}, {backend}",
            state="ok" if answer else "missing",
            found="computes on " + ", ".join(answer["devices"]) if answer else "does not start",
            remedy="" if answer else f"see why: {python} -c 'import {backend}'",
        )


_ACCELERATOR_REMEDIES = {
    "tpu": "rent one, see docs/tpu.md; what it would bring: {}",
    "gpu": "NVIDIA's driver on a machine with a GPU; train.device: cpu needs none",
}


def _accelerators(environment: Mapping[str, str], *, deep: bool) -> Iterator[Finding]:
    evidence = find_evidence(environment)
    for kind in ("tpu", "gpu"):
        signs = [each for each in evidence if each.kind == kind]
        for sign in signs:
            yield _sign(kind, sign, deep)
        if not signs:
            yield Finding(
                group="accelerators",
                name=kind.upper(),
                state="none",
                found=f"none; looked for {LOOKED_FOR[kind]}".replace("train.tpu_address, ", ""),
                remedy=_ACCELERATOR_REMEDIES[kind].format(command("preflight", "--tpu", "v5e-8")),
            )
    if shutil.which("nvidia-smi"):
        names = _output(["nvidia-smi", "--query-gpu=name,memory.total", "--format=csv,noheader"])
        for line in names.splitlines():
            yield Finding(group="accelerators", name="GPU", state="ok", found=line)
    try:
        hosts = find_hosts(environment)
        words = f"host {hosts.index} of {hosts.count}, by {hosts.source}" if hosts.count > 1 else "one"
        yield Finding(group="accelerators", name="hosts", state="ok", found=words)
    except ComponentError as error:
        yield Finding(
            group="accelerators",
            name="hosts",
            state="missing",
            found=error.message,
            remedy=error.hint or "unset these variables, or set them alike on all hosts",
        )


def _sign(kind: str, sign: Evidence, deep: bool) -> Finding:
    """Return the finding of a sign of an accelerator; with `deep`, one with an address must answer there."""
    answers = ""
    if deep and sign.address.startswith("grpc://"):
        try:
            require_reachable(sign.address)
        except ComponentError as error:
            found = f"{sign.words}; {error.message}"
            return Finding(
                group="accelerators", name=kind.upper(), state="none", found=found, remedy=error.hint
            )
        answers = "; answers"
    return Finding(group="accelerators", name=kind.upper(), state="ok", found=sign.words + answers)


def _credentials(environment: Mapping[str, str]) -> Iterator[Finding]:
    """Look for credential files without reading them."""
    named = environment.get("GOOGLE_APPLICATION_CREDENTIALS")
    usual = Path(environment.get("CLOUDSDK_CONFIG") or at_home("~/.config/gcloud"))
    usual /= "application_default_credentials.json"
    if named and may_be_key(named):
        there = False
        found = "GOOGLE_APPLICATION_CREDENTIALS does not hold the path of a file"
    elif named:
        there = Path(named).is_file()
        found = f"GOOGLE_APPLICATION_CREDENTIALS names {named}" + ("" if there else ", which does not exist")
    else:
        there = usual.is_file()
        found = str(usual) if there else "none in GOOGLE_APPLICATION_CREDENTIALS or in gcloud's folder"
    yield Finding(
        group="credentials",
        name="Google Cloud",
        state="ok" if there else "none",
        found=found,
        remedy=""
        if there
        else f"{'unset that variable; ' if named else ''}gcloud auth application-default login, "
        "for gs:// and Vertex AI",
    )


def _programs(environment: Mapping[str, str]) -> Iterator[Finding]:
    group = "programs"
    servers = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"))
    postgres = shutil.which("postgres") or (str(servers[-1]) if servers else "")
    yield _program(group, "PostgreSQL", postgres, "apt install postgresql, to keep metadata in a server here")
    java = shutil.which("java") or ""
    yield _program(group, "Java", java, "apt install default-jre-headless, for Beam on Flink or Spark here")
    for name, path in engine_programs().items():
        there = str(path) if path.exists() else ""
        yield _program(group, f"Beam on {name.capitalize()}", there, engine_remedy(name))
    yield _docker(group, shutil.which("docker") or "", environment)


def _docker(group: str, docker: str, environment: Mapping[str, str]) -> Finding:
    host = environment.get("DOCKER_HOST") or "unix:///var/run/docker.sock"
    socket = Path(host.removeprefix("unix://"))
    if docker and "://" in host.removeprefix("unix://"):
        return _program(group, "Docker", f"{docker}, with the daemon at {host}", "")
    if docker and not socket.exists():
        return Finding(
            group=group, name="Docker", state="none", found=f"{docker}, but no daemon at {socket}",
            remedy="systemctl start docker, to build the image for cloud runs",
        )  # fmt: skip
    return _program(group, "Docker", docker, "install Docker, to build the image for cloud runs")


def _trackers(output: Path) -> Iterator[Finding]:
    """Yield a finding for each tracker that has missed runs."""
    waiting = all_waiting(output.absolute())
    for name in dict.fromkeys(name for each in waiting for name in each.why):
        why = [each.why[name] for each in waiting if name in each.why]
        yield Finding(
            group="trackers",
            name=name,
            state="none",
            found=f"{len(why):,} run{'s' * (len(why) > 1)} not yet sent to it"
            + f": {why[-1]}" * bool(why[-1]),
            remedy=f"{command('track', output=output)}, once it can be reached",
        )


def _program(group: str, name: str, found: str, remedy: str) -> Finding:
    if found:
        return Finding(group=group, name=name, state="ok", found=found)
    return Finding(group=group, name=name, state="none", found="not installed", remedy=remedy)


_VERSIONS = """
import importlib.metadata as m, json
found = {}
for name, packages in {"tensorflow": ("tensorflow", "tensorflow-tpu", "tensorflow-cpu"), "jax": ("jax",),
                       "torch": ("torch",), "keras": ("keras",)}.items():
    for package in packages:
        try:
            found.setdefault(name, m.version(package))
        except m.PackageNotFoundError:
            pass
print(json.dumps({"backends": found}))
"""
_DEVICES = {
    "tensorflow": "import json, tensorflow as tf\n"
    "found = [each.name.removeprefix('/physical_device:') for each in tf.config.list_physical_devices()]\n"
    "print(json.dumps({'devices': found}))",
    "jax": "import json, jax\nprint(json.dumps({'devices': [str(each) for each in jax.devices()]}))",
    "torch": "import json, torch\n"
    "found = [torch.cuda.get_device_name(each) for each in range(torch.cuda.device_count())]\n"
    "print(json.dumps({'devices': ['CPU', *found]}))",
}


def _ask(python: Path, code: str, limit_s: float) -> dict[str, Any]:
    """Run code in an interpreter; return its last output line as JSON, {} if it fails or takes too long."""
    answer = _output([str(python), "-c", code], limit_s=limit_s).strip().rpartition("\n")[2]
    try:
        read = json.loads(answer)
    except ValueError:
        return {}
    return read if isinstance(read, dict) else {}


def _output(command: Sequence[str], *, limit_s: float = _ASK_LIMIT_S) -> str:
    try:
        # A json.py in the current folder, such as one of downloads, is not run in place of Python's.
        environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "PYTHONSAFEPATH": "1"}
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=limit_s, check=False, env=environment
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout if done.returncode == 0 else ""


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""


def _size(size_bytes: int) -> str:
    return f"{size_bytes / 2**30:.1f} GB"
