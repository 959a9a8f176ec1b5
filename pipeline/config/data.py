"""The workload file's `data`: where the raw examples come from and how they are split."""

import re
from typing import Annotated, Literal, Self

from pydantic import Field, field_validator, model_validator

from slipway.components.ingest.formats import FORMATS, WITH_COLUMNS
from slipway.components.ingest.options import (
    IMAGE,
    OF_IMAGES,
    Compression,
    NumberFormat,
    Options,
    Type,
    UnlabelledRows,
)
from slipway.components.ingest.query.tables import SQL
from slipway.components.ingest.source_limits import SourceLimits
from slipway.components.ingest.spans import span_kind, span_number
from slipway.pipeline.config.section import (
    Column,
    Columns,
    Letter,
    Moment,
    OneOf,
    PathText,
    Section,
    SettingsOf,
    SnakeName,
    Text,
    Texts,
    setting_of,
)
from slipway.pipeline.config.settings_errors import KeyRuleError
from slipway.pipeline.config.tables import TableConfig

# Requires a year and a month, and allows only directives of dates and times.
_DAY_FORMAT = re.compile("(?=.*%[Yy])(?=.*%[mbB])(?:[^%]|%[YymbBdHIMSp])*", re.DOTALL)
_BIGQUERY = "bigquery"
# Formats whose rows have typed columns.
_OF_COLUMNS = (*WITH_COLUMNS, SQL)
_OF_COLUMNS_WORDS = f"{', '.join(WITH_COLUMNS)} and {SQL}"
# Keys that only apply to files read directly, not by a query.
_OF_RAW_FILES = ("delimiter", "quote", "encoding", "column_names")
# Keys that only apply to files.
_OF_FILES = (
    "source", "span", "max_bad_share", "delimiter", "quote", "encoding", "column_names", "columns", "types",
    "tables", "null_values", "numbers", "dates", "shard_mb", "min_shards", "compression", "gzip_level",
    "limits",
)  # fmt: skip


class SplitByConfig(Section):
    """What decides a row's split; exactly one of key, time, row, files and parts."""

    key: Column | None = Field(
        default=None,
        description="Rows with the same value in this column are in the same split. It need not be in "
        "data.columns; then it is not a feature.",
    )
    time: Column | None = Field(
        default=None,
        description="Rows are split by this column of numbers or ISO dates; needs starts. It need not be in "
        "data.columns.",
    )
    row: Literal[True] | None = Field(
        default=None,
        description="Rows are split by a hash of their place, the file's name and the row's number in it; "
        "for tables in which different things have equal rows.",
    )
    starts: dict[SnakeName, Moment | None] | None = Field(
        default=None,
        description="For time: the first moment of each split; null for the earliest. A split ends where "
        "the next begins.",
    )
    files: dict[SnakeName, Text] | None = Field(
        default=None, description="Patterns below data.source, which must then be a folder, by split."
    )
    parts: dict[SnakeName, Text] | None = Field(
        default=None,
        description="For npz: the arrays of each split; {train: train, eval: test} is x_train and x_test.",
    )

    @model_validator(mode="after")
    def _exactly_one(self) -> Self:
        given = [name for name in ("key", "time", "row", "files", "parts") if getattr(self, name) is not None]
        if len(given) != 1:
            raise KeyRuleError("must hold exactly one of key, time, row, files and parts")
        if (self.time is None) != (self.starts is None):
            raise KeyRuleError("time and starts belong together, as {time: day, starts: {train: null, ...}}")
        if self.starts is not None and [*self.starts.values()].count(None) != 1:
            raise KeyRuleError("must hold null for the earliest split, and for no other", "starts")
        for name in ("starts", "files", "parts"):
            splits = getattr(self, name)
            for needed in ("train", "eval") if splits is not None else ():
                if needed not in splits:
                    raise KeyRuleError(f"must hold '{needed}'", name)
        return self


class NumberFormatConfig(Section):
    """How the numbers of a column are written."""

    decimal: Letter = setting_of(NumberFormat, "decimal")
    thousands: Letter | None = setting_of(NumberFormat, "thousands", default=None)
    unit: Text | None = setting_of(NumberFormat, "unit", default=None)
    clock: bool = setting_of(NumberFormat, "clock")

    @model_validator(mode="after")
    def _tell_apart(self) -> Self:
        if self.clock and (self.decimal, self.thousands, self.unit) != (".", None, None):
            raise KeyRuleError("cannot be combined with decimal, thousands or unit", "clock")
        if self.decimal == self.thousands:
            raise KeyRuleError(f"is {self.decimal!r}, as decimal is; they must differ", "thousands")
        return self


