"""Reads the reference that the data is compared with, from a folder of an earlier run or of the user."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tfx.dsl.io import fileio

from slipway.components.data_gate.protos import split_statistics
from slipway.components.data_gate.statistics import Statistics
from slipway.components.data_profile.profile import STATISTICS, Profile, read_profile
from slipway.components.errors import ComponentError


@dataclass(frozen=True)
class Reference:
    """Earlier data that the current data is compared with.

    Attributes:
        name: a description of the data; empty if there is no reference.
        profile: what the statistics do not hold.
    """

    name: str = ""
    folder: str = ""
    statistics: Statistics = field(default_factory=dict)
    profile: Profile = field(default_factory=Profile)


def find_reference(candidates: Sequence[tuple[str, str]], *, digest: str) -> Reference:
    """Return the first candidate that exists and holds data other than the current data.

    So data that is judged again is compared with the same reference as before, not with itself.

    Args:
        candidates: pairs of a description and a folder; the description of the user's own folder is its path.
        digest: the digest of the current data.

    Raises:
        ComponentError: the user's folder does not exist, or a folder holds no statistics.
    """
    for name, folder in candidates:
        # A blessing made elsewhere may have no data; a folder named by the user must exist.
        if folder and (name == folder or fileio.exists(folder)):
            profile = read_profile(folder)
            if profile.digest != digest:
                return Reference(name, folder, read_statistics(folder, profile.rows), profile)
    return Reference()


def read_statistics(folder: str, rows: Mapping[str, int] | None = None) -> Statistics:
    """Read the statistics in a folder with `Split-*/FeatureStats.pb`; the train split comes first.

    Args:
        rows: the number of rows by split, if the statistics cover a sample; for splits that are not in it
            the statistics cover all rows.

    Raises:
        ComponentError: the folder does not exist, or holds no statistics.
    """
    if not fileio.exists(folder):
        raise ComponentError(
            f"{folder} does not exist, and data_gate names it as a folder of statistics",
            hint="name the folder of an artifact of StatisticsGen",
        )
    found = (name.strip("/") for name in fileio.listdir(folder) if name.startswith("Split-"))
    splits = sorted(found, key=lambda name: (name != "Split-train", name))
    if not splits:
        raise ComponentError(
            f"{folder} holds no statistics: there is no Split-*/{STATISTICS} in it",
            hint="name the folder of an artifact of StatisticsGen",
        )
    return {
        name: split_statistics(read_bytes(f"{folder}/Split-{name}/{STATISTICS}"), rows=(rows or {}).get(name))
        for name in (split.removeprefix("Split-") for split in splits)
    }


def read_bytes(path: str) -> bytes:
    """Return the content of a file, here or in an object store."""
    with fileio.open(path, "rb") as file:
        return bytes(file.read())
