"""Checks whether a TPU answers, without blocking on one that does not.

Connecting to a dead address blocks a process for minutes, and no except clause helps. So an address is probed
first, and the first connection is made in a process that can be killed.
"""

import json
import socket
import subprocess
import sys
from contextlib import closing

from slipway.components.errors import ComponentError

PROBE_LIMIT_S = 3.0
CONTACT_LIMIT_S = 120.0
"""Seconds to wait for a first contact; initialising a pod takes up to a minute."""
TPU_PORT = 8470
"""The grpc port of a TPU node, if its address names none."""


def require_reachable(address: str, *, limit_s: float = PROBE_LIMIT_S) -> None:
    """Open and close a connection to each host of a grpc address; ignore names and "local".

    Args:
        address: as in `Evidence.address`; several hosts are separated by commas.
        limit_s: seconds for each host, > 0.

    Raises:
        ComponentError: a host cannot be reached in time.
    """
    if not address.startswith("grpc://"):
        return
    for part in address.removeprefix("grpc://").split(","):
        host, _, port = part.removeprefix("grpc://").rpartition(":")
        target = (host, int(port)) if host and port.isdigit() else (part.strip("/"), TPU_PORT)
        try:
            with closing(socket.create_connection(target, timeout=limit_s)):
                pass
        except OSError as error:
            raise ComponentError(
                f"no TPU answers at {target[0]}:{target[1]}: {error.strerror or error} "
                f"(tried for {limit_s:g} s at most)",
                hint="check that the TPU runs and that its address is right: train.tpu_address, or the "
                "variables of the environment",
            ) from error


def count_tpu_cores(backend: str, address: str, *, limit_s: float = CONTACT_LIMIT_S) -> int:
    """Connect to a TPU in a separate process, which releases it again; return its number of cores.

    Args:
        backend: "tensorflow" or "jax".
        address: as in `Evidence.address`.
        limit_s: seconds that the process may take, > 0.

    Raises:
        ComponentError: the TPU does not answer in time, or the process fails.
    """
    require_reachable(address)
    module = "slipway.components.trainer.devices.first_contact"
    command = [sys.executable, "-P", "-m", module, backend, address]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=limit_s, check=False)
    except subprocess.TimeoutExpired as error:
        raise ComponentError(
            f"the TPU {address!r} did not answer within {limit_s:g} s",
            hint="another process may hold it; end that one, or restart the TPU",
        ) from error
    answer = done.stdout.strip().rpartition("\n")[2]
    if done.returncode == 0 and answer.startswith("{"):
        return int(json.loads(answer)["cores"])
    raise ComponentError(
        f"the TPU {address!r} cannot be used by {backend} of {sys.executable}: {_last_words(done.stderr)}",
        hint="the interpreter needs a TPU build: tensorflow-tpu up to v5e, jax[tpu] for any; "
        "see docs/training.md, and name it in train.interpreter",
    )


def _last_words(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:300] if lines else "it said nothing"
