"""The command: fuzzes all targets, keeps what is found, and says how to make a test of it."""

import argparse
import sys
import tempfile
import time
from pathlib import Path

from fuzzing.finding import explore_apart, name_of
from fuzzing.targets import PROJECT, targets

CORPUS = PROJECT / "tests" / "data" / "fuzz"


def main(arguments: list[str] | None = None) -> int:
    """Returns 1 where something was found."""
    known = targets()
    parser = argparse.ArgumentParser(prog="python -m fuzzing", description=__doc__)
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=f"of {', '.join(known)}; all if none")
    parser.add_argument("--seconds", type=float, default=60, help="in all, shared out among the targets")
    parser.add_argument("--seed", type=int, default=None, help="of the cases; the clock's if left out")
    options = parser.parse_args(arguments)
    if unknown := [name for name in options.targets if name not in known]:
        parser.error(f"no target {unknown[0]!r}; there are {', '.join(known)}")
    seed = int(time.time()) if options.seed is None else options.seed
    chosen = [known[name] for name in options.targets or known]
    found = 0
    with tempfile.TemporaryDirectory() as folder:
        for target in chosen:
            [(count, finding)] = explore_apart(
                [target],
                seed=seed,
                cases_at_most=10**9,
                seconds=options.seconds / len(chosen),
                corpus=CORPUS,
                folder=Path(folder),
            ).values()
            if finding is None:
                print(f"{target.name:10} {count:>8,} cases, nothing found")
                continue
            found += 1
            path = CORPUS / target.name / name_of(finding.data)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(finding.data)
            print(
                f"{target.name:10} FOUND after {count:,} cases: {path.relative_to(PROJECT)}\n{finding.what}"
            )
    if found:
        print(
            f"{found} found. Each stands in tests/data/fuzz: mend its cause and commit it; it is a test now."
        )
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
