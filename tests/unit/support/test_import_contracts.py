"""Only named modules may reach a heavy package, in however many steps."""

import grimp
import pytest
from import_contracts import OnlyThese


@pytest.fixture
def graph():
    """Of `own`: a node imports a heavy package in two ways, and a rule imports numbers only."""
    made = grimp.ImportGraph()
    for name in ("own", "own.node", "own.reader", "own.rules", "own.rules.limits", "heavy", "numbers"):
        made.add_module(name)
    for importer, imported in (
        ("own.node", "heavy"), ("own.node", "own.reader"), ("own.reader", "heavy"),
        ("own.node", "own.rules.limits"), ("own.rules.limits", "numbers"),
    ):  # fmt: skip
        made.add_import(importer=importer, imported=imported)
    return made


def checked(graph, *allowed):
    contract = OnlyThese(
        "It",
        session_options={},
        contract_options={"source": "own", "forbidden_modules": ["heavy"], "allowed_modules": list(allowed)},
    )
    return contract, contract.check(graph, verbose=False)


def test_what_is_named_may_reach_it(graph):
    assert checked(graph, "own.node", "own.reader")[1].kept
    assert checked(graph, "own.*")[1].kept


def test_what_is_not_named_may_not_and_is_reported_with_the_way(graph, capsys):
    graph.add_import(importer="own.rules.limits", imported="own.reader")
    contract, check = checked(graph, "own.node", "own.reader")
    assert not check.kept
    contract.render_broken_contract(check)
    assert "own.rules.limits may not: own.rules.limits -> own.reader -> heavy" in capsys.readouterr().out


def test_name_that_no_module_needs_any_more_is_reported(graph, capsys):
    contract, check = checked(graph, "own.node", "own.reader", "own.rules", "own.gone")
    assert not check.kept
    contract.render_broken_contract(check)
    told = capsys.readouterr().out
    assert "own.rules is in allowed_modules" in told
    assert "own.gone is in allowed_modules" in told
    assert "own.node is" not in told
