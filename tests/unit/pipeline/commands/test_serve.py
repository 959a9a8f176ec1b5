"""What `serve` says of itself."""

import io
import sys

from slipway.pipeline.commands.serve import _tell


def test_nobody_who_reads_what_is_said_ends_nothing(monkeypatch):
    class Closed(io.StringIO):
        def flush(self):
            raise BrokenPipeError

    monkeypatch.setattr(sys, "stderr", Closed())
    _tell("Serving version 1.")
    assert sys.stderr.getvalue() == "Serving version 1.\n"
