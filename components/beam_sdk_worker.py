"""Runs one of Beam's SDK workers in a process of its own, which `beam_worker_pool` forks.

The process that it is forked from has imported this module, and with it all that takes long to import. It is
set up as the processes of a run are: for Keras 3, whatever tensorflow_transform would choose.
"""

from slipway.components.large_imports import large_imports
from slipway.components.saved_model.quiet_tensorflow import import_tensorflow

with large_imports(keep=True):  # no fork needs to go through it
    import numpy as np
    from apache_beam.runners.worker.sdk_worker import SdkHarness

    import_tensorflow()


def work(control: str, worker_id: str) -> None:
    """Do what the engine's worker asks for, until it closes the connection.

    Args:
        control: HOST:PORT of the engine's worker.
        worker_id: how it calls this one.
    """
    np.random.seed()  # forks would all draw the same numbers
    SdkHarness(control, worker_id=worker_id, state_cache_size=0, data_buffer_time_limit_ms=-1).run()
