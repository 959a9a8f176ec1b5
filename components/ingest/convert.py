"""Converts the files of one task to shards of examples and a quarantine file."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import PurePath

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from slipway.components.ingest.blocks import Block, FileError, Reject
from slipway.components.ingest.column_notes import ColumnNotes
from slipway.components.ingest.column_types import Columns, Mask
from slipway.components.ingest.digest import FileDigest, file_digest
from slipway.components.ingest.example_encoding import ExampleEncoder, bytes_of
from slipway.components.ingest.formats import format_of
from slipway.components.ingest.header_names import INDEX
from slipway.components.ingest.options import Options
from slipway.components.ingest.planning import Task
from slipway.components.ingest.quarantine import PlainTally, QuarantineFile, Tally
from slipway.components.ingest.source_limits import SourceLimits
from slipway.components.ingest.splitting import (
    NO_SPLIT,
    SplitRows,
    SplitRule,
    firsts,
    is_missing,
    split_rule,
)
from slipway.components.ingest.storage import fetched
from slipway.components.ingest.tfrecord import OpenOutput, Shard, ShardWriter
from slipway.components.ingest.typed_rows import row_numbers, typed_rows
from slipway.components.typed_json import typed


@dataclass(slots=True)
class Report:
    """The result of a task.

    Attributes:
        tally: counts of its rows.
        shards: the shards it wrote, by split.
        digests: the files it read.
        units: by column of durations, what its whole numbers count, and the first file with it.
        features: of files of serialised Examples, the names of all.
    """

    tally: Tally = field(default_factory=Tally)
    shards: dict[str, list[Shard]] = field(default_factory=dict)
    digests: list[FileDigest] = field(default_factory=list)
    units: dict[str, tuple[str, str]] = field(default_factory=dict)
    features: set[str] = field(default_factory=set)

    def to_json(self) -> dict[str, object]:
        """Return the report in JSON types; `from_json` reads it back."""
        return {
            "tally": self.tally.to_json(),
            "shards": {name: [asdict(shard) for shard in shards] for name, shards in self.shards.items()},
            "digests": [asdict(digest) for digest in self.digests],
            "units": {name: list(found) for name, found in self.units.items()},
            "features": sorted(self.features),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, object]) -> "Report":
        """Restore a report from what `to_json` returned."""
        return cls(
            tally=Tally.from_json(typed(PlainTally, data["tally"])),
            shards=typed(dict[str, list[Shard]], data["shards"]),
            digests=typed(list[FileDigest], data["digests"]),
            units=typed(dict[str, tuple[str, str]], data["units"]),
            features=set(typed(list[str], data["features"])),
        )

    def add(self, other: "Report") -> None:
        """Add the report of the next task.

        Raises:
            FileError: as `add_units`.
        """
        for name, (unit, file) in other.units.items():
            self.add_units({name: unit}, file)
        self.tally.add(other.tally)
        self.digests += other.digests
        self.features |= other.features
        for name, shards in other.shards.items():
            self.shards.setdefault(name, []).extend(shards)

    def add_units(self, units: Mapping[str, str], file: str) -> None:
        """Add what the durations of a file count, by column.

        Raises:
            FileError: an earlier file's count another unit, so that equal numbers would differ.
        """
        for name, unit in units.items():
            before, first = self.units.setdefault(name, (unit, file))
            if unit != before:
                raise FileError(
                    f"{file}: column {name!r} holds durations in {unit}, but in {before} in {first}",
                    hint="write them in one unit, or choose the other columns with data.columns",
                )


Progress = Callable[[int, int], None]


def convert(
    task: Task,
    options: Options,
    columns: Columns,
    *,
    known: Collection[str],
    open_output: OpenOutput,
    progress: Progress,
) -> Report:
    """Convert the files of a task to examples.

    Args:
        columns: the name and type of each feature; the same for every task.
        known: the columns whose type is given; the types of the others are guesses.
        progress: called after each block with the rows and bytes that this task has done so far.

    Raises:
        FileError: a file cannot be read to its end, or its durations are in another unit than others'.
        GuessError: a guess is wrong; the written files must be discarded.
        ComponentError: the options give the type or notation of a column that does not exist.
    """
    options.check_named(columns)
    names = list(task.splits)
    fixed = None if task.fixed_split is None else names.index(task.fixed_split)
    rule = split_rule(options, columns) if fixed is None else None
    writers = [
        ShardWriter(
            f"{folder}/task-{task.index:05d}{task.attempt}",
            lanes=task.lanes,
            target_bytes=options.target_shard_bytes or task.shard_bytes,
            compression=options.compression,
            gzip_level=options.gzip_level,
            open_output=open_output,
        )
        for folder in task.splits.values()
    ]
    quarantine = QuarantineFile(open_output(task.quarantine))
    report = Report()
    guessed = frozenset(columns).difference(known)
    label = options.label if options.unlabelled_rows == "leave_out" else None
    features = {name: kind for name, kind in columns.items() if options.is_feature(name)}
    work = _Work(
        columns, guessed, ExampleEncoder(features), _Splitter(writers, rule, fixed), label, options.limits
    )
    done_bytes = 0
    try:
        for stored in task.files:
            with fetched(stored) as file:
                begin, first = (file.part.begin, file.part.rows) if file.part else (0, 0)
                digest = None if begin else file_digest(file)
                for block in format_of(options).read(file, options, columns):
                    report.add_units(block.units, file.name)
                    report.features.update(block.features)
                    rejects = [*block.rejects, *work.take(block, PurePath(file.name).name, first)]
                    # In the order of the file, wherever its blocks begin.
                    rejects.sort(key=lambda reject: reject.place.offset)
                    quarantine.add(file.name, rejects)
                    first += block.rows + len(block.rejects)
                    report.tally.has_empty_end |= block.has_empty_end
                    report.tally.rows_in += block.rows + len(block.rejects)
                    progress(report.tally.rows_in, done_bytes + block.position - begin)
                if digest:  # of the file as a whole, with its first part
                    digest.check_unchanged(file)
                    report.digests.append(digest)
            done_bytes += stored.read_bytes
        report.shards = {name: writer.close() for name, writer in zip(names, writers, strict=True)}
    except BaseException:
        for writer in writers:
            writer.abandon()
        raise
    finally:
        quarantine.close()
    report.tally.rows_out = {name: sum(s.rows for s in shards) for name, shards in report.shards.items()}
    report.tally.unlabelled = work.unlabelled
    report.tally.notes = work.notes
    report.tally.has_index = INDEX in columns and INDEX not in features
    report.tally.reasons = quarantine.reasons
    report.tally.first = quarantine.first
    return report


class _Splitter:
    """Writes each example to the shards of its split."""

    def __init__(self, writers: Sequence[ShardWriter], rule: SplitRule | None, fixed: int | None) -> None:
        self._writers = writers
        self._rule = rule
        self._fixed = fixed

    @property
    def column(self) -> str | None:
        """The column that decides the split, if one does."""
        return self._rule.column if self._rule else None

    def unfit(self, values: pa.Array) -> Mapping[str, Mask]:
        """Return masks of the rows whose value in the column decides nothing, by the reason."""
        return self._rule.unfit(values) if self._rule else {}

    def write(self, rows: SplitRows) -> npt.NDArray[np.int64]:
        """Write the rows; return the indices of those that belong to no split."""
        if self._fixed is not None:
            self._writers[self._fixed].write(rows.content)
            return np.zeros(0, dtype=np.int64)
        assert self._rule is not None  # noqa: S101  (for the type checker: either is set)
        splits = self._rule.assign(rows)
        for index, writer in enumerate(self._writers):
            writer.write([rows.content[row] for row in np.flatnonzero(splits == index).tolist()])
        return np.flatnonzero(splits == NO_SPLIT)


class _Work:
    """Converts blocks to examples and hands them to the splitter."""

    def __init__(
        self,
        columns: Columns,
        guessed: Collection[str],
        encoder: ExampleEncoder,
        splitter: _Splitter,
        label: str | None,
        limits: SourceLimits,
    ) -> None:
        self._columns = columns
        self._limits = limits
        self._guessed = guessed
        self._encoder = encoder
        self._splitter = splitter
        self._label = label
        self.unlabelled = 0
        self.notes = ColumnNotes()

    def take(self, block: Block, file: str, first: int) -> list[Reject]:
        """Write a block's rows; return those that cannot become examples.

        Args:
            file: the file's name, without the folder.
            first: the number of rows of the file before the block.
        """
        typed, rejects = typed_rows(
            block, self._columns, limits=self._limits, guessed=self._guessed, notes=self.notes
        )
        good = np.ones(block.rows, dtype=np.bool_)
        good[list(rejects)] = False
        self._leave_out(typed, good)
        split_values = self._split_values(block, typed, rejects, good)
        rows = int(good.sum())
        if not rows:
            return [rejects[row] for row in sorted(rejects)]
        numbers = row_numbers(block, first)[0]
        if rows < block.rows:
            mask = pa.array(good)
            typed = {name: values.filter(mask) for name, values in typed.items()}
            split_values = split_values.filter(mask) if split_values is not None else None
        records = (
            block.records.filter(pa.array(good))
            if block.records is not None
            else self._encoder.encode(typed, rows)
        )
        found = SplitRows(bytes_of(records), split_values, file, numbers[good], block.part)
        in_none = self._splitter.write(found)
        for row in np.flatnonzero(good)[in_none].tolist():
            rejects[row] = Reject("in no split", block.find(row), detail=f"part {block.part!r}")
        return [rejects[row] for row in sorted(rejects)]

    def _leave_out(self, typed: Mapping[str, pa.Array], good: Mask) -> None:
        """Exclude the rows without a label from the good ones, and count them."""
        if self._label is None or self._label not in typed:
            return
        unlabelled = is_missing(firsts(typed[self._label])) & good
        good[unlabelled] = False
        self.unlabelled += int(unlabelled.sum())

    def _split_values(
        self, block: Block, typed: Mapping[str, pa.Array], rejects: dict[int, Reject], good: Mask
    ) -> pa.Array | None:
        """Return the values of the column that decides the split, and reject rows for which it cannot."""
        values = typed.get(self._splitter.column) if self._splitter.column else None
        if values is None:
            return values
        for reason, rows in self._splitter.unfit(values).items():
            for row in np.flatnonzero(rows & good).tolist():
                rejects[row] = Reject(reason, block.find(row), self._splitter.column)
                good[row] = False
        return values
