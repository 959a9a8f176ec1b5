"""The request for a training on other machines: its parts by the names thon Vertex AI gives them."""

from typing import NotRequired, TypedDict


class MachineSpec(TypedDict, total=False):
    """A machine, or a slice of TPUs; `tpuTopology` e.g. `2x4`."""

    machineType: str
    acceleratorType: str
    acceleratorCount: int
    tpuTopology: str


class EnvVar(TypedDict):
    """A variable of a container's environment."""

    name: str
    value: str


class ContainerSpec(TypedDict):
    """The container that a machine runs."""

    imageUri: str
    command: list[str]
    env: list[EnvVar]


class WorkerPoolSpec(TypedDict):
    """Equal machines; their count as text."""

    machineSpec: MachineSpec
    replicaCount: str
    containerSpec: ContainerSpec


class Scheduling(TypedDict):
    """How long and on which machines; `timeout` e.g. `60s`."""

    strategy: str
    restartJobOnWorkerRestart: NotRequired[bool]
    timeout: NotRequired[str]


class CustomJobSpec(TypedDict):
    """The machines of a job, and the account and network that they use."""

    workerPoolSpecs: list[WorkerPoolSpec]
    scheduling: Scheduling
    serviceAccount: NotRequired[str]
    network: NotRequired[str]


class EncryptionSpec(TypedDict):
    """Vertex AI's key for what a job writes."""

    kmsKeyName: str


class CustomJob(TypedDict):
    """A job."""

    displayName: str
    labels: dict[str, str]
    jobSpec: CustomJobSpec
    encryptionSpec: NotRequired[EncryptionSpec]


class CustomJobRequest(TypedDict):
    """A job and where it goes, as `slipway.components.trainer.remote.vertex.VertexTraining` takes it."""

    project: str
    region: str
    endpoint: str
    customJob: CustomJob
