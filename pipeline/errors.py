"""The errors of the pipeline and their exit codes.

SlipwayError (components.errors)
└── PipelineError           exit_code says how the command ends
    ├── UsageError          2: wrong arguments
    │   └── ConfigError     2: wrong workload file; names file, line, key, value, rule
    ├── NodeFailed          1: a node failed, was killed or timed out
    └── GateStopped         3: the data gate or the model gate said no
"""

from typing import ClassVar

from components.errors import SlipwayError


class PipelineError(SlipwayError):
    """An error that ends the command with `exit_code`."""

    exit_code: ClassVar[int] = 1


class UsageError(PipelineError):
    """The command line asks for something that does not exist or does not fit together."""

    exit_code = 2


class ConfigError(UsageError):
    """The workload file, or a value set over it, is wrong."""


class NodeFailed(PipelineError):
    """A node raised, was killed or exceeded its time limit."""

    exit_code = 1


class GateStopped(PipelineError):
    """A gate refused the data or the model."""

    exit_code = 3
