"""Addresses in object stores and on the Hub, and their parts."""

import pytest

from slipway.components.store_address import (
    bucket_and_path,
    is_elsewhere,
    is_in_store,
    is_remote,
    outlives_its_container,
    speaks_s3,
)


@pytest.mark.parametrize(
    ("address", "parts"),
    [
        ("gs://b/d/x.csv", ("b", "d/x.csv")),
        ("s3://b/d/", ("b", "d/")),
        ("az://b", ("b", "")),
        ("s3:///x", ("", "x")),
    ],
)
def test_address_in_a_store_has_a_bucket_and_a_path(address, parts):
    assert is_in_store(address)
    assert is_elsewhere(address)
    assert bucket_and_path(address) == parts


@pytest.mark.parametrize("path", ["", "data/x.csv", "/s3://b/x", "package://tfx/x", "http://b/x", "S3://b/x"])
def test_other_places_are_in_no_store(path):
    assert not is_in_store(path)
    assert not is_elsewhere(path)


def test_hub_is_elsewhere_but_no_store_to_write_to():
    assert is_elsewhere("hf://datasets/o/n")
    assert not is_in_store("hf://datasets/o/n")


def test_kubeflow_s_name_for_a_store_is_s3_but_no_address_that_data_or_models_may_have():
    assert [speaks_s3(f"{scheme}://b/x") for scheme in ("s3", "minio", "gs", "az")] == [
        True,
        True,
        False,
        False,
    ]
    assert not is_in_store("minio://b/x")
    assert bucket_and_path("minio://b/x/y") == ("b", "x/y")


def test_what_is_at_an_address_or_in_a_mounted_bucket_outlives_its_container():
    assert all(map(outlives_its_container, ("gs://b/x", "s3://b/x", "hdfs://h/x", "/gcs/b/x")))
    assert not any(map(outlives_its_container, ("checkpoints", "/scratch/x", "~/x", "gcs/b/x")))


def test_an_address_is_distinguished_from_a_path():
    assert is_remote("gs://b/w.h5")
    assert not is_remote("weights/w.h5")
