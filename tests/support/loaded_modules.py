"""Imports all that a run needs, in a process forked from the warm one, and counts what of ours was loaded."""

import sys
from pathlib import Path


def main(arguments: list[str]) -> int:
    """Prints how many modules of ours are loaded, from how many files, and which under a bare name."""
    import cloud_runner  # noqa: F401
    import local_runner  # noqa: F401
    import slipway.pipeline.dag
    import slipway.pipeline.engine.tfx.compile
    import slipway.pipeline.engine.tfx.launch  # noqa: F401

    root = Path(__file__).resolve().parents[2]
    # The program itself has another name by Python's own way.
    modules = [module for name, module in sys.modules.items() if name not in ("__main__", "__mp_main__")]
    names = [name for module in modules if (name := getattr(module, "__file__", None))]
    files = [Path(name).resolve() for name in names if "site-packages" not in name]
    ours = [file for file in files if file.is_relative_to(root)]
    print(len(ours), len(set(ours)), sorted({"pipeline", "components", "schemas"} & sys.modules.keys()))
    return 0
