"""Beam's options: whether it knows the ones in a workload, and its default runner. Imports Beam."""

from apache_beam.options.pipeline_options import PipelineOptions, StandardOptions
from apache_beam.runners import runner

from slipway.components.beam_runner import IN_PROCESS
from slipway.components.nearest import nearest
from slipway.pipeline.config import BeamConfig
from slipway.pipeline.errors import ConfigError

# A job server has its own options, which are unknown until it is asked.
_WITH_JOB_SERVER = ("flink", "spark")


def check_options(beam: BeamConfig) -> None:
    """Rejects an option that nothing would read: Beam ignores unknown options.

    Raises:
        ConfigError: with the nearest name.
    """
    known = PipelineOptions([]).get_all_options().keys()
    for name in beam.options:
        if name not in known and beam.runner not in _WITH_JOB_SERVER:
            near = nearest(name, known, similarity=0)
            raise ConfigError(f"beam.options.{name}: Beam has no such option; nearest: {near}")


def run_in_process_by_default() -> None:
    """Makes the in-process runner the default of Beam's direct runner, here and in forks.

    Beam's own tries to download Prism, which listens on all interfaces. An option would do the same, and TFX
    has all options read as the flags that a user's module declares, which may know no such runner.
    """
    StandardOptions.DEFAULT_RUNNER = IN_PROCESS
    for name in ("directrunner", "switchingdirectrunner"):
        runner._RUNNER_MAP[name] = runner._RUNNER_MAP[IN_PROCESS.lower()]
