"""The reference that the data is compared with, read from a folder of an earlier run or of the user."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tfx.dsl.io import fileio

from slipway.components.data_gate.protos import split_statistics
from slipway.components.data_gate.statistics import Statistics
from slipway.components.data_profile.profile import STATISTICS, Profile, read_profile
from slipway.components.errors import ComponentError


@dataclass(frozen=True)
class Reference:
    """Earlier data.

    Attributes:
        name: what it is, in words; empty where there is none.
        statistics: by split.
        profile: what the statistics do not hold.
    """

    name: str = ""
    folder: str = ""
    statistics: Statistics = field(default_factory=dict)
    profile: Profile = field(default_factory=Profile)


def find_reference(candidates: Sequence[tuple[str, str]], *, digest: str) -> Reference:
    """Return the first folder that exists and holds other data than this.

    The same data again is compared with what it was compared with before, not with itself.

    Args:
        candidates: what each is, in words, and its folder.
        digest: stands for the data at hand.

    Raises:
        ComponentError: a folder that is called by its own name, as the user gave it, holds no statistics.
    """
    for name, folder in candidates:
        # A blessing made elsewhere may have no data; a folder named by the user must exist.
        if folder and (name == folder or fileio.exists(folder)):
            profile = read_profile(folder)
            if profile.digest != digest:
                return Reference(name, folder, read_statistics(folder, profile.rows), profile)
    return Reference()


def read_statistics(folder: str, rows: Mapping[str, int] | None = None) -> Statistics:
    """The statistics of a folder with `Split-*/FeatureStats.pb`, train first.

    Args:
        rows: of each split, where the statistics are those of a sample; None, or a split left out: they count
            all.

    Raises:
        ComponentError: there are none, or no such folder.
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
        name: split_statistics(_bytes(f"{folder}/Split-{name}/{STATISTICS}"), rows=(rows or {}).get(name))
        for name in (split.removeprefix("Split-") for split in splits)
    }


def _bytes(path: str) -> bytes:
    with fileio.open(path, "rb") as file:
        return bytes(file.read())
