"""Requests to the Model Registry: one model, its versions, their labels and metrics."""

import re

import pytest

from slipway.components.pusher.model_registry import (
    alias,
    describe,
    earlier_id,
    evaluation,
    is_foreign,
    is_ours,
    is_version,
    labels,
    model_id,
    other_workload,
    upload_request,
)
from slipway.components.pusher.versions import Published

PARENT = "projects/p/locations/europe-west4"
VERSION = Published(1795229254, "gs://b/taxi", was_there=False)
PROVENANCE = {
    "run": "20270101-020304-ab12",
    "description": "Tips of taxi rides.",
    "metrics": {"auc": 0.94771, "binary_accuracy": 0.8943},
    "data": {"span": "20876"},
}


def test_ids_and_aliases_are_such_as_the_service_takes():
    assert model_id("taxi") == "taxi"
    assert model_id("9 Trips!") == "m9-trips-"
    assert len(model_id("t" * 200)) == len(earlier_id("t" * 200, 2**63 - 1)) == 63
    assert all(re.fullmatch("[a-z][a-zA-Z0-9-]{0,126}[a-z0-9]", alias(number)) for number in (1, 2**63 - 1))


@pytest.mark.parametrize(
    ("name", "ours"),
    [
        ("projects/1/locations/r/models/taxi", True),
        ("projects/1/locations/r/models/taxi@2", True),
        ("projects/1/locations/r/models/taxi-v1795222512@1", True),
        ("projects/1/locations/r/models/taxi-v2@1795222512", False),
        ("projects/1/locations/r/models/taxi-v", False),
        ("projects/1/locations/r/models/taxis", False),
        ("projects/1/locations/r/models/taxis-v1795222512", False),
        ("projects/1/locations/r/models/123456", False),
    ],
)
def test_only_models_of_the_workload_count_as_its_own(name, ours):
    assert is_ours(name, "taxi") is ours


@pytest.mark.parametrize(
    ("model", "number", "same"),
    [
        ("projects/1/locations/r/models/taxi", "2", True),
        ("projects/1/locations/r/models/taxi@2", "", True),
        ("projects/1/locations/r/models/taxi", "1", False),
        ("projects/1/locations/r/models/taxi", "", False),
        ("projects/1/locations/r/models/fares", "2", False),
    ],
)
def test_version_is_known_by_the_number_that_the_registry_gave_it(model, number, same):
    assert is_version(model, number, of=f"{PARENT}/models/taxi@2") is same


@pytest.mark.parametrize(
    ("is_first", "place"),
    [(True, {"model_id": "taxi"}), (False, {"parent_model": f"{PARENT}/models/taxi"})],
)
def test_first_version_makes_the_model_and_each_other_one_goes_beneath_it(is_first, place):
    asked = upload_request(
        VERSION, PROVENANCE, parent=PARENT, container="image", workload="taxi", is_first=is_first
    )
    model = asked.pop("model")
    assert asked == {"parent": PARENT, **place}
    assert (model["display_name"], model["artifact_uri"]) == ("taxi", "gs://b/taxi/1795229254")
    assert model["version_aliases"] == ["v1795229254", "default"]


def test_labels_are_such_as_the_service_takes_and_leave_out_what_is_unknown():
    told = labels(7, {"run": "Night Run.1"}, workload="9 Trips!")
    assert told == {
        "slipway-workload": "m9-trips-",
        "slipway-version": "7",
        "slipway-run": "night-run-1",
    }
    assert labels(7, PROVENANCE, workload="taxi")["slipway-span"] == "20876"
    assert (is_foreign(told, "9 Trips!"), is_foreign(told, "taxi"), is_foreign({}, "taxi")) == (
        False, True, True,
    )  # fmt: skip


def test_description_tells_metrics_run_and_rollback():
    assert describe(PROVENANCE) == "auc 0.9477, binary_accuracy 0.8943; run 20270101-020304-ab12"
    again = {"version": 3, "instead_of": 4, "at": "", "by": "me"}
    assert describe({"republished": again}) == "version 3 again, instead of 4"
    assert describe({}) == ""


def test_evaluation_has_the_metrics_that_the_registry_has_a_name_for():
    asked = evaluation(7, PROVENANCE)
    assert asked["metrics"] == {"auRoc": 0.94771}
    assert asked["metrics_schema_uri"].endswith("/classification_metrics_1.0.0.yaml")
    assert asked["metadata"]["metrics"] == PROVENANCE["metrics"]
    assert evaluation(7, {"metrics": {"mean_absolute_error": 2.0}})["metrics"] == {"meanAbsoluteError": 2.0}
    assert evaluation(7, {"metrics": {"tip/auc": 0.9}}) is None


def test_metric_that_is_no_number_is_left_out_for_want_of_a_word_for_it():
    told = {"auc": float("nan"), "binary_crossentropy": 0.3, "recall": float("inf")}
    asked = evaluation(7, {"metrics": told})
    assert asked["metrics"] == {"logLoss": 0.3}
    assert asked["metadata"]["metrics"] == {"binary_crossentropy": 0.3}
    assert evaluation(7, {"metrics": {"auc": float("nan")}}) is None


@pytest.mark.parametrize(
    ("found_labels", "other"),
    [({"slipway-workload": "fares"}, "fares"), ({"slipway-workload": "taxi"}, ""), ({"team": "a"}, "")],
)
def test_model_of_another_workload_is_known_by_its_label(found_labels, other):
    assert other_workload(found_labels, "taxi") == other
