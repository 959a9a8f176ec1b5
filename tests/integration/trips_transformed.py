"""The transform of the taxi workload, forked from the warm process: `main([EXAMPLES, SCHEMA, FOLDER])`.

Not in the tests' own process: Beam and TensorFlow Transform together crash now and then while Python takes
them down, after the tests have passed.
"""

from pathlib import Path

import apache_beam as beam
import tensorflow_transform as tft
import tensorflow_transform.beam as tft_beam
from google.protobuf import text_format
from tensorflow_metadata.proto.v0 import schema_pb2
from tensorflow_transform.tf_metadata import dataset_metadata, metadata_io
from tfx_bsl.public import tfxio

from workloads.taxi.preprocessing import preprocessing_fn


def main(arguments):
    examples, schema_file, folder = arguments
    schema = text_format.Parse(Path(schema_file).read_text(encoding="utf-8"), schema_pb2.Schema())
    source = tfxio.TFExampleRecord(examples, schema=schema, telemetry_descriptors=["test"])
    with beam.Pipeline() as pipeline, tft_beam.Context(temp_dir=f"{folder}/beam"):
        data = (pipeline | source.BeamSource(), source.TensorAdapterConfig())
        (rows, metadata), transform_fn = data | tft_beam.AnalyzeAndTransformDataset(preprocessing_fn)
        coder = tft.coders.ExampleProtoCoder(metadata.schema)
        _ = rows | beam.Map(coder.encode) | beam.io.WriteToTFRecord(f"{folder}/rows", file_name_suffix=".gz")
        _ = transform_fn | tft_beam.WriteTransformFn(f"{folder}/transform")
    # The Transform component's executor writes this one beside the transform.
    metadata_io.write_metadata(
        dataset_metadata.DatasetMetadata(schema),
        f"{folder}/transform/{tft.TFTransformOutput.RAW_METADATA_DIR}",
    )
    return 0
