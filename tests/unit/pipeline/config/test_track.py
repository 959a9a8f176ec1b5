"""The key `track`: an address of a server, which holds no secret."""

import pytest
from pydantic import ValidationError

from slipway.pipeline.config.track import TrackConfig


@pytest.mark.parametrize(
    "address", ["http://127.0.0.1:5000", "https://mlflow.example/team/a", "http://[::1]:5000"]
)
def test_an_address_of_a_server_is_taken(address):
    assert TrackConfig(mlflow=address).mlflow == address
    assert TrackConfig(mlflow=f"{address}/").mlflow == address


@pytest.mark.parametrize(
    "address",
    [
        "mlruns",
        "file:///srv/mlruns",
        "http://",
        "http://a b",
        "http://a:0",
        "http://[a",
        " http://a",
        "databricks",
    ],
)
def test_what_is_no_such_address_is_refused_with_what_to_do(address):
    with pytest.raises(ValidationError, match="mlflow server --backend-store-uri"):
        TrackConfig(mlflow=address)


@pytest.mark.parametrize("rest", ["user:pw@host", "token@host", "host?key=1", "host/#key"])
def test_an_address_with_a_secret_is_refused(rest):
    with pytest.raises(ValidationError, match="no user, password, query or fragment"):
        TrackConfig(mlflow=f"https://{rest}")


@pytest.mark.parametrize("address", ["user:pw@host", "host?key=1", "https://host?", "https://host/a@b"])
def test_what_may_hold_a_secret_is_refused_as_such_whatever_else_it_is(address):
    with pytest.raises(ValidationError, match="no user, password, query or fragment"):
        TrackConfig(mlflow=address)
