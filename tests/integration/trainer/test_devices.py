"""Several devices learn what one learns: eight that the CPU is cut into, on both backends."""

import json
import os
import signal
from dataclasses import replace

import numpy as np
import pytest
from loopback import reserved_port

from slipway.components.errors import ComponentError
from slipway.components.project import PROJECT_ROOT
from slipway.components.python_process import ForkedProcess
from slipway.components.trainer.launch import environment
from slipway.components.trainer.settings.checkpoint import CheckpointSettings
from slipway.components.trainer.settings.compute import ComputeSettings
from slipway.components.trainer.settings.input_cache import InputSettings
from slipway.components.trainer.settings.step import StepSettings

pytestmark = [
    pytest.mark.slow,
    pytest.mark.usefixtures("forked"),  # but for those that cut the CPU into devices, as in a run
    # TensorFlow's own imports warn of what they will change in themselves.
    pytest.mark.filterwarnings("default"),
]

ONE_STEP = StepSettings(steps_per_execution=1)
TWO_HOSTS_LIMIT_S = 120
"""8 to 53 s were measured on 2 cores with a load of 2 to 9."""


def require_same(one, other, *, tolerance):
    assert one["weights"].keys() == other["weights"].keys()
    for name, values in one["weights"].items():
        np.testing.assert_allclose(other["weights"][name], values, rtol=0, atol=tolerance, err_msg=name)
    assert [epoch.keys() for epoch in one["history"]] == [epoch.keys() for epoch in other["history"]]


def notes(training):
    return [event["message"] for event in training["events"] if event["event"] == "note"]


def test_three_tensorflow_devices_learn_what_one_learns(train):
    # Three: each traces the step for itself, and their threads meet in every step. With eight, on two busy
    # cores, that took minutes.
    steps = {"batch_size": 120, "epochs": 2}
    one = train(step=ONE_STEP, **steps)
    three = train(compute=ComputeSettings(device="cpu", cpu_devices=3), **steps)
    assert three["result"]["devices"].endswith("as 3 devices")
    assert three["history"][-1]["val_loss"] < three["history"][0]["val_loss"]
    require_same(one, three, tolerance=2e-5)


def test_eight_jax_devices_learn_what_one_learns_whole_or_divided(train, jax_forked):
    # With JAX the statistics of a normalisation are those of the global batch.
    job = {"interpreter": jax_forked, "hyperparameters": {"normalised": True}}
    one = train(**job, compute=ComputeSettings(backend="jax"))
    eight = train(**job, compute=ComputeSettings(backend="jax", cpu_devices=8))
    require_same(one, eight, tolerance=2e-5)
    layout = {".*wide.*kernel": (None, "model"), ".*wide.*bias": ("model",)}
    divided = train(
        **job,
        compute=ComputeSettings(backend="jax", cpu_devices=8, model_parallel=4, layout=layout),
    )
    require_same(one, divided, tolerance=2e-5)
    # 16 x 32 + 32 numbers divided by 4; 4 x 32 of the normalisation and 33 of the head whole.
    held = (16 * 32 + 32) // 4 + 4 * 32 + 33
    assert f"each device holds {held} of the model's {16 * 32 + 32 + 4 * 32 + 33} numbers" in notes(divided)


@pytest.mark.external
def test_torch_trains_on_the_cpu(train):
    python = os.environ.get("SLIPWAY_TORCH_PYTHON")
    if not python:
        pytest.skip("SLIPWAY_TORCH_PYTHON names no Python with keras, tensorflow and torch")
    found = train(interpreter=python, compute=ComputeSettings(backend="torch", device="cpu"))
    assert found["history"][-1]["val_loss"] < found["history"][0]["val_loss"]
    assert found["weights"].keys() == train()["weights"].keys()


def test_pattern_that_matches_no_variable_is_refused(train, jax_forked):
    compute = ComputeSettings(
        backend="jax", cpu_devices=4, model_parallel=2, layout={"wide": (None, "model")}
    )
    with pytest.raises(ComponentError, match=r"'wide' matches no variable; there are .*wide/kernel"):
        train(interpreter=jax_forked, compute=compute)


@pytest.mark.external  # left to CI: a process of eight devices for a rule that a unit test holds
def test_uneven_batch_is_refused_before_anything_is_read(train):
    """The rule: tests/unit/components/trainer/test_global_batch.py."""
    with pytest.raises(ComponentError, match=r"batch_size \(50\) must be a multiple of the 8") as caught:
        train(compute=ComputeSettings(cpu_devices=8), batch_size=50, train_files=("absent",))
    assert caught.value.hint == "use 48 or 56"


@pytest.fixture
def port():
    """Where the first of two hosts listens for the other."""
    with reserved_port() as found:
        yield found


