"""Evidence for accelerators is read from variables and device files, and nothing else is touched."""

import pytest

from slipway.components.trainer.devices.evidence import find_evidence
from slipway.components.trainer.devices.opening import kinds_to_try


def files(root, *names):
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).touch()
    return root


def test_machine_without_signs_has_no_evidence_and_is_a_cpu(tmp_path):
    assert find_evidence({}, root=files(tmp_path, "dev/null", "dev/vfio/vfio")) == ()
    assert kinds_to_try((), "tensorflow") == ("cpu",)


@pytest.mark.parametrize(
    ("variables", "address"),
    [
        ({"TPU_NAME": "my-node"}, "my-node"),
        ({"TPU_NAME": "local"}, "local"),
        ({"TPU_NAME": "10.0.0.2:8470"}, "grpc://10.0.0.2:8470"),
        ({"COLAB_TPU_ADDR": "10.1.2.3:8470"}, "grpc://10.1.2.3:8470"),
        ({"KUBE_GOOGLE_CLOUD_TPU_ENDPOINTS": "10.0.0.7"}, "grpc://10.0.0.7"),
        ({"KUBE_GOOGLE_CLOUD_TPU_ENDPOINTS": "grpc://10.0.0.7:8470"}, "grpc://10.0.0.7:8470"),
    ],
)
def test_variable_of_a_platform_gives_the_address(tmp_path, variables, address):
    [found] = find_evidence(variables, root=tmp_path)
    assert (found.kind, found.address) == ("tpu", address)
    assert next(iter(variables)) in found.words


@pytest.mark.parametrize(
    ("file", "kind", "address"),
    [
        ("dev/accel0", "tpu", "local"),
        ("dev/vfio/3", "tpu", "local"),
        ("dev/nvidia0", "gpu", ""),
        ("dev/kfd", "gpu", ""),
    ],
)
def test_device_file_is_evidence_and_is_named(tmp_path, file, kind, address):
    [found] = find_evidence({}, root=files(tmp_path, file))
    assert (found.kind, found.address, found.words) == (kind, address, f"/{file}")


@pytest.mark.parametrize("hidden", ["", "-1"])
def test_hidden_gpu_is_no_evidence(tmp_path, hidden):
    root = files(tmp_path, "dev/nvidia0")
    assert find_evidence({"CUDA_VISIBLE_DEVICES": hidden}, root=root) == ()
    assert len(find_evidence({"CUDA_VISIBLE_DEVICES": "0"}, root=root)) == 1


def test_address_of_the_workload_comes_first(tmp_path):
    found = find_evidence({"TPU_NAME": "other"}, address="10.0.0.2:8470", root=files(tmp_path, "dev/accel0"))
    assert [each.address for each in found] == ["grpc://10.0.0.2:8470", "other", "local"]


def test_auto_tries_the_tpu_before_the_gpu_and_the_cpu_last(tmp_path):
    found = find_evidence({"TPU_NAME": "node"}, root=files(tmp_path, "dev/nvidia0"))
    assert kinds_to_try(found, "tensorflow") == ("tpu", "gpu", "cpu")
    assert kinds_to_try(found, "torch") == ("gpu", "cpu")
