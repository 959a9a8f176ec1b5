"""Ingest: turns raw files into examples, and puts rows that do not parse into a quarantine.

It stays a FileBasedExampleGen, so that spans, versions and the driver of Kubeflow work as for the stock ones.
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
    """A FileBasedExampleGen's interface, how the files are read, and a quarantine beside them."""

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
    """Raw files to examples.

    Outputs: `examples`, and `quarantine` with the rows that did not parse.

    Args:
        input_base: folder of the files, on disk or gs://.
        input_config: patterns below it, with {SPAN}, {VERSION} and dates where wanted; with more than one,
            each is a split and `output_config` names none. None: every file.
        output_config: the splits and their hash buckets, and the column whose hash decides. None: train and
            eval, 2 to 1.
        options: how the files are read and written. Its `split` is not used, and its `split_by` only for
            "time" and "parts": `output_config` says the rest.
        schema_file: a schema (.pbtxt) by which columns are typed; None: by their content.
        range_config: the spans to take; None: the latest.
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
        # Past the base's own constructor, which knows one output only.
        base_beam_component.BaseBeamComponent.__init__(self, spec=spec)
