"""ML Metadata on a real PostgreSQL and on a real MariaDB server, on loopback, started by the test."""

import os
import pwd
import shutil
import socket
import subprocess
import time
from pathlib import Path
from urllib.parse import quote

import ml_metadata
import pytest

from slipway.pipeline.config import MetadataConfig
from slipway.pipeline.errors import UsageError
from slipway.pipeline.wiring.metadata_store import URL_VARIABLE, connection_config, prepare_server

pytestmark = [pytest.mark.slow, pytest.mark.external]

PASSWORD = "se:cr/et@1"  # noqa: S105 (of a server that lives for seconds, on loopback)


def binaries() -> Path | None:
    """The folder of PostgreSQL's programs; Debian keeps them off the PATH."""
    found = shutil.which("initdb") or next(map(str, Path("/usr/lib/postgresql").glob("*/bin/initdb")), None)
    return Path(found).resolve().parent if found else None


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture(scope="module")
def postgresql(tmp_path_factory):
    """A server with the user `slipway`, its password, and an empty database `mlmd`: its port."""
    programs = binaries()
    if programs is None:
        pytest.skip("PostgreSQL is not installed (Debian: apt-get install postgresql)")
    # Not below pytest's own folder, which only its owner may enter: the server refuses to run as root.
    folder = Path("/tmp") / f"slipway-postgresql-{os.getpid()}"  # noqa: S108
    folder.mkdir(mode=0o700)
    as_other: list[str] = []
    if os.geteuid() == 0:
        shutil.chown(folder, "nobody")
        as_other = ["setpriv", "--reuid=nobody", "--clear-groups"]
    password = folder / "password"
    password.write_text(PASSWORD)
    password.chmod(0o644)
    port = free_port()

    def call(program: str, *arguments: str) -> None:
        command = [*as_other, str(programs / program), *arguments]
        environment = {**os.environ, "PGPASSWORD": PASSWORD}
        done = subprocess.run(command, cwd="/", env=environment, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr

    try:
        call(
            "initdb",
            "-D",
            f"{folder}/data",
            "-A",
            "scram-sha-256",
            "-U",
            "slipway",
            "--pwfile",
            str(password),
            "--no-sync",
        )
        options = f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={folder} -c fsync=off"
        # The server keeps its standard error open: to a file, or the call would wait for its end.
        call("pg_ctl", "-D", f"{folder}/data", "-w", "-o", options, "-l", f"{folder}/log", "start")
        call("createdb", "-h", "127.0.0.1", "-p", str(port), "-U", "slipway", "mlmd")
        yield port
    finally:
        if (folder / "data" / "postmaster.pid").exists():
            call("pg_ctl", "-D", f"{folder}/data", "-m", "immediate", "stop")
        shutil.rmtree(folder)


@pytest.fixture(scope="module")
def mysql():
    """A MariaDB server with the user `slipway`, its password, and an empty database `mlmd`: its port."""
    server = shutil.which("mariadbd", path=f"{os.environ['PATH']}:/usr/sbin")
    if server is None:
        pytest.skip("MariaDB is not installed (Debian: apt-get install mariadb-server)")
    folder = Path("/tmp") / f"slipway-mariadb-{os.getpid()}"  # noqa: S108 (a short path, for the socket)
    folder.mkdir(mode=0o700)
    user = "nobody" if os.geteuid() == 0 else pwd.getpwuid(os.geteuid()).pw_name
    shutil.chown(folder, user)
    data, port = f"--datadir={folder}/data", free_port()
    install = ["mariadb-install-db", "--no-defaults", data, f"--user={user}", "--skip-test-db"]
    (folder / "init.sql").write_text(
        "CREATE DATABASE mlmd;\n"
        f"CREATE USER slipway@'%' IDENTIFIED BY '{PASSWORD}';\n"
        "GRANT ALL ON mlmd.* TO slipway@'%';\n"
    )
    options = [f"--init-file={folder}/init.sql", "--bind-address=127.0.0.1", f"--port={port}"]
    places = [f"--socket={folder}/socket", f"--pid-file={folder}/pid", f"--user={user}"]
    try:
        subprocess.run(install, check=True, capture_output=True, timeout=60)
        with (folder / "log").open("wb") as log:
            process = subprocess.Popen(
                [server, "--no-defaults", data, *options, *places], stdout=log, stderr=log
            )
        try:
            until = time.monotonic() + 60
            while b"ready for connections" not in (folder / "log").read_bytes():
                assert process.poll() is None, (folder / "log").read_text()
                assert time.monotonic() < until
                time.sleep(0.1)
            yield port
        finally:
            process.kill()
            process.wait()
    finally:
        shutil.rmtree(folder)


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
def test_a_server_that_cannot_be_used_is_told_without_the_password(config, tmp_path, changes, message):
    wrong = config.model_copy(update=changes)
    with pytest.raises(UsageError, match=message) as error:
        prepare_server(connection_config(wrong, tmp_path))
    assert f"{wrong.type}://{wrong.user}@127.0.0.1:{wrong.port}/{wrong.database}" in error.value.message
    assert PASSWORD not in str(error.value)
