"""Requests to an endpoint: repeatable names, and shares that add up."""

import itertools

import pytest

from slipway.components.pusher.endpoint import (
    EndpointSettings,
    deploy_request,
    traffic_split,
)
from slipway.components.pusher.versions import Published

SETTINGS = EndpointSettings(
    project="p",
    region="europe-west4",
    name="taxi",
    container="image",
    machine_type="n1-standard-2",
    min_replicas=1,
    max_replicas=3,
    traffic=20,
)
VERSION = Published(1795229254, "gs://b/taxi", was_there=False)


@pytest.mark.parametrize(
    ("shares", "new", "split"),
    [
        ({}, 20, {"0": 100}),
        ({"1": 0}, 20, {"0": 100}),
        ({"1": 100}, 100, {"0": 100}),
        ({"1": 100}, 0, {"0": 0, "1": 100}),
        ({"1": 100}, 20, {"0": 20, "1": 80}),
        ({"1": 80, "2": 20}, 20, {"0": 20, "1": 64, "2": 16}),
        ({"1": 33, "2": 33, "3": 34}, 50, {"0": 50, "1": 17, "2": 16, "3": 17}),
        ({"1": 99, "2": 1}, 90, {"0": 90, "1": 10}),
    ],
)
def test_others_share_the_rest_as_they_did_before(shares, new, split):
    assert traffic_split(shares, new) == split


def test_shares_always_add_up_to_all():
    for one, two, new in itertools.product(range(0, 101, 7), range(0, 101, 9), range(0, 101, 3)):
        split = traffic_split({"1": one, "2": two, "3": max(100 - one - two, 0)}, new)
        assert sum(split.values()) == 100
        assert min(split.values()) >= 0


def test_request_names_the_version_and_its_share():
    deploy = deploy_request(SETTINGS, VERSION, workload="taxi", model="m", shares={"5": 100})
    assert deploy["traffic_split"] == {"0": 20, "5": 80}
    assert deploy["deployed_model"]["id"] == "1795229254"
    assert "service_account" not in deploy["deployed_model"]


def test_version_too_long_for_an_id_leaves_it_to_the_service():
    version = Published(99999999999, "gs://b/taxi", was_there=False)
    assert "id" not in deploy_request(SETTINGS, version, workload="t", model="m", shares={})["deployed_model"]
