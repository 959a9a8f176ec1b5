"""From raw trips to what the gate reads, in this process: Ingest, and TFDV's statistics and anomalies."""

import importlib
import importlib.util
import json
import os
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import pytest

from slipway.pipeline.wiring.beam_engine import NO_PACKAGE

SPLITS = ("train", "eval")


@dataclass
class Validated:
    """The artifacts that the gate takes, each as its folder."""

    examples: Path
    statistics: Path
    schema: Path
    anomalies: Path
    quarantine: Path


@pytest.fixture(scope="session")
def libraries():
    """TFX and TFDV, imported once and in the order that they need."""
    os.environ.setdefault("TF_USE_LEGACY_KERAS", "0")
    import tfx.components  # noqa: F401  (first: it patches what data validation imports)

    return SimpleNamespace(
        tfdv=importlib.import_module("tensorflow_data_validation"),
        Tally=importlib.import_module("slipway.components.statistics_gen.tally").Tally,
        batches=importlib.import_module("slipway.components.statistics_gen.reading").batches,
    )


@pytest.fixture(scope="session")
def trips():
    """The sample of real trips, each cell as the text that stands in the file."""
    import pandas as pd

    folder = Path(importlib.util.find_spec("tfx").origin).parent
    path = folder / "examples/chicago_taxi_pipeline/data/simple/data.csv"
    return pd.read_csv(path, dtype=str, keep_default_na=False)


@pytest.fixture(scope="session")
def ingest(libraries, project):
    """Runs Ingest's executor over the files of a folder."""
    from tfx.dsl.components.base.base_beam_executor import BaseBeamExecutor
    from tfx.proto import example_gen_pb2
    from tfx.types import standard_artifacts
    from tfx.utils import proto_utils

    from slipway.components.ingest.executor import Executor
    from slipway.components.ingest.options import Options
    from slipway.schemas.artifacts import Quarantine

    def call(folder, patterns, schema_file):
        inputs = example_gen_pb2.Input()
        for name, pattern in patterns.items():
            inputs.splits.add(name=name, pattern=pattern)
        outputs = example_gen_pb2.Output()
        for name, buckets in {"train": 2, "eval": 1}.items() if len(patterns) == 1 else ():
            outputs.split_config.splits.add(name=name, hash_buckets=buckets)
        examples, quarantine = standard_artifacts.Examples(), Quarantine()
        examples.uri, quarantine.uri = str(folder / "examples"), str(folder / "quarantine")
        context = BaseBeamExecutor.Context(
            beam_pipeline_args=["--runner=FnApiRunner", NO_PACKAGE],
            tmp_dir=str(folder / "tmp"),
            unique_id="1",
        )
        properties = {
            "input_base": str(folder),
            "input_config": proto_utils.proto_to_json(inputs),
            "output_config": proto_utils.proto_to_json(outputs),
            "ingest": json.dumps(Options(label="tips", max_bad_share=1.0).to_json()),
            "schema_file": str(schema_file),
        }
        Executor(context).Do({}, {"examples": [examples], "quarantine": [quarantine]}, properties)

    return call


@pytest.fixture(scope="session")
def validate(libraries, ingest, project, tmp_path_factory):
    """Takes trips (a data frame of texts) all the way; `seed` deals them to the splits, 2 to 1."""

    def call(frame, *, seed=None):
        folder = tmp_path_factory.mktemp("trips")
        schema_file = project / "schemas/taxi.pbtxt"
        if seed is None:
            frame.to_csv(folder / "trips.csv", index=False)
            patterns = {"all": "trips.csv"}
        else:
            mixed = frame.sample(frac=1.0, random_state=seed)
            cut = len(mixed) * 2 // 3
            for name, part in zip(SPLITS, (mixed[:cut], mixed[cut:]), strict=True):
                part.to_csv(folder / f"{name}.csv", index=False)
            patterns = {name: f"{name}.csv" for name in SPLITS}
        ingest(folder, patterns, schema_file)
        schema = folder / "schema" / "schema.pbtxt"
        schema.parent.mkdir()
        schema.write_text(schema_file.read_text(encoding="utf-8"), encoding="utf-8")
        _validate(libraries, folder, libraries.tfdv.load_schema_text(str(schema)))
        names = ("examples", "statistics", "schema", "anomalies", "quarantine")
        return Validated(*(folder / name for name in names))

    return call


def _validate(libraries, folder, schema):
    """What StatisticsGen and ExampleValidator write, in this process."""
    for split in SPLITS:
        tally = libraries.Tally(libraries.tfdv.StatsOptions(num_quantiles_histogram_buckets=100))
        for path in sorted((folder / "examples" / f"Split-{split}").iterdir()):
            for batch in libraries.batches(str(path)):
                tally.add(batch)
        statistics = tally.result()
        anomalies = libraries.tfdv.validate_statistics(statistics, schema)
        for name, file, message in (
            ("statistics", "FeatureStats.pb", statistics),
            ("anomalies", "SchemaDiff.pb", anomalies),
        ):
            path = folder / name / f"Split-{split}" / file
            path.parent.mkdir(parents=True)
            path.write_bytes(message.SerializeToString())
