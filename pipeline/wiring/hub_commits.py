"""Looks up the commits of data sets on the Hugging Face Hub, once for a whole run."""

from collections.abc import Mapping

from slipway.components.errors import ComponentError
from slipway.components.ingest.hub_address import DataSet, data_set_and_path
from slipway.components.ingest.source import SourceError
from slipway.components.store_address import HF
from slipway.pipeline.errors import raised_as
from slipway.pipeline.terminal.printable import say
from slipway.pipeline.terminal.sign_of_life import sign_of_life


def at_commits(sources: Mapping[str, str], *, workload: str) -> dict[str, str]:
    """Return the sources by input split, those on the Hub at commits; the user is told which.

    Raises:
        SourceError: a data set or revision does not exist, may not be read, or the Hub cannot be reached.
    """
    found: dict[DataSet, DataSet] = {}
    pinned = dict(sources)
    for split, source in sources.items():
        if source.startswith(HF):
            with raised_as(SourceError, ComponentError):
                data_set, path = data_set_and_path(source)
                if data_set not in found:
                    found[data_set] = _at_commit(data_set, workload)
            pinned[split] = f"{found[data_set].address}/{path}"
    return pinned


def _at_commit(data_set: DataSet, workload: str) -> DataSet:
    if data_set.is_pinned:
        return data_set
    from slipway.components.ingest.hub_objects import pinned  # imports Arrow

    with sign_of_life(f"{workload}: looks up {data_set.address}"):
        found = pinned(data_set)
    say(f"  commit {found.revision}")
    return found
