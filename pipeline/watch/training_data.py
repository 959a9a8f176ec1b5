"""Finds the statistics of the data that a version was trained on."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from tensorflow_metadata.proto.v0 import statistics_pb2

from slipway.components.data_gate.protos import split_statistics
from slipway.components.data_gate.rules.distribution_limits import TRAIN
from slipway.components.data_gate.statistics import Distribution, FeatureStatistics, SplitStatistics
from slipway.components.data_profile.all_rows import of_all_rows
from slipway.components.errors import SlipwayError
from slipway.pipeline.errors import UsageError
from slipway.pipeline.runs.history import History

_HINT = "name a folder with Split-train/FeatureStats.pb, as StatisticsGen writes it, with --reference"


def training_statistics(
    output: Path, run_id: str, version: int, *, is_finite: bool = False
) -> SplitStatistics:
    """Return the statistics of the train split, which the data gate of the version's run has kept.

    Args:
        output: the folder that holds `runs/`.
        run_id: the run in the version's manifest; empty if it names none.
        is_finite: as for `read_training`.

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
            return read_training(folder, is_finite=is_finite)
    raise UsageError(
        f"The statistics of version {version}'s training are gone: run {run_id} no longer has its data "
        "gate's.",
        hint=_HINT,
    )


def read_training(folder: Path, *, is_finite: bool = False) -> SplitStatistics:
    """Read the statistics of the train split in a folder.

    Args:
        is_finite: whether those of a column are without the rows in which it is infinite, as logs of requests
            in JSON are, which has no such number.

    Raises:
        UsageError: there are none, or they cannot be read.
    """
    file, profile = folder / f"Split-{TRAIN}/FeatureStats.pb", folder / "profile.json"
    try:
        rows = json.loads(profile.read_bytes()).get("rows", {}) if profile.is_file() else {}
        content = file.read_bytes()
        found = split_statistics(content, rows=rows.get(TRAIN))
        return _finite(found, content) if is_finite else found
    except (OSError, ValueError, AttributeError, SlipwayError) as error:
        raise UsageError(f"{file} cannot be read: {error}", hint=_HINT) from error
    except Exception as error:  # protobuf's error for bytes that are not such a message
        raise UsageError(f"{file} holds no statistics: {error}", hint=_HINT) from error


def _finite(split: SplitStatistics, content: bytes) -> SplitStatistics:
    features = dict(split.features)
    for message in of_all_rows(content).features:
        name = ".".join(message.path.step) or message.name
        for histogram in message.num_stats.histograms:
            # The histogram of equal widths has separate buckets for infinite numbers.
            if histogram.type == statistics_pb2.Histogram.STANDARD:
                features[name] = _without_infinite(features[name], histogram.buckets)
    return replace(split, features=features)


def _without_infinite(feature: FeatureStatistics, buckets: Any) -> FeatureStatistics:
    finite = [each for each in buckets if np.isfinite([each.low_value, each.high_value]).all()]
    under = sum(each.sample_count for each in buckets if each.high_value == -np.inf)
    over = sum(each.sample_count for each in buckets if each.low_value == np.inf)
    then, left = feature.distribution, feature.present - under - over
    if then is None or not finite or not under + over or left <= 0:
        return feature
    low, high = finite[0].low_value, finite[-1].high_value
    below = np.clip((then.below * feature.present - under) / left, 0.0, 1.0)
    # An infinite decile counts as the greatest of the others there, which need not be the greatest number.
    inner = (below > 0) & (below < 1)
    points = np.concatenate([[low], then.points[inner], [high]])
    shares = np.concatenate([[0.0], below[inner], [1.0]])
    lost = round(under + over)
    return replace(
        feature,
        rows=feature.rows - lost,
        present=feature.present - lost,
        values=feature.values - lost,
        min=low,
        max=high,
        mean=float(np.sum(np.diff(shares) * (points[1:] + points[:-1]) / 2)),
        std_dev=None,
        distribution=Distribution(points=points, below=shares),
    )
