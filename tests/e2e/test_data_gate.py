"""New data as a user meets it: stopped with code 3, accepted once, or taken over into the schema.

Seen only here: a stop, its acceptance and the schema's edit, over four runs and their cache.
"""

import importlib.util
import itertools
import json
from pathlib import Path
from types import SimpleNamespace

import pytest

pytestmark = pytest.mark.slow

ROWS = 2_000


@pytest.fixture(scope="module")
def place(project, tmp_path_factory):
    """A folder with trips that hold a new way to pay, a schema of its own, and the options to run on them."""
    folder = tmp_path_factory.mktemp("gate")
    sample = Path(importlib.util.find_spec("tfx").origin).parent
    with (sample / "examples/chicago_taxi_pipeline/data/simple/data.csv").open() as data:
        lines = [line.rstrip("\n") for line in itertools.islice(data, ROWS + 1)]
    lines[1:] = [
        line.replace("Cash", "Voucher") if number % 100 == 0 else line
        for number, line in enumerate(lines[1:], start=2)
    ]
    (folder / "trips.csv").write_text("\n".join(lines) + "\n")
    schema = folder / "taxi.pbtxt"
    schema.write_text((project / "schemas/taxi.pbtxt").read_text())
    options = [
        "taxi",
        "--set",
        f"data.source={folder}/trips.csv",
        "--set",
        f"schema={schema}",
        "--to",
        "DataGate",
    ]
    return SimpleNamespace(schema=schema, options=options, output=["--output", str(folder / "output")])


@pytest.fixture(scope="module")
def stopped(place, warm_runner, record):
    """The run that the gate stopped: how it ended, and its record."""
    finished = warm_runner("run", *place.options, *place.output)
    return SimpleNamespace(finished=finished, record=record())


@pytest.fixture(scope="module")
def record(place, warm_runner):
    """The latest run, or the one of an id, as `show --json` prints it."""
    return lambda *run: json.loads(warm_runner("show", *run, "--json", *place.output).stdout)


def states(record):
    return {node["id"]: node["state"] for node in record["nodes"] if node["state"] != "skipped"}


def test_new_category_stops_the_run_with_rows_and_remedy(stopped, place, local_runner):
    finished, run = stopped.finished, stopped.record
    assert finished.returncode == 3
    assert "Traceback" not in finished.stderr
    assert 'hold "Voucher", not in its domain; limit 0' in finished.stderr
    assert "rows: trips.csv line " in finished.stderr
    assert f'in {place.schema}: add "Voucher" to the domain of payment_type' in finished.stderr
    assert (run["state"], run["exit_code"]) == ("stopped", 3)
    assert run["nodes"][-1]["state"] == "skipped"
    shown = local_runner("show", run["run_id"], *place.output).stdout
    assert 'hold "Voucher", not in its domain' in shown


@pytest.fixture(scope="module")
def accepted(stopped, place, warm_runner, record):
    """The run in which the same data was accepted, and how the next one ended."""
    passed = warm_runner("run", *place.options, "--accept-data", "the city told us", *place.output)
    shown = warm_runner("show", *place.output).stdout
    return SimpleNamespace(
        finished=passed,
        record=record(),
        shown=shown,
        following=warm_runner("run", *place.options, *place.output),
    )


def test_accepted_once_it_passes_with_all_before_the_gate_cached(accepted):
    assert accepted.finished.returncode == 0, accepted.finished.stderr
    run = accepted.record
    assert run["overrides"] == {"accept_data": "the city told us"}
    assert states(run) == {
        **dict.fromkeys(("Ingest", "Reference", "SchemaGen", "StatisticsGen", "ExampleValidator"), "cached"),
        "DataGate": "complete",
    }
    [verdict] = next(node for node in run["nodes"] if node["id"] == "DataGate")["outputs"]["verdict"]
    assert verdict["properties"]["accepted"] == "the city told us"
    assert "accepted  --accept-data: the city told us" in accepted.shown


def test_next_run_is_judged_as_if_nothing_had_been_accepted(accepted):
    assert accepted.following.returncode == 3


@pytest.fixture(scope="module")
def edited(accepted, place, warm_runner, local_runner, record):
    """The edit of the schema that the latest run names: refused, taken over, and the two runs that follow."""
    before = place.schema.read_text()
    refused = warm_runner("accept-schema", *place.output)
    assert place.schema.read_text() == before
    taken_over = local_runner("accept-schema", "--yes", *place.output)
    passed = warm_runner("run", *place.options, *place.output)
    again = warm_runner("run", *place.options, *place.output)
    return SimpleNamespace(
        refused=refused,
        taken_over=taken_over,
        added=[line for line in place.schema.read_text().splitlines() if line not in before.splitlines()],
        passed=passed,
        again=again,
        record=record(),
    )


def test_schema_that_took_the_edit_over_lets_the_data_pass(edited):
    assert edited.refused.returncode == 2
    assert "add --yes" in edited.refused.stderr
    assert edited.taken_over.returncode == 0, edited.taken_over.stderr
    assert '+  value: "Voucher"' in edited.taken_over.stdout
    assert edited.added == ['  value: "Voucher"']
    assert edited.passed.returncode == 0, edited.passed.stderr
    assert edited.again.returncode == 0
    assert set(states(edited.record).values()) == {"cached"}
