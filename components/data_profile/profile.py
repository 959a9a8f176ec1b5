"""Writes and reads a data set's profile: a folder with the statistics of its splits and `profile.json`."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from tfx.dsl.io import fileio

from slipway.components.data_profile.all_rows import of_all_rows
from slipway.components.data_profile.label_score import LabelScore
from slipway.components.errors import ComponentError
from slipway.components.typed_json import MisfitError, typed

STATISTICS = "FeatureStats.pb"
BLESSED_DATA = "data"
"""The folder in a blessing that holds the profile of the model's data."""
_PROFILE = "profile.json"
_SAMPLE_RATES = "sample_rate_by_split"  # StatisticsGen's property


@dataclass(frozen=True, slots=True)
class Profile:
    """The facts about data that its statistics do not hold.

    Attributes:
        digest: identifies the data's content; empty if unknown.
        at_s: when the profile was written, in seconds since 1970; None if unknown.
        label_score: how well the other columns explain the label; None if that cannot be measured.
        rows: the number of rows by split, if the statistics are those of a sample; empty if they count all
            rows.
        is_spread: whether the rows that `label_score` was measured on are spread over the data. In profiles
            of an earlier version they were the first ones of each file.
    """

    digest: str = ""
    at_s: float | None = None
    label_score: LabelScore | None = None
    rows: Mapping[str, int] = field(default_factory=dict)
    is_spread: bool = True

    def label_score_of(self, rows: int, *, sample_rows: int) -> LabelScore | None:
        """Return the label score if rows drawn as today would have given it; else None.

        Args:
            rows: the number of rows of the data.
            sample_rows: the most that are drawn, in equal parts of each split.
        """
        return self.label_score if self.is_spread or 2 * rows <= sample_rows else None


def data_digest(statistics: str, quarantine: str = "") -> str:
    """Return a digest of the data: the one that Ingest took of its files, else the SHA-256 of its statistics.

    Args:
        quarantine: the folder that Ingest writes its summary to; empty if another component read the data.
    """
    if quarantine:
        with fileio.open(f"{quarantine}/summary.json") as file:
            if digest := json.loads(file.read()).get("digest"):
                return str(digest)
    found = hashlib.sha256()
    for name in sorted(fileio.listdir(statistics)):
        if name.startswith("Split-"):
            with fileio.open(f"{statistics}/{name.strip('/')}/{STATISTICS}", "rb") as file:
                found.update(file.read())
    return found.hexdigest()


def keep_profile(statistics: str, folder: str, profile: Profile) -> None:
    """Copy the statistics of all splits to a folder, and write the profile there.

    Args:
        statistics: a folder with `Split-*/FeatureStats.pb`, local or in a store that TFX can read.
        folder: the target folder; created if missing.
    """
    for name in fileio.listdir(statistics):
        if name.startswith("Split-"):
            fileio.makedirs(f"{folder}/{name.strip('/')}")
            path = f"{name.strip('/')}/{STATISTICS}"
            fileio.copy(f"{statistics}/{path}", f"{folder}/{path}", overwrite=True)
    with fileio.open(f"{folder}/{_PROFILE}", "w") as file:
        file.write(json.dumps(asdict(profile)))


def rows_behind(statistics: Any, quarantine: str = "") -> dict[str, int]:
    """Return the number of rows of each split, if the statistics are those of a sample; else {}.

    Args:
        quarantine: the folder that Ingest writes its summary to, which has the counts. Empty if another
            component read the data: the counts are then estimated from the sample rate.
    """
    written = statistics.get_json_value_custom_property(_SAMPLE_RATES)
    rates: dict[str, float] = json.loads(written) if written else {}
    if all(rate == 1 for rate in rates.values()):
        return {}
    counted = {}
    if quarantine:
        with fileio.open(f"{quarantine}/summary.json") as file:
            counted = json.loads(file.read())["rows_out"]
    return {
        split: counted[split] if split in counted else _rows_at(rate, _sampled_rows(statistics.uri, split))
        for split, rate in rates.items()
    }


def split_rows(statistics: Any, split: str) -> int:
    """Return the number of rows of a split by a statistics artifact; an estimate if these are of a sample."""
    behind = rows_behind(statistics)
    return behind[split] if split in behind else _sampled_rows(statistics.uri, split)


def _rows_at(rate: float, sampled: int) -> int:
    """Estimate the number of rows behind a sample; 0 for a rate of 0, which samples nothing."""
    return round(sampled / rate) if rate else 0


def _sampled_rows(folder: str, split: str) -> int:
    with fileio.open(f"{folder}/Split-{split}/{STATISTICS}", "rb") as file:
        return int(of_all_rows(file.read()).num_examples)


def read_profile(folder: str) -> Profile:
    """Read a folder's profile; return an empty one if the folder holds only StatisticsGen's statistics.

    Raises:
        ComponentError: the profile is damaged.
    """
    path = f"{folder}/{_PROFILE}"
    if not fileio.exists(path):
        return Profile()
    with fileio.open(path) as file:
        text = file.read()
    try:
        found = typed(dict[str, object], json.loads(text))
        # Profiles of earlier versions do not say it.
        return typed(Profile, {"is_spread": False, **found})
    except (ValueError, MisfitError) as error:
        raise ComponentError(f"{path} cannot be read: {error}") from error
