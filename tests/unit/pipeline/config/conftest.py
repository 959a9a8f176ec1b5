"""A folder with the code of the smallest workload, whose file a test writes."""

from pathlib import Path

import pytest
from small_workload import MINIMAL

from slipway.pipeline.config import load_workload, read_assignments
from slipway.pipeline.errors import ConfigError


@pytest.fixture
def root(tmp_path):
    (tmp_path / "work").mkdir()
    (tmp_path / "work/features.py").write_text("def preprocess(inputs): ...\n")
    (tmp_path / "work/model.py").write_text("def build(features): ...\n")
    (tmp_path / "trips.pbtxt").write_text("")
    return tmp_path


@pytest.fixture
def load(root):
    """Loads a workload file with the given text."""

    def loaded(text=MINIMAL, *, sets=(), **kwargs):
        (root / "w.yaml").write_text(text)
        return load_workload(Path("w.yaml"), root=root, sets=read_assignments(sets), **kwargs)

    return loaded


@pytest.fixture
def lines_of(load):
    """The lines of the message with which a workload file is refused."""

    def lines(text=MINIMAL, **kwargs):
        with pytest.raises(ConfigError) as caught:
            load(text, **kwargs)
        assert caught.value.exit_code == 2
        return caught.value.message.splitlines()

    return lines
