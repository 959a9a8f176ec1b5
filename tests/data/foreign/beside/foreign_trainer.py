"""A `module_file` of a stock Trainer that needs a module beside it, and a package. Data of the tests."""

from pathlib import Path

from foreign_layers.size import UNITS
from foreign_words import WORD


def run_fn(fn_args):
    """Writes a model that no server could load."""
    folder = Path(fn_args.serving_model_dir)
    folder.mkdir(parents=True)
    assert UNITS
    (folder / "saved_model.pb").write_text(WORD)
