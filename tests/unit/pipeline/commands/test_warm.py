"""The command `warm` says which process it started, and how to end it."""

from slipway.pipeline.commands import warm
from slipway.pipeline.engine.processes import standby


def test_process_its_time_and_its_end_are_told(monkeypatch):
    asked = []
    monkeypatch.setattr(standby, "begin", lambda idle_s: asked.append(idle_s) or 4711)
    told = warm.begin(0.5)
    assert asked == [30]
    assert told.startswith("Process 4711 imports TFX for the runs that begin in this folder and terminal;")
    assert "none has used it for 0.5 minutes" in told
    assert told.endswith("local_runner.py warm --end")


def test_processes_that_were_ended_and_those_in_use_are_told(monkeypatch):
    found = iter([([1, 2], []), ([], []), ([1], [4711])])
    monkeypatch.setattr(standby, "end", lambda: next(found))
    assert (warm.end(), warm.end()) == ("Ended: 2", "Ended: none")
    assert warm.end() == "Ended: 1; used by a run, and left alone: 4711"
