"""What `serve` says of itself, and what it refuses before it loads a model."""

import io
import sys

import pytest
from small_workload import small_workload

from slipway.pipeline.commands.serve import _tell, serve
from slipway.pipeline.errors import UsageError


def test_nobody_who_reads_what_is_said_ends_nothing(monkeypatch):
    class Closed(io.StringIO):
        def flush(self):
            raise BrokenPipeError

    monkeypatch.setattr(sys, "stderr", Closed())
    _tell("Serving version 1.")
    assert sys.stderr.getvalue() == "Serving version 1.\n"


@pytest.mark.parametrize(
    ("host", "told"),
    [("0.0.0.0", "can be reached from other machines"), ("192.0.2.1", "cannot be bound")],  # noqa: S104
)
def test_address_that_it_cannot_serve_at_is_wrong_usage(tmp_path, monkeypatch, host, told):
    version = tmp_path / "output/serving/toy/1"
    version.mkdir(parents=True)
    (version / "saved_model.pb").write_bytes(b"no model")
    if told == "cannot be bound":
        monkeypatch.setenv("SLIPWAY_SERVE_TOKEN", "a-token")
    with pytest.raises(UsageError, match=told) as refused:
        serve(small_workload(), tmp_path / "output", host=host, port=0)
    assert refused.value.exit_code == 2
    assert refused.value.hint
