"""A followed run is logged to an experiment, on Vertex AI on loopback."""

from dataclasses import replace

import pytest
from installed import needed

from slipway.pipeline.cloud.cloud_choice import CloudChoice
from slipway.pipeline.cloud.experiment import note_in_experiment
from slipway.pipeline.cloud.submit import follow_run
from slipway.pipeline.cloud.tracked_run import keep_settings
from slipway.pipeline.config import read_assignments
from slipway.pipeline.runs.record import RunRecord

needed("kfp", reason="TFX brings kfp to Python 3.11 only")

RUN = "taxi-20270101-020304-ab12"


@pytest.fixture
def chosen(workload):
    def call(*sets):
        return CloudChoice(workload, read_assignments(("cloud.vertex.experiment=taxi-trials", *sets)), "prod")

    return call


def noted(google):
    run = google.contexts[f"taxi-trials-{RUN}"]
    return {key: type(run).to_dict(run)["metadata"][key] for key in ("_params", "_metrics", "_state")}


def test_followed_run_is_noted_with_settings_and_metrics_and_again_when_followed_again(
    google, vertex, job, chosen, capsys
):
    vertex.submit(job, run_id=RUN)
    blessing = {"schemaTitle": "tfx.ModelBlessing", "uri": "gs://b/gate", "metadata": {"blessed": 1}}
    gate = {"taskName": "ModelGate", "state": "SUCCEEDED", "outputs": {"blessing": {"artifacts": [blessing]}}}
    google.lives = [{"state": "PIPELINE_STATE_SUCCEEDED", "jobDetail": {"taskDetails": [gate]}}]
    google.objects = {"gs://b/gate/verdict.json": {"metrics": {"auc": 0.9477}}}
    google.loses_answer("POST .*/contexts$")
    assert follow_run(RUN, chosen("train.batch_size=64")) == 0
    assert "Logged to the experiment taxi-trials." in capsys.readouterr().err
    told = noted(google)
    assert told["_params"]["train.batch_size"] == "64"
    assert told["_metrics"]["auc"] == 0.9477
    assert told["_state"] == "COMPLETE"
    experiment = google.contexts["taxi-trials"]
    assert experiment.schema_title == "system.Experiment"
    run = google.contexts[f"taxi-trials-{RUN}"]
    assert (run.schema_title, run.display_name) == ("system.ExperimentRun", RUN)
    assert list(run.parent_contexts) == [experiment.name]
    assert follow_run(RUN, chosen("train.batch_size=32")) == 0
    assert noted(google)["_params"]["train.batch_size"] == "32"


def test_run_is_noted_with_the_settings_that_it_was_submitted_with(google, vertex, job, chosen, tmp_path):
    vertex.submit(job, run_id=RUN)
    google.lives = [{"state": "PIPELINE_STATE_SUCCEEDED"}]
    submitted, later = (replace(chosen(f"train.batch_size={size}"), output=tmp_path) for size in (64, 32))
    assert keep_settings(submitted.config(), RUN, chosen=submitted) == ""
    follow_run(RUN, later)
    assert noted(google)["_params"]["train.batch_size"] == "64"
    follow_run(RUN, replace(later, output=tmp_path / "of another machine"))
    assert noted(google)["_params"]["train.batch_size"] == "32"


def test_experiment_that_is_refused_is_reported_and_none_asks_nothing(google, vertex, chosen):
    google.fails("POST .*/contexts$", 403, "no aiplatform.contexts.create", times=9)
    record = RunRecord(run_id=RUN, workload="taxi", nodes=[])
    told = note_in_experiment(chosen().config(), record, "failed")
    assert told.startswith("not logged to the experiment taxi-trials: logging the run to the experiment")
    assert "no aiplatform.contexts.create" in told
    google.requests.clear()
    assert note_in_experiment(chosen("cloud.vertex.experiment=null").config(), record, "failed") == ""
    assert google.requests == []


def test_pipeline_of_that_name_is_not_taken_for_the_experiment(google, vertex, chosen):
    from google.cloud.aiplatform_v1.types import Context

    google.contexts["taxi-trials"] = Context(schema_title="system.Pipeline")
    told = note_in_experiment(chosen().config(), RunRecord(run_id=RUN, workload="taxi", nodes=[]), "complete")
    assert told.startswith(
        "not logged to the experiment taxi-trials: taxi-trials is already the name of a system.Pipeline"
    )
    assert list(google.contexts) == ["taxi-trials"]


def test_run_of_another_workload_is_not_noted_with_the_settings_of_this_one(google, vertex, chosen):
    record = RunRecord(run_id="fares-20270101-020304-ab12", workload="fares", nodes=[])
    told = note_in_experiment(chosen().config(), record, "complete")
    assert told == "not logged to the experiment taxi-trials: it is a run of fares, not of taxi"
    assert google.contexts == {}


def test_runs_with_long_names_are_noted_one_by_one(google, vertex, chosen):
    experiment, workload = "e" * 63, "w" * 63
    config = chosen(f"cloud.vertex.experiment={experiment}").config().model_copy(update={"name": workload})
    for run in (f"{workload}-20270101-020304-ab12", f"{workload}-20270102-020304-cd34"):
        note_in_experiment(config, RunRecord(run_id=run, workload=workload, nodes=[]), "complete")
    runs = [name for name in google.contexts if name != experiment]
    assert len(runs) == 2
    assert all(len(name) == 121 for name in runs)
