"""When a checkpoint is due: after so many steps, when the last is so old, and at the end of each epoch."""

import numpy as np
import pytest

from components.trainer.checkpoint import Checkpoint, Clock
from components.trainer.loop.preemption import Preemption
from components.trainer.settings.blow_up import BlowUpSettings
from components.trainer.settings.checkpoint import CheckpointSettings

pytestmark = [
    pytest.mark.slow,
    # TensorFlow's own imports warn of what they will change in themselves.
    pytest.mark.filterwarnings("default"),
]

STEPS = 6


class Steps:
    """Notes the steps that are written."""

    def __init__(self):
        self.kept = []

    def write(self, checkpoint):
        self.kept.append(checkpoint.step)


@pytest.mark.parametrize(
    ("settings", "kept"),
    [
        (CheckpointSettings(minutes=None), [6, 12]),
        (CheckpointSettings(minutes=60), [6, 12]),
        (CheckpointSettings(minutes=1e-9), list(range(1, 13))),
        (CheckpointSettings(minutes=None, steps=4), [4, 6, 8, 12]),
    ],
)
def test_checkpoints_come_by_steps_by_minutes_and_at_the_end_of_an_epoch(settings, kept):
    import keras

    from components.trainer.loop.blow_up import LossGuard
    from components.trainer.loop.record import Keeping, Record
    from components.trainer.loop.stepping import Stepping

    writer, stepping = Steps(), Stepping(Clock())
    keeping = Keeping(
        settings=settings, writer=writer, preemption=Preemption(), guard=LossGuard(BlowUpSettings())
    )
    record = Record(Checkpoint(), steps_per_epoch=STEPS, keeping=keeping, stepping=stepping)
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    model.compile(optimizer="sgd", loss="mse")
    rows = np.ones((STEPS * 4, 2), "float32")
    model.fit(rows, rows[:, :1], batch_size=4, epochs=2, verbose=0, callbacks=[stepping, record])
    assert writer.kept == kept
