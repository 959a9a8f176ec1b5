"""The parts of a compiled job that are read or written here, under the names that kfp gives them.

They are the messages of kfp's pipeline_spec.proto in JSON, plus the keys that Vertex AI adds to a job. A
job may have more keys, which pass through.
"""

from typing import Any, NotRequired, TypedDict


class ArtifactTypeSchema(TypedDict, total=False):
    """The type of an artifact: its title, or YAML that holds it."""

    schemaTitle: str
    instanceSchema: str


class ArtifactSpec(TypedDict):
    """An artifact that a component takes or produces."""

    artifactType: ArtifactTypeSchema
    metadata: NotRequired[dict[str, object]]


class ParameterSpec(TypedDict, total=False):
    """A parameter that a component takes or produces; its type is e.g. `NUMBER_INTEGER`."""

    parameterType: str
    defaultValue: object
    isOptional: bool


class ComponentInputsSpec(TypedDict, total=False):
    """The inputs of a component, by key."""

    artifacts: dict[str, ArtifactSpec]
    parameters: dict[str, ParameterSpec]


class ComponentOutputsSpec(TypedDict, total=False):
    """The outputs of a component, by key."""

    artifacts: dict[str, ArtifactSpec]
    parameters: dict[str, ParameterSpec]


class TaskOutputArtifactSpec(TypedDict):
    """An artifact that another task produces."""

    producerTask: str
    outputArtifactKey: str


class TaskOutputParameterSpec(TypedDict):
    """A parameter that another task produces."""

    producerTask: str
    outputParameterKey: str


class TaskFinalStatus(TypedDict):
    """The final state of another task, which an exit handler may take."""

    producerTask: str


class ValueOrRuntimeParameter(TypedDict, total=False):
    """A value of any JSON type, or the name of the parameter that holds it."""

    constant: Any
    runtimeParameter: str


class InputArtifactSpec(TypedDict, total=False):
    """The source of an artifact."""

    taskOutputArtifact: TaskOutputArtifactSpec


class InputParameterSpec(TypedDict, total=False):
    """The source of a parameter: exactly one of these keys."""

    runtimeValue: ValueOrRuntimeParameter
    componentInputParameter: str
    taskOutputParameter: TaskOutputParameterSpec
    taskFinalStatus: TaskFinalStatus


class TaskInputsSpec(TypedDict, total=False):
    """The sources of a task's inputs, by key."""

    artifacts: dict[str, InputArtifactSpec]
    parameters: dict[str, InputParameterSpec]


class ComponentRef(TypedDict):
    """The key of a task's component."""

    name: str


class TriggerPolicy(TypedDict, total=False):
    """The condition under which a task runs; `condition` is CEL."""

    strategy: str
    condition: str


class RetryPolicy(TypedDict):
    """The retries of a failed task; durations are written as e.g. `1.5s`."""

    maxRetryCount: int
    backoffDuration: str
    backoffFactor: float
    backoffMaxDuration: str


class CachingOptions(TypedDict, total=False):
    """Whether the outputs of an equal task may be reused."""

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
    """A component: its interface, and its executor's key or the tasks that it consists of."""

    inputDefinitions: ComponentInputsSpec
    outputDefinitions: ComponentOutputsSpec
    executorLabel: str
    dag: DagSpec


class Exec(TypedDict, total=False):
    """A command line with placeholders."""

    command: list[str]
    args: list[str]


class Lifecycle(TypedDict, total=False):
    """The command that runs before a container: a driver."""

    preCacheCheck: Exec


class AcceleratorConfig(TypedDict):
    """The accelerators of a container, with each number as text."""

    type: str
    count: str
    resourceType: str
    resourceCount: str


class ResourceSpec(TypedDict, total=False):
    """The cores and GB of a container, both as numbers and as text."""

    cpuLimit: float
    resourceCpuLimit: str
    memoryLimit: float
    resourceMemoryLimit: str
    accelerator: AcceleratorConfig


class EnvVar(TypedDict):
    """An environment variable of a container."""

    name: str
    value: str


class PipelineContainerSpec(TypedDict):
    """A container."""

    image: str
    command: NotRequired[list[str]]
    args: NotRequired[list[str]]
    env: NotRequired[list[EnvVar]]
    lifecycle: NotRequired[Lifecycle]
    resources: NotRequired[ResourceSpec]


class ArtifactQuerySpec(TypedDict):
    """A resolver's query: clauses `a="b"` joined by AND."""

    filter: str


class ResolverSpec(TypedDict, total=False):
    """A resolver's queries by output key."""

    outputArtifactQueries: dict[str, ArtifactQuerySpec]


class ImporterSpec(TypedDict):
    """An artifact that exists already."""

    artifactUri: ValueOrRuntimeParameter
    reimport: NotRequired[bool]
    metadata: NotRequired[dict[str, object]]


class ExecutorSpec(TypedDict, total=False):
    """The executor of a component: exactly one of these keys."""

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
    """The artifact root, runtime parameters by name, and Vertex AI's failure policy."""

    gcsOutputDirectory: str
    parameterValues: dict[str, object]
    failurePolicy: str


class PlatformDeploymentConfig(TypedDict):
    """Settings by executor key; for Kubernetes those of kfp's kubernetes_executor_config.proto."""

    executors: dict[str, dict[str, object]]


class SinglePlatformSpec(TypedDict):
    """The settings for one platform."""

    deploymentSpec: PlatformDeploymentConfig


class PlatformSpec(TypedDict):
    """Settings by platform: `kubernetes`."""

    platforms: dict[str, SinglePlatformSpec]


class PipelineJob(TypedDict):
    """A pipeline and its runs' settings; the last three keys are Vertex AI's, `platformSpec` Kubeflow's."""

    pipelineSpec: PipelineSpec
    platformSpec: NotRequired[PlatformSpec]
    labels: NotRequired[dict[str, str]]
    runtimeConfig: NotRequired[RuntimeConfig]
    serviceAccount: NotRequired[str]
    network: NotRequired[str]
    encryptionSpec: NotRequired[dict[str, str]]
