"""What the container of a task asks for."""

from slipway.pipeline.cloud.task_resources import resources_of
from slipway.pipeline.config import CloudConfig
from slipway.pipeline.config.cloud import ResourcesConfig


def test_numbers_and_texts_say_the_same():
    cloud = CloudConfig(resources=ResourcesConfig(cpu=0.5, memory_gb=3.75))
    assert resources_of("Ingest", cloud) == {
        "cpuLimit": 0.5, "resourceCpuLimit": "0.5", "memoryLimit": 3.75, "resourceMemoryLimit": "3.75G"
    }  # fmt: skip


def test_what_nobody_sets_is_not_asked_for():
    assert resources_of("Ingest", CloudConfig(resources=ResourcesConfig())) == {}


def test_own_values_of_a_task_come_first_and_its_accelerator_with_its_own_count():
    common = ResourcesConfig(cpu=4, accelerator="NVIDIA_L4", accelerator_count=4)
    own = ResourcesConfig(memory_gb=64, accelerator="NVIDIA_TESLA_T4", accelerator_count=2)
    cloud = CloudConfig(resources=common, tasks={"Trainer": own})
    assert resources_of("Trainer", cloud) == {
        "cpuLimit": 4.0,
        "resourceCpuLimit": "4",
        "memoryLimit": 64.0,
        "resourceMemoryLimit": "64G",
        "accelerator": {
            "type": "NVIDIA_TESLA_T4",
            "count": "2",
            "resourceType": "NVIDIA_TESLA_T4",
            "resourceCount": "2",
        },
    }
    assert resources_of("Ingest", cloud)["accelerator"]["count"] == "4"


def test_own_count_of_a_task_counts_for_the_accelerator_of_all():
    common = ResourcesConfig(accelerator="NVIDIA_L4", accelerator_count=2)
    tasks = {"Trainer": ResourcesConfig(accelerator_count=4), "Evaluator": ResourcesConfig(memory_gb=64)}
    cloud = CloudConfig(resources=common, tasks=tasks)
    counts = {name: resources_of(name, cloud)["accelerator"]["count"] for name in tasks}
    assert counts == {"Trainer": "4", "Evaluator": "2"}
