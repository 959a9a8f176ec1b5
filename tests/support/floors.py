"""Compares each package's coverage with its floor: `python -m floors REPORT`, for `make floors`.

The report is what `coverage json` writes. Counted are lines and branches together, as coverage.py counts
them, in all processes that the tests start, but for those that a test kills.

On GitHub, the table is also on the run's summary page, whose file `GITHUB_STEP_SUMMARY` names.
"""

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from touched import dotted

FLOORS: Mapping[str, float] = {
    "slipway.components": 92,
    "slipway.components.data_gate": 94,
    "slipway.components.data_profile": 91,
    "slipway.components.evaluator": 93,
    "slipway.components.ingest": 95,
    "slipway.components.metrics": 94,
    "slipway.components.model_gate": 94,
    "slipway.components.predictor": 94,
    "slipway.components.preflight": 94,
    "slipway.components.preflight.compile_and_measure": 13,
    "slipway.components.preflight.component": 38,
    "slipway.components.preflight.lengths": 59,
    "slipway.components.preflight.slice_mesh": 15,
    "slipway.components.preflight.training_step": 22,
    "slipway.components.pusher": 94,
    "slipway.components.reference_models": 95,
    "slipway.components.saved_model": 90,
    "slipway.components.statistics_gen": 95,
    "slipway.components.serving": 94,
    "slipway.components.serving_check": 81,
    "slipway.components.trainer": 92,
    "slipway.components.transform": 92,
    "slipway.pipeline": 95,
    "slipway.pipeline.cloud": 90,
    "slipway.pipeline.config": 95,
    "slipway.pipeline.commands": 90,
    "slipway.pipeline.engine": 91,
    "slipway.pipeline.fingerprint": 96,
    "slipway.pipeline.plan": 95,
    "slipway.pipeline.report": 95,
    "slipway.pipeline.runs": 95,
    "slipway.pipeline.screen": 92,
    "slipway.pipeline.start": 94,
    "slipway.pipeline.terminal": 91,
    "slipway.pipeline.testing": 95,
    "slipway.pipeline.tracking": 95,
    "slipway.pipeline.wiring": 93,
    "slipway.schemas": 97,
}
"""Package or module -> the least share in percent; the longest name that holds a module is the module's.

Each lies some three points below what was measured, for processes that a test kills tell nothing of what
they ran. All packages were measured above 90. What lies below runs where nothing is counted: five modules of
the preflight in the compiler's Python, on JAX, or in its node. The serving check's component and the
training's side of it run in one process, of the finished taxi run: where what that has counted was lost, some
84 are left of 95, and the floor is below these.
"""


def package_of(module: str, floors: Mapping[str, float]) -> str:
    """The package or module among those with a floor that a module counts for.

    Args:
        module: dotted, e.g. `slipway.components.ingest.options`.
        floors: the packages.

    Raises:
        KeyError: no package of `floors` holds it.
    """
    parts = module.split(".")
    for length in range(len(parts), 0, -1):
        if (name := ".".join(parts[:length])) in floors:
            return name
    raise KeyError(f"{module} is in no package that has a floor: name one in tests/support/floors.py")


def shares(report: Mapping[str, Any], floors: Mapping[str, float]) -> dict[str, float]:
    """Return the coverage of each package in percent, 0 to 100.

    Args:
        report: as `coverage json` writes it, with branches.
        floors: the packages to tell of; one without a module in the report has no share.
    """
    done: dict[str, int] = {}
    there: dict[str, int] = {}
    for file, found in report["files"].items():
        package, counts = package_of(dotted(Path(file)), floors), found["summary"]
        done[package] = done.get(package, 0) + counts["covered_lines"] + counts["covered_branches"]
        there[package] = there.get(package, 0) + counts["num_statements"] + counts["num_branches"]
    return {package: 100 * done[package] / total for package, total in there.items() if total}


def main() -> int:
    """Prints the table; 1 where a package lies below its floor."""
    found = shares(json.loads(Path(sys.argv[1]).read_text()), FLOORS)
    missed = False
    lines = []
    for package, floor in sorted(FLOORS.items()):
        share = found.get(package, 0.0)
        missed |= share < floor
        lines.append(
            f"{share:5.1f}%  floor {floor:.0f}%  {package}{'' if share >= floor else '  BELOW ITS FLOOR'}"
        )
    table = "\n".join(lines)
    print(table)
    if summary := os.environ.get("GITHUB_STEP_SUMMARY"):
        with Path(summary).open("a", encoding="utf-8") as page:
            page.write(f"### Coverage\n\n```text\n{table}\n```\n")
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
