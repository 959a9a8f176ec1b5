"""Makes a command's standard streams robust: closed ones, missing characters, and failed writes."""

import io
import os
import sys
from typing import Any, TextIO, cast

from slipway.pipeline.errors import PipelineError

_DESCRIPTORS = (0, 1, 2)


class ResultError(PipelineError):
    """The command's result cannot be written to standard output."""


def prepare_streams() -> None:
    """Prepare the three standard streams of this process for a command.

    A closed stream (`2>&-`) is replaced by the null device, so that no file opened later takes its descriptor
    and receives what libraries write there. Characters that an encoding lacks are written as escapes.
    Messages to stderr that cannot be written are dropped. A result that cannot be written to stdout raises
    `ResultError`, unless its reader, such as `head`, has closed the pipe.
    """
    for descriptor in _DESCRIPTORS:
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free descriptor
    sys.stdin = sys.stdin or io.StringIO()
    sys.stdout = _wrapped(sys.stdout, _Results)
    sys.stderr = _wrapped(sys.stderr, _Messages)


def _wrapped(stream: TextIO | None, kind: "type[_Stream]") -> TextIO:
    if isinstance(stream, kind):
        return cast("TextIO", stream)
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(errors="backslashreplace")
    return cast("TextIO", kind(stream or _Nowhere()))


class _Nowhere(io.TextIOBase):
    def write(self, text: str) -> int:
        return len(text)


class _Stream:
    """A stream that discards its output after the first failed write."""

    def __init__(self, stream: TextIO | _Nowhere) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """Write; `_failed` handles an error."""
        try:
            return self._stream.write(text)
        except OSError as error:
            self._failed(error)
            return len(text)

    def flush(self) -> None:
        """Flush; `_failed` handles an error."""
        try:
            self._stream.flush()
        except OSError as error:
            self._failed(error)

    def _failed(self, error: OSError) -> None:  # noqa: ARG002
        self._stream = _Nowhere()


class _Messages(_Stream):
    """Standard error, whose failures are ignored."""


class _Results(_Stream):
    """Standard output, whose failures raise `ResultError`."""

    def _failed(self, error: OSError) -> None:
        super()._failed(error)
        if not isinstance(error, BrokenPipeError):
            raise ResultError(
                f"The result cannot be written to standard output: {error.strerror}.",
                hint="the command's other work is done; free space there for its output",
            ) from error
