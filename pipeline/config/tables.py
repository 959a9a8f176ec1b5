"""The workload file's `data.tables`: the named tables that the SQL of a query may read."""

from typing import Annotated, Self

from pydantic import Field, model_validator

from slipway.components.ingest.query.tables import Kind, Table
from slipway.pipeline.config.section import PathText, Section, Text, VariableName
from slipway.pipeline.config.settings_errors import KeyRuleError

_KINDS: tuple[Kind, ...] = ("files", "sqlite", "database_env", "delta", "iceberg")
# Keys that apply only to these kinds.
_BESIDE = {
    "query": ("sqlite", "database_env"),
    "as_of": ("database_env",),
    "version": ("delta",),
    "snapshot": ("iceberg",),
}
_Number = Annotated[int, Field(ge=0)]


class TableConfig(Section):
    """A table of a query; exactly one of files, sqlite, database_env, delta and iceberg."""

    files: PathText | None = Field(
        default=None,
        description="A file, a glob, or package://PACKAGE/PATH: .parquet, .csv or .jsonl (also .gz, .zst), "
        ".arrow; relative to the project's root.",
        examples=["data/trips-*.parquet"],
    )
    sqlite: PathText | None = Field(default=None, description="The file of an SQLite database; needs query.")
    database_env: VariableName | None = Field(
        default=None,
        description="The environment variable with the address of a PostgreSQL, MySQL or MariaDB database, "
        "postgresql://USER:PASSWORD@HOST:PORT/DATABASE or mysql://...; needs query.",
        examples=["SHOP_URL"],
    )
    query: Text | None = Field(
        default=None,
        description="For sqlite and database_env: a SELECT in the database's SQL, whose rows are the table.",
    )
    as_of: Text | None = Field(
        default=None,
        description="For database_env: a name for the database's state, such as a day. Rows are kept "
        "under it, and the database is not queried again; null: it is queried in each run.",
        examples=["2026-11-20"],
    )
    delta: PathText | None = Field(default=None, description="The folder of a Delta Lake table on disk.")
    version: _Number | None = Field(
        default=None, description="For delta: the version to read; null: the latest."
    )
    iceberg: PathText | None = Field(
        default=None,
        description="The folder of an Iceberg table on disk, or one of its metadata files (.metadata.json).",
    )
    snapshot: _Number | None = Field(
        default=None, description="For iceberg: the id of the snapshot to read; null: the current one."
    )

    @model_validator(mode="after")
    def _exactly_one(self) -> Self:
        given = [kind for kind in _KINDS if getattr(self, kind) is not None]
        if len(given) != 1:
            raise KeyRuleError(f"must hold exactly one of {', '.join(_KINDS[:-1])} and {_KINDS[-1]}")
        for key, kinds in _BESIDE.items():
            if getattr(self, key) is not None and given[0] not in kinds:
                raise KeyRuleError(f"has no meaning for {given[0]}; remove this key", key)
        if given[0] in _BESIDE["query"] and self.query is None:
            raise KeyRuleError("missing; a SELECT in the database's own SQL", "query")
        return self

    def table(self, name: str) -> Table:
        """Return the table as Ingest expects it."""
        kind = next(kind for kind in _KINDS if getattr(self, kind) is not None)
        given = (self.as_of, self.version, self.snapshot)
        at = next((each for each in given if each is not None), None)
        return Table(name=name, kind=kind, place=getattr(self, kind), query=self.query, at=at)
