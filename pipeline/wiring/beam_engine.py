"""Turns the workload's `beam` into options of every Beam node, and checks that the engine is available.

A local engine's program is installed by `make flink`, `make spark` or `make prism` into `.engines/`. Does
not import Beam.
"""

import shutil
import socket
from collections.abc import Mapping, Sequence
from pathlib import Path

from slipway.components.beam_args import read_options
from slipway.components.nearest import nearest
from slipway.components.project import PROJECT_ROOT
from slipway.pipeline.config import BeamConfig, CloudConfig
from slipway.pipeline.config.beam import RUNNERS, secret_option
from slipway.pipeline.errors import ConfigError
from slipway.pipeline.terminal.invocation import image_command
from slipway.pipeline.wiring.beam_ports import IN_PROCESS, check_running_mode, without_ports

ENGINES = PROJECT_ROOT / ".engines"
"""The folder into which `make` puts the engines' programs."""
FLINK_VERSION = "1.19"
"""The Flink version of the job server that `make flink` builds; see engines/flink/pom.xml."""
NO_PACKAGE = "--sdk_container_image=none"
"""Keeps TFX from packaging itself (1.2 s of CPU per node) for workers, which already have it."""

_PROGRAMS = {
    "PrismRunner": ("prism_location", ENGINES / "prism", "make prism (needs Go)"),
    "FlinkRunner": ("flink_job_server_jar", ENGINES / "flink" / "job-server.jar", "make flink (needs Maven)"),
    "SparkRunner": ("spark_job_server_jar", ENGINES / "spark" / "job-server.jar", "make spark (needs Maven)"),
}  # fmt: skip
# StandardOptions.ALL_KNOWN_RUNNERS of Beam 2.77, copied because importing Beam is slow.
_KNOWN_TO_BEAM = (
    "DirectRunner", "BundleBasedDirectRunner", "SwitchingDirectRunner", "FnApiRunner", "PrismRunner",
    "FlinkRunner", "SparkRunner", "PortableRunner", "DataflowRunner", "InteractiveRunner",
    "KafkaStreamsRunner", "TestDirectRunner", "TestDataflowRunner",
)  # fmt: skip
# Beam's switches that only --no_NAME turns off, of Beam 2.77; any other is off unless it is given.
_TURNED_OFF = frozenset(
    {"direct_runner_use_stacked_bundle", "pipeline_type_check", "save_main_session", "use_public_ips"}
)
_IMAGE = "sdk_container_image"
# Options that a Dataflow job requires.
_DATAFLOW_NEEDS = {
    "project": "the id of the project to bill",
    "region": "the workers' region, e.g. europe-west4",
    "temp_location": "gs://BUCKET/PATH for data passed between steps",
}
# The options of a Dataflow job that are keys of `cloud.vertex`, too: its workers do part of a task's work.
_DATAFLOW_TAKES = {
    "project": "project",
    "region": "region",
    "service_account": "service_account_email",
    "encryption_key": "dataflow_kms_key",
}
_REACH_LIMIT_S = 5.0
_LOOPBACK = ("localhost", "127.0.0.1", "[::1]")


def beam_args(beam: BeamConfig, cloud: CloudConfig) -> list[str]:
    """Return the options of every Beam component, as on a command line.

    Args:
        cloud: where the pipeline runs if not on this machine; its image is also the workers' image.
    """
    options = {**_defaults(beam, cloud), **beam.options}
    return [f"--runner={RUNNERS[beam.runner]}", *(arg for item in options.items() for arg in _args(*item))]


def completed_args(own: Sequence[str], more: Sequence[str]) -> list[str]:
    """Return the Beam options to add for a user's own pipeline.

    No runner is added, because the pipeline's module may read the options itself, as TFX's penguin example
    does. `beam_options.run_in_process_by_default` makes the direct runner the in-process one.

    Raises:
        ConfigError: an engine would listen on the network; see `beam_ports.without_ports`.
    """
    wanted = [arg for arg in more if arg not in own]
    args = [*own, *wanted]
    is_here = IN_PROCESS in without_ports(args)
    return [*wanted, NO_PACKAGE] if args and is_here and NO_PACKAGE not in args else wanted


