"""Looks for evidence of a TPU or a GPU on this machine, without touching either.

A TPU runtime may wait for minutes for a TPU that does not exist, so none is called without evidence: a
variable that the platform sets, or a device file.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Kind = Literal["tpu", "gpu", "cpu"]

LOCAL_TPU = "local"
"""The address of a TPU that is attached to this machine, as `TPUClusterResolver` takes it."""
TPU_VARIABLES = ("COLAB_TPU_ADDR", "TPU_NAME", "KUBE_GOOGLE_CLOUD_TPU_ENDPOINTS")
_DEVICE_FILES: dict[Kind, tuple[str, ...]] = {
    "tpu": ("dev/accel[0-9]*", "dev/vfio/[0-9]*"),
    "gpu": ("dev/nvidia[0-9]*", "dev/kfd", "dev/dxg"),
}
LOOKED_FOR: dict[Kind, str] = {
    "tpu": f"train.tpu_address, the variables {', '.join(TPU_VARIABLES)}, the files /dev/accel* and "
    "/dev/vfio/*",
    "gpu": "the files /dev/nvidia* (CUDA), /dev/kfd (ROCm) and /dev/dxg (WSL), and CUDA_VISIBLE_DEVICES",
}


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """One sign of an accelerator.

    Attributes:
        words: where the sign was found, for people.
        address: of a TPU: "local", a name, or "grpc://host:port"; "" for a GPU.
    """

    kind: Kind
    words: str
    address: str = ""


def find_evidence(
    environment: Mapping[str, str], *, address: str = "", root: Path = Path("/")
) -> tuple[Evidence, ...]:
    """Return the signs of accelerators, the strongest first.

    Args:
        address: the workload's `train.tpu_address`, "" if it names none.
        root: the root of the file system; another one in tests.
    """
    found = []
    if address:
        words = f"train.tpu_address is {address}"
        found.append(Evidence(kind="tpu", words=words, address=_address(address)))
    for name in TPU_VARIABLES:
        if value := environment.get(name, "").strip():
            # Colab and Kubernetes give bare addresses, TPU_NAME gives a name or an address.
            named = value if name == "TPU_NAME" else _grpc(value)
            found.append(Evidence(kind="tpu", words=f"{name} is {value}", address=_address(named)))
    found += [Evidence(kind="tpu", words=file, address=LOCAL_TPU) for file in _files("tpu", root)]
    if environment.get("CUDA_VISIBLE_DEVICES", "0").strip() not in ("", "-1", "none", "NoDevFiles"):
        found += [Evidence(kind="gpu", words=file) for file in _files("gpu", root)]
    return tuple(found)


def _files(kind: Kind, root: Path) -> list[str]:
    return sorted(
        f"/{file.relative_to(root)}" for pattern in _DEVICE_FILES[kind] for file in root.glob(pattern)
    )


def _address(text: str) -> str:
    """Return an address: a host with a port becomes a grpc address, whatever its source."""
    return _grpc(text) if ":" in text else text


def _grpc(text: str) -> str:
    return text if "://" in text else f"grpc://{text}"
