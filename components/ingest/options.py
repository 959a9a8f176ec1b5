"""The options for reading, splitting and writing a source: plain values that every worker receives."""

from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Self

from slipway.components.errors import ComponentError
from slipway.components.escaped_text import escaped
from slipway.components.ingest.header_names import INDEX
from slipway.components.ingest.source_limits import SourceLimits
from slipway.components.nearest import nearest_first
from slipway.components.setting_fields import setting

if TYPE_CHECKING:
    from slipway.components.ingest.column_types import Columns, ColumnType

MEBIBYTE = 1 << 20


IMAGE = "image"
"""The feature that holds an image, in the formats of images."""
OF_IMAGES = ("images", "npz")
Type = Literal["int", "float", "text"]
UnlabelledRows = Literal["keep", "leave_out"]
Compression = Literal["gzip", "zstd", "none"]


@dataclass(frozen=True, slots=True)
class NumberFormat:
    """The notation of a column's numbers.

    In every format, a number in parentheses is negative, as accountants write it, and so is one with a minus
    after it, as SAP writes it; U+2212 is a minus.
    """

    decimal: str = setting(".", "The sign before the fraction.")
    thousands: str = setting(
        "",
        "Between groups of three digits; a space also matches a no-break space, ' a curly apostrophe, and a "
        "comma also separates lakhs, as in 12,34,567.",
    )
    unit: str = setting(
        "", "Before or after the number, such as $ or %; it is removed. With %, a bare 0.5 is no number."
    )
    clock: bool = setting(
        False,
        "Instead of a number, hours, minutes and seconds such as 1:02:33, 2:33 or 2h 33m, read as seconds.",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Settings of an ingest; each has a default that works.

    Attributes:
        numbers: fields of `NumberFormat`, by column.
        label: the label column; with images, the feature that gets an image's class, which has a name of its
            own: not `IMAGE`.
        split: hash buckets in the order of the splits; for "time" and "parts" only the names count.
        split_by: {} for a hash of the record, or one of {"key": column}, {"time": column, "starts": {split:
            first moment, None for the earliest}}, {"row": True}, {"parts": {split: part}}.
        target_shard_bytes: size of an output file; None: as planned, see `planning.Task.shard_bytes`.
        limits: the limits of the source while it is read.
        block_bytes: the number of bytes to read at a time.
        inferred_blocks: the number of blocks of a CSV to infer its types from; 0: all.
        trained_as: the format of the files that a model was trained on, by whose rule `null_values` apply;
            "": that of these files. Only `predict` sets it, for files of another format.
    """

    format: str = setting(
        "csv",
        "How the source's files are encoded; files named .gz, .bz2 and .zst are unpacked. images: a folder "
        "of images for each class. sql: a query over files and databases. bigquery: a BigQuery query.",
    )
    delimiter: str = setting(",", "CSV: the character between two fields.")
    quote: str | None = setting('"', "CSV: the character around fields; null if there is none.")
    encoding: str = setting("utf-8", "CSV and JSON Lines: the encoding of the text.")
    column_names: tuple[str, ...] = setting((), "CSV: names of the columns of files that have no header.")
    columns: tuple[str, ...] = setting((), "The columns to read; empty: all. Not for tfrecord and images.")
    types: Mapping[str, Type] = setting(
        {},
        "CSV, JSON Lines and Parquet: column types (int, float or text) instead of guesses and of the "
        "schema's. text keeps numbers as they are written: {phone: text}.",
        examples=[{"phone": "text"}],
    )
    null_values: tuple[str, ...] = setting(
        (),
        "CSV: texts that mean a missing value, besides the empty one. JSON Lines, Parquet: the same in "
        "the columns of numbers and dates.",
    )
    numbers: Mapping[str, Mapping[str, Any]] = setting(
        {},
        "Columns whose numbers are not written as 1234.5, for example {price: {thousands: ',', unit: $}}, "
        "{share: {unit: '%'}}, {weight: {decimal: ',', thousands: .}}, {time: {clock: true}}; {} for numbers "
        "in quotes in JSON Lines.",
    )
    dates: Mapping[str, str] = setting(
        {},
        "Columns of dates that are not written as 2027-01-31, with their format for Python's strptime, for "
        "example {day: '%d.%m.%Y'}; they are read as 2027-01-31.",
    )
    label: str = "label"
    split: Mapping[str, int] = setting(
        {"train": 2, "eval": 1},
        "Hash buckets per split: {train: 2, eval: 1} trains on two thirds of the rows.",
    )
    split_by: Mapping[str, Any] = field(default_factory=dict)
    unlabelled_rows: UnlabelledRows = setting(
        "keep",
        "Rows without a label: leave them to the data gate, or leave them out of training and evaluation, "
        "and count them. For csv, jsonl and parquet.",
    )
    max_bad_share: float = setting(
        0.001,
        "Share of the rows that may be unreadable; they go to the quarantine. More stop the run.",
        ge=0,
        le=1,
    )
    target_shard_bytes: int | None = None
    min_shards: int = setting(
        1,
        "Minimum number of example files per split; use at least one per host that reads them.",
        ge=1,
        le=4096,
    )
    compression: Compression = setting(
        "gzip", "How the examples are stored. zstd is read by TFX's Beam components, never by tf.data."
    )
    gzip_level: int = setting(1, "gzip: 1 is fast, 9 is small.", ge=1, le=9)
    limits: SourceLimits = field(default_factory=SourceLimits)
    block_bytes: int = 4 * MEBIBYTE
    inferred_blocks: int = 0
    trained_as: str = ""

    def __post_init__(self) -> None:
        """Check that the class of an image gets a feature of its own.

        Raises:
            ComponentError: it would get that of the image, or one without a name.
        """
        if self.format in OF_IMAGES and (self.label == IMAGE or not self.label.strip()):
            raise ComponentError(
                f"label = {self.label!r}: with the format {self.format} it names the feature of an image's "
                f"class, beside {IMAGE!r}, the image",
                hint="choose another name, such as 'label'",
            )

    def to_json(self) -> dict[str, object]:
        """Return the options of an ingest in JSON types; `from_json` reads them back."""
        return {
            key: list(value) if isinstance(value, tuple) else value
            for key, value in asdict(self).items()
            if key != "trained_as"
        }

    @classmethod
    def from_json(cls, plain: Mapping[str, Any]) -> Self:
        """Restore options from what `to_json` returned."""
        values: dict[str, Any] = {
            key: tuple(value) if isinstance(value, list) else value for key, value in plain.items()
        }
        return cls(**{**values, "limits": SourceLimits(**plain["limits"])})

    @property
    def follows_csv(self) -> bool:
        """Whether `null_values` apply to every column, not only to those of `numbers` and `dates`."""
        return (self.trained_as or self.format) == "csv"

    @property
    def split_column(self) -> str | None:
        """The column that decides a row's split, if one does; it need not be a feature."""
        return self.split_by.get("key") or self.split_by.get("time")

    def is_feature(self, column: str) -> bool:
        """Return True if a column that is read becomes a feature; INDEX does only if `columns` names it."""
        return column in self.columns if self.columns else column != INDEX

    def known(self, schema: "Columns") -> "dict[str, ColumnType]":
        """Return the types of the columns whose types are not guessed.

        Args:
            schema: the types that a schema gives; `types` overrides them.
        """
        # Imported here because it needs Arrow, and the workload file, which is made of options, does not.
        from slipway.components.ingest.column_types import ColumnType

        return {**schema, **{name: ColumnType[kind.upper()] for name, kind in self.types.items()}}

    def check_named(self, columns: Collection[str]) -> None:
        """Check that each column in `types`, `numbers` and `dates` is among the columns of all files.

        Raises:
            ComponentError: a column is missing.
        """
        for key, what in (("types", "type"), ("numbers", "notation"), ("dates", "notation")):
            for name in getattr(self, key):
                if name not in columns:
                    there = nearest_first(name, columns)[:20]
                    left = f"; if data.columns leaves it out, remove it from data.{key}"
                    raise ComponentError(
                        f"no column is named {name!r}, of which data.{key} gives the {what}",
                        hint=f"there are {', '.join(map(escaped, there))}{left if self.columns else ''}",
                    )

    def chosen(self, names: tuple[str, ...], *, file: str) -> tuple[str, ...]:
        """Return the columns of a file that are read: the features, and the column that decides the split.

        Raises:
            ComponentError: one of `columns` is missing.
        """
        there, wanted = set(names), set(self.columns)
        for name in self.columns:
            if name not in there:
                raise ComponentError(
                    f"{file} has no column {name!r}, which data.columns names",
                    hint=f"there are {', '.join(map(escaped, names[:20]))}",
                )
        read = {*wanted, self.split_column} if wanted else there
        return tuple(name for name in names if name in read)
