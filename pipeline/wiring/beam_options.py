"""Checks a workload's Beam options, and sets Beam's default runner. Imports Beam."""

from argparse import ArgumentParser
from collections.abc import Sequence

from apache_beam.options.pipeline_options import PipelineOptions, StandardOptions
from apache_beam.runners import runner

from slipway.components.in_process_runner import IN_PROCESS
from slipway.components.nearest import nearest
from slipway.pipeline.config import BeamConfig
from slipway.pipeline.errors import ConfigError

# A job server has its own options, which are unknown until it is queried.
_WITH_JOB_SERVER = ("flink", "spark")


def check_options(beam: BeamConfig) -> None:
    """Reject an option that nothing would read: Beam ignores unknown options.

    Raises:
        ConfigError: Beam has no such option; names the nearest.
    """
    known = PipelineOptions([]).get_all_options().keys()
    for name in beam.options:
        if name not in known and beam.runner not in _WITH_JOB_SERVER:
            near = nearest(name, known, similarity=0)
            raise ConfigError(f"beam.options.{name}: Beam has no such option; nearest: {near}")


def unknown_options(args: Sequence[str]) -> list[str]:
    """Return those of Beam's arguments that Beam itself has no option for, such as one of the user's own.

    How a pipeline is run does not change its result; what the code asks for by an option of its own may.
    """
    parser = ArgumentParser(add_help=False)
    for each in PipelineOptions.__subclasses__() if args else ():
        if each.__module__.startswith("apache_beam."):
            each._add_argparse_args(parser)
    found, is_own = [], False
    for arg in args:
        if arg.startswith("-"):  # otherwise it is the value of the one before
            is_own = arg.partition("=")[0] not in parser._option_string_actions
        found += [arg] if is_own else []
    return found


def run_in_process_by_default() -> None:
    """Make the in-process runner the default of Beam's direct runner, here and in forks.

    Beam's own default tries to download Prism, which listens on all interfaces. A `--runner` option would
    have the same effect, but TFX parses all options as the flags that a user's module declares, which may
    not know that runner.
    """
    StandardOptions.DEFAULT_RUNNER = IN_PROCESS
    for name in ("directrunner", "switchingdirectrunner"):
        runner._RUNNER_MAP[name] = runner._RUNNER_MAP[IN_PROCESS.lower()]