def check_engine(args: Sequence[str]) -> None:
    """Reject a local run whose Beam runner could not run its steps.

    Args:
        args: the options of every Beam component; the last value of an option counts, as in Beam.

    Raises:
        ConfigError: Java, a program or a server is missing, the engine cannot reach this machine's files,
            or it opens ports, see `beam_ports.without_ports`; or an option is a secret.
    """
    options = read_options(args)
    for name in options:
        if problem := secret_option(name):
            raise ConfigError(f"--{name} {problem}")
    runner = options.get("runner", "")
    _check_runner(runner)
    if runner == "DataflowRunner":
        raise ConfigError(
            "beam.runner: dataflow cannot be used in a run on this machine: its workers do not see this "
            "machine's disk, where such a run keeps the artifacts",
            hint="set it in a profile for cloud runs, and direct here: --set beam.runner=direct",
        )
    without_ports(args)
    if "job_endpoint" in options and runner != RUNNERS["direct"]:
        _reach("job_endpoint", options["job_endpoint"])
        if options.get("environment_type", "").upper() == "EXTERNAL":
            _check_worker_pool(options.get("environment_config", ""))
        return
    if runner == "FlinkRunner" and options.get("flink_master", "[")[:1] != "[":
        _reach("flink_master", options["flink_master"])
    if runner in ("FlinkRunner", "SparkRunner"):
        java = options.get("job_server_java_launcher", "java")
        if shutil.which(java) is None:
            raise ConfigError(
                f"beam.runner: {_name(runner)} needs Java, and there is no {java} here",
                hint="apt install default-jre-headless (Java 11 or 17), or set beam.runner=direct",
            )
    if runner in _PROGRAMS:
        option, usual, remedy = _PROGRAMS[runner]
        path = options.get(option, str(usual))
        if "://" not in path and not Path(path).is_file():
            raise ConfigError(
                f"beam.runner: {_name(runner)} needs {path}, which does not exist",
                hint=f"{remedy}; or name your own: --set beam.options.{option}=FILE",
            )


def _check_runner(runner: str) -> None:
    """Reject a runner that Beam does not know; Beam takes names in any case, and without `Runner`."""
    known = {name.lower() for name in _KNOWN_TO_BEAM}
    if not runner or "." in runner or {runner.lower(), f"{runner.lower()}runner"} & known:
        return
    close = nearest(runner, _KNOWN_TO_BEAM)
    raise ConfigError(
        f"--runner={runner}: Beam has no such runner" + (f"; nearest: {close}" if close else ""),
        hint=f"one of {', '.join(_KNOWN_TO_BEAM)}, or a class as package.module.Class",
    )


def check_cloud_engine(beam: BeamConfig, cloud: CloudConfig) -> None:
    """Reject a cloud job whose Beam runner could not run its steps.

    Raises:
        ConfigError: an option is missing, refers to something on this machine only, or opens ports.
    """
    options = {**_defaults(beam, cloud), **beam.options}
    check_running_mode(str(options.get("direct_running_mode", "in_memory")))
    if beam.runner == "dataflow":
        for option, what in _DATAFLOW_NEEDS.items():
            if not options.get(option):
                raise _missing(option, f"Dataflow needs it: {what}")
        for option in ("temp_location", "staging_location"):
            if option in options and not str(options[option]).startswith("gs://"):
                raise ConfigError(f"beam.options.{option}: {options[option]} must be gs://BUCKET/PATH")
        if options[_IMAGE] == "none":
            how = image_command(target="beam-worker")
            raise _missing(_IMAGE, f"Dataflow's workers need our code: `{how}`")
    elif beam.runner == "prism" and "prism_location" not in beam.options:
        raise _missing(
            "prism_location", "the image has no Prism: name its path in an image that you built with it"
        )
    elif beam.runner in ("flink", "spark"):
        if "job_endpoint" not in options:
            raise _missing(
                "job_endpoint",
                f"HOST:PORT of a Beam job server of your {beam.runner} cluster, which tasks reach",
            )
        endpoint = str(options["job_endpoint"])
        if endpoint.rpartition("://")[2].rpartition(":")[0] in _LOOPBACK:
            raise ConfigError(
                f"beam.options.job_endpoint: {endpoint} is on the machine that asks, and each task of a "
                "cloud run is on one of its own",
                hint="name the job server by an address that the tasks reach, in a profile for cloud runs",
            )
        environment = str(options.get("environment_type", "LOOPBACK")).upper()
        if environment == "EXTERNAL" and not options.get("environment_config"):
            raise _no_worker_pool()
        if environment == "LOOPBACK":
            raise _missing(
                "environment_type",
                "EXTERNAL (worker pools beside the cluster's workers) or DOCKER; LOOPBACK is for one machine",
            )


