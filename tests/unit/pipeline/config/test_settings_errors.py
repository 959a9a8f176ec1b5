"""What is wrong with a setting, in words."""

from pathlib import Path

import pytest

from slipway.pipeline.config import load_workload, read_assignments, settings_errors
from slipway.pipeline.errors import ConfigError

MINIMAL = """\
name: toy
data:
  source: data/trips.csv
  label: tips
transform:
  preprocessing_fn: work.features.preprocess
train:
  model: work.model.build
"""


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


def test_nearest_key_is_looked_for_only_where_it_is_shown(lines_of, monkeypatch):

    asked, original = [], settings_errors._unknown_key
    monkeypatch.setattr(
        settings_errors, "_unknown_key", lambda model, path: asked.append(path) or original(model, path)
    )
    lines = lines_of(MINIMAL + "".join(f"key_{number}: 1\n" for number in range(200)))
    assert "200 problems" in lines[0]
    assert [line for line in lines if "key_9:" in line]
    assert lines[-1] == "and 190 more"
    assert len(asked) == settings_errors.MAX_PROBLEMS
