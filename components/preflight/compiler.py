"""Finds the interpreter that can compile a training step, and runs the compiling process in it."""

import json
import os
import re
import signal
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from slipway.components.errors import ComponentError
from slipway.components.import_path import import_path
from slipway.components.preflight.question_and_answer import Answer, Question
from slipway.components.project import PROJECT_ROOT
from slipway.components.typed_json import MisfitError, typed

WITH_LIBTPU = ".venv-tpu/bin/python"
COMPILERS = (WITH_LIBTPU, ".venv-jax/bin/python")
"""Interpreters that can compile, in order of preference; only the first has libtpu."""
LONGEST_S = 20 * 86400.0
"""The longest time to wait for a process, 20 days; the system call that waits takes no more than 24."""

_OTHERS = re.compile(r"^\s*include-system-site-packages\s*=\s*true", re.IGNORECASE | re.MULTILINE)


@dataclass(frozen=True)
class Unanswered:
    """The reason why the compiling process gave no answer about a slice, and the remedy."""

    reason: str
    remedy: str = ""


def find_compiler() -> str | None:
    """Return the interpreter that compiles, relative to the project's folder; None if there is none."""
    return next((name for name in COMPILERS if (PROJECT_ROOT / name).exists()), None)


def package_versions(interpreter: Path) -> dict[str, str]:
    """Return the versions of the packages that an interpreter compiles or trains with on a TPU, by name.

    The interpreter is not started. Only packages of its own virtual environment are seen; outside one, none.
    """
    wanted = ("jax", "jaxlib", "keras", "libtpu", "tensorflow", "tensorflow-tpu")
    return {name: number for name, number in all_package_versions(interpreter).items() if name in wanted}


def runtime_versions(interpreter: Path) -> dict[str, str] | None:
    """Return what `package_versions` does; None if it may not see all packages of the interpreter.

    It may not outside a virtual environment, or in one that also uses the packages of the system's Python.
    """
    settings = interpreter.parent.parent / "pyvenv.cfg"
    has_others = settings.is_file() and _OTHERS.search(settings.read_text(encoding="utf-8", errors="replace"))
    return None if has_others or not all_package_versions(interpreter) else package_versions(interpreter)


def all_package_versions(interpreter: Path) -> dict[str, str]:
    """Return the versions of all packages of an interpreter's virtual environment, by name; see above."""
    noted = (interpreter.parent.parent / "lib").glob("python*/site-packages/*.dist-info")
    packages = (folder.stem.partition("-") for folder in sorted(noted))
    return {name.lower().replace("_", "-"): number for name, _, number in packages}


def adapt_to_compiler(question: Question, compiler: str) -> Question:
    """Return the question in the form that this compiler can answer.

    Without libtpu the question becomes one about the CPU, whatever the slice is, compiled with full effort.
    A batch that the replicas cannot share evenly is rounded up: a rule reports the fault, and the compiler
    could add nothing to it.
    """
    question = replace(question, has_several_devices=question.slice.devices > 1)
    if compiler != WITH_LIBTPU:
        cpu = replace(question.slice, name="a CPU", generation="", devices=1, hosts=1, topology="")
        cpu = replace(cpu, machine={}, memory_bytes=0, has_tensorflow=True)
        return replace(question, slice=cpu, search_s=0.0, is_fast=False)
    parts = question.parts
    return replace(question, batch_size=-(-question.batch_size // parts) * parts)


def run_compiler(
    question: Question, compiler: str, *, import_roots: Sequence[Path], limit_s: float
) -> Answer | Unanswered:
    """Compile the step in a separate process, and return its answer.

    Args:
        question: a question returned by `adapt_to_compiler`.
        compiler: one of `COMPILERS`.
        import_roots: folders that the user's model is imported from.
        limit_s: the time after which the process is killed. If it searches for the largest batch then, the
            answer is what it knew before.

    Raises:
        ComponentError: the model cannot be built.
    """
    if question.slice.generation and question.slice.devices % question.model_parallel:
        return Unanswered("its devices cannot be divided that way")
    path = import_path(
        PROJECT_ROOT,
        inherited=os.environ.get("PYTHONPATH", ""),
        first=import_roots,
        is_same_python=False,
    )
    environment = {**os.environ, "PYTHONPATH": path, "TF_CPP_MIN_LOG_LEVEL": "2"}
    with tempfile.TemporaryDirectory(prefix="preflight-") as folder:
        file = Path(folder, "question.json")
        file.write_text(json.dumps(question.to_json()), encoding="utf-8")
        arguments = [
            str(PROJECT_ROOT / compiler),
            "-P",
            "-m",
            "slipway.components.preflight.compile_and_measure",
            str(file),
        ]
        try:
            done = subprocess.run(
                arguments,
                capture_output=True,
                encoding="utf-8",
                errors="replace",  # the user's code may print anything
                env=environment,
                timeout=min(limit_s, LONGEST_S),
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            return _before_search(error.stdout) or Unanswered(
                f"it was not compiled within {limit_s:.0f} s",
                "more time: preflight.limit_s, or --limit SECONDS",
            )
    if done.returncode == -signal.SIGKILL:
        return _before_search(done.stdout) or Unanswered(
            "the compiling process was killed, as the system does where this machine's memory is short",
            "a machine with more memory, or fewer slices at once",
        )
    last = (done.stdout.strip().splitlines() or [""])[-1]
    try:
        values = json.loads(last)
    except ValueError:
        words = (done.stderr.strip().splitlines() or ["without a message"])[-1]
        return _before_search(done.stdout) or Unanswered(
            f"the compiling process ended with {done.returncode}: {words[:300]}"
        )
    if "unanswered" in values:
        return Unanswered(values["unanswered"], values["hint"])
    if "lacks" in values:
        return Unanswered(
            f"{compiler}, which compiles, lacks the module {values['lacks']}, which the model imports",
            f"install it there: {compiler} -m pip install, with the name and version of its package",
        )
    if "failed" in values and (known := _before_search(done.stdout)):
        return known
    if "failed" in values:
        raise ComponentError(f"{question.slice.name}: {values['failed']}", hint=values["hint"])
    return typed(Answer, values)


def _before_search(printed: str | bytes | None) -> Answer | None:
    """Return what a compiling process knew before it was ended in its search; None if it had not begun."""
    text = printed.decode("utf-8", "replace") if isinstance(printed, bytes) else printed or ""
    for line in reversed(text.splitlines()):
        try:
            return typed(Answer, json.loads(line))
        except (ValueError, MisfitError):  # a line that was not written to its end
            continue
    return None
