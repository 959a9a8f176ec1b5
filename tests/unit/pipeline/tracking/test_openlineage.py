"""Events of a run and its nodes, as OpenLineage's HTTP transport sends them."""

import json
import uuid

import pytest

from slipway.pipeline.tracking.openlineage import events, send


def sent(collector):
    assert {(method, path) for method, path, _, _ in collector.got} == {("POST", "/api/v1/lineage")}
    return [json.loads(body) for _, _, _, body in collector.got]


def names(datasets):
    return [(each["namespace"], each["name"]) for each in datasets]


def test_run_and_nodes_begin_and_end_in_the_order_of_time(collector, failed_run):
    record = failed_run(openlineage=collector.address)
    send(record, collector.address)
    found = sent(collector)
    assert [(each["job"]["name"], each["eventType"], each["eventTime"][14:23]) for each in found] == [
        ("taxi", "START", "00:00.000"),
        ("taxi.Trainer", "START", "00:01.000"), ("taxi.Trainer", "COMPLETE", "00:02.000"),
        ("taxi.Gate", "START", "00:02.000"), ("taxi.Gate", "FAIL", "00:02.250"),
        ("taxi", "FAIL", "00:02.500"),
    ]  # fmt: skip
    run, trainer, gate = (uuid.UUID(found[index]["run"]["runId"]) for index in (0, 1, 3))
    assert len({run, trainer, gate}) == 3
    assert found[5]["run"]["runId"] == str(run)
    assert found[2]["run"]["facets"]["parent"]["run"] == {"runId": str(run)}
    assert found[4]["run"]["facets"]["errorMessage"]["message"] == "no"


def test_datasets_are_what_nodes_read_and_wrote_with_the_digest_of_the_data(collector, failed_run, tmp_path):
    record = failed_run(openlineage=collector.address)
    send(record, collector.address)
    first, _, trained, *_ = sent(collector)
    assert names(first["inputs"]) == [("file", "trips.csv")]
    assert first["inputs"][0]["facets"]["version"]["datasetVersion"] == "5" * 64
    assert names(trained["inputs"]) == [("gs://bucket", "examples/1")]
    assert names(trained["outputs"]) == [("file", str(tmp_path / "trained"))]


def test_the_node_that_reads_the_data_has_its_files_as_inputs(made_again):
    begun, done = (each for each in events(made_again("Ingest")) if each["job"]["name"] == "taxi.Ingest")
    for event in (begun, done):
        [trips] = event["inputs"]
        assert (trips["namespace"], trips["name"]) == ("file", "trips.csv")
        assert trips["facets"]["version"]["datasetVersion"] == "5" * 64


def test_a_pushed_version_is_an_output_of_its_run_and_of_the_node_that_pushed_it(made_again):
    record = made_again("Pusher", "PushedModel", pushed=True)
    *_, node, run = events(record)
    assert [each["eventType"] for each in (node, run)] == ["COMPLETE", "COMPLETE"]
    assert [each["job"]["name"] for each in (node, run)] == ["taxi.Pusher", "taxi"]
    assert names(node["outputs"])[0] == ("file", "/made/PushedModel")
    assert node["outputs"][1:] == run["outputs"]
    [version] = run["outputs"]
    assert version["name"].endswith("serving/taxi/17")
    assert version["facets"]["version"]["datasetVersion"] == "17"


def test_a_node_that_runs_again_in_a_resumed_run_is_another_run(made_again):
    record = made_again("Ingest")
    first = {each["job"]["name"]: each["run"]["runId"] for each in events(record)}
    assert {each["job"]["name"]: each["run"]["runId"] for each in events(record)} == first
    then = {each["job"]["name"]: each["run"]["runId"] for each in events(made_again("Ingest", minute=1))}
    assert then["taxi"] == first["taxi"]
    assert then["taxi.Ingest"] != first["taxi.Ingest"]


def test_every_facet_names_its_schema(failed_run):
    def facets(value):
        if isinstance(value, dict):
            if "_producer" in value:
                yield value["_schemaURL"].removeprefix("https://openlineage.io/spec/facets/")
            for inner in value.values():
                yield from facets(inner)
        elif isinstance(value, list):
            for inner in value:
                yield from facets(inner)

    assert set(facets(events(failed_run()))) == {
        f"{each}.json#/$defs/{each.partition('/')[2]}" for each in (
            "1-0-1/DatasetVersionDatasetFacet", "1-0-1/ErrorMessageRunFacet", "2-0-4/JobTypeJobFacet",
            "1-2-0/ParentRunFacet",
        )
    }  # fmt: skip


@pytest.mark.parametrize("state", ["interrupted", "killed", "pruned"])
def test_a_run_that_was_ended_is_aborted(make_run, state):
    record = make_run()
    record.state = state
    assert [each["eventType"] for each in events(record)] == ["START", "ABORT"]


def test_the_key_comes_from_openlineages_variable(collector, make_run, monkeypatch):
    monkeypatch.setenv("OPENLINEAGE_API_KEY", "hunter2")
    record = make_run(openlineage=collector.address)
    send(record, collector.address)
    assert {headers["Authorization"] for _, _, headers, _ in collector.got} == {"Bearer hunter2"}


def test_a_node_that_was_cut_short_is_aborted(make_run):
    record = make_run()
    [trained] = record.nodes
    record.state, trained.state, trained.why, trained.outputs = "interrupted", "skipped", "interrupted", {}
    lines = [
        {"at": f"2026-11-24T03:00:0{second}+00:00", "node": "Trainer", "state": state, "why": "interrupted"}
        for second, state in ((1, "running"), (2, "skipped"))
    ]
    (record.folder / "events.jsonl").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    found = events(record)
    assert [each["eventType"] for each in found] == ["START", "START", "ABORT", "ABORT"]
    assert found[2]["run"]["facets"]["errorMessage"]["message"] == "interrupted"
