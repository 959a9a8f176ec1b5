"""What a worker is told, and that forks draw other numbers; a whole engine is in test_beam_engines.py."""

import numpy as np
import pytest

pytestmark = pytest.mark.slow  # imports Beam and TensorFlow


def test_a_worker_calls_its_engine_and_draws_other_numbers_than_the_process_it_was_forked_from(monkeypatch):
    from slipway.components import beam_sdk_worker

    ran = []

    class Harness:
        def __init__(self, control, **given):
            self.told = (control, given)

        def run(self):
            ran.append((*self.told, np.random.random()))

    monkeypatch.setattr(beam_sdk_worker, "SdkHarness", Harness)
    before = np.random.get_state()
    for _ in range(2):
        np.random.set_state(before)  # as in each fork
        beam_sdk_worker.work("localhost:1", "7-1")
    np.random.set_state(before)

    (one, given, first), (_, _, second) = ran
    assert (one, given["worker_id"]) == ("localhost:1", "7-1")
    assert first != second
