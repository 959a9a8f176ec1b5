"""A PostgreSQL and a MariaDB server on loopback, which a test starts and ends."""

import os
import pwd
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from loopback import reserved_port

PASSWORD = "se:cr/et@1"  # noqa: S105 (of a server that lives for seconds, on loopback)


def binaries() -> Path | None:
    """The folder of PostgreSQL's programs; Debian keeps them off the PATH."""
    found = shutil.which("initdb") or next(map(str, Path("/usr/lib/postgresql").glob("*/bin/initdb")), None)
    return Path(found).resolve().parent if found else None


@contextmanager
def postgresql(database: str) -> Iterator[int]:
    """A server with the user `slipway`, its password, and an empty database: its port."""
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
        listens = f"-c listen_addresses=127.0.0.1 -c unix_socket_directories={folder} -c fsync=off"
        with reserved_port() as port:
            options = f"-p {port} {listens}"
            # The server keeps its standard error open: to a file, or the call would wait for its end.
            call("pg_ctl", "-D", f"{folder}/data", "-w", "-o", options, "-l", f"{folder}/log", "start")
        call("createdb", "-h", "127.0.0.1", "-p", str(port), "-U", "slipway", database)
        yield port
    finally:
        if (folder / "data" / "postmaster.pid").exists():
            call("pg_ctl", "-D", f"{folder}/data", "-m", "immediate", "stop")
        shutil.rmtree(folder)


@contextmanager
def mysql(database: str) -> Iterator[int]:
    """A MariaDB server with the user `slipway`, its password, and an empty database: its port."""
    server = shutil.which("mariadbd", path=f"{os.environ['PATH']}:/usr/sbin")
    if server is None:
        pytest.skip("MariaDB is not installed (Debian: apt-get install mariadb-server)")
    folder = Path("/tmp") / f"slipway-mariadb-{os.getpid()}"  # noqa: S108 (a short path, for the socket)
    folder.mkdir(mode=0o700)
    user = "nobody" if os.geteuid() == 0 else pwd.getpwuid(os.geteuid()).pw_name
    shutil.chown(folder, user)
    data = f"--datadir={folder}/data"
    install = ["mariadb-install-db", "--no-defaults", data, f"--user={user}", "--skip-test-db"]
    (folder / "init.sql").write_text(
        f"CREATE DATABASE {database};\n"
        f"CREATE USER slipway@'%' IDENTIFIED BY '{PASSWORD}';\n"
        f"GRANT ALL ON {database}.* TO slipway@'%';\n"
    )
    options = [f"--init-file={folder}/init.sql", "--bind-address=127.0.0.1"]
    places = [f"--socket={folder}/socket", f"--pid-file={folder}/pid", f"--user={user}"]
    try:
        subprocess.run(install, check=True, capture_output=True, timeout=60)
        with reserved_port() as port:
            with (folder / "log").open("wb") as log:
                process = subprocess.Popen(
                    [server, "--no-defaults", data, *options, f"--port={port}", *places],
                    stdout=log,
                    stderr=log,
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
