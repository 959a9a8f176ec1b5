"""TFX's own taxi example, unchanged, as `--pipeline` takes it."""

import importlib.util
import itertools
from pathlib import Path

PIPELINE = "tfx.examples.chicago_taxi_pipeline.taxi_pipeline_native_keras:_create_pipeline"


def stock_taxi(folder: Path, *, rows: int) -> list[str]:
    """The words of a command that name it, with so many of its rows and all its files in a folder."""
    spec = importlib.util.find_spec("tfx")
    assert spec is not None
    [package] = spec.submodule_search_locations or ()
    example = Path(package, "examples", "chicago_taxi_pipeline")
    (folder / "data").mkdir()
    with (example / "data" / "simple" / "data.csv").open() as data:
        (folder / "data" / "data.csv").write_text("".join(itertools.islice(data, rows + 1)))
    settings = {
        "data_root": folder / "data",
        "module_file": example / "taxi_utils_native_keras.py",
        "serving_model_dir": folder / "serving",
    }
    sets = [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
    return ["--pipeline", PIPELINE, *sets]
