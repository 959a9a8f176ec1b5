"""The command `baseline`: shows or changes the model that the next one is compared with."""

from pathlib import Path
from typing import TYPE_CHECKING

from slipway.pipeline.commands.show import find
from slipway.pipeline.engine.run_end import warn_of_damage
from slipway.pipeline.errors import UsageError
from slipway.pipeline.runs.history import History

# The modules that read workload files take a quarter of a second to import: only commands that need them do.
if TYPE_CHECKING:
    from slipway.pipeline.config import WorkloadChoice
    from slipway.pipeline.plan.baseline_changes import Baseline


def baseline(
    chosen: "WorkloadChoice",
    output: Path,
    *,
    new: str | None = None,
    clear: bool = False,
    reason: str = "",
) -> "Baseline":
    """Return the baseline of the next model; with `new` (a run) or `clear`, change it first.

    Args:
        chosen: the workload, as its runs name it: settings may name another workload or metadata store.

    Raises:
        UsageError: both are given, the run cannot be the baseline, or an engine is active.
    """
    from slipway.pipeline.plan.baseline_changes import clear_baseline, set_baseline, show_baseline

    if new is not None and clear:
        raise UsageError("--set and --clear exclude each other.")
    config = chosen.config()
    if clear:
        return clear_baseline(config, output.absolute(), reason=reason)
    if new is not None:
        return set_baseline(config, output.absolute(), find(new, output), reason=reason)
    history = History(output.absolute())
    found = show_baseline(config.name, history.output, history)
    warn_of_damage(history)  # one of these may have blessed a later model
    return found
