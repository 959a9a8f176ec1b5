"""Where a workload's versions are, who may be trusted to have made them, and what is written beside them."""

import pytest
from taxi_workload import taxi_workload

from slipway.components.pusher.signing_keys import SigningSettings
from slipway.pipeline.config import load_workload, read_assignments
from slipway.pipeline.errors import UsageError
from slipway.pipeline.wiring.pushed_versions import (
    about_model,
    endpoint_settings,
    serving_base,
    signing_key,
    signing_settings,
    trust_in,
    trusted_versions,
)

ENDPOINT = "push.endpoint={name: taxi, container: image}"
IN_BUCKET = "push.destination=gs://bucket/taxi"


def test_endpoint_is_in_the_project_and_region_of_the_cloud():
    place = "cloud.vertex={project: p, region: europe-west4}"
    settings = endpoint_settings(taxi_workload(ENDPOINT, IN_BUCKET, place))
    assert (settings.endpoint, settings.traffic) == ("projects/p/locations/europe-west4/endpoints/taxi", 100)
    assert settings.url == "https://europe-west4-aiplatform.googleapis.com"
    assert settings.encryption_key == ""
    key = "projects/p/locations/europe-west4/keyRings/r/cryptoKeys/k"
    config = taxi_workload(ENDPOINT, IN_BUCKET, place, f"cloud.vertex.encryption_key={key}")
    assert endpoint_settings(config).encryption_key == key, "which is for everything that a run stores"
    assert endpoint_settings(taxi_workload()) is None


def test_versions_are_where_the_workload_says_or_below_the_output(tmp_path):
    assert serving_base(taxi_workload(), tmp_path) == f"{tmp_path}/serving/taxi"
    assert serving_base(taxi_workload(IN_BUCKET), tmp_path) == "gs://bucket/taxi"


def test_versions_are_signed_with_the_key_of_the_workload_or_not_at_all(key_files):
    private, public = key_files()
    assert (signing_settings(taxi_workload()), signing_key(taxi_workload())) == (None, None)
    config = taxi_workload(f"push.sign={{key: {private}}}")
    assert signing_settings(config) == SigningSettings(key=str(private))
    assert trust_in(str(public)).key.fingerprint == signing_key(config).public.fingerprint


def test_key_given_by_hand_comes_before_that_of_the_workload(key_files):
    _, own = key_files("own")
    _, other = key_files("other")
    config = taxi_workload(f"push.verify_key={own}")
    assert trusted_versions(taxi_workload()) is None
    assert trusted_versions(config) == trust_in(str(own), "taxi")
    assert trusted_versions(config, other) == trust_in(str(other), "taxi")
    assert trusted_versions(taxi_workload(), other) == trust_in(str(other), "taxi")


def test_key_that_is_none_is_wrong_usage(tmp_path):
    (tmp_path / "none.pub").write_text("no key")
    for path in ("none.pub", "absent.pub"):
        with pytest.raises(UsageError):
            trust_in(str(tmp_path / path))


def test_manifest_tells_of_a_workload_what_its_card_needs():
    assert about_model(taxi_workload()) == {
        "workload": "taxi",
        "description": taxi_workload().description,
        "source": taxi_workload().data.source,
        "label": "tips",
        "model": "workloads.taxi.model.build_model",
        "preprocessing_fn": "workloads.taxi.preprocessing.preprocessing_fn",
        "task": "tabular-classification",
    }


@pytest.mark.parametrize(
    ("name", "sets", "task"),
    [
        ("taxi", [], "tabular-classification"),
        ("digits", [], "image-classification"),
        ("fares", [], None),  # of two outputs
    ],
)
def test_task_of_the_hub_is_told_where_there_is_one(project, name, sets, task):
    file = project / f"workloads/{name}/workload.yaml"
    config = load_workload(file, sets=read_assignments(sets), root=project)
    assert about_model(config).get("task") == task


@pytest.mark.parametrize(
    ("metrics", "images", "task"),
    [
        (["mean_squared_error"], {}, "tabular-regression"),
        (["mean_squared_error"], {"image": {"height": 8, "width": 8, "channels": 1}}, None),
        (["binary_accuracy"], {"image": {"height": 8, "width": 8, "channels": 1}}, "image-classification"),
        (["mean_squared_error", "ndcg"], {}, None),  # a ranking is none of the Hub's tasks
    ],
)
def test_task_follows_from_the_metrics_and_the_input(metrics, images, task):
    config = taxi_workload()
    evaluate = config.evaluate.model_copy(update={"metrics": metrics})
    train = config.train.model_copy(update={"images": images})
    changed = config.model_copy(update={"evaluate": evaluate, "train": train})
    assert about_model(changed).get("task") == task