class DataConfig(Section):
    """Where the raw examples come from and how they are split."""

    source: PathText | None = Field(
        default=None,
        description="A file, a directory, a glob, gs://BUCKET/PATH, s3://BUCKET/PATH, az://CONTAINER/PATH, "
        "hf://datasets/OWNER/NAME@REVISION/PATH, or package://PACKAGE/PATH inside an installed package; "
        "relative to the project's root. Needed by every format but bigquery. For sql: a file with the "
        "query, such as workloads/taxi/trips.sql, unless it is in query.",
        examples=["data/trips.csv"],
    )
    span: int | Text | None = Field(
        default=None,
        union_mode="left_to_right",
        description="Where source holds {SPAN}: the span's number; where it holds {YYYY}, {MM} and {DD}: its "
        "day, as 2027-01-31. null: the latest one.",
    )
    query: Text | None = Field(
        default=None,
        description="For bigquery and sql: the query whose rows are the examples. sql: one SELECT as DuckDB "
        "reads it, over the tables of data.tables; with a single table and neither this nor source, all its "
        "rows.",
        examples=["SELECT * FROM `project.dataset.trips`"],
    )
    tables: dict[SnakeName, TableConfig] = Field(
        default={},
        description="For sql: the tables that the query can read, by name; it can read nothing else.",
        examples=[{"trips": {"files": "data/trips-*.parquet"}}],
    )
    format: Annotated[str, OneOf([*FORMATS, SQL, _BIGQUERY])] = setting_of(Options, "format")
    label: Column = Field(
        description="The raw column that the label comes from; requests to a served model do not have it.",
        examples=["tips"],
    )
    split: dict[SnakeName, Annotated[int, Field(ge=1, le=1_000_000)]] = setting_of(Options, "split")
    split_by: SplitByConfig | None = Field(
        default=None,
        description="What decides a row's split; null: a hash of the whole row, so equal rows are in "
        "the same split.",
    )
    unlabelled_rows: UnlabelledRows = setting_of(Options, "unlabelled_rows")
    max_bad_share: float = setting_of(Options, "max_bad_share")
    delimiter: Letter = setting_of(Options, "delimiter")
    quote: Letter | None = setting_of(Options, "quote")
    encoding: Text = setting_of(Options, "encoding")
    column_names: Columns = setting_of(Options, "column_names")
    columns: Columns = setting_of(Options, "columns")
    types: dict[Column, Type] = setting_of(Options, "types")
    null_values: Texts = setting_of(Options, "null_values")
    numbers: dict[Column, NumberFormatConfig] = setting_of(Options, "numbers")
    dates: dict[Column, Text] = setting_of(Options, "dates")
    shard_mb: int | None = Field(
        default=None,
        ge=1,
        description="Approximate size of a file of examples in megabytes; null: about a 64th of the source, "
        "4 to 100.",
    )
    min_shards: int = setting_of(Options, "min_shards")
    compression: Compression = setting_of(Options, "compression")
    gzip_level: int = setting_of(Options, "gzip_level")
    limits: SettingsOf[SourceLimits] = Field(
        default=SourceLimits(), description="Limits for the source while it is read."
    )

    @field_validator("encoding")
    @classmethod
    def _known_encoding(cls, encoding: str) -> str:
        try:
            "".encode(encoding)
        except LookupError:
            raise KeyRuleError(
                "not a text encoding that Python knows, such as utf-8, utf-16 or latin-1"
            ) from None
        return encoding

    @model_validator(mode="after")
    def _source_or_query(self) -> Self:
        if self.tables and self.format != SQL:
            raise KeyRuleError("only the format sql has tables; set data.format: sql", "tables")
        if self.format == SQL:
            return self._checked_sql()
        if self.format != _BIGQUERY:
            if self.query is not None:
                raise KeyRuleError("only the formats sql and bigquery have a query; set data.format", "query")
            if self.source is None:
                raise KeyRuleError('missing; add for example "source: data/trips.csv"', "source")
            return self
        if self.query is None:
            raise KeyRuleError('missing; add for example "query: SELECT * FROM `project.set.table`"', "query")
        for key in _OF_FILES:
            if getattr(self, key) != type(self).model_fields[key].default:
                raise KeyRuleError("has no meaning for the format bigquery; remove this key", key)
        if self.split_by is not None and self.split_by.key is None:
            raise KeyRuleError("a query's rows are split by hash or by key only", "split_by")
        return self

    def _checked_sql(self) -> Self:
        if not self.tables:
            raise KeyRuleError(
                'missing; name what the query reads, as "tables: {trips: {files: data/trips.parquet}}"',
                "tables",
            )
        if self.source is not None and self.query is not None:
            raise KeyRuleError("is given besides source, which holds the query's file; keep one", "query")
        if self.source is not None and not self.source.endswith(".sql"):
            raise KeyRuleError("for the format sql it names a file with the query, FILE.sql", "source")
        if self.source is None and self.query is None and len(self.tables) > 1:
            raise KeyRuleError("missing; there are several tables, so write a SELECT over them", "query")
        for key in _OF_RAW_FILES:
            if getattr(self, key) != type(self).model_fields[key].default:
                raise KeyRuleError("has no meaning for the format sql; remove this key", key)
        by = self.split_by
        if by is not None and by.files is not None:
            raise KeyRuleError("rows of a query are split by key, time, row or hash", "split_by", "files")
        return self

    @model_validator(mode="after")
    def _span_of_the_source(self) -> Self:
        if self.span is None:
            return self
        by_split = self.split_by.files if self.split_by is not None and self.split_by.files else {}
        of_tables = [table.files for table in self.tables.values() if table.files]
        kind = span_kind([self.source or "", *by_split.values(), *of_tables])
        where = "data.tables" if self.format == SQL else "data.source"
        if kind is None:
            raise KeyRuleError(
                f"{where} holds no {{SPAN}}, nor {{YYYY}}, {{MM}} and {{DD}}; remove this key", "span"
            )
        if kind != ("number" if isinstance(self.span, int) else "date"):
            wanted = "a number" if kind == "number" else "a day, such as '2027-01-31'"
            raise KeyRuleError(f"{where} wants {wanted}", "span")
        try:
            span_number(self.span)
        except ValueError:
            raise KeyRuleError(
                "not a span; write a number from 0 on, or a day such as '2027-01-31'", "span"
            ) from None
        return self

    @model_validator(mode="after")
    def _names_of_columns(self) -> Self:
        for key in ("column_names", "columns"):
            names = getattr(self, key)
            for index, name in enumerate(names):
                if name in names[:index]:
                    raise KeyRuleError("given twice; keep one", key, index)
        if self.format in OF_IMAGES and self.label == IMAGE:
            raise KeyRuleError(
                "is the image itself; name the feature of its class otherwise, as label", "label"
            )
        if self.columns and self.label not in self.columns:
            raise KeyRuleError(f"does not name the label, {self.label!r}; add it", "columns")
        # Compared with the default, because a configuration that was dumped and read back has every key set.
        is_split_given = self.split != type(self).model_fields["split"].default
        is_dealt = self.split_by is None or self.split_by.key is not None or self.split_by.row is not None
        if not is_dealt and is_split_given:
            raise KeyRuleError("split_by names the splits already; remove this key", "split")
        if self.delimiter == self.quote:
            raise KeyRuleError("is also the quote; set data.quote to another one, or to null", "delimiter")
        if self.types and self.format not in _OF_COLUMNS:
            raise KeyRuleError(
                f"only the columns of {_OF_COLUMNS_WORDS} have types; remove this key", "types"
            )
        if self.split_by is not None and self.split_by.parts is not None and self.format != "npz":
            raise KeyRuleError("only files of the format npz have parts", "split_by", "parts")
        for column, form in self.dates.items():
            if not _DAY_FORMAT.fullmatch(form):
                raise KeyRuleError(
                    "must have a year (%Y or %y), a month (%m, %b or %B) and a day (%d; else it is the "
                    "first), and for a time %H (or %I and %p), %M and %S, as '%d.%m.%Y %H:%M'",
                    "dates",
                    column,
                )
            if column in self.numbers:
                raise KeyRuleError("is one of data.numbers as well; keep one", "dates", column)
        for key in ("numbers", "dates"):
            if getattr(self, key) and self.format not in _OF_COLUMNS:
                raise KeyRuleError(f"only columns of {_OF_COLUMNS_WORDS} are written in a format", key)
        if self.unlabelled_rows != "keep" and self.format not in _OF_COLUMNS:
            raise KeyRuleError(f"only rows of {_OF_COLUMNS_WORDS} can be left out", "unlabelled_rows")
        return self

    @model_validator(mode="after")
    def _train_and_eval(self) -> Self:
        for needed in ("train", "eval"):
            if needed not in self.split:
                raise KeyRuleError(f"must hold '{needed}'; write for example {{train: 2, eval: 1}}", "split")
        return self
