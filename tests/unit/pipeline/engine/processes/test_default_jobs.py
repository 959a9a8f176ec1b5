"""How many nodes run at once."""

import os

from slipway.pipeline.engine.processes.default_jobs import default_jobs


def test_jobs_fit_the_cores_and_the_memory():
    assert 1 <= default_jobs() <= len(os.sched_getaffinity(0))
    assert default_jobs(node_bytes=2**60) == 1
    assert default_jobs(node_bytes=1) == len(os.sched_getaffinity(0))
