"""Where pretrained weights are taken from."""

from slipway.components.trainer.settings.pretrained import is_remote


def test_an_address_is_distinguished_from_a_path():
    assert is_remote("gs://b/w.h5")
    assert not is_remote("weights/w.h5")
