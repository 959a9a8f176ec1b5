"""The request for a training on other machines, with the names that Vertex AI gives its parts."""

from typing import NotRequired, TypedDict


class MachineSpec(TypedDict, total=False):
    """A machine, or a slice of TPUs; `tpuTopology` is e.g. `2x4`."""

    machineType: str
    acceleratorType: str
    acceleratorCount: int
    tpuTopology: str


class EnvVar(TypedDict):
    """An environment variable of a container."""

    name: str
    value: str


class ContainerSpec(TypedDict):
    """The container that a machine runs."""

    imageUri: str
    command: list[str]
    env: list[EnvVar]


class WorkerPoolSpec(TypedDict):
    """A pool of equal machines; `replicaCount` is their number as text."""

    machineSpec: MachineSpec
    replicaCount: str
    containerSpec: ContainerSpec


class Scheduling(TypedDict):
    """Whether a job runs on spot machines, and for how long at most; `timeout` is e.g. `60s`."""

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
    """The key that encrypts what a job writes."""

    kmsKeyName: str


class CustomJob(TypedDict):
    """A job of Vertex AI."""

    displayName: str
    labels: dict[str, str]
    jobSpec: CustomJobSpec
    encryptionSpec: NotRequired[EncryptionSpec]


class CustomJobRequest(TypedDict):
    """A job and where to send it, as `slipway.components.trainer.remote.vertex.VertexTraining` takes it."""

    project: str
    region: str
    endpoint: str
    customJob: CustomJob
