import os
import time

import pytest

from slipway.pipeline.terminal import sign_of_life as module
from slipway.pipeline.terminal.sign_of_life import sign_of_life


def test_what_is_done_is_reported_before_it_is_done(capfd):
    with sign_of_life("wine: predicts a\x1b[2Jb"):
        assert capfd.readouterr().err == "wine: predicts a\\x1b[2Jb\n"
    assert capfd.readouterr().err == ""


def test_it_goes_on_while_the_work_keeps_stderr_to_itself(capfd, monkeypatch):
    monkeypatch.setattr(module, "LOG_SILENCE_S", 0.02)
    with sign_of_life("wine: compiles"):
        screen, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 2)
        told = ""
        while "still working" not in told:  # the test's own limit ends it
            time.sleep(0.02)
            told += capfd.readouterr().err
        os.dup2(screen, 2)
    os.close(screen)
    os.close(nowhere)
    assert told.startswith("wine: compiles\n  still working, ")


def test_an_error_passes_through_and_ends_the_signs(capfd, monkeypatch):
    monkeypatch.setattr(module, "LOG_SILENCE_S", 0.01)
    with pytest.raises(ValueError, match="no"), sign_of_life("wine: predicts"):
        raise ValueError("no")
    capfd.readouterr()
    time.sleep(0.05)
    assert capfd.readouterr().err == ""
