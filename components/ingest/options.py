"""How a source is to be read, split and written: plain values that travel to every worker as JSON."""

import json
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Self

from slipway.components.errors import ComponentError
from slipway.components.ingest.column_types import Columns, ColumnType
from slipway.components.ingest.header_names import INDEX
from slipway.components.ingest.limits import Limits

MEBIBYTE = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Settings of an ingest; each has a default that works.

    Attributes:
        format: a key of `formats.FORMATS`.
        delimiter: of CSV, one ASCII character.
        quote: of CSV, one ASCII character; None: quotes have no meaning.
        encoding: of CSV and JSON Lines, a name of Python's codecs.
        column_names: of a CSV without a header.
        columns: which columns become features; empty: all but the rows' index.
        types: the type of columns that are not to be guessed, "int", "float" or "text"; over the schema's.
        null_values: texts of CSV cells that mean a missing value, beside the empty one; elsewhere of the
            columns of `numbers` and `dates`.
        numbers: how a column's numbers are written, where otherwise than Python does: fields of
            `written_values.NumberFormat`, by column.
        dates: the format of a column's dates, as `strptime` has it, by column; they become YYYY-MM-DD.
        label: name of the feature that gets the class of an image.
        split: hash buckets of each split, by name, in the order of the splits; with "time" and "parts" only
            the names count.
        split_by: {} for a hash of the record, or one of {"key": column}, {"time": column, "starts": {split:
            first moment, None for the earliest}}, {"row": True}, {"parts": {split: part}}.
        unlabelled_rows: "keep", or "leave_out": rows without a value in `label` become no examples.
        max_bad_share: share of the rows above which bad rows stop the run, 0 to 1.
        target_shard_bytes: size of an output file.
        min_shards: output files of each split, at least.
        compression: of the output: "gzip", "zstd" or "none".
        gzip_level: 1 to 9.
        limits: what the source may become.
        block_bytes: how much is read at a time.
        inferred_blocks: how many blocks of a CSV its types are inferred from; 0: all.
    """

    format: str = "csv"
    delimiter: str = ","
    quote: str | None = '"'
    encoding: str = "utf-8"
    column_names: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    types: Mapping[str, str] = field(default_factory=dict)
    null_values: tuple[str, ...] = ()
    numbers: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    dates: Mapping[str, str] = field(default_factory=dict)
    label: str = "label"
    split: Mapping[str, int] = field(default_factory=lambda: {"train": 2, "eval": 1})
    split_by: Mapping[str, Any] = field(default_factory=dict)
    unlabelled_rows: str = "keep"
    max_bad_share: float = 0.001
    target_shard_bytes: int = 100 * MEBIBYTE
    min_shards: int = 1
    compression: str = "gzip"
    gzip_level: int = 1
    limits: Limits = field(default_factory=Limits)
    block_bytes: int = 4 * MEBIBYTE
    inferred_blocks: int = 0

    def to_json(self) -> str:
        """Stable text; equal options give equal text."""
        return json.dumps(asdict(self), sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Reads what `to_json` wrote."""
        plain: dict[str, Any] = json.loads(text)
        values: dict[str, Any] = {
            key: tuple(value) if isinstance(value, list) else value for key, value in plain.items()
        }
        return cls(**{**values, "limits": Limits(**plain["limits"])})

    @property
    def decider(self) -> str | None:
        """The column that decides over a row's split, if one does; it need be no feature."""
        return self.split_by.get("key") or self.split_by.get("time")

    def is_feature(self, column: str) -> bool:
        """Whether a column that is read becomes a feature: the rows' index does where it is named only."""
        return column in self.columns if self.columns else column != INDEX

    def known(self, schema: Columns) -> dict[str, ColumnType]:
        """The types of the columns that are not guessed.

        Args:
            schema: those that a schema gives.
        """
        return {**schema, **{name: ColumnType[kind.upper()] for name, kind in self.types.items()}}

    def check_types(self, columns: Collection[str]) -> None:
        """Checks that each of `types` is among the columns of all files.

        Raises:
            ComponentError: one is not there.
        """
        for name in self.types:
            if name not in columns:
                raise ComponentError(
                    f"no column is named {name!r}, of which data.types gives the type",
                    hint=f"there are {', '.join(list(columns)[:20])}",
                )

    def chosen(self, names: tuple[str, ...], *, file: str) -> tuple[str, ...]:
        """The columns that are read, of those that a file has: the features, and what decides over the split.

        Raises:
            ComponentError: one of `columns` is not there.
        """
        there, wanted = set(names), set(self.columns)
        for name in self.columns:
            if name not in there:
                raise ComponentError(
                    f"{file} has no column {name!r}, which data.columns names",
                    hint=f"there are {', '.join(names[:20])}",
                )
        read = {*wanted, self.decider} if wanted else there
        return tuple(name for name in names if name in read)
