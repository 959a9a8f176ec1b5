"""Tests that need no server; tests/integration/ingest/test_databases.py has PostgreSQL and MariaDB."""

import pytest

from slipway.components.ingest.query.databases import (
    address_of,
    as_query_errors,
    identity_of,
    rows_of_server,
    select_of,
)
from slipway.components.ingest.query.tables import QueryError, Table

SECRET = "s3cr%40t"  # noqa: S105  (of no server)


@pytest.fixture
def server(monkeypatch):
    """A table of a server's, whose address is given."""

    def call(address, *, query="SELECT 1", at=None):
        monkeypatch.setenv("SHOP_URL", address)
        return Table(name="orders", kind="database_env", place="SHOP_URL", query=query, at=at)

    return call


@pytest.mark.parametrize(
    "address",
    [
        "", "shop", f"https://u:{SECRET}@host/shop", f"postgresql://u:{SECRET}@host", f"mysql://u:{SECRET}@/shop",
        f"postgresql://u:{SECRET}@host:x/shop", f"postgresql://u:{SECRET}@[/shop",
    ],
)  # fmt: skip
def test_an_address_that_is_none_is_not_shown(server, address):
    with pytest.raises(QueryError, match="the environment variable SHOP_URL") as refused:
        address_of(server(address))
    assert SECRET not in str(refused.value)
    assert refused.value.__cause__ is None


def test_a_database_is_known_by_its_address_without_the_password_and_by_its_state(server):
    one = identity_of(server(f"postgresql://u:{SECRET}@host/shop", at="2026-11-20"))
    assert one == identity_of(server("postgresql://other:password@host/shop", at="2026-11-20"))
    assert one != identity_of(server(f"postgresql://u:{SECRET}@staging/shop", at="2026-11-20"))
    assert one != identity_of(server(f"postgresql://u:{SECRET}@host/shop", at="2026-11-21"))
    assert one != identity_of(server(f"postgresql://u:{SECRET}@host/shop", at="2026-11-20", query="SELECT 2"))
    for option in ("options=-csearch_path%3Dold", "dbname=old", "host=staging"):
        assert one != identity_of(server(f"postgresql://u:{SECRET}@host/shop?{option}", at="2026-11-20"))
    assert one == identity_of(server("postgresql://u:p@host/shop?sslpassword=x", at="2026-11-20"))
    assert SECRET not in str(one)
    assert "host" not in str(one)
    assert identity_of(server(f"postgresql://u:{SECRET}@host/shop")) is None


@pytest.mark.parametrize(
    ("scheme", "package"), [("postgresql", "adbc_driver_postgresql"), ("mariadb", "pymysql")]
)
def test_without_its_driver_the_package_is_named(server, monkeypatch, scheme, package):
    monkeypatch.setitem(__import__("sys").modules, package, None)
    with (
        pytest.raises(QueryError, match="needs the package") as refused,
        rows_of_server(server(f"{scheme}://u:{SECRET}@host/shop")),
    ):
        pass
    assert refused.value.hint.startswith("pip install '")


@pytest.mark.parametrize("scheme", ["postgresql", "mysql"])
def test_a_server_that_does_not_answer_is_reported_without_the_password(server, scheme):
    with (
        pytest.raises(QueryError, match=r"data\.tables\.orders cannot be read: .*refused") as refused,
        rows_of_server(server(f"{scheme}://u:{SECRET}@127.0.0.1:1/shop")),
    ):
        pass
    assert SECRET not in str(refused.value)
    assert "s3cr@t" not in str(refused.value)


@pytest.mark.parametrize("password", ["s3cr@t", "12/s3cr"])
def test_an_at_sign_or_slash_of_a_password_is_escaped_or_refused_and_not_shown(server, password):
    with pytest.raises(QueryError, match="more than one @, or an @ after a /") as caught:
        address_of(server(f"postgresql://me:{password}@127.0.0.1/shop"))
    assert "s3cr" not in str(caught.value)
    assert "%40" in caught.value.hint


def test_a_password_with_spaces_is_not_told(server):
    table = server("postgresql://u:my%20%20secret%0Aword@host/shop")
    with (
        pytest.raises(QueryError, match=r"cannot be read: login of u by \*\*\* failed") as refused,
        as_query_errors(table, address_of(table)),
    ):
        raise OSError("login of u by my  secret\nword\nfailed")
    assert "secret" not in str(refused.value)


def test_what_mysql_would_not_do_is_refused_and_a_certificate_is_verified(server, monkeypatch):
    pymysql = pytest.importorskip("pymysql")
    asked = []

    def connect(**options):
        asked.append(options)
        raise pymysql.err.OperationalError("no server")

    monkeypatch.setattr(pymysql, "connect", connect)
    for options, words in (
        ("ssl_mode=REQUIRED", "the only option of a MySQL address is ssl_ca, not ssl_mode"),
        ("ssl_ca=/ca", "no server"),
    ):
        with (
            pytest.raises(QueryError, match=words),
            rows_of_server(server(f"mysql://me:pw@127.0.0.1/shop?{options}")),
        ):
            pass
    [options] = asked
    assert {name: value for name, value in options.items() if name.startswith("ssl")} == {
        "ssl_ca": "/ca",
        "ssl_verify_cert": True,
        "ssl_verify_identity": True,
    }


COMMENTS = "/* a */ -- b\n# c\n" * 200


@pytest.mark.parametrize(
    "query", [f"{COMMENTS}(SELECT 1);", "/* DELETE */ WITH t AS (SELECT 1) TABLE t"], ids=["many", "one"]
)
def test_a_query_may_begin_with_comments(server, query):
    table = server("mysql://u@host/shop", query=query)
    assert select_of(table) == f"{query.removesuffix(';')}\n"


@pytest.mark.parametrize(
    "query",
    [f"{COMMENTS}TRUNCATE t", "/* a */ DELETE FROM t; /* b */ SELECT 1", "/*! x */ SELECT 1"],
    ids=["many", "between", "code"],
)
def test_a_query_is_no_select_by_what_follows_a_later_comment(server, query):
    """Many comments are read at once: in each way to put them together, it would take years."""
    with pytest.raises(QueryError, match="must be one SELECT"):
        select_of(server("mysql://u@host/shop", query=query))
