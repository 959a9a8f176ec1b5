"""Files to shards of examples and a quarantine: the work of one worker."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from components.ingest.blocks import Block, Place, Reject
from components.ingest.column_types import Columns, Mask
from components.ingest.digest import FileDigest, file_digest
from components.ingest.example_encoding import ExampleEncoder, bytes_of
from components.ingest.formats import format_of
from components.ingest.options import Options
from components.ingest.planning import Task
from components.ingest.quarantine import QuarantineFile, Tally
from components.ingest.splitting import NO_SPLIT, SplitRule, split_rule
from components.ingest.storage import fetched
from components.ingest.tfrecord import OpenOutput, Shard, ShardWriter
from components.ingest.typed_rows import typed_rows


@dataclass(slots=True)
class Report:
    """What a task did: its rows, the files it wrote by split, and the files it read."""

    tally: Tally = field(default_factory=Tally)
    shards: dict[str, list[Shard]] = field(default_factory=dict)
    digests: list[FileDigest] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        """Plain data; `from_json` reads it back."""
        return {
            "tally": self.tally.to_json(),
            "shards": {name: [asdict(shard) for shard in shards] for name, shards in self.shards.items()},
            "digests": [asdict(digest) for digest in self.digests],
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "Report":
        """Reads what `to_json` wrote."""
        return cls(
            tally=Tally.from_json(data["tally"]),
            shards={name: [Shard(**shard) for shard in shards] for name, shards in data["shards"].items()},
            digests=[FileDigest(**digest) for digest in data["digests"]],
        )

    def add(self, other: "Report") -> None:
        """Adds what the next task did."""
        self.tally.add(other.tally)
        self.digests += other.digests
        for name, shards in other.shards.items():
            self.shards.setdefault(name, []).extend(shards)


Progress = Callable[[int, int], None]


def convert(
    task: Task,
    options: Options,
    columns: Columns,
    *,
    known: Collection[str] | None,
    open_output: OpenOutput,
    progress: Progress,
) -> Report:
    """Converts files.

    Args:
        task: which files, and where to.
        options: how.
        columns: the name and type of each feature; the same for every task.
        known: columns whose type is a rule; that of the others is a guess. None: all are rules.
        open_output: opens a path for writing.
        progress: told rows and bytes done so far by this task, after each block.

    Raises:
        FileError: a file cannot be read to its end.
        GuessError: a guess is wrong; what was written is to be thrown away.
    """
    names = list(task.splits)
    fixed = None if task.fixed_split is None else names.index(task.fixed_split)
    rule = split_rule(options, columns) if fixed is None else None
    writers = [
        ShardWriter(
            f"{folder}/task-{task.index:05d}",
            lanes=task.lanes,
            target_bytes=options.target_shard_bytes,
            compression=options.compression,
            gzip_level=options.gzip_level,
            open_output=open_output,
        )
        for folder in task.splits.values()
    ]
    quarantine = QuarantineFile(open_output(task.quarantine))
    report = Report()
    guessed = frozenset(columns).difference(columns if known is None else known)
    work = _Work(columns, guessed, writers, rule, fixed)
    done_bytes = 0
    try:
        for stored in task.files:
            with fetched(stored) as file:
                before = file_digest(file)
                for block in format_of(options).read(file, options, columns):
                    report.tally.rows_in += block.rows + len(block.rejects)
                    quarantine.add(file.name, [*block.rejects, *work.take(block)])
                    progress(report.tally.rows_in, done_bytes + block.position)
                before.check_unchanged(file)
            report.digests.append(before)
            done_bytes += before.size_bytes
        report.shards = {name: writer.close() for name, writer in zip(names, writers, strict=True)}
    except BaseException:
        for writer in writers:
            writer.abandon()
        raise
    finally:
        quarantine.close()
    report.tally.rows_out = {name: sum(s.rows for s in shards) for name, shards in report.shards.items()}
    report.tally.reasons = quarantine.reasons
    report.tally.first = quarantine.first
    return report


class _Work:
    """Turns blocks into examples and hands them to the writers."""

    def __init__(
        self,
        columns: Columns,
        guessed: Collection[str],
        writers: Sequence[ShardWriter],
        rule: SplitRule | None,
        fixed: int | None,
    ) -> None:
        self._columns = columns
        self._guessed = guessed
        self._encoder = ExampleEncoder(columns)
        self._writers = writers
        self._rule = rule
        self._fixed = fixed

    def take(self, block: Block) -> list[Reject]:
        """Writes a block's rows; returns those that are no examples."""
        typed, rejects = typed_rows(block, self._columns, guessed=self._guessed)
        good = np.ones(block.rows, dtype=np.bool_)
        good[list(rejects)] = False
        decider = self._decider(block, typed, rejects, good)
        rows = int(good.sum())
        if not rows:
            return [rejects[row] for row in sorted(rejects)]
        if rows < block.rows:
            mask = pa.array(good)
            typed = {name: values.filter(mask) for name, values in typed.items()}
            decider = decider.filter(mask) if decider is not None else None
        records = (
            block.records.filter(pa.array(good))
            if block.records is not None
            else self._encoder.encode(typed, rows)
        )
        self._write(block, decider, records, np.flatnonzero(good), rejects)
        return [rejects[row] for row in sorted(rejects)]

    def _decider(
        self, block: Block, typed: Mapping[str, pa.Array], rejects: dict[int, Reject], good: Mask
    ) -> pa.Array | None:
        """The values of the column that decides over the split; rows without one may be rejected."""
        values = typed.get(self._rule.column) if self._rule and self._rule.column else None
        if values is None or self._rule is None or not self._rule.needs_value:
            return values
        for row in np.flatnonzero(np.asarray(values.is_null()) & good).tolist():
            rejects[row] = Reject("no value to split by", block.find(row), self._rule.column)
            good[row] = False
        return values

    def _write(
        self, block: Block, decider: Any, records: pa.Array, rows: Any, rejects: dict[int, Reject]
    ) -> None:
        content = bytes_of(records)
        if self._fixed is not None:
            self._writers[self._fixed].write(content)
            return
        assert self._rule is not None  # noqa: S101  (for the type checker: either is set)
        splits = self._rule.assign(block, decider, content)
        for index, writer in enumerate(self._writers):
            writer.write([content[row] for row in np.flatnonzero(splits == index).tolist()])
        for row in np.flatnonzero(splits == NO_SPLIT).tolist():
            place: Place = block.find(int(rows[row]))
            rejects[int(rows[row])] = Reject("in no split", place, detail=f"part {block.part!r}")
