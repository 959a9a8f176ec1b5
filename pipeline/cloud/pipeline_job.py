"""A compiled job, as far as it is read or written here: its parts by the names that kfp gives them.

They are the messages of kfp's pipeline_spec.proto in JSON, with the keys thon Vertex AI adds to a job. A job
may have more keys, which pass through.
"""

from typing import Any, NotRequired, TypedDict

from slipway.components.trainer.remote.custom_job import EncryptionSpec, EnvVar


class ArtifactTypeSchema(TypedDict, total=False):
    """The type of an artifact: its title, or YAML that holds it."""

    schemaTitle: str
    instanceSchema: str


class ArtifactSpec(TypedDict):
    """An artifact that a component takes or makes."""

    artifactType: ArtifactTypeSchema
    metadata: NotRequired[dict[str, object]]


class ParameterSpec(TypedDict, total=False):
    """A parameter that a component takes or makes; its type e.g. `NUMBER_INTEGER`."""

    parameterType: str
    defaultValue: object
    isOptional: bool


class ComponentInputsSpec(TypedDict, total=False):
    """All that a component takes, by key."""

    artifacts: dict[str, ArtifactSpec]
    parameters: dict[str, ParameterSpec]


class ComponentOutputsSpec(TypedDict, total=False):
    """All that a component makes, by key."""

    artifacts: dict[str, ArtifactSpec]
    parameters: dict[str, ParameterSpec]


class TaskOutputArtifactSpec(TypedDict):
    """An artifact that another task made."""

    producerTask: str
    outputArtifactKey: str


class TaskOutputParameterSpec(TypedDict):
    """A parameter that another task put out."""

    producerTask: str
    outputParameterKey: str


class TaskFinalStatus(TypedDict):
    """How another task ended; exit handlers may ask for it."""

    producerTask: str


class ValueOrRuntimeParameter(TypedDict, total=False):
    """A value of any type that JSON has, or the name of the parameter that holds it."""

    constant: Any
    runtimeParameter: str


class InputArtifactSpec(TypedDict, total=False):
    """Where an artifact comes from."""

    taskOutputArtifact: TaskOutputArtifactSpec


class InputParameterSpec(TypedDict, total=False):
    """Where a parameter comes from: one of these."""

    runtimeValue: ValueOrRuntimeParameter
    componentInputParameter: str
    taskOutputParameter: TaskOutputParameterSpec
    taskFinalStatus: TaskFinalStatus


class TaskInputsSpec(TypedDict, total=False):
    """Where all that a task takes comes from, by key."""

    artifacts: dict[str, InputArtifactSpec]
    parameters: dict[str, InputParameterSpec]


class ComponentRef(TypedDict):
    """The key of a task's component."""

    name: str


class TriggerPolicy(TypedDict, total=False):
    """When a task runs; `condition` is CEL."""

    strategy: str
    condition: str


class RetryPolicy(TypedDict):
    """How often a failed task is tried again; durations e.g. `1.5s`."""

    maxRetryCount: int
    backoffDuration: str
    backoffFactor: float
    backoffMaxDuration: str


class CachingOptions(TypedDict, total=False):
    """Whether an equal task's outputs may be taken."""

    enableCache: bool


class PipelineTaskSpec(TypedDict):
    """A task."""

    componentRef: ComponentRef
    inputs: NotRequired[TaskInputsSpec]
    dependentTasks: NotRequired[list[str]]
    triggerPolicy: NotRequired[TriggerPolicy]
    retryPolicy: NotRequired[RetryPolicy]
    cachingOptions: NotRequired[CachingOptions]


class DagSpec(TypedDict):
    """Tasks by name."""

    tasks: dict[str, PipelineTaskSpec]


class ComponentSpec(TypedDict, total=False):
    """A component: its interface, and its executor's key or the tasks that it is made of."""

    inputDefinitions: ComponentInputsSpec
    outputDefinitions: ComponentOutputsSpec
    executorLabel: str
    dag: DagSpec


class Exec(TypedDict, total=False):
    """A command line with placeholders."""

    command: list[str]
    args: list[str]


class Lifecycle(TypedDict, total=False):
    """What runs before a container: a driver."""

    preCacheCheck: Exec


class AcceleratorConfig(TypedDict):
    """Accelerators of a container, each number as text."""

    type: str
    count: str
    resourceType: str
    resourceCount: str


class ResourceSpec(TypedDict, total=False):
    """Cores and GB of a container, as numbers and as texts."""

    cpuLimit: float
    resourceCpuLimit: str
    memoryLimit: float
    resourceMemoryLimit: str
    accelerator: AcceleratorConfig


class PipelineContainerSpec(TypedDict):
    """A container."""

    image: str
    command: NotRequired[list[str]]
    args: NotRequired[list[str]]
    env: NotRequired[list[EnvVar]]
    lifecycle: NotRequired[Lifecycle]
    resources: NotRequired[ResourceSpec]


class ArtifactQuerySpec(TypedDict):
    """A resolver's question: clauses `a="b"` joined by AND."""

    filter: str


class ResolverSpec(TypedDict, total=False):
    """A resolver's questions by output key."""

    outputArtifactQueries: dict[str, ArtifactQuerySpec]


class ImporterSpec(TypedDict):
    """An artifact that is there already."""

    artifactUri: ValueOrRuntimeParameter
    reimport: NotRequired[bool]
    metadata: NotRequired[dict[str, object]]


class ExecutorSpec(TypedDict, total=False):
    """What carries out a component: one of these."""

    container: PipelineContainerSpec
    importer: ImporterSpec
    resolver: ResolverSpec


class PipelineDeploymentConfig(TypedDict):
    """Executors by key."""

    executors: dict[str, ExecutorSpec]


class PipelineInfo(TypedDict):
    """The pipeline's name."""

    name: str


class PipelineSpec(TypedDict):
    """A pipeline."""

    pipelineInfo: PipelineInfo
    defaultPipelineRoot: NotRequired[str]
    root: ComponentSpec
    components: dict[str, ComponentSpec]
    deploymentSpec: PipelineDeploymentConfig


class RuntimeConfig(TypedDict, total=False):
    """The folder for artifacts, runtime parameters by name, and what a failure means to Vertex AI."""

    gcsOutputDirectory: str
    parameterValues: dict[str, object]
    failurePolicy: str


class PipelineJob(TypedDict):
    """A pipeline, and the settings of its runs; the last three are Vertex AI's."""

    pipelineSpec: PipelineSpec
    labels: NotRequired[dict[str, str]]
    runtimeConfig: NotRequired[RuntimeConfig]
    serviceAccount: NotRequired[str]
    network: NotRequired[str]
    encryptionSpec: NotRequired[EncryptionSpec]
