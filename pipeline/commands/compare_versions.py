"""The command `compare`: compares a champion and a challenger on the same logged rows."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from pathlib import Path

import numpy as np
import numpy.typing as npt

from slipway.components.counted_words import counted
from slipway.components.data_profile.columns import Floats
from slipway.components.errors import ComponentError
from slipway.components.metrics.definitions import CONFUSION, CURVES, metric_of
from slipway.components.pusher.manifest_contents import Provenance
from slipway.components.pusher.version_store import VersionStore, version_store_at
from slipway.components.saved_model.class_names import classes_of
from slipway.pipeline.commands.logged_answers import AnsweredFile, answers_to, files_with_needed_columns
from slipway.pipeline.commands.model_columns import needed_columns, taken_columns
from slipway.pipeline.commands.versions import pushed_version
from slipway.pipeline.commands.watch import LateLabels, metrics_and_labels, named_classes
from slipway.pipeline.config import WorkloadConfig
from slipway.pipeline.engine.signal_handlers import raise_interrupt, signals_handled_by
from slipway.pipeline.errors import UsageError, raised_as
from slipway.pipeline.terminal.invocation import DEFAULT_WORKLOAD, command
from slipway.pipeline.watch.late_labels import labels_of_rows
from slipway.pipeline.watch.log_folder import JSON_LINES, LogFile, Logs, left_out_lines, open_logs
from slipway.pipeline.watch.paired_metrics import paired_metrics
from slipway.pipeline.watch.version_comparison import (
    Compared,
    Difference,
    DifferingRow,
    difference_of,
)
from slipway.pipeline.wiring.pushed_versions import serving_base, trusted_versions
from slipway.pipeline.wiring.request_log import request_folder

Ints = npt.NDArray[np.int64]
_TWO = 2


def chosen(first: Path, second: int | None, third: int | None) -> tuple[Path, int, int]:
    """Return the workload, the champion and the challenger that a command line names.

    Args:
        first: the workload; without one, the champion.
        second: the champion; without a workload, the challenger.
        third: the challenger; None without a workload.

    Raises:
        UsageError: fewer than two versions are named.
    """
    if second is not None and third is not None:
        return first, second, third
    if second is None or not str(first).isdecimal():
        raise UsageError(
            "compare needs two pushed versions, the champion and the challenger.",
            hint=f"{command('versions')}   # the versions that there are",
        )
    return DEFAULT_WORKLOAD, int(str(first)), second


def compare(
    config: WorkloadConfig,
    output: Path,
    *,
    champion: int,
    challenger: int,
    on: Path | None,
    late: LateLabels | None = None,
    verify_key: Path | None = None,
) -> Compared:
    """Compare the predictions of two versions for the same logged rows, whichever version served these rows.

    Args:
        champion: a pushed version.
        challenger: the pushed version to compare with it.
        on: the folder of the requests; None: the folder that `request_log` writes to.
        late: labels that arrived later; None if there are none.
        verify_key: the public key whose private key must have signed both versions; None: the workload's
            key, if it names one.

    Raises:
        UsageError: a version does not exist or is not trusted, the log lacks a column that one takes, or
            there are too few rows.
        ComponentError: a version is damaged, or a metric is not defined for the labels.
    """
    output = output.absolute()
    store = version_store_at(serving_base(config, output), trusted_versions(config, verify_key))
    _check_versions(config, output, store, champion, challenger)
    numbers = (champion, challenger)
    classes = _shared_classes(config, store, numbers)
    names, labels = metrics_and_labels(config, late, classes) if late is not None else ([], {})
    manifests = [store.manifest(number) for number in numbers]
    taken = [name for each in manifests for name in taken_columns(each)]
    needed = {name for each in manifests for name in needed_columns(each)}
    columns = list(dict.fromkeys([*taken, *([late.key] if late else [])]))
    folder = on.absolute() if on else request_folder(config, output)
    # SIGTERM must not leave the rows of other servers' logs in the folder for temporary files.
    with signals_handled_by(raise_interrupt), open_logs(folder, columns, needed) as logs:
        left_out_counts = Counter(logs.left_out_counts)
        logs = files_with_needed_columns(logs, store, numbers, left_out_counts)
        by_row: Mapping[LogFile, Floats] = {}
        if late is not None:
            by_row = labels_of_rows(logs, key=late.key, labels=labels, left_out_counts=left_out_counts)
        theirs, ours = (answers_to(config.name, store, number, logs, left_out_counts) for number in numbers)
    rows = _in_both(theirs, ours)
    _check_rows(config, rows, numbers, logs.folder, left_out_counts)
    are_classes = _are_classes(config, rows.champion.shape[1], classes)
    difference = difference_of(rows.champion, rows.challenger, are_classes=are_classes)
    compared = Compared(
        workload=config.name,
        champion=champion,
        challenger=challenger,
        difference=difference,
        most=tuple(rows.shown(logs, difference)),
        left_out_counts=left_out_counts,
    )
    if late is None:
        return compared
    wanted = rows.labels(logs, by_row)
    labelled = np.flatnonzero(~np.isnan(wanted))
    _check_labelled(config, rows, labelled, numbers)
    with raised_as(UsageError, ComponentError):
        metrics = paired_metrics(
            wanted[labelled, None], rows.champion[labelled], rows.challenger[labelled], names
        )
    return replace(compared, metrics=metrics, labelled=len(labelled))


@dataclass(frozen=True)
class _Rows:
    """The rows that both versions have answered.

    Attributes:
        file, number: the index of each row's file, and the row's number in that file, from 0.
        champion, challenger: the predictions of each version, of shape [rows, outputs].
    """

    file: Ints
    number: Ints
    champion: Floats
    challenger: Floats

    def labels(self, logs: Logs, by_row: Mapping[LogFile, Floats]) -> Floats:
        """Return the label of each row; NaN if it has none, such as a row logged after the join."""
        found = np.full(len(self.number), np.nan)
        for index, file in enumerate(logs.files):
            there = np.flatnonzero((self.file == index) & (self.number < len(by_row[file])))
            found[there] = by_row[file][self.number[there]]
        return found

    def shown(self, logs: Logs, difference: Difference) -> Iterator[DifferingRow]:
        """Yield the rows that differ most."""
        for row in difference.most:
            file, number = logs.files[self.file[row]], int(self.number[row])
            line = number + 1 if file.name.endswith(JSON_LINES) else None
            answers = self.champion[row].tolist(), self.challenger[row].tolist()
            yield DifferingRow(file.name, line, number, *answers)


def _check_versions(
    config: WorkloadConfig, output: Path, store: VersionStore, champion: int, challenger: int
) -> None:
    for number in (champion, challenger):
        pushed_version(store, number, config, output)
    if champion == challenger:
        raise UsageError(
            f"Version {champion} is both champion and challenger.", hint="name two different versions"
        )


def _shared_classes(config: WorkloadConfig, store: VersionStore, numbers: tuple[int, int]) -> tuple[str, ...]:
    """Return the names of the classes of both versions in the order of their codes; empty if they have none.

    Raises:
        UsageError: the same number means different classes, so answers cannot be compared.
    """
    manifests = [store.manifest(number) for number in numbers]
    provenances: list[Provenance] = [each.provenance if each else {} for each in manifests]
    ours, theirs = (classes_of(each).get("", ()) for each in provenances)
    if ours and theirs and ours != theirs:
        pairs = enumerate(zip_longest(ours, theirs, fillvalue="none"))
        code, (first, second) = next((code, pair) for code, pair in pairs if pair[0] != pair[1])
        raise UsageError(
            f"Class {code} of version {numbers[0]} is {first}, and of version {numbers[1]} {second}, so "
            "their answers mean different things.",
            hint="compare versions with the same transform.classes",
        )
    return named_classes(config, *provenances)


def _in_both(champion: Sequence[AnsweredFile], challenger: Sequence[AnsweredFile]) -> _Rows:
    parts = []
    for index, (theirs, ours) in enumerate(zip(champion, challenger, strict=True)):
        rows, at_theirs, at_ours = np.intersect1d(theirs.rows, ours.rows, return_indices=True)
        if len(rows):
            parts.append((np.full(len(rows), index), rows, theirs.answers[at_theirs], ours.answers[at_ours]))
    if not parts:
        nothing = np.zeros(0, np.int64)
        return _Rows(nothing, nothing, np.zeros((0, 1)), np.zeros((0, 1)))
    return _Rows(*(np.concatenate(each) for each in zip(*parts, strict=True)))


def _check_rows(
    config: WorkloadConfig,
    rows: _Rows,
    numbers: tuple[int, int],
    folder: Path,
    left_out_counts: Mapping[str, int],
) -> None:
    least = max(config.data_gate.min_rows, 1)
    if len(rows.number) < least:
        raise UsageError(
            f"Both versions have answered {counted(len(rows.number), 'row')} of {folder}, too few to "
            f"compare; data_gate.min_rows is {config.data_gate.min_rows}.",
            hint=" ".join(left_out_lines(left_out_counts)) or "wait until there are more",
        )
    widths = rows.champion.shape[1], rows.challenger.shape[1]
    if widths[0] != widths[1]:
        raise UsageError(
            f"Version {numbers[0]} answers {counted(widths[0], 'number')} a row and version {numbers[1]} "
            f"{widths[1]:,}, so there is no difference.",
            hint="compare versions of the same task",
        )
    finite = np.isfinite(rows.champion).all(1) & np.isfinite(rows.challenger).all(1)
    if not finite.any():
        raise UsageError(
            f"There is no row to which both version {numbers[0]} and {numbers[1]} answer finite numbers.",
            hint="see what they answer with predict --version",
        )


def _check_labelled(
    config: WorkloadConfig, rows: _Rows, labelled: npt.NDArray[np.intp], numbers: tuple[int, int]
) -> None:
    if len(labelled) < max(config.data_gate.min_rows, 2):
        raise UsageError(
            f"{counted(len(labelled), 'row')} with a label and an answer of both versions: too few to judge; "
            f"data_gate.min_rows is {config.data_gate.min_rows}.",
            hint="wait until there are more labels, or leave out --labels",
        )
    for number, answers in zip(numbers, (rows.champion, rows.challenger), strict=True):
        if unsound := int((~np.isfinite(answers[labelled])).any(1).sum()):
            raise UsageError(
                f"Version {number} answers no finite number to {counted(unsound, 'row')} with a label, so no "
                "metric of it can be computed.",
                hint="leave out --labels to see how far the others differ",
            )


def _are_classes(config: WorkloadConfig, outputs: int, classes: Sequence[str]) -> bool:
    """Return True if answers are class probabilities.

    They are if there are several outputs that are not quantiles, or if the single output has two classes or
    is judged by a classification metric, such as BinaryAccuracy or AUC.
    """
    if outputs > 1:
        return not config.evaluate.quantiles
    metrics = {metric_of(name).class_name for name in config.evaluate.metrics}
    return len(classes) == _TWO or bool(metrics & (CONFUSION.keys() | CURVES))
