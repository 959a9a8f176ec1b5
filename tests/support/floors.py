"""Which share of each package the tests run, held to its floor: `python -m floors REPORT`, for `make floors`.

The report is what `coverage json` writes. Counted are lines and branches together, as coverage.py counts
them, in all processes that the tests start, but for those that a test kills.
"""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

FLOORS: Mapping[str, float] = {
    "components": 76,
    "components.data_gate": 83,
    "components.data_profile": 64,
    "components.ingest": 90,
    "components.model_gate": 70,
    "components.predictor": 77,
    "components.preflight": 69,
    "components.pusher": 52,
    "components.reference_models": 48,
    "components.saved_model": 58,
    "components.serving": 87,
    "components.serving_check": 25,
    "components.trainer": 70,
    "pipeline": 79,
    "pipeline.cloud": 63,
    "pipeline.config": 98,
    "pipeline.local": 70,
    "pipeline.report": 96,
    "pipeline.start": 97,
    "pipeline.testing": 34,
    "schemas": 0,
}
"""Package -> the least share in percent; the longest name that holds a module is the module's."""


def package_of(module: str, floors: Mapping[str, float]) -> str:
    """The package among those with a floor that a module counts for.

    Args:
        module: dotted, e.g. `components.ingest.options`.
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
    """The share of each package in percent, 0 to 100.

    Args:
        report: as `coverage json` writes it, with branches.
        floors: the packages to tell of; one without a module in the report has no share.
    """
    done: dict[str, int] = {}
    there: dict[str, int] = {}
    for file, found in report["files"].items():
        module = ".".join(Path(file).with_suffix("").parts).removesuffix(".__init__")
        package, counts = package_of(module, floors), found["summary"]
        done[package] = done.get(package, 0) + counts["covered_lines"] + counts["covered_branches"]
        there[package] = there.get(package, 0) + counts["num_statements"] + counts["num_branches"]
    return {package: 100 * done[package] / total for package, total in there.items() if total}


def main() -> int:
    """Prints the table; 1 where a package lies below its floor."""
    found = shares(json.loads(Path(sys.argv[1]).read_text()), FLOORS)
    missed = False
    for package, floor in sorted(FLOORS.items()):
        share = found.get(package, 0.0)
        missed |= share < floor
        print(f"{share:5.1f}%  floor {floor:.0f}%  {package}{'' if share >= floor else '  BELOW ITS FLOOR'}")
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
