"""Turns the workload's `request_log` into the settings of the log."""

from pathlib import Path

from slipway.components.nearest import nearest
from slipway.components.project import PROJECT_ROOT
from slipway.components.pusher.manifest import Manifest
from slipway.components.request_log.request_log import LogSettings
from slipway.pipeline.config import WorkloadConfig
from slipway.pipeline.errors import UsageError


def request_folder(config: WorkloadConfig, output: Path) -> Path:
    """Return the folder of the workload's logged requests.

    Args:
        output: the folder for everything that runs write.
    """
    named = config.request_log.folder if config.request_log else None
    # As of all paths in a workload file: `watch` finds it from another folder than `serve`.
    return PROJECT_ROOT / named if named else output.absolute() / "requests" / config.name


def log_settings(config: WorkloadConfig, output: Path, manifest: Manifest | None) -> LogSettings | None:
    """Return what to log; None if nothing is logged.

    Args:
        manifest: of the version that answers; None if it has no readable manifest.

    Raises:
        UsageError: the version's data lacks a column that is to be logged.
    """
    wanted = config.request_log
    if wanted is None:
        return None
    known = manifest.provenance.get("schema", {}).get("columns", {}) if manifest else {}
    for name in wanted.columns:
        if known and name not in known:
            near = nearest(name, list(known))
            raise UsageError(
                f"request_log.columns names {name!r}, but the version's data has no such column.",
                hint=f"nearest: {near}" if near else f"there are: {', '.join(known)}",
            )
    return LogSettings(
        folder=str(request_folder(config, output)),
        columns=wanted.columns,
        ids=wanted.ids,
        share=wanted.share,
        most_bytes=wanted.max_mb * 2**20,
    )
