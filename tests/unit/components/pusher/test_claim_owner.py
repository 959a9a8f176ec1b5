"""Which process holds a claim, and whether it has ended."""

import os
from pathlib import Path

from slipway.components.pusher.claim_owner import is_gone, this_process


def test_process_that_runs_holds_its_claim_and_one_that_has_ended_does_not():
    mark = this_process()
    assert mark == this_process()
    assert not is_gone(mark)
    assert is_gone(mark.rpartition(":")[0] + ":0"), "another process of that number"
    assert not is_gone("another-machine:1:1")
    assert not is_gone("")


def test_nobody_has_ended_where_the_kernel_does_not_tell_which_machine_this_is(monkeypatch):
    def missing(*_, **__):
        raise FileNotFoundError

    monkeypatch.setattr(Path, "readlink", missing)
    mark = this_process()
    assert f":{os.getpid()}:" in mark
    assert not is_gone(mark)
