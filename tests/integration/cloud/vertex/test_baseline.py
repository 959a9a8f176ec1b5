"""`cloud_runner.py baseline`, with Vertex AI on loopback."""

import os

import pytest
from installed import needed

from slipway.pipeline.cloud.baseline import baseline
from slipway.pipeline.cloud.cloud_choice import CloudChoice
from slipway.pipeline.config import read_assignments
from slipway.pipeline.errors import PipelineError, UsageError

needed("kfp", reason="TFX brings kfp to Python 3.11 only")

NONE = "taxi: no baseline. The next blessed model will be it."


@pytest.fixture
def told(workload):
    def call(*sets, clear=False, reason=""):
        chosen = CloudChoice(workload, read_assignments(sets), "prod")
        return list(baseline(chosen, clear=clear, reason=reason))

    return call


def states(google):
    return {name: each.state.name for name, each in google.artifacts.items()}


def test_baseline_is_the_latest_blessed_model_of_the_workload(google, vertex, job, told):
    assert told() == [NONE]
    for run in ("night-prod-back-fill-20270101", "taxi-20270103-020304-ab12", "third"):
        vertex.submit(job, run_id=run)
    google.blessed("night-prod-back-fill-20270101", 1)
    google.blessed("taxi-20261231-020304-ab12", 2)  # the service no longer lists it
    google.blessed("taxi-20270103-020304-ab12", 3, blessed=0)
    google.blessed("taxi-extra-20270103-020304-ab12", 4)
    google.blessed("third", 5)
    assert told()[0].startswith("taxi: the model of run third, blessed 2027-01-05T03:00:00+00:00; gs://my-")


def test_clearing_retires_each_blessed_model_of_the_workload_the_latest_last(google, told):
    google.blessed("taxi-20270101-020304-ab12", 1)
    google.blessed("fares-20270101-020304-ab12", 2)
    google.blessed("taxi-20270103-020304-ab12", 3)
    google.fails("PATCH", 503)
    *retired, last = told(clear=True, reason="the columns changed")
    assert last == NONE
    assert [line.split(",")[0] for line in retired] == [
        "retired: taxi-20270101-020304-ab12",
        "retired: taxi-20270103-020304-ab12",
    ]
    assert states(google) == {"1": "PENDING", "2": "LIVE", "3": "PENDING"}
    kept = google.artifacts["3"]
    assert kept.metadata["blessed"] == 1
    assert kept.description.startswith("baseline cleared ")
    assert kept.description.endswith(": the columns changed")
    assert told() == [NONE]


def test_user_without_a_name_can_clear(google, told, monkeypatch):
    def nameless():
        raise KeyError("getpwuid(): uid not found: 54321")

    monkeypatch.setattr("getpass.getuser", nameless)
    google.blessed("taxi-20270101-020304-ab12", 1)
    told(clear=True)
    assert f" by user {os.getuid()}" in google.artifacts["1"].description


def test_refusal_is_reported_and_leaves_the_baseline(google, told):
    google.blessed("taxi-20270101-020304-ab12", 1)
    google.fails("PATCH", 403, "no aiplatform.artifacts.update", times=9)
    with pytest.raises(PipelineError, match="retiring the blessing of taxi-20270101-020304-ab12"):
        told(clear=True)
    assert states(google) == {"1": "LIVE"}


def test_other_service_and_reason_without_clearing_are_refused_before_anything_is_asked(google, told):
    with pytest.raises(
        UsageError, match="the latest record in gs://my-bucket/pipelines/records/taxi/"
    ) as raised:
        told("cloud.service=kubeflow", clear=True)
    assert raised.value.hint.startswith("gcloud storage rm 'gs://my-bucket/pipelines/records/taxi/")
    with pytest.raises(UsageError, match="--reason is for --clear"):
        told(reason="why")
    assert google.requests == []
