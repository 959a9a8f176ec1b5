"""A data set's profile as a folder: the statistics of its splits, and `profile.json` with the rest."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Self

from tensorflow_metadata.proto.v0 import statistics_pb2
from tfx.dsl.io import fileio

from slipway.components.data_profile.label_score import LabelScore

STATISTICS = "FeatureStats.pb"
BLESSED_DATA = "data"
"""The folder in a blessing that holds what is kept of the data behind the model."""
_PROFILE = "profile.json"


@dataclass(frozen=True, slots=True)
class Profile:
    """The facts about data that its statistics do not hold.

    Attributes:
        digest: stands for the data's content; empty where unknown.
        at_s: when it was kept, in seconds since 1970; None where unknown.
        label_score: how well the other columns explain the label; None where that cannot be told.
    """

    digest: str = ""
    at_s: float | None = None
    label_score: LabelScore | None = None

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Reads what `asdict` made of it, after JSON."""
        score = data["label_score"]
        return cls(data["digest"], data["at_s"], LabelScore(**score) if score else None)


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


def split_rows(folder: str, split: str) -> int:
    """The rows of a split, such as "Split-train", as its statistics in a folder count them."""
    with fileio.open(f"{folder}/{split}/{STATISTICS}", "rb") as file:
        datasets = statistics_pb2.DatasetFeatureStatisticsList.FromString(file.read()).datasets
    # Slices, if any, come after the entry for all examples.
    return int(datasets[0].num_examples)


def read_profile(folder: str) -> Profile:
    """Read a folder's profile; an empty one if it holds only statistics, as StatisticsGen writes them."""
    path = f"{folder}/{_PROFILE}"
    if not fileio.exists(path):
        return Profile()
    with fileio.open(path) as file:
        return Profile.from_json(json.loads(file.read()))
