"""A data set's profile as a folder: the statistics of its splits, and `profile.json` with the rest."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Self

from tfx.dsl.io import fileio

from slipway.components.data_profile.all_rows import of_all_rows
from slipway.components.data_profile.label_score import LabelScore

STATISTICS = "FeatureStats.pb"
BLESSED_DATA = "data"
"""The folder in a blessing that holds what is kept of the data behind the model."""
_PROFILE = "profile.json"
_SAMPLE_RATES = "sample_rate_by_split"  # StatisticsGen's property


@dataclass(frozen=True, slots=True)
class Profile:
    """The facts about data that its statistics do not hold.

    Attributes:
        digest: stands for the data's content; empty where unknown.
        at_s: when it was kept, in seconds since 1970; None where unknown.
        label_score: how well the other columns explain the label; None where that cannot be told.
        rows: of each split, where the statistics are those of a sample; empty: they count all.
    """

    digest: str = ""
    at_s: float | None = None
    label_score: LabelScore | None = None
    rows: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Reads what `asdict` made of it, after JSON."""
        score = data["label_score"]
        # What an earlier version kept has no rows.
        return cls(data["digest"], data["at_s"], LabelScore(**score) if score else None, data.get("rows", {}))


def data_digest(statistics: str, quarantine: str = "") -> str:
    """Stands for the data: the digest that Ingest took of its files, else the SHA-256 of its statistics.

    Args:
        statistics: their folder.
        quarantine: the folder that Ingest writes its summary to; empty where another component read the data.
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
    """Copy the statistics of all splits into a folder, and write the profile beside them.

    Args:
        statistics: a folder with `Split-*/FeatureStats.pb`, local or in a store that TFX can read.
        folder: where to; made where it is not there.
    """
    for name in fileio.listdir(statistics):
        if name.startswith("Split-"):
            fileio.makedirs(f"{folder}/{name.strip('/')}")
            path = f"{name.strip('/')}/{STATISTICS}"
            fileio.copy(f"{statistics}/{path}", f"{folder}/{path}", overwrite=True)
    with fileio.open(f"{folder}/{_PROFILE}", "w") as file:
        file.write(json.dumps(asdict(profile)))


def rows_behind(statistics: Any, quarantine: str = "") -> dict[str, int]:
    """How many rows each split has, where its statistics are those of a sample; empty where they are of all.

    Args:
        statistics: the artifact.
        quarantine: the folder that Ingest writes its summary to, which counts them; empty where another
            component read the data: then they are estimated by the share that was sampled.
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
    """The rows of a split, such as "train", as an artifact of statistics counts them; of a sample, about."""
    behind = rows_behind(statistics)
    return behind[split] if split in behind else _sampled_rows(statistics.uri, split)


def _rows_at(rate: float, sampled: int) -> int:
    """About how many rows a sample is of; of a rate of 0, which draws none, nothing can be told."""
    return round(sampled / rate) if rate else 0


def _sampled_rows(folder: str, split: str) -> int:
    with fileio.open(f"{folder}/Split-{split}/{STATISTICS}", "rb") as file:
        return int(of_all_rows(file.read()).num_examples)


def read_profile(folder: str) -> Profile:
    """Read a folder's profile; an empty one if it holds only statistics, as StatisticsGen writes them."""
    path = f"{folder}/{_PROFILE}"
    if not fileio.exists(path):
        return Profile()
    with fileio.open(path) as file:
        return Profile.from_json(json.loads(file.read()))
