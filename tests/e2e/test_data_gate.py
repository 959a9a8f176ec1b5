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


def test_accepted_once_it_passes_with_all_before_the_gate_cached(stopped, record, place, warm_runner):
    passed = warm_runner("run", *place.options, "--accept-data", "the city told us", *place.output)
    assert passed.returncode == 0, passed.stderr
    run = record()
    assert run["overrides"] == {"accept_data": "the city told us"}
    assert states(run) == {
        **dict.fromkeys(("Ingest", "Reference", "SchemaGen", "StatisticsGen", "ExampleValidator"), "cached"),
        "DataGate": "complete",
    }
    [verdict] = next(node for node in run["nodes"] if node["id"] == "DataGate")["outputs"]["verdict"]
    assert verdict["properties"]["accepted"] == "the city told us"
    assert "accepted  --accept-data: the city told us" in warm_runner("show", *place.output).stdout
    # The next run is judged as if nothing had been accepted.
    assert warm_runner("run", *place.options, *place.output).returncode == 3


@pytest.fixture
def before(place):
    """The schema's text, as it is for the other tests, too."""
    text = place.schema.read_text()
    yield text
    place.schema.write_text(text)


def test_schema_that_took_the_edit_over_lets_the_data_pass(
    stopped, before, place, warm_runner, local_runner, record
):
    # Edits are those of the latest run: the first, or one that was judged since.
    assert record()["state"] == "stopped"
    refused = warm_runner("accept-schema", *place.output)
    assert refused.returncode == 2
    assert "add --yes" in refused.stderr
    assert place.schema.read_text() == before
    accepted = local_runner("accept-schema", "--yes", *place.output)
    assert accepted.returncode == 0, accepted.stderr
    assert '+  value: "Voucher"' in accepted.stdout
    added = [line for line in place.schema.read_text().splitlines() if line not in before.splitlines()]
    assert added == ['  value: "Voucher"']
    passed = warm_runner("run", *place.options, *place.output)
    assert passed.returncode == 0, passed.stderr
    again = warm_runner("run", *place.options, *place.output)
    assert again.returncode == 0
    assert set(states(record()).values()) == {"cached"}
