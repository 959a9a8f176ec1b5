"""Attention of Keras on JAX where Keras takes the device for a TPU, with its kernel for TPUs interpreted."""

import json
import os
import subprocess

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.external]

ATTENTION = """
import functools
import json
from types import SimpleNamespace
from unittest import mock

import jax
import keras
import numpy as np
from keras.src.backend.jax import nn

from slipway.components.trainer.devices.plain_attention import keep_plain_attention

kernel = nn.splash_attention_kernel
kernel.make_splash_mha = functools.partial(kernel.make_splash_mha, interpret=True)
values = np.random.default_rng(1).normal(size=(1, 256, 64)).astype("float32")
heads = np.random.default_rng(2).normal(size=(1, 256, 2, 128)).astype("float32")
layer = keras.layers.MultiHeadAttention(2, 128)

def attended(where):
    with mock.patch.object(jax, "devices", lambda: [SimpleNamespace(platform=where)]):
        answers = layer(values, values), keras.ops.dot_product_attention(heads, heads, heads)
    return [np.asarray(each) for each in answers]

def largest_differences():
    return [float(abs(one - other).max()) for one, other in zip(attended("tpu"), attended("cpu"))]

kerass = largest_differences()
keep_plain_attention()
print(json.dumps([kerass, largest_differences()]))
"""


def test_attention_on_a_tpu_has_the_numbers_that_it_has_elsewhere(project, jax_python):
    done = subprocess.run(
        [jax_python, "-W", "ignore", "-c", ATTENTION],
        env={**os.environ, "PYTHONPATH": str(project), "KERAS_BACKEND": "jax", "JAX_PLATFORMS": "cpu"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )

    assert done.returncode == 0, done.stderr[-3000:]
    kerass, ours = json.loads(done.stdout.strip().splitlines()[-1])
    assert min(kerass) > 0.1, "Keras' kernel computes what others do: the module is of no use any more"
    assert ours == [0.0, 0.0]
