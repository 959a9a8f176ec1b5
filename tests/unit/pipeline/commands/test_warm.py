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


def test_number_of_ended_processes_is_told(monkeypatch):
    ended = iter([2, 0])
    monkeypatch.setattr(standby, "end", lambda: next(ended))
    assert (warm.end(), warm.end()) == ("Ended: 2", "Ended: none")
