"""The TFX component Ingest: converts raw files to examples, and quarantines rows that do not parse.

It is a FileBasedExampleGen, so that spans, versions and Kubeflow's driver work as with TFX's own ones.
"""

import json

from tfx.components.example_gen import utils
from tfx.components.example_gen.component import FileBasedExampleGen
from tfx.dsl.components.base import base_beam_component, executor_spec
from tfx.proto import example_gen_pb2, range_config_pb2
from tfx.types import channel_utils, standard_artifacts, standard_component_specs
from tfx.types.component_spec import ChannelParameter, ExecutionParameter

from slipway.components.ingest.driver import Driver
from slipway.components.ingest.executor import OPTIONS_KEY, QUARANTINE_KEY, SCHEMA_FILE_KEY, Executor
from slipway.components.ingest.options import Options
from slipway.schemas.artifacts import Quarantine


class IngestSpec(standard_component_specs.FileBasedExampleGenSpec):
    """The interface of a FileBasedExampleGen, plus the options for reading files and a quarantine output."""

    PARAMETERS = {  # noqa: RUF012  (as in its base)
        **standard_component_specs.FileBasedExampleGenSpec.PARAMETERS,
        OPTIONS_KEY: ExecutionParameter(type=str),
        SCHEMA_FILE_KEY: ExecutionParameter(type=str, optional=True),
    }
    OUTPUTS = {  # noqa: RUF012
        **standard_component_specs.FileBasedExampleGenSpec.OUTPUTS,
        QUARANTINE_KEY: ChannelParameter(type=Quarantine),
    }


class Ingest(FileBasedExampleGen):
    """Converts raw files to examples.

    Outputs: `examples`, and `quarantine` with the rows that did not parse.

    Args:
        input_base: folder of the files, on disk or in an object store.
        input_config: patterns below `input_base`, which may contain {SPAN}, {VERSION} and dates. With more
            than one pattern, each is a split, and `output_config` must name none. None: every file.
        output_config: the splits, their hash buckets and the column to hash. None: train and eval, 2 to 1.
        options: how to read and write the files. Its `split` is ignored, and its `split_by` is used only for
            "time" and "parts"; `output_config` decides the rest.
        schema_file: a schema (.pbtxt) that gives the columns' types; None: infer them from the content.
        range_config: the spans to read; None: the latest.
    """

    SPEC_CLASS = IngestSpec
    EXECUTOR_SPEC = executor_spec.BeamExecutorSpec(Executor)
    DRIVER_CLASS = Driver

    def __init__(
        self,
        *,
        input_base: str,
        input_config: example_gen_pb2.Input | None = None,
        output_config: example_gen_pb2.Output | None = None,
        options: Options | None = None,
        schema_file: str | None = None,
        range_config: range_config_pb2.RangeConfig | None = None,
    ) -> None:
        input_config = input_config or utils.make_default_input_config()
        spec = IngestSpec(
            input_base=input_base,
            input_config=input_config,
            output_config=output_config or utils.make_default_output_config(input_config),
            range_config=range_config,
            output_data_format=example_gen_pb2.FORMAT_TF_EXAMPLE,
            output_file_format=example_gen_pb2.FORMAT_TFRECORDS_GZIP,
            examples=channel_utils.as_channel([standard_artifacts.Examples()]),
            quarantine=channel_utils.as_channel([Quarantine()]),
            **{
                OPTIONS_KEY: json.dumps((options or Options()).to_json(), sort_keys=True),
                SCHEMA_FILE_KEY: schema_file,
            },
        )
        # Skip the base class's constructor, which supports only one output.
        base_beam_component.BaseBeamComponent.__init__(self, spec=spec)
