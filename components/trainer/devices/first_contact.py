"""Connects to a TPU, prints its number of cores as JSON, and exits: `python -m ...first_contact BACKEND TPU`.

`tpu_contact.py` runs this in a process, because it may hang.
"""

import json
import sys


def main(backend: str, address: str) -> int:
    """Print {"cores": number}; raise what the runtime raises."""
    if backend == "tensorflow":
        import tensorflow as tf

        from slipway.components.trainer.devices.with_tensorflow import connect

        connect(tf, address)
        cores = len(tf.config.list_logical_devices("TPU"))
    else:
        import jax

        cores = jax.local_device_count("tpu")
    print(json.dumps({"cores": cores}), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:3]))
