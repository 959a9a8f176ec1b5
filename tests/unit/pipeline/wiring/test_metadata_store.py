"""Which server holds ML Metadata, from the workload or the environment; passwords are never shown."""

import traceback

import pytest

from slipway.pipeline.config import MetadataConfig
from slipway.pipeline.errors import UsageError
from slipway.pipeline.wiring import metadata_store
from slipway.pipeline.wiring.metadata_store import (
    URL_VARIABLE,
    StoreServer,
    connection_config,
    in_connection_string,
    prepare_server,
    server_of,
)

CONFIG = MetadataConfig(
    **{"type": "postgresql", "database": "mlmd", "user": "slipway", "password_env": "DB_PASSWORD"}
)


def test_without_settings_there_is_no_server():
    assert server_of(None, {}) is None


def test_the_workload_names_the_server_and_the_variable_of_its_password():
    server = server_of(CONFIG, {"DB_PASSWORD": "geheim", URL_VARIABLE: "mysql://u@h/d"})
    assert server == StoreServer("postgresql", "localhost", 5432, "mlmd", "slipway", "geheim")


@pytest.mark.parametrize("failures", [3, 99])
def test_a_run_waits_while_another_makes_the_tables(monkeypatch, tmp_path, failures):
    ml_metadata = pytest.importorskip("ml_metadata")
    calls, waited = [], []

    def store(config, **_):
        calls.append(config)
        if len(calls) <= failures:
            raise ValueError(
                "a subset of tables. This may be due to concurrent connection to the empty database."
            )

    monkeypatch.setattr(ml_metadata, "MetadataStore", store)
    monkeypatch.setattr(metadata_store.time, "sleep", waited.append)
    named = MetadataConfig(**{"type": "mysql", "host": "/run/socket", "database": "mlmd", "user": "slipway"})
    config = connection_config(named, tmp_path)
    if failures == 3:
        prepare_server(config)
    else:
        with pytest.raises(UsageError, match="cannot be used: a subset of tables"):
            prepare_server(config)
    assert len(waited) == min(failures, 9)


def test_a_password_that_is_not_set_is_reported_by_its_variable():
    with pytest.raises(UsageError, match="environment variable DB_PASSWORD is not set"):
        server_of(CONFIG, {})


def test_no_password_is_none():
    config = MetadataConfig(type="mysql", database="mlmd", user="slipway")
    assert server_of(config, {}) == StoreServer("mysql", "localhost", 3306, "mlmd", "slipway", "")


def test_the_environment_names_the_server_of_other_pipelines():
    url = "postgresql://ann%40x:a%2Fb@db.example:6000/ml%20md"
    assert server_of(None, {URL_VARIABLE: url}) == StoreServer(
        "postgresql", "db.example", 6000, "ml md", "ann@x", "a/b"
    )
    assert server_of(None, {URL_VARIABLE: "mysql://u@h/d"}) == StoreServer("mysql", "h", 3306, "d", "u")


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("sqlite:///geheim", "it begins with 'sqlite'"),
        ("postgresql://u:geheim@h:port/d", "its host or port cannot be read"),
        ("postgresql://u:geheim/1@h/d", "its host or port cannot be read"),
        ("postgresql://u:geheim@h", "it names no database"),
        ("postgresql://:geheim@h/d", "it names no user"),
        ("postgresql://u:geheim@/d", "it names no host"),
    ],
)
def test_a_wrong_url_is_refused_without_showing_it(url, message):
    with pytest.raises(UsageError, match=message) as error:
        server_of(None, {URL_VARIABLE: url})
    assert "geheim" not in "".join(traceback.format_exception(error.value))


def test_a_server_is_shown_without_its_password():
    server = StoreServer("mysql", "h", 1, "d", "u", "geheim")
    assert str(server) == "mysql://u@h:1/d"
    assert "geheim" not in repr(server)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("plain=1", "plain=1"),
        ("", ""),
        ("two words", "'two words'"),
        ("it's", r"'it\'s'"),
        (r"back\slash", r"'back\\slash'"),
    ],
)
def test_a_password_cannot_end_within_the_string_that_postgresql_is_given(
    value, expected, monkeypatch, tmp_path
):
    """PostgreSQL's error would name what follows the space, in the run's log."""
    assert in_connection_string(value) == expected
    monkeypatch.setenv("DB_PASSWORD", value)
    assert connection_config(CONFIG, tmp_path).postgresql.password == expected
    workload = CONFIG.model_copy(update={"type": "mysql"})
    assert connection_config(workload, tmp_path).mysql.password == value
