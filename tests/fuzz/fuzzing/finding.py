"""One target, fuzzed: cases in a process of its own, so that a crash or want of memory is a finding, too."""

import hashlib
import random
import resource
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from fuzzing.mutation import mutated
from fuzzing.targets import Target

MEMORY_BYTES = 6 << 30
"""Of one case: input of 64 KiB that needs more has found a missing limit."""
CASE_S = 30
"""Of one case: some take a millisecond, and none a second."""


@dataclass(frozen=True)
class Finding:
    """Input for which the rule does not hold.

    Attributes:
        data: the input.
        what: the exception with its trace, or how the process died.
    """

    data: bytes
    what: str


def cases(target: Target, *, seed: int, kept: tuple[bytes, ...] = ()) -> Iterator[bytes]:
    """Endless input: first what is well-formed and what was once found, then damage of both.

    Args:
        target: what is fuzzed.
        seed: the same seed, the same cases.
        kept: earlier findings.
    """
    pool = (*target.seeds, *kept)
    yield from pool
    rng = random.Random(f"{target.name} {seed}")  # noqa: S311 (nothing secret)
    while True:
        yield mutated(rng.choice(pool), rng, tokens=target.tokens)


def problem_with(target: Target, data: bytes) -> str:
    """The exception that a target raises for an input, with its trace; "" where its rule holds."""
    try:
        target.hold(data)
    except Exception:
        return traceback.format_exc()
    return ""


def explore(
    target: Target, *, seed: int, cases_at_most: int, seconds: float, kept: tuple[bytes, ...], note: Path
) -> tuple[int, Finding | None]:
    """Runs cases in this process until one is a finding, or enough were run.

    Args:
        target: what is fuzzed.
        seed: of the cases.
        cases_at_most: how many.
        seconds: of wall time, after which no further case begins.
        kept: earlier findings.
        note: gets each case before it is run: what a process that died has died of.

    Returns:
        How many cases were run, and the first finding.
    """
    signal.signal(signal.SIGALRM, _too_slow)
    ends = time.monotonic() + seconds
    for number, data in enumerate(cases(target, seed=seed, kept=kept)):
        if number >= cases_at_most or time.monotonic() > ends:
            return number, None
        note.write_bytes(data)
        _allow_memory()
        signal.alarm(CASE_S)
        try:
            what = problem_with(target, data)
        finally:
            signal.alarm(0)
        if what:
            return number + 1, Finding(data, what)
    return 0, None


def explore_apart(
    chosen: Sequence[Target], *, seed: int, cases_at_most: int, seconds: float, corpus: Path, folder: Path
) -> dict[str, tuple[int, Finding | None]]:
    """`explore`, each target in turn, in one process apart with bounded memory, and ends where it dies.

    Args:
        chosen: the targets.
        seconds: for each of them.
        corpus: the folder with the targets' earlier findings.
        folder: for the notes of that process; empty.

    Returns:
        What `explore` returns, by the target's name; those that were not reached are left out.
    """
    names = ",".join(target.name for target in chosen)
    arguments = [names, seed, cases_at_most, seconds, corpus, folder]
    command = [sys.executable, "-m", "fuzzing.finding", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, errors="replace")
    explored: dict[str, tuple[int, Finding | None]] = {}
    for target in chosen:
        note, result = _files_of(target.name, folder)
        if result.exists():
            count, _, what = result.read_text(encoding="utf-8").partition("\n")
            explored[target.name] = int(count), Finding(note.read_bytes(), what) if what else None
            continue
        died = f"the process died of it (exit code {done.returncode})\n{done.stderr[-3000:]}"
        explored[target.name] = 0, Finding(note.read_bytes() if note.exists() else b"", died)
        break
    else:
        if done.returncode:
            last = chosen[-1].name
            died = f"the process died after it (exit code {done.returncode})\n{done.stderr[-3000:]}"
            explored[last] = explored[last][0], explored[last][1] or Finding(b"", died)
    return explored


def _files_of(name: str, folder: Path) -> tuple[Path, Path]:
    return folder / f"{name}.case", folder / f"{name}.result"


def kept_findings(target: Target, corpus: Path) -> tuple[bytes, ...]:
    """Earlier findings, each a file in the target's folder."""
    return tuple(path.read_bytes() for path in sorted((corpus / target.name).glob("*.bin")))


def name_of(data: bytes) -> str:
    """The name of the file that keeps a finding."""
    return f"{hashlib.sha256(data).hexdigest()[:12]}.bin"


def _allow_memory() -> None:
    """From what is mapped now: Arrow leaves a mapping behind with each damaged stream that it reads."""
    mapped = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (mapped + MEMORY_BYTES, resource.RLIM_INFINITY))


def _too_slow(number: int, frame: FrameType | None) -> None:
    raise TimeoutError(f"the case takes longer than {CASE_S} s")


def main(arguments: list[str]) -> int:
    """Entry point of the process apart; see `explore_apart`."""
    from fuzzing.targets import targets

    names, seed, count, seconds, corpus, folder = arguments
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    known = targets()
    for name in names.split(","):
        note, result = _files_of(name, Path(folder))
        run, finding = explore(
            known[name],
            seed=int(seed),
            cases_at_most=int(count),
            seconds=float(seconds),
            kept=kept_findings(known[name], Path(corpus)),
            note=note,
        )
        result.write_text(f"{run}\n{finding.what if finding else ''}", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
