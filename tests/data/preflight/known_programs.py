"""Programs whose operations and memory can be counted by hand: what the TPU's compiler says of them, as JSON.

Run by tests/integration/preflight with the interpreter that has libtpu.
"""

import json
from dataclasses import asdict

from slipway.components.preflight import compile_and_measure as compile_step

compile_step._prepare()

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import keras  # noqa: E402
import numpy as np  # noqa: E402

from slipway.components.preflight.program_costs import program_costs  # noqa: E402
from slipway.components.preflight.question_and_answer import Slice  # noqa: E402
from slipway.components.preflight.slice_mesh import topology_devices  # noqa: E402

ONE_CHIP = Slice(name="v5e-1", generation="v5e", devices=1, topology="1x1", memory_bytes=0)
MESH = jax.sharding.Mesh(np.array(topology_devices(ONE_CHIP)), ("batch",))
EVERYWHERE = jax.sharding.NamedSharding(MESH, jax.sharding.PartitionSpec())


def array(*shape, dtype=jnp.float32):
    return jax.ShapeDtypeStruct(shape, dtype, sharding=EVERYWHERE)


def count(function, *arguments):
    program = jax.jit(function).trace(*arguments).lower(lowering_platforms=("tpu",)).compile()
    return asdict(program_costs(program, batch_size=1, where=ONE_CHIP, devices=MESH.devices.flat))


def count_layer(layer, *shape, calls=1):
    """The layer's forward pass, in bfloat16; `calls`: how often it takes the input."""
    keras.config.set_dtype_policy("mixed_bfloat16")
    built = layer()
    built.build(*[shape] * calls)

    def forward(weights, x):
        return built.stateless_call(weights, [], *[x] * calls)[0]

    weights = [array(*each.shape, dtype=each.dtype) for each in built.trainable_variables]
    return count(forward, weights, array(*shape, dtype=jnp.bfloat16))


def main():
    n = 4096
    print(
        json.dumps(
            {
                "matmul_float32": count(jnp.matmul, array(n, n), array(n, n)),
                "matmul_bfloat16": count(jnp.matmul, *[array(n, n, dtype=jnp.bfloat16)] * 2),
                "dense": count_layer(lambda: keras.layers.Dense(2048), 1024, 2048),
                "convolution": count_layer(lambda: keras.layers.Conv2D(128, 3), 32, 56, 56, 128),
                "attention": count_layer(
                    lambda: keras.layers.MultiHeadAttention(8, 64), 8, 512, 512, calls=2
                ),
            }
        )
    )


if __name__ == "__main__":
    main()
