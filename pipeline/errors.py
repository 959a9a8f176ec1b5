"""The errors of the pipeline and their exit codes.

SlipwayError (slipway.components.errors)
└── PipelineError           exit_code is the command's exit code
    ├── UnansweredError     1: a service may have done what it was asked for
    └── UsageError          2: wrong arguments
        ├── InUseError      2: another process is at work there; 1 in a step, which is tried again
        └── ConfigError     2: wrong workload file; names file, line, key, value, rule
            └── DataSourceError

A failed node and a gate that rejects are outcomes of a run, not errors (slipway.pipeline.engine.run_end).
"""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import ClassVar

from slipway.components.errors import SlipwayError
from slipway.pipeline.exit_codes import FAILED, WRONG_USAGE


class PipelineError(SlipwayError):
    """An error that ends the command with `exit_code`."""

    exit_code: ClassVar[int] = FAILED


class UsageError(PipelineError):
    """The command line asks for something that does not exist or does not fit together."""

    exit_code = WRONG_USAGE


class InUseError(UsageError):
    """Another process has what the command needs, for now: a step that meets it may be tried again."""


class UnansweredError(PipelineError):
    """A service was asked for something, and it is not known whether it has done it."""


class ConfigError(UsageError):
    """The workload file, or a value set over it, is wrong."""


class DataSourceError(ConfigError):
    """The data that the workload names is not there, or not as it should be; it may be later."""


@contextmanager
def raised_as(kind: type[SlipwayError], *errors: type[SlipwayError]) -> Iterator[None]:
    """Re-raise errors of the block as another kind, e.g. a component's as a usage error (exit code 2).

    Args:
        kind: the class to raise; takes over message and hint.
        errors: the classes to convert; others pass through.
    """
    try:
        yield
    except errors as error:
        raise kind(error.message, hint=error.hint) from error


def of_the_machine(error: OSError | MemoryError | RuntimeError) -> PipelineError:
    """Return the error to report for a failure of the machine, e.g. a full disk.

    Raises:
        RuntimeError: the error, if it is another than that no thread can be started.
    """
    if isinstance(error, MemoryError):
        return PipelineError("This machine ran out of memory.")
    if isinstance(error, RuntimeError):
        if "can't start new thread" not in str(error):
            raise error
        return PipelineError(
            "The system starts no more threads.",
            hint="raise the limit of processes: ulimit -u, or that of the container or the service",
        )
    where = f"{error.filename}: " if error.filename else ""
    hint = ""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        hint = "make room on the disk: the command gc removes what no kept run needs"
    elif error.errno == errno.EIO:
        hint = "check that disk: dmesg may say what failed"
    elif error.errno == errno.EACCES:
        hint = f"let user {os.geteuid()} use it (chmod, chown), or run as a user who may"
    return PipelineError(f"{where}{error.strerror or error}.", hint=hint)
