"""The workload file: its keys, and the code that loads, overrides and checks them.

The sections' pydantic models are the single definition of the file: they reject invalid values, their
descriptions become `schemas/workload.schema.json` (`.json_schema`), and the pipeline reads their attributes.
"""

from slipway.pipeline.config.beam import BeamConfig
from slipway.pipeline.config.cloud import CloudConfig
from slipway.pipeline.config.data import DataConfig
from slipway.pipeline.config.engine import DEFAULT_PORTS, MetadataConfig, NodeConfig
from slipway.pipeline.config.workload import WorkloadConfig
from slipway.pipeline.config.workload_file import (
    WorkloadChoice,
    load_workload,
    read_assignments,
    read_parameters,
)

__all__ = [
    "DEFAULT_PORTS",
    "BeamConfig",
    "CloudConfig",
    "DataConfig",
    "MetadataConfig",
    "NodeConfig",
    "WorkloadChoice",
    "WorkloadConfig",
    "load_workload",
    "read_assignments",
    "read_parameters",
]
