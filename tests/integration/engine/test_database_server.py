"""ML Metadata on a real PostgreSQL and on a real MariaDB server, on loopback, started by the test."""

from urllib.parse import quote

import database_servers
import ml_metadata
import pytest
from database_servers import PASSWORD

from slipway.pipeline.config import MetadataConfig
from slipway.pipeline.errors import UsageError
from slipway.pipeline.wiring.metadata_store import URL_VARIABLE, connection_config, prepare_server

pytestmark = [pytest.mark.slow, pytest.mark.external, pytest.mark.usefixtures("warm_engine")]


@pytest.fixture(scope="module")
def postgresql():
    """The port of a server."""
    with database_servers.postgresql("mlmd") as port:
        yield port


@pytest.fixture(scope="module")
def mysql():
    """The port of a server."""
    with database_servers.mysql("mlmd") as port:
        yield port


@pytest.fixture(params=["postgresql", "mysql"])
def server(request):
    """Each of the two: its type and port."""
    return request.param, request.getfixturevalue(request.param)


def test_a_pipeline_runs_its_nodes_side_by_side_and_its_cache_hits(toy, server, monkeypatch):
    kind, port = server
    monkeypatch.setenv(URL_VARIABLE, f"{kind}://slipway:{quote(PASSWORD, safe='')}@127.0.0.1:{port}/mlmd")
    first = toy.run("features", "--jobs", "8")
    assert first.returncode == 0, first.stderr
    assert {n.id for n in toy.record().nodes if n.state == "skipped"} == {"IfNo", "NeedsNo"}
    second = toy.run("features", "--jobs", "8", "--set", "word=no")
    assert second.returncode == 0, second.stderr
    assert {n.id for n in toy.record().nodes if n.state == "cached"} == {"Importer", "Latest", "Push"}
    assert toy.lines("pushed") == ["imported"]
    assert not (toy.output / "metadata.db").exists()
    for path in toy.output.rglob("*"):
        if path.is_file():
            assert PASSWORD not in path.read_text(errors="replace"), path


@pytest.fixture
def config(server, monkeypatch):
    """The settings of a workload for the server."""
    kind, port = server
    monkeypatch.setenv("TOY_PASSWORD", PASSWORD)
    variable = {"password_env": "TOY_PASSWORD"}
    settings = {"type": kind, "host": "127.0.0.1", "port": port, "database": "mlmd"}
    return MetadataConfig(**settings, user="slipway", **variable)


def test_text_comes_out_of_the_store_as_it_went_in(config, tmp_path):
    connection = connection_config(config, tmp_path)
    prepare_server(connection)
    prepare_server(connection)  # a second time changes nothing
    store = ml_metadata.MetadataStore(connection)
    type_id = store.put_execution_type(ml_metadata.proto.ExecutionType(name="Text"))
    texts = [
        "a'b",
        "a''b",
        'a"b',
        "a\\b",
        "a\\'b",
        '{"a": "x\\ny"}',
        "a\nb",
        "$1 {x} 100%",
        "\u00e4\u1e9e",
        "'; DROP TABLE x; --",
    ]
    for text in texts:
        execution = ml_metadata.proto.Execution(type_id=type_id)
        execution.custom_properties["text"].string_value = text
        [number] = store.put_executions([execution])
        [kept] = store.get_executions_by_id([number])
        assert kept.custom_properties["text"].string_value == text


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"database": "none"}, "cannot be used"),
        ({"user": "stranger"}, "cannot be used"),
        ({"port": 1}, "does not answer: Connection refused"),
    ],
)
def test_a_server_that_cannot_be_used_is_reported_without_the_password(config, tmp_path, changes, message):
    wrong = config.model_copy(update=changes)
    with pytest.raises(UsageError, match=message) as error:
        prepare_server(connection_config(wrong, tmp_path))
    assert f"{wrong.type}://{wrong.user}@127.0.0.1:{wrong.port}/{wrong.database}" in error.value.message
    assert PASSWORD not in str(error.value)
