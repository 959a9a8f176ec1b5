"""Whether Beam knows the options that a workload names: it ignores those that it does not. Imports Beam."""

import difflib

from apache_beam.options.pipeline_options import PipelineOptions

from pipeline.config import BeamConfig
from pipeline.errors import ConfigError

# A job server has options of its own, which are not known before it is asked.
_WITH_JOB_SERVER = ("flink", "spark")


def check_options(beam: BeamConfig) -> None:
    """Refuses an option that nothing would read.

    Raises:
        ConfigError: with the nearest name.
    """
    known = PipelineOptions([]).get_all_options().keys()
    for name in beam.options:
        if name not in known and beam.runner not in _WITH_JOB_SERVER:
            nearest = difflib.get_close_matches(name, known, n=1, cutoff=0.0)[0]
            raise ConfigError(f"beam.options.{name}: Beam has no such option; nearest: {nearest}")
