"""What rehearsals remember: the artifacts that resolvers find, and the tasks that need not run again."""

import pytest

from slipway.components.errors import ComponentError
from slipway.pipeline.cloud.rehearsal.done_tasks import DoneTasks, cache_key

BLESSED = 'schema_title="tfx.ModelBlessing" AND state=LIVE AND metadata.blessed.number_value=1'


@pytest.fixture
def artifact(tmp_path):
    def make(name, title="tfx.ModelBlessing", **metadata):
        (tmp_path / name).mkdir()
        uri = str(tmp_path / name)
        return {"name": f"a/{name}", "uri": uri, "type": {"schemaTitle": title}, "metadata": metadata}

    return make


@pytest.fixture
def run(tmp_path):
    def of(run_id, pipeline="taxi"):
        return DoneTasks(tmp_path / "runs", run_id, pipeline)

    return of


def keep(tasks, name, *artifacts, key="k"):
    tasks.keep(name, artifacts={"out": list(artifacts)}, parameters={"rows": 3.0}, key=key)


def test_resolver_finds_the_latest_that_fits_in_earlier_runs(run, artifact):
    keep(run("1"), "Gate", artifact("first", blessed=1.0))
    keep(run("2"), "Gate", artifact("second", blessed=1.0))
    keep(run("3"), "Gate", artifact("refused", blessed=0.0))
    keep(run("3"), "Trainer", artifact("model", "tfx.Model"))
    assert [found["name"] for found in run("4").find(BLESSED)] == ["a/second"]
    by_name = 'schema_title="tfx.Model" AND state=LIVE AND name="a/model"'
    assert [found["name"] for found in run("4").find(by_name)] == ["a/model"]


def test_resolver_finds_nothing_of_other_pipelines_or_that_is_gone(run, artifact, tmp_path):
    keep(run("1", "digits"), "Gate", artifact("other", blessed=1.0))
    keep(run("2"), "Gate", artifact("gone", blessed=1.0))
    (tmp_path / "gone").rmdir()
    assert run("3").find(BLESSED) == []


def test_what_a_resolver_found_is_not_found_as_new(run, artifact):
    made, found = artifact("made", blessed=1.0), artifact("found", blessed=1.0)
    keep(run("1"), "Gate", made)
    keep(run("2"), "Baseline", found, key="")
    assert run("3").find(BLESSED) == [made]


def test_filter_of_another_form_is_refused(run):
    with pytest.raises(ComponentError, match="the resolver's filter create_time>1 cannot be evaluated"):
        run("1").find("state=LIVE AND create_time>1")


def test_equal_task_is_taken_from_an_earlier_run_while_its_artifacts_are_there(run, artifact, tmp_path):
    keep(run("1"), "Ingest", artifact("examples"), key="same")
    assert run("2").cached("same")["parameters"] == {"rows": 3.0}
    assert run("2").cached("other") is None
    (tmp_path / "examples").rmdir()
    assert run("2").cached("same") is None


@pytest.mark.parametrize("content", ['{"pipeline": "ta', '{"of": "another version"}'])
def test_record_of_an_earlier_run_that_cannot_be_read_is_as_none(run, artifact, tmp_path, content):
    keep(run("1"), "Ingest", artifact("a"), key="k")
    keep(run("2"), "Ingest", artifact("b"), key="k")
    [record] = (tmp_path / "runs" / "2").glob("tasks/*.json")
    record.write_text(content)
    assert run("3").cached("k")["artifacts"]["out"][0]["name"] == "a/a"


def test_outputs_of_this_run_only(run, artifact):
    keep(run("1"), "Ingest", artifact("a"))
    keep(run("2"), "Trainer", artifact("b"))
    assert run("2").of_this_run().keys() == {"Trainer"}


def test_cache_key_covers_image_command_parameters_and_inputs():
    container = {"image": "i:1", "command": ["python"], "args": ["{{$}}"], "resources": {"cpuLimit": 4}}
    artifacts = {"x": {"artifacts": [{"name": "a"}]}}
    given = {"inputs": {"parameterValues": {"p": 1}, "artifacts": artifacts}}
    key = cache_key({}, container, given)
    assert cache_key({}, {**container, "resources": {}}, given) == key
    others = [
        cache_key({}, {**container, "image": "i:2"}, given),
        cache_key({}, {**container, "args": []}, given),
        cache_key({"executorLabel": "e"}, container, given),
        cache_key({}, container, {"inputs": {"parameterValues": {"p": 2}, "artifacts": artifacts}}),
        cache_key({}, container, {"inputs": {"parameterValues": {"p": 1}, "artifacts": {}}}),
    ]
    assert len({key, *others}) == 6
