"""Connects to ML Metadata's store: SQLite in the output folder, or a user's database server."""

import os
import re
import socket
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from slipway.pipeline.config import DEFAULT_PORTS, MetadataConfig
from slipway.pipeline.errors import UsageError

URL_VARIABLE = "SLIPWAY_METADATA_URL"
"""The variable that names the server for pipelines that name none: `postgresql://USER:PASSWORD@HOST:PORT/DATABASE`."""

# What ends a value in a connection string of PostgreSQL (libpq), or changes it, unless it is quoted.
_SPECIAL = re.compile(r"[\s'\\]")
# Of ML Metadata's message where another process, such as a second run, makes the tables just now.
_MADE_MEANWHILE = "concurrent connection to the empty database"
_TRIES = 10
# Time limit for a server to accept a connection, which takes milliseconds in the same network.
_CONNECT_LIMIT_S = 5.0


@dataclass(frozen=True)
class StoreServer:
    """A database server for the metadata store.

    Attributes:
        type: `postgresql` or `mysql`.
        port: 1 to 65535.
        database: must exist.
        user: must be allowed to create tables in the database.
        password: empty for none.
    """

    type: str
    host: str
    port: int
    database: str
    user: str
    password: str = ""

    def __str__(self) -> str:
        """Return the address without the password, for messages."""
        return f"{self.type}://{self.user}@{self.host}:{self.port}/{self.database}"

    def __repr__(self) -> str:
        return f"StoreServer({self})"


def server_of(metadata: MetadataConfig | None, environment: Mapping[str, str]) -> StoreServer | None:
    """Return the server that the workload names, otherwise the environment's; None for SQLite.

    Args:
        metadata: the workload's key `metadata`.
        environment: holds the password under the name that the workload gives, and optionally
            `URL_VARIABLE`.

    Raises:
        UsageError: the variable with the password is not set, or the URL is invalid.
    """
    if metadata is None:
        url = environment.get(URL_VARIABLE)
        return _from_url(url) if url else None
    password = ""
    if metadata.password_env is not None:
        if metadata.password_env not in environment:
            raise UsageError(
                f"metadata.password_env: the environment variable {metadata.password_env} is not set.",
                hint=f"export {metadata.password_env}=...",
            )
        password = environment[metadata.password_env]
    return StoreServer(
        metadata.type, metadata.host, metadata.port, metadata.database, metadata.user, password
    )


def _from_url(url: str) -> StoreServer:
    # The URL is never shown: it may hold a password.
    rule = f"{URL_VARIABLE} must look like postgresql://USER:PASSWORD@HOST:PORT/DATABASE"
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:  # which repeats a part of the password if that holds a / or #
        raise UsageError(f"{rule}; its host or port cannot be read.") from None
    if parts.scheme not in DEFAULT_PORTS:
        raise UsageError(f"{rule}; it begins with {parts.scheme!r} instead of {' or '.join(DEFAULT_PORTS)}.")
    database = unquote(parts.path.removeprefix("/"))
    for name, value in (("user", parts.username), ("host", parts.hostname), ("database", database)):
        if not value:
            raise UsageError(f"{rule}; it names no {name}.")
    return StoreServer(
        parts.scheme,
        str(parts.hostname),
        DEFAULT_PORTS[parts.scheme] if port is None else port,
        database,
        unquote(str(parts.username)),
        unquote(parts.password or ""),
    )


def connection_config(metadata: MetadataConfig | None, output: Path) -> Any:
    """Return the connection for TFX. Imports TFX or ML Metadata.

    Args:
        metadata: the workload's key `metadata`; None uses the environment, and falls back to SQLite.
        output: the folder for `metadata.db`.

    Returns:
        A `ml_metadata.proto.metadata_store_pb2.ConnectionConfig`; no connection has been made yet.

    Raises:
        UsageError: as `server_of`.
    """
    server = server_of(metadata, os.environ)
    if server is None:
        from tfx.orchestration.metadata import sqlite_metadata_connection_config

        return sqlite_metadata_connection_config(str(output / "metadata.db"))
    from ml_metadata.proto import metadata_store_pb2

    # The database must exist: otherwise a mistyped name would create an empty one.
    config, place = metadata_store_pb2.ConnectionConfig(), {"host": server.host, "skip_db_creation": True}
    if server.type == "postgresql":
        config.postgresql.CopyFrom(
            metadata_store_pb2.PostgreSQLDatabaseConfig(
                **place,
                port=str(server.port),
                dbname=in_connection_string(server.database),
                user=in_connection_string(server.user),
                password=in_connection_string(server.password),
            )
        )
    else:
        config.mysql.CopyFrom(
            metadata_store_pb2.MySQLDatabaseConfig(
                **place,
                port=server.port,
                database=server.database,
                user=server.user,
                password=server.password,
            )
        )
    return config


def in_connection_string(value: str) -> str:
    r"""Return a value as PostgreSQL's connection strings have it, into which ML Metadata puts it as it is.

    A password with a space would otherwise end at the space, and the rest be an option of the connection,
    which PostgreSQL's error names.

    >>> print(in_connection_string("it's a secret"))
    'it\'s a secret'
    """
    if not _SPECIAL.search(value):
        return value
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


def sqlite_file(config: Any) -> str:
    """Return the file of a ConnectionConfig's SQLite store; empty if the store is on a server."""
    is_here = hasattr(config, "sqlite") and config.WhichOneof("config") == "sqlite"
    return str(config.sqlite.filename_uri) if is_here else ""


def prepare_server(config: Any) -> None:
    """Prepare a server for this process and its children.

    Creates the tables, before several nodes need them at once.

    Args:
        config: a ConnectionConfig. SQLite, which needs no server, and a gRPC service are left alone.

    Raises:
        UsageError: the server does not answer, or the database cannot be used; names the server without the
            password.
    """
    kind = config.WhichOneof("config") if hasattr(config, "postgresql") else None
    if kind not in DEFAULT_PORTS:
        return
    settings = getattr(config, kind)
    database = settings.dbname if kind == "postgresql" else settings.database
    port = int(settings.port or DEFAULT_PORTS[kind])
    server = StoreServer(kind, settings.host or settings.hostaddr, port, database, settings.user)
    if server.host and not server.host.startswith("/"):  # a path is a local socket
        _knock(server)
    import ml_metadata

    from slipway.pipeline.wiring.metadata_text import keep_backslashes

    if kind == "postgresql":
        keep_backslashes()
    for remaining in reversed(range(_TRIES)):
        try:
            ml_metadata.MetadataStore(config, enable_upgrade_migration=False)
            break
        except Exception as error:
            said = " ".join(str(error).split())
            if remaining and _MADE_MEANWHILE in said:
                time.sleep(1.0)
                continue
            raise UsageError(
                f"The metadata store {server} cannot be used: {said}.",
                hint="the database must exist, and the user be allowed to create tables in it",
            ) from error


def _knock(server: StoreServer) -> None:
    try:
        socket.create_connection((server.host, server.port), timeout=_CONNECT_LIMIT_S).close()
    except OSError as error:
        why = error.strerror or str(error)
        raise UsageError(
            f"The metadata store {server} does not answer: {why}.",
            hint=f"start it, or correct host and port (key `metadata` of the workload, or {URL_VARIABLE})",
        ) from error
