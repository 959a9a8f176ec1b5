"""The workload file's sections for the services that run pipelines."""

from datetime import UTC, datetime

import pytest
from taxi_workload import taxi_workload

from slipway.pipeline.config.cloud_services import ScheduleConfig
from slipway.pipeline.errors import ConfigError


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ("cloud.vertex.region=Europe", "must be a region, such as europe-west4"),
        ("cloud.vertex.service_account=me", "must be the address of a service account"),
        ("cloud.vertex.network=default", "projects/NUMBER/global/networks/NAME"),
        ("cloud.vertex.experiment=My Trials", "lowercase letters, digits and hyphens, at most 63"),
        ("cloud.vertex.experiment=taxi", "is the workload's own name, which Vertex AI gives to the pipeline"),
        ("cloud.vertex.encryption_key=key", "projects/PROJECT/locations/REGION/keyRings"),
        ("cloud.vertex.endpoint=http://127.0.0.1.example.com", "must begin with https://"),
        ("cloud.kubeflow.host=http://kubeflow.example", "must begin with https://"),
        (
            "cloud.kubeflow.variables={AWS_SECRET_ACCESS_KEY: x}",
            "would be readable in the pipeline; put it into",
        ),
        ("cloud.kubeflow.variables={AZURE_STORAGE_ACCOUNT_KEY: x}", "name that in cloud.kubeflow.secrets"),
        ("cloud.kubeflow.variables={AZURE_STORAGE_KEY: x}", "name that in cloud.kubeflow.secrets"),
        (
            "cloud.kubeflow.variables={AZURE_STORAGE_CONNECTION_STRING: x}",
            "name that in cloud.kubeflow.secrets",
        ),
        ("cloud.kubeflow.variables={WANDB_API_KEY: x}", "name that in cloud.kubeflow.secrets"),
        ("cloud.kubeflow.variables={a-b: x}", "the key must be the name of an environment variable"),
        ("cloud.kubeflow.secrets={Store: {A: a}}", "the key must be the name of a Kubernetes secret"),
        ("cloud.kubeflow.secrets={store: {A: 'a b'}}", "must be a key of a Kubernetes secret"),
        (
            "cloud.kubeflow={variables: {A: x}, secrets: {store: {A: a}}}",
            "is named twice, here and in another",
        ),
        ("cloud.kubeflow.secrets={one: {A: a}, two: {A: a}}", "is named twice, here and in another"),
        ("cloud.failure_policy=quick", "slow"),
        ("cloud.schedule.cron=every night", "must be 5 fields"),
        ("cloud.schedule.time_zone=Berlin", "not a time zone"),
        ("cloud.schedule.start=soon", "not a date or time"),
        ("cloud.schedule={start: '2027-01-02', end: '2027-01-01'}", "must be after start"),
    ],
)
def test_wrong_values_are_refused(setting, words):
    with pytest.raises(ConfigError, match=words):
        taxi_workload(setting)


@pytest.mark.parametrize(
    "host", ["https://kubeflow.example/pipeline", "http://localhost:8080", "http://127.0.0.1"]
)
def test_address_that_a_token_is_safe_at_is_taken(host):
    sets = [f"cloud.kubeflow.host={host}"]
    assert taxi_workload(*sets).cloud.kubeflow.host


def test_moment_without_an_offset_is_in_the_schedule_s_time_zone():
    when = ScheduleConfig(time_zone="Europe/Berlin", start="2027-01-01", end="2027-07-01T03:00+05:00")
    assert when.starts_at.astimezone(UTC) == datetime(2026, 12, 31, 23, tzinfo=UTC)
    assert when.ends_at.astimezone(UTC) == datetime(2027, 6, 30, 22, tzinfo=UTC)


def test_secret_among_the_variables_is_not_repeated():
    with pytest.raises(ConfigError) as refused:
        taxi_workload("cloud.kubeflow.variables={AWS_SECRET_ACCESS_KEY: hunter2}")
    assert "AWS_SECRET_ACCESS_KEY" in str(refused.value)
    assert "hunter2" not in str(refused.value)