def engine_programs() -> Mapping[str, Path]:
    """Return the paths of the engines' programs, by the runner's name in a workload file."""
    return {_name(runner): path for runner, (_, path, _) in _PROGRAMS.items()}


def engine_remedy(name: str) -> str:
    """Return the command that installs an engine's program."""
    return _PROGRAMS[RUNNERS[name]][2]


def _defaults(beam: BeamConfig, cloud: CloudConfig) -> dict[str, object]:
    found: dict[str, object] = {}
    runner = RUNNERS[beam.runner]
    if "job_endpoint" not in beam.options and runner in _PROGRAMS:
        option, path, _ = _PROGRAMS[runner]
        found[option] = str(path)
        if beam.runner == "flink":
            found["flink_version"] = FLINK_VERSION
    in_image = beam.runner == "dataflow" or str(beam.options.get("environment_type")).upper() == "DOCKER"
    found[_IMAGE] = cloud.image if in_image and cloud.image else "none"
    if beam.runner == "dataflow":
        found |= {
            option: value
            for key, option in _DATAFLOW_TAKES.items()
            if (value := getattr(cloud.vertex, key, None))
        }
    return found


def _args(name: str, value: object) -> list[str]:
    if isinstance(value, bool):
        off = [f"--no_{name}"] if name in _TURNED_OFF else []
        return [f"--{name}"] if value else off
    if isinstance(value, (list, tuple)):
        return [f"--{name}={item}" for item in value]
    return [f"--{name}={value}"]


def _check_worker_pool(address: str) -> None:
    """Reject a worker pool that does not answer. One at localhost is beside each of the engine's workers."""
    if not address:
        raise _no_worker_pool()
    if address.rpartition(":")[0] not in _LOOPBACK:
        command = f"python -m slipway.components.beam_worker_pool {address}"
        _reach("environment_config", address, hint=f"start the worker pool on that host: {command}")


def _reach(option: str, address: str, *, hint: str = "start it, or set beam.runner=direct") -> None:
    host, _, port = address.rpartition("://")[2].rstrip("/").rpartition(":")
    try:
        with socket.create_connection((host, int(port)), timeout=_REACH_LIMIT_S):
            return
    except ValueError:
        raise ConfigError(f"beam.options.{option}: {address} must be HOST:PORT") from None
    except OSError as error:
        raise ConfigError(
            f"beam.options.{option}: nothing answers at {address} ({error.strerror or error})",
            hint=hint,
        ) from error


def _no_worker_pool() -> ConfigError:
    return _missing("environment_config", "HOST:PORT of a worker pool, such as localhost:50000")


def _missing(option: str, why: str) -> ConfigError:
    return ConfigError(
        f"beam.options.{option} is not set; {why}",
        hint=f"--set beam.options.{option}=..., or set it in a profile of the workload file",
    )


def _name(runner: str) -> str:
    return next(name for name, each in RUNNERS.items() if each == runner)
