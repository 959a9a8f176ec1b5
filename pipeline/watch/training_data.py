"""Finds the statistics of the data that a version was trained on."""

import json
from pathlib import Path

from slipway.components.data_gate.protos import split_statistics
from slipway.components.data_gate.rules.distribution_limits import TRAIN
from slipway.components.data_gate.statistics import SplitStatistics
from slipway.components.errors import SlipwayError
from slipway.pipeline.errors import UsageError
from slipway.pipeline.runs.history import History

_HINT = "name a folder with Split-train/FeatureStats.pb, as StatisticsGen writes it, with --reference"


def training_statistics(output: Path, run_id: str, version: int) -> SplitStatistics:
    """Return the statistics of the train split, which the data gate of the version's run has kept.

    Args:
        output: the folder that holds `runs/`.
        run_id: the run in the version's manifest; empty if it names none.

    Raises:
        UsageError: the statistics are not on this machine.
    """
    try:
        record = History(output).find(run_id) if run_id else None
    except SlipwayError:
        record = None
    if record is None:
        where = f"its run {run_id} is not in {output / 'runs'}" if run_id else "its manifest names no run"
        raise UsageError(f"What version {version} was trained on is not known: {where}.", hint=_HINT)
    for _, artifact in record.outputs_of("schemas.DataVerdict"):
        folder = Path(artifact["uri"]) / "statistics"
        if folder.is_dir():
            return read_training(folder)
    raise UsageError(
        f"The statistics of version {version}'s training are gone: run {run_id} no longer has its data "
        "gate's.",
        hint=_HINT,
    )


def read_training(folder: Path) -> SplitStatistics:
    """Read the statistics of the train split in a folder.

    Raises:
        UsageError: there are none, or they cannot be read.
    """
    file, profile = folder / f"Split-{TRAIN}/FeatureStats.pb", folder / "profile.json"
    try:
        rows = json.loads(profile.read_bytes()).get("rows", {}) if profile.is_file() else {}
        return split_statistics(file.read_bytes(), rows=rows.get(TRAIN))
    except (OSError, ValueError, AttributeError, SlipwayError) as error:
        raise UsageError(f"{file} cannot be read: {error}", hint=_HINT) from error
    except Exception as error:  # protobuf's error for bytes that are not such a message
        raise UsageError(f"{file} holds no statistics: {error}", hint=_HINT) from error
