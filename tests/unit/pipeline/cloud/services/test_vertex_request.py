"""What is asked of Vertex AI Pipelines."""

import copy

import pytest

from slipway.pipeline.cloud.services.vertex_request import (
    checked_parameters,
    job_id,
    schedule_request,
    vertex_request,
)
from slipway.pipeline.config import CloudConfig
from slipway.pipeline.config.cloud_services import ScheduleConfig, VertexConfig
from slipway.pipeline.errors import ConfigError

JOB = {
    "labels": {"a": "b"},
    "runtimeConfig": {"gcsOutputDirectory": "gs://b/p"},
    "pipelineSpec": {"root": {}},
}


def test_only_what_is_set_is_asked_for_and_the_job_stays_as_it_is():
    job = copy.deepcopy(JOB)
    asked = vertex_request(job, CloudConfig())
    assert job == JOB
    assert asked == {
        **JOB,
        "runtimeConfig": {
            "gcsOutputDirectory": "gs://b/p",
            "failurePolicy": "PIPELINE_FAILURE_POLICY_FAIL_SLOW",
            "parameterValues": {},
        },
    }


def test_account_network_and_key_are_asked_for():
    network, key = "projects/1/global/networks/n", "projects/p/locations/r/keyRings/k/cryptoKeys/c"
    vertex = VertexConfig(service_account="a@p", network=network, encryption_key=key)
    asked = vertex_request(JOB, CloudConfig(vertex=vertex, failure_policy="fast"))
    assert (asked["serviceAccount"], asked["network"]) == ("a@p", network)
    assert asked["encryptionSpec"] == {"kmsKeyName": key}
    assert asked["runtimeConfig"]["failurePolicy"] == "PIPELINE_FAILURE_POLICY_FAIL_FAST"


def test_parameters_are_those_that_the_pipeline_declares():
    declared = {"steps": {"parameterType": "NUMBER_INTEGER"}, "name": {"defaultValue": "x"}}
    spec = {"root": {"inputDefinitions": {"parameters": declared}}}
    assert checked_parameters(spec, {"steps": 3}) == {"steps": 3}
    with pytest.raises(ConfigError, match=r"cloud\.parameters\.step: .* nearest: steps"):
        checked_parameters(spec, {"step": 3})
    with pytest.raises(ConfigError, match="runtime parameter steps has no value"):
        checked_parameters(spec, {"name": "y"})
    with pytest.raises(ConfigError, match="it has none"):
        checked_parameters({"root": {}}, {"step": 3})


def test_run_id_is_one_that_the_service_takes():
    assert job_id("Chicago_taxi-20270101-020304-ab12") == "chicago-taxi-20270101-020304-ab12"


def test_schedule_is_in_its_time_zone_and_bounded():
    when = ScheduleConfig(
        cron="30 2 * * mon",
        time_zone="Europe/Berlin",
        start="2027-01-01",
        max_concurrent_runs=2,
        catch_up=True,
    )
    assert schedule_request({"x": 1}, "nightly", when, parent="projects/p/locations/r") == {
        "displayName": "nightly",
        "cron": "TZ=Europe/Berlin 30 2 * * mon",
        "maxConcurrentRunCount": 2,
        "maxConcurrentActiveRunCount": 2,
        "allowQueueing": True,
        "startTime": "2026-12-31T23:00:00Z",
        "createPipelineJobRequest": {"parent": "projects/p/locations/r", "pipelineJob": {"x": 1}},
    }
