"""Checkpoints are written beside the training: it goes on at once, and hears later of what failed."""

import threading

import pytest

from slipway.components.errors import ComponentError
from slipway.components.trainer.checkpoint_files import Checkpoint, CheckpointWriter

LIMIT_S = 60


class SlowFolder:
    """Takes a checkpoint only when it is let."""

    def __init__(self):
        self.saved, self.may_save, self.problem = [], threading.Event(), None

    def save(self, checkpoint):
        assert self.may_save.wait(LIMIT_S)
        if self.problem:
            raise self.problem
        self.saved.append(checkpoint.step)


@pytest.fixture
def folder():
    return SlowFolder()


def test_training_does_not_wait_for_the_disk(folder):
    writer = CheckpointWriter(folder)
    writer.write(Checkpoint(step=5))  # would hang for the limit, and fail, if it waited
    assert folder.saved == []
    folder.may_save.set()
    writer.finish()
    assert folder.saved == [5]


def test_checkpoints_are_written_in_order_one_at_a_time(folder):
    writer = CheckpointWriter(folder)
    writer.write(Checkpoint(step=1))
    second = threading.Thread(target=writer.write, args=(Checkpoint(step=2),))
    second.start()
    second.join(0.1)
    assert second.is_alive()  # waits for the first
    folder.may_save.set()
    second.join(LIMIT_S)
    writer.finish()
    assert folder.saved == [1, 2]


def test_what_failed_is_reported_at_the_next_checkpoint(folder):
    folder.problem = ComponentError("the disk is full")
    folder.may_save.set()
    writer = CheckpointWriter(folder)
    writer.write(Checkpoint(step=1))
    with pytest.raises(ComponentError, match="the disk is full"):
        writer.write(Checkpoint(step=2))
    writer.finish()  # told once
