"""Finds columns of the reference that the data lacks, or that changed their type."""

from collections.abc import Collection, Iterator

from slipway.components.data_gate.finding import Finding, RowQuery
from slipway.components.data_gate.statistics import Kind, Statistics

_KINDS: dict[Kind, str] = {"int": "whole numbers", "float": "numbers", "text": "text"}
_RETIRE = (
    "if this is intended, retire the last blessed model as the baseline (`baseline --clear`): it cannot be "
    "evaluated on such rows"
)


def find_changed_columns(
    statistics: Statistics, reference: Statistics, *, skip: Collection[str], is_blessed: bool
) -> Iterator[Finding]:
    """Find columns that a model trained on the reference would miss in the data, or could not read.

    The blessed model reads the new rows when it is compared with the next model, after hours of training. It
    fails on a lost column or on one of another type, so both are reported before the training.

    Args:
        reference: the statistics to compare with; empty if there are none.
        skip: columns that have been reported already.
        is_blessed: whether the reference is the data of the last blessed model. Only then is a changed type a
            finding: a schema of the user would have refused it before.
    """
    now, before = _kinds(statistics), _kinds(reference)
    for name, kind in before.items():
        if name in skip:
            continue
        if name not in now:
            remedy = "put the column back; features made from it cannot be computed without it"
            yield Finding(
                rule="columns",
                feature=name,
                splits=tuple(statistics),
                what="the reference has this column, the data does not",
                remedy=f"{remedy}; {_RETIRE}" if is_blessed else remedy,
            )
        elif is_blessed and kind in _KINDS and now[name] in _KINDS and kind != now[name]:
            yield Finding(
                rule="columns",
                feature=name,
                splits=tuple(statistics),
                what=f"it holds {_KINDS[now[name]]}, in the reference {_KINDS[kind]}",
                remedy=f"restore the old type, or declare the new one in the schema; {_RETIRE}",
                query=RowQuery(name),
            )


def _kinds(statistics: Statistics) -> dict[str, Kind]:
    """Return the kind of each column's values; `other`, which is not judged, for a column without values."""
    found: dict[str, Kind] = {}
    for split in statistics.values():
        for name, feature in split.features.items():
            if name not in found or found[name] == "other":
                found[name] = feature.kind if feature.present else "other"
    return found
