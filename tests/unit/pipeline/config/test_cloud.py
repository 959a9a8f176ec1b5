"""The workload file's section for cloud runs."""

import pytest
from taxi_workload import taxi_workload

from slipway.pipeline.config import read_assignments
from slipway.pipeline.errors import ConfigError


def test_cache_needs_an_image_whose_name_tells_its_content():
    def load(image):
        sets = ["cloud.cache=true", f"cloud.image={image}"]
        return taxi_workload(*sets)

    for image in ("host:5000/slipway", "slipway:latest", "slipway"):
        with pytest.raises(ConfigError, match="would take results of older code"):
            load(image)
    for image in ("host:5000/slipway:1.0", f"slipway@sha256:{'0' * 64}"):
        assert load(image).cloud.cache


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        (
            "cloud.root=s3://bucket",
            r"cloud\.root=.*: must be gs://BUCKET/PATH, the only place where Vertex AI keeps",
        ),
        ("cloud.root=minio://bucket", "must be gs://BUCKET/PATH, the only place where Vertex AI keeps"),
        ("cloud.root=hf://box/p", "must be gs://, s3:// or minio://BUCKET/PATH"),
        (
            "cloud.root=az://box/p",
            "must not be on az://, where neither Vertex AI nor Kubeflow keeps artifacts",
        ),
        (
            "cloud={service: kubeflow, root: 'az://box/p'}",
            r"must not be on az://, .*; name gs://, or on Kubeflow s3:// or minio://BUCKET/PATH.* There",
        ),
        (
            "cloud={service: kubeflow, root: 's3://bucket/p?region=x'}",
            r"must not hold a \?: region and endpoint",
        ),
        ("cloud.root=gs://b/p", "a bucket's name has 3 to 63 characters"),
        ("cloud.root=gs://bucket//p", "without blanks and empty parts"),
        ("push.destination=gs://b/p", "a bucket's name has 3 to 63 characters"),
        ("cloud.labels={Team: x}", "the key must be a letter, then letters, digits, - and _, all lower case"),
        ("cloud.resources.cpu=0", "must be above 0"),
        ("cloud.tasks={Trainer: {memory: 3}}", "unknown key; nearest: memory_gb"),
    ],
)
def test_wrong_values_are_refused(setting, words):
    with pytest.raises(ConfigError, match=words):
        taxi_workload(setting)


@pytest.mark.parametrize(
    "setting",
    [
        *("cloud.parameters={db_password: hush17}", "cloud.parameters.api_key=hush17"),
        *("cloud.parameters.pin_password=1701170117", "cloud.parameters.pin_password='17011'"),
    ],
)
def test_runtime_parameter_that_promises_a_secret_is_refused_and_not_repeated(setting):
    with pytest.raises(ConfigError, match="would be readable in the service") as refused:
        taxi_workload(setting)
    assert "hush17" not in str(refused.value)
    assert "17011" not in str(refused.value)


def test_runtime_parameters_that_only_sound_so_are_taken():
    sets = ["cloud.parameters={max_tokens: '5', split_key: 7, token_env: HF_TOKEN, api_key: ''}"]
    loaded = taxi_workload(*sets)
    assert loaded.cloud.parameters["split_key"] == 7


@pytest.mark.parametrize("root", ["gs://bucket/p", "s3://bucket/p", "minio://mlpipeline/v2/artifacts"])
def test_kubeflow_takes_what_its_launcher_carries(root):
    assert taxi_workload(f"cloud={{service: kubeflow, root: '{root}'}}").cloud.root == root


def test_a_cron_expression_that_yaml_reads_otherwise_is_refused_with_the_quotes_to_type():
    with pytest.raises(ConfigError, match=r"--set cloud\.schedule\.cron:1: ") as caught:
        read_assignments(["cloud.schedule.cron=* * * * *"])
    assert caught.value.hint.endswith("""--set 'cloud.schedule.cron="* * * * *"'""")


@pytest.mark.parametrize(
    "setting", ["cloud.parameters.db_password=@hush17", "push.hook=@x redis://:" + "hush17@cache.example"]
)
def test_text_to_quote_that_may_be_a_secret_is_not_repeated(setting):
    with pytest.raises(ConfigError, match="cannot begin with '@'; put it in quotes") as refused:
        read_assignments([setting])
    assert "hush17" not in str(refused.value)
