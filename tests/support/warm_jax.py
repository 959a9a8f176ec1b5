"""Trainings on JAX, forked from a process of .venv-jax that has imported Keras, JAX and TensorFlow.

As `python -m warm_jax FD PID` it is that process. What it forks opens its devices, and reads its variables,
as one that is started afresh: nothing of JAX has run before. That one starts is seen in test_weights.py.
"""

import atexit
import gc
import importlib
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent.parent
TRAIN = "slipway.components.trainer.train"
# What a training imports, or its imports: each 1 to 5 s of CPU in a process that is started afresh.
_MODULES = ("keras", "tensorflow", "h5py", TRAIN, "slipway.components.trainer.loop.fit")


@contextmanager
def warm_jax(python: str) -> Iterator[socket.socket]:
    """The line to such a process, for `python_process.ForkedProcess`; the process ends with the block.

    Args:
        python: the interpreter of .venv-jax.
    """
    line, theirs = socket.socketpair()
    path = os.pathsep.join(map(str, (PROJECT, PROJECT / "tests" / "support")))
    variables = {
        "PYTHONPATH": path,
        "KERAS_BACKEND": "jax",
        "TF_USE_LEGACY_KERAS": "0",
        "TF_CPP_MIN_LOG_LEVEL": "3",
    }
    with theirs:
        process = subprocess.Popen(
            [python, "-P", "-W", "ignore", "-m", "warm_jax", str(theirs.fileno()), str(os.getpid())],
            env=os.environ | variables,
            pass_fds=[theirs.fileno()],
            start_new_session=True,
        )
    with line, process:
        try:
            yield line
        finally:
            process.terminate()


def main(arguments: Sequence[str]) -> None:
    """Trains, and ends as `python -m` does: one of several hosts waits for the others."""
    from slipway.components.trainer.devices.with_jax import leave
    from slipway.components.trainer.train import main as train

    # A fork has nothing of what its server registered, which has imported JAX.
    atexit.register(sys.modules["jax"]._src.api.clean_up)
    leave(train(list(arguments)))


def serve(line: int, parent: int) -> None:
    """Imports, and forks what is asked for, until the line is closed."""
    from slipway.components.large_imports import large_imports
    from slipway.pipeline.engine.processes.os_processes import die_with_parent
    from slipway.pipeline.engine.processes.warm import WarmServer

    die_with_parent(signal.SIGTERM, parent=parent)
    with large_imports():
        for module in _MODULES:
            importlib.import_module(module)
        gc.freeze()
    server = WarmServer()
    server.add(socket.socket(fileno=line))
    while server.is_used:
        server.serve()


if __name__ == "__main__":
    serve(int(sys.argv[1]), int(sys.argv[2]))
