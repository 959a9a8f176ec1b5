"""Errors of TFX's file systems, in words."""

import pytest

from slipway.components.errors import ComponentError
from slipway.pipeline.cloud.container.store_errors import told_store_errors


@pytest.mark.parametrize("kind", ["PermissionDeniedError", "UnavailableError", "ResourceExhaustedError"])
def test_error_of_tensorflow_is_told(kind):
    from tensorflow import errors

    with (
        pytest.raises(ComponentError, match="gs://b/x cannot be read: said so"),
        told_store_errors("gs://b/x cannot be read"),
    ):
        raise getattr(errors, kind)(None, None, "said\nso")


def test_what_tfx_does_not_find_is_told_with_its_cause():
    from tfx.dsl.io.filesystem import NotFoundError

    with (
        pytest.raises(ComponentError, match="gs://b/x cannot be read: 'no such object'"),
        told_store_errors("gs://b/x cannot be read"),
    ):
        raise NotFoundError from KeyError("no such object")


@pytest.mark.parametrize("error", [ValueError("a fault of ours"), ComponentError("told already")])
def test_another_error_stays_as_it_is(error):
    with pytest.raises(type(error)) as raised, told_store_errors("gs://b/x cannot be read"):
        raise error
    assert raised.value is error
