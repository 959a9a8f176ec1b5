"""Keeps Beam's runners from listening on the network without permission.

Beam does not authenticate clients: anyone who reaches a port of its engines can run code, or read files, as
the user who started it. So an engine that listens beyond loopback is used only if the machine's owner
allows it, and the listening modes of the direct runner, which no run here needs, are rejected. What Beam and
TFX open themselves is kept to loopback by `engine/processes/grpc_on_loopback.py`.
"""

import os
from collections.abc import Sequence

from slipway.components import in_process_runner
from slipway.components.beam_args import read_options
from slipway.pipeline.errors import ConfigError

OPEN_PORTS_VARIABLE = "SLIPWAY_OPEN_PORTS"
"""The variable that a machine's owner sets to 1 to let Beam's runners listen on all network interfaces."""
IN_PROCESS = f"--runner={in_process_runner.IN_PROCESS}"
"""Selects Beam's runner inside each node's process, which opens no port."""

# Beam's names of its direct runner, which first tries to download and start Prism.
_DIRECT = frozenset({"", "direct", "switchingdirect"})
# Beam's other runners that open no port on this machine.
_WITHOUT_PORTS = frozenset({"fnapi", "bundlebaseddirect", "dataflow", "testdataflow"})
_MODE_OPTION = "direct_running_mode"
_MODE_WITHOUT_PORTS = "in_memory"


def without_ports(args: Sequence[str]) -> list[str]:
    """Return the options of a Beam component with which it opens no ports that are not allowed.

    Args:
        args: as on a command line; the last value of an option counts, as in Beam.

    Returns:
        The options; the direct runner is replaced by the one inside the node's process.

    Raises:
        ConfigError: the engine, or the direct runner's mode, opens ports.
    """
    options = read_options(args)
    check_running_mode(options.get(_MODE_OPTION, _MODE_WITHOUT_PORTS))
    runner = options.get("runner", "")
    name = runner.rpartition(".")[2].lower().removesuffix("runner")
    if name in _DIRECT:
        return [*args, IN_PROCESS]
    # A custom runner class is the user's responsibility; a running job server opens no port here.
    is_beams = "." not in runner or runner.startswith("apache_beam.")
    if is_beams and name not in _WITHOUT_PORTS and "job_endpoint" not in options:
        _check_open_ports(runner)
    return list(args)


def check_running_mode(mode: str) -> None:
    """Reject a mode of the direct runner whose workers are reached through ports.

    Raises:
        ConfigError: names the mode that opens none.
    """
    if mode != _MODE_WITHOUT_PORTS:
        raise ConfigError(
            f"{_MODE_OPTION}: {mode} opens ports that serve this user's files to anyone; "
            f"it must be {_MODE_WITHOUT_PORTS}",
            hint="leave it out; where a pipeline's own code sets it: "
            f"--beam=--{_MODE_OPTION}={_MODE_WITHOUT_PORTS}",
        )


def _check_open_ports(runner: str) -> None:
    if os.environ.get(OPEN_PORTS_VARIABLE) != "1":
        raise ConfigError(
            f"{runner} listens on all network interfaces of this machine and runs whatever it is sent",
            hint="set beam.runner=direct, which opens no port; on a machine that nobody else can reach: "
            f"export {OPEN_PORTS_VARIABLE}=1",
        )
