"""Beam's stages in a few words."""

import logging
from types import SimpleNamespace

import pytest

from slipway.pipeline.engine.tfx import beam_stages
from slipway.pipeline.engine.tfx.beam_stages import StageHandler, stage_name


def record(stage: str, message: str = "Running bundle for stage %s\n\tExpected outputs: %s timers: %s"):
    return logging.LogRecord("beam", logging.DEBUG, "f", 1, message, (stage, {}, {}), None)


@pytest.mark.parametrize(
    ("fused", "name"),
    [
        (
            "(ref_AppliedPTransform_Read/Parse/ParseLine_12)+(ref_AppliedPTransform_Write_13)",
            "Parse/ParseLine",
        ),
        ("WriteSplit[train]/Write/GroupByKey/Read", "GroupByKey/Read"),
        ("(ref_PCollection_PCollection_351/Read)+(ref_AppliedPTransform_Analyze/Pack_2)", "Analyze/Pack"),
        ("ref_PCollection_PCollection_351/Read", "starting"),
        ("", "starting"),
    ],
)
def test_a_stage_is_named_by_its_first_transform(fused, name):
    assert stage_name(fused) == name


def test_a_stage_is_told_once_in_half_a_second(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(beam_stages, "time", SimpleNamespace(monotonic=lambda: now[0]))
    told: list[str] = []
    handler = StageHandler(told.append)
    for _ in range(20):
        handler.emit(record("Read/Parse"))
        now[0] += 0.1
    assert len(told) == 4
    assert told[0] == "Beam: Read/Parse"


def test_other_messages_are_left_alone():
    told: list[str] = []
    StageHandler(told.append).emit(record("x", "Watermark: %s. Enqueuing %s %s"))
    assert told == []


def test_a_progress_file_that_cannot_be_written_does_not_end_the_pipeline(monkeypatch):
    monkeypatch.setattr(logging, "raiseExceptions", False)

    def full(_text):
        raise OSError(28, "No space left on device")

    StageHandler(full).emit(record("Read/Parse"))
