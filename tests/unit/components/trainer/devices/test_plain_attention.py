"""What is put in the place of Keras' own answer; the numbers of attention are tested with JAX."""

import sys
from types import SimpleNamespace

import pytest

from slipway.components.errors import ComponentError
from slipway.components.trainer.devices.plain_attention import keep_plain_attention


@pytest.fixture
def backend(monkeypatch):
    """A stand-in for Keras' backend, which needs JAX, on a TPU."""
    double = SimpleNamespace(_can_use_flash_attention=lambda query, key, value, bias, raise_error=False: True)
    monkeypatch.setitem(sys.modules, "keras.src.backend.jax", SimpleNamespace(nn=double))
    return double


def test_flash_attention_is_not_taken_unless_asked_for_and_then_refused_with_the_remedy(backend):
    keep_plain_attention()

    assert backend._can_use_flash_attention("query", "key", "value", None) is False
    with pytest.raises(ComponentError, match="flash_attention=True: ") as refused:
        backend._can_use_flash_attention("query", "key", "value", None, raise_error=True)
    assert "leave flash_attention out" in refused.value.hint
