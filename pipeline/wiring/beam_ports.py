"""Keeps Beam's engines from listening on the network unasked. Pure.

Beam authenticates nobody: whoever reaches a port of its engines can run code, or read files, as the user who
started it. So an engine that listens beyond loopback is used only if the machine is declared fit for it, and
the listening modes of the direct runner, which no run here needs, are rejected.
"""

import os
from collections.abc import Sequence

from slipway.components import beam_runner
from slipway.pipeline.errors import ConfigError

OPEN_PORTS_VARIABLE = "SLIPWAY_OPEN_PORTS"
"""Set to 1 by the owner of a machine on which Beam's engines may listen on all network interfaces."""
IN_PROCESS = f"--runner={beam_runner.IN_PROCESS}"
"""Beam's runner inside each node's process. It opens no port."""

# Beam's default first tries to download Prism, and to start it.
_DIRECT = frozenset({"", "direct", "switchingdirect"})
# Other runners of Beam that open no port on this machine.
_WITHOUT_PORTS = frozenset({"fnapi", "bundlebaseddirect", "dataflow", "testdataflow"})
_MODE_OPTION = "direct_running_mode"
_MODE_WITHOUT_PORTS = "in_memory"


def without_ports(args: Sequence[str]) -> list[str]:
    """The options of a Beam component with which this machine opens no port unasked.

    Args:
        args: as on a command line; of an option that is named twice the later counts, as in Beam.

    Returns:
        The options; the direct runner is named as the one inside the node's process.

    Raises:
        ConfigError: the engine, or the direct runner's mode, opens ports.
    """
    options = read_options(args)
    check_running_mode(options.get(_MODE_OPTION, _MODE_WITHOUT_PORTS))
    runner = options.get("runner", "")
    name = runner.rpartition(".")[2].lower().removesuffix("runner")
    if name in _DIRECT:
        return [*args, IN_PROCESS]
    # A user's own class is the user's responsibility; a running job server listens elsewhere.
    is_beams = "." not in runner or runner.startswith("apache_beam.")
    if is_beams and name not in _WITHOUT_PORTS and "job_endpoint" not in options:
        _check_open_ports(runner)
    return list(args)


def check_running_mode(mode: str) -> None:
    """Rejects a mode of the direct runner whose workers are reached through ports.

    Raises:
        ConfigError: says which mode opens none.
    """
    if mode != _MODE_WITHOUT_PORTS:
        raise ConfigError(
            f"{_MODE_OPTION}: {mode} opens ports that serve this user's files to anyone; "
            f"it must be {_MODE_WITHOUT_PORTS}",
            hint="leave it out; where a pipeline's own code sets it: "
            f"--beam=--{_MODE_OPTION}={_MODE_WITHOUT_PORTS}",
        )


def read_options(args: Sequence[str]) -> dict[str, str]:
    """The values of options by name, as `--NAME=VALUE` or `--NAME VALUE`; empty for a switch."""
    found: dict[str, str] = {}
    name = ""
    for arg in args:
        if arg.startswith("--"):
            name, _, value = arg.removeprefix("--").partition("=")
            found[name] = value
        elif name and not found[name]:
            found[name] = arg
    return found


def _check_open_ports(runner: str) -> None:
    if os.environ.get(OPEN_PORTS_VARIABLE) != "1":
        raise ConfigError(
            f"{runner} listens on all network interfaces of this machine and runs whatever it is sent",
            hint="set beam.runner=direct, which opens no port; on a machine that nobody else can reach: "
            f"export {OPEN_PORTS_VARIABLE}=1",
        )
