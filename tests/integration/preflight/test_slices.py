"""Every slice that can be named is one that libtpu describes, chip by chip and host by host."""

import json
import math
import os
import subprocess
from collections import Counter
from dataclasses import asdict

import pytest

from slipway.components.preflight.chip_specs import CHIPS
from slipway.components.preflight.question_and_answer import Question
from slipway.components.preflight.torus import dimensions, rings
from slipway.pipeline.wiring.preflight_question import named_slices

pytestmark = [pytest.mark.slow, pytest.mark.external]

ALL = {each.name: each for generation in CHIPS for each in named_slices(generation)}
LARGEST = ("v4-512", "v5e-128", "v5e-256", "v5p-512", "v6e-256", "v7-512")
DESCRIBE = """
import json, sys
from slipway.components.preflight.compile_and_measure import _prepare
from slipway.components.preflight.slice_mesh import topology_devices
from slipway.components.preflight.question_and_answer import Slice
_prepare()
print(json.dumps({
    name: [[*each.coords, each.process_index] for each in topology_devices(Slice(**fields))]
    for name, fields in json.load(sys.stdin).items()
}))
"""


@pytest.fixture(scope="module")
def described(project, tpu_python):
    """Of each slice, its devices as libtpu lists them: three coordinates of the chip, and the host."""
    done = subprocess.run(
        [tpu_python, "-W", "ignore", "-c", DESCRIBE],
        input=json.dumps({name: asdict(each) for name, each in ALL.items()}),
        env={**os.environ, "PYTHONPATH": str(project), "TF_CPP_MIN_LOG_LEVEL": "3"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("name", ALL)
def test_chips_fill_the_topology_and_lie_on_as_many_hosts_as_are_said(described, name):
    where, devices = ALL[name], described[name]
    chips = Counter(tuple(place) for *place, _ in devices)
    sizes = (*dimensions(where.topology), 1)[:3]
    assert len(devices) == where.devices
    assert set(chips.values()) == {CHIPS[where.generation].devices}
    assert len(chips) == math.prod(sizes)
    assert tuple(1 + max(axis) for axis in zip(*chips, strict=True)) == sizes
    of_host = Counter(host for *_, host in devices)
    assert len(of_host) == where.hosts
    assert len(set(of_host.values())) == 1, "each host has as many"


def test_the_largest_of_each_generation_is_compiled_for_and_its_gradients_cross_all_of_it(asked, tpu_python):
    features = (
        {"name": "x", "dtype": "float32", "shape": [256], "categories": None},
        {"name": "y", "dtype": "float32", "shape": [1], "categories": None},
    )
    wanted = [ALL[name] for name in LARGEST]
    model = {"model": "preflight_models.fine", "hyperparameters": {}, "label": "y", "batch_size": 512}

    answers = asked(tpu_python, [Question(slice=each, features=features, **model) for each in wanted])

    for where, answer in zip(wanted, answers, strict=True):
        assert answer.step.compiles, (where.name, answer.step.error)
        assert [each.hosts for each in answer.mesh if each.name == "batch"] == [where.hosts]
        [gradients] = answer.step.collectives
        assert (gradients.kind, gradients.shape) == ("all-reduce", where.topology)
        assert gradients.links == sum(2 if ring else 1 for ring in rings(where.topology)), where.name