@pytest.fixture
def start_two_hosts(job, tmp_path, jax_line, port):
    """Carries out the job, changed, on two hosts; returns their exit codes and their outputs."""

    def call(name, **changes):
        processes = []
        for host in range(2):
            own = tmp_path / f"{name}-{host}"
            own.mkdir()
            file = own / "job.json"
            file.write_text(replace(job, output_dir=str(own), **changes).to_json(), encoding="utf-8")
            places = {
                "KERAS_DISTRIBUTION_JOB_ADDRESSES": f"127.0.0.1:{port},localhost",
                "KERAS_DISTRIBUTION_NUM_PROCESSES": "2",
                "KERAS_DISTRIBUTION_PROCESS_ID": str(host),
                "PYTHONPATH": os.pathsep.join([str(tmp_path), str(PROJECT_ROOT)]),
            }
            variables = environment(os.environ, import_roots=[tmp_path], backend="jax") | places
            with (own / "output").open("w") as output:
                descriptors = [output.fileno(), 2]
                processes.append(ForkedProcess(jax_line, "warm_jax", [str(file)], variables, descriptors))
        try:
            codes = [process.wait(TWO_HOSTS_LIMIT_S) for process in processes]
            return codes, [(tmp_path / f"{name}-{host}" / "output").read_text() for host in range(2)]
        finally:
            for process in processes:
                process.kill()
                process.wait()

    return call


@pytest.fixture
def train_on_two_hosts(start_two_hosts, tmp_path):
    """Carries out the job, changed, on two hosts; returns the folder of host 0 and both outputs."""

    def call(name, *, code=0, **changes):
        codes, outputs = start_two_hosts(name, **changes)
        assert codes == [code, code], outputs
        assert not (tmp_path / f"{name}-1" / "result.json").exists()  # host 0 writes
        return tmp_path / f"{name}-0", outputs

    return call


@pytest.fixture(scope="module")
def kept_alone():
    return []


@pytest.fixture
def alone(train, jax_forked, kept_alone):
    """The history of two epochs on one device of one host, trained once: the rows are the same each time."""
    if not kept_alone:
        made = train(interpreter=jax_forked, compute=ComputeSettings(backend="jax"), epochs=2)
        kept_alone.append(made["history"])
    return kept_alone[0]


def last_event(output):
    return json.loads(output.splitlines()[-1])


@pytest.mark.parametrize("cache", ["memory", "none"])
def test_two_hosts_learn_what_one_learns(train_on_two_hosts, request, cache):
    changes = {"compute": ComputeSettings(backend="jax"), "epochs": 2}
    folder, outputs = train_on_two_hosts("hosts", **changes, input=InputSettings(cache=cache))
    assert "host 1 of 2" in outputs[1]
    assert last_event(outputs[0])["metrics"] == last_event(outputs[1])["metrics"]
    if cache == "none":
        return  # each host reads its own files: other batches than one host's
    together = json.loads((folder / "history.json").read_text())["epochs"]
    for one, two in zip(request.getfixturevalue("alone"), together, strict=True):
        assert two == pytest.approx(one, abs=1e-4)


def test_model_that_is_divided_on_two_hosts_is_kept_and_learns_what_one_learns(
    alone, train_on_two_hosts, tmp_path
):
    layout = {".*wide.*kernel": (None, "model"), ".*wide.*bias": ("model",)}
    compute = ComputeSettings(backend="jax", cpu_devices=2, model_parallel=2, layout=layout)
    kept = tmp_path / "kept"
    kept.mkdir()
    divided = {
        "compute": compute,
        "epochs": 2,
        "checkpoint_dir": str(kept),
        "checkpoint": CheckpointSettings(steps=2, serve_best=True),
    }
    folder, outputs = train_on_two_hosts("divided", **divided)
    assert "each copy of the model on 2, host 1 of 2" in outputs[1]
    together = json.loads((folder / "history.json").read_text())["epochs"]
    for one, two in zip(alone, together, strict=True):
        assert two == pytest.approx(one, abs=1e-4)
    # Two, and the best epoch of the older one, which the second run begins with.
    assert sorted(int(path.stem[5:]) for path in kept.glob("step-*.json")) == [5, 8, 10]
    for file in kept.glob("step-*10.*"):
        file.unlink()
    resumed, outputs = train_on_two_hosts("resumed", **divided)
    assert all('"event": "resumed", "epoch": 1, "step": 8' in output for output in outputs)
    again = json.loads((resumed / "history.json").read_text())["epochs"]
    assert again == [pytest.approx(epoch, abs=1e-6) for epoch in together]


def test_model_whose_copies_would_lie_on_two_hosts_each_is_refused(train_on_two_hosts):
    layout = {".*wide.*kernel": (None, "model")}
    compute = ComputeSettings(backend="jax", cpu_devices=2, model_parallel=4, layout=layout)
    _, outputs = train_on_two_hosts("torn", compute=compute, code=1)
    words = "this host has only 256 of the 512 numbers of wide/kernel"
    assert all(words in last_event(output)["message"] for output in outputs)


@pytest.mark.parametrize("failing", ["0", "1"])
def test_host_that_fails_alone_ends_the_other_as_well(start_two_hosts, failing):
    changes = {"compute": ComputeSettings(backend="jax"), "hyperparameters": {"failing_hosts": [failing]}}
    codes, outputs = start_two_hosts("failing", **changes)
    host = int(failing)
    assert codes[host] == 1
    assert "no model on this host" in last_event(outputs[host])["message"]
    assert codes[1 - host] not in (0, -signal.SIGKILL)  # ended by itself: its sum failed, or JAX aborted it
