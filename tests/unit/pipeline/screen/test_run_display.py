"""What a run shows while it works, on a terminal and in a log."""

import io
import json
import re

import pytest
from two_node_run import record

from slipway.pipeline.commands import show
from slipway.pipeline.screen.run_display import LineDisplay, TableDisplay, choose_display


def test_log_holds_one_line_a_change_and_no_control_codes():
    stream = io.StringIO()
    display, run = LineDisplay(stream), record()
    display.begins(run)
    display.planned(run, {})
    display.changed(run, run.nodes[1])
    lines = stream.getvalue().splitlines()
    assert lines[0] == "taxi: run run-1"
    assert lines[1] == "= cached: Ingest"
    assert lines[2].startswith("✓ Trainer")
    assert "\x1b" not in stream.getvalue()


def test_silence_in_a_log_is_broken_by_what_runs(monkeypatch):
    stream = io.StringIO()
    display, run = LineDisplay(stream), record()
    run.nodes[1].state = "running"
    display.tick(run, {})
    assert stream.getvalue() == ""
    monkeypatch.setattr("slipway.pipeline.screen.run_display._LOG_SILENCE_S", -1.0)
    display.tick(run, {"Trainer": "200 of 1,000, loss 0.31"})
    assert stream.getvalue() == "  still running: Trainer (200 of 1,000, loss 0.31)\n"


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_table_is_drawn_on_a_terminal_and_never_in_ci(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("CI", raising=False)
    assert isinstance(choose_display(Terminal()), TableDisplay)
    assert isinstance(choose_display(io.StringIO()), LineDisplay)
    monkeypatch.setenv("CI", "true")
    assert isinstance(choose_display(Terminal()), LineDisplay)


def test_control_codes_in_a_message_do_not_reach_the_terminal(monkeypatch):
    run = record("failed")
    run.nodes[1].state, run.nodes[1].error = "failed", {"message": "\x1b[2Jgone", "hint": "", "where": ""}
    for stream in (io.StringIO(), Terminal()):
        monkeypatch.setenv("TERM", "xterm")
        display = choose_display(stream)
        display.begins(run)
        display.planned(run, {})
        display.ends(run)
        assert "\x1b[2J" not in stream.getvalue()
        assert "\\x1b[2Jgone" in stream.getvalue()


def test_cursor_is_given_back_when_a_run_ends_in_an_error(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("CI", raising=False)
    stream = Terminal()
    display = choose_display(stream)
    display.begins(record())
    display.close()
    assert stream.getvalue().rindex("\x1b[?25h") > stream.getvalue().rindex("\x1b[?25l")


def test_brackets_in_a_message_are_not_read_as_markup(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    stream = Terminal()
    display, run = TableDisplay(stream), record()
    run.nodes[1].why = "[red]data[/red] changed"
    display.begins(run)
    display.planned(run, {"Trainer": 8.0})
    display.ends(run)
    assert "[red]data[/red]" in stream.getvalue()


@pytest.mark.parametrize("folder", ["trips [old]", "[", "trips \x1b[2J"])
def test_folder_of_a_first_run_is_shown_as_it_is_named(monkeypatch, tmp_path, folder):
    monkeypatch.setenv("TERM", "xterm")
    run, stream = record(output=tmp_path / folder / "x]"), Terminal()
    run.folder.mkdir(parents=True)
    display = TableDisplay(stream)
    display.begins(run)
    display.close()
    assert f"(the first in {run.output!s})".replace("\x1b", "\\x1b") in stream.getvalue()


def test_narrow_terminal_cuts_the_note_and_nothing_else(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.delenv("CI", raising=False)
    stream = Terminal()
    display, run = choose_display(stream), record()
    run.nodes[1].why = "a reason that is much too long for sixty columns " * 3
    display.begins(run)
    display.planned(run, {})
    display.ends(run)
    shown = re.sub(r"\x1b\[[\d;?]*[a-zA-Z]", "", stream.getvalue())
    lines = [line for line in shown.splitlines() if "a reason" in line]
    assert lines
    assert all(line.startswith("✓  Trainer  complete") and "8.0 s" in line for line in lines)


def test_table_of_a_refused_model_keeps_within_the_terminal(monkeypatch, tmp_path):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.delenv("CI", raising=False)
    check = {"metric": "auc", "slice": "company=" + "Affiliation " * 9, "required": "at least 0.94"}
    checks = [{**check, "got": 0.71, "passed": False}]
    (tmp_path / "verdict.json").write_text(json.dumps({"checks": checks}), encoding="utf-8")
    run = record("stopped", blessed=False, blessing_reasons=["auc 0.71"])
    blessing = {"uri": str(tmp_path), "type": "ModelBlessing", "properties": {"blessed": 0}}
    run.nodes[1].outputs = {"blessing": [blessing]}
    stream = Terminal()
    display = choose_display(stream)
    display.begins(run)
    display.ends(run)
    told = stream.getvalue().partition("Not pushed")[2].splitlines()[1:]
    assert "".join(told).count("Affiliation") == 9
    assert all(len(line) <= 80 for line in told if not line.startswith("hint"))
    shown = show.show_text(run, width=80).partition("blessed ")[2].splitlines()[1:]
    assert "".join(shown).count("Affiliation") == 9
    assert all(len(line) <= 80 for line in shown if not line.startswith("hint"))


def test_first_run_in_a_folder_says_where_and_the_next_does_not(tmp_path):
    said = io.StringIO()
    run = record(output=tmp_path)
    (tmp_path / "runs" / "run-1").mkdir(parents=True)
    LineDisplay(said).begins(run)
    (tmp_path / "runs" / "run-0").mkdir()
    LineDisplay(said).begins(run)
    assert said.getvalue().splitlines() == [f"taxi: run run-1 (the first in {tmp_path})", "taxi: run run-1"]
