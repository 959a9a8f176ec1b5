"""The resources that a task's container requests: cores, memory in GB, accelerators. Pure."""

from slipway.pipeline.cloud.pipeline_job import ResourceSpec
from slipway.pipeline.config import CloudConfig
from slipway.pipeline.config.cloud import ResourcesConfig


def resources_of(name: str, cloud: CloudConfig) -> ResourceSpec:
    """Return the resources of a task's container; a value that is not set is left to the service.

    Args:
        cloud: `tasks` holds the task's own values, which take precedence; `resources` holds those of all
            tasks.
    """
    own, common = cloud.tasks.get(name, ResourcesConfig()), cloud.resources
    cpu = own.cpu or common.cpu
    memory_gb = own.memory_gb or common.memory_gb
    accelerator = own.accelerator or common.accelerator
    # A task's own number counts for the accelerator of all tasks, too; 1 is also what it is if not set.
    is_own = own.accelerator or own.accelerator_count > 1
    count = (own if is_own else common).accelerator_count
    found: ResourceSpec = {}
    # Vertex AI reads the numbers, newer versions of Kubeflow the strings.
    if cpu:
        found |= {"cpuLimit": cpu, "resourceCpuLimit": f"{cpu:g}"}
    if memory_gb:
        found |= {"memoryLimit": memory_gb, "resourceMemoryLimit": f"{memory_gb:g}G"}
    if accelerator:
        found["accelerator"] = {
            "type": accelerator,
            "count": str(count),
            "resourceType": accelerator,
            "resourceCount": str(count),
        }
    return found
