"""hf:// sources in whole commands, against a double of the Hugging Face Hub on loopback.

Seen only here: that a run reads all of one commit, says which, and why it reads again once the branch has
moved; that it reads what a run from disk reads; and that no file of a run holds the token.
"""

import json

import pyarrow.csv
import pyarrow.parquet
import pytest
from hub_double import TOKEN

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def parquet(taxi_csv, tmp_path_factory):
    """The first taxi trips as two Parquet files, and a third with others."""
    folder = tmp_path_factory.mktemp("trips")
    trips = pyarrow.csv.read_csv(taxi_csv)
    for i in range(3):
        pyarrow.parquet.write_table(trips.slice(i * 400, 400), folder / f"train-{i}.parquet")
    return [(folder / f"train-{i}.parquet").read_bytes() for i in range(3)]


@pytest.fixture
def command(hub, warm_runner, tmp_path, monkeypatch):
    """Calls a command on the taxi workload, whose data are on the Hub and private."""
    monkeypatch.setenv("HF_TOKEN", TOKEN)

    def call(*words, source="hf://datasets/o/trips/data/*.parquet", code=0):
        sets = ("--set", f"data.source={source}", "--set", "data.format=parquet")
        finished = warm_runner(*words, *sets, "--output", str(tmp_path / "out"), HF_ENDPOINT=hub.address)
        said = finished.stdout + finished.stderr
        assert finished.returncode == code, said
        assert TOKEN not in said
        return said

    return call


def summary(output):
    """The newest summary of Ingest."""
    [*_, newest] = sorted(
        output.glob("artifacts/taxi/Ingest/quarantine/*/summary.json"), key=lambda each: int(each.parent.name)
    )
    return json.loads(newest.read_text())


def test_run_reads_one_commit_and_again_when_the_branch_has_moved(hub, command, parquet, tmp_path):
    first = hub.commit("o/trips", {"data/0.parquet": parquet[0], "data/1.parquet": parquet[1]})
    hub.data_sets["o/trips"].is_private = True
    said = command("run", "taxi", "--to", "Ingest")
    assert f"  commit {first}\n" in said
    here = tmp_path / "here"
    here.mkdir()
    for i in (0, 1):
        (here / f"{i}.parquet").write_bytes(parquet[i])
    read = summary(tmp_path / "out")
    assert [each["name"] for each in read["files"]] == [
        f"hf://datasets/o/trips@{first}/data/{i}.parquet" for i in (0, 1)
    ]
    assert read["rows_in"] == 800
    assert "cached: Ingest" in command("run", "taxi", "--to", "Ingest")

    second = hub.commit("o/trips", {"data/0.parquet": parquet[0], "data/1.parquet": parquet[2]})
    [ingest] = [
        line for line in command("plan", "taxi", "--to", "Ingest").splitlines() if line.startswith("Ingest ")
    ]
    assert f'the commit of hf://datasets/o/trips "{first[:12]}' in ingest
    assert f'-> "{second[:12]}' in ingest
    assert "data changed: 1 of 2 files (hf://datasets/o/trips/data/1.parquet)" in ingest
    named = f"hf://datasets/o/trips@{first}/data/*.parquet"
    assert "cached: Ingest" in command("run", "taxi", "--to", "Ingest", source=named)

    command("run", "taxi", "--to", "Ingest", source=str(here / "*.parquet"))
    assert summary(tmp_path / "out")["digest"] == read["digest"]
    kept = [each for each in (tmp_path / "out").rglob("*") if each.is_file()]
    assert any(first.encode() in each.read_bytes() for each in kept if each.name == "run.json")
    assert not [each for each in kept if TOKEN.encode() in each.read_bytes()]


def test_latest_span_on_the_hub_is_read(hub, command, parquet, tmp_path):
    hub.commit("o/trips", {f"day-{i}/x.parquet": parquet[i] for i in (0, 1)})
    command("run", "taxi", "--to", "Ingest", source="hf://datasets/o/trips/day-{SPAN}/*.parquet")
    [file] = summary(tmp_path / "out")["files"]
    assert file["name"].endswith("/day-1/x.parquet")


def test_gated_data_set_fails_ingest_in_words(hub, command, parquet):
    hub.commit("o/trips", {"data/0.parquet": parquet[0]})
    hub.data_sets["o/trips"].is_gated = True
    said = command("run", "taxi", "--to", "Ingest", code=1)
    assert "hf://datasets/o/trips is gated: its owner lets those in who agree to conditions" in said


def test_missing_data_set_ends_a_run_before_it_begins(hub, command, tmp_path):
    said = command("run", "taxi", code=2)
    assert "error: hf://datasets/o/trips: there is no such data set, or HF_TOKEN's account cannot" in said
    assert not (tmp_path / "out").exists()
