"""Versions of the smallest workload's models, pushed to where it has them."""

import pytest
from small_workload import small_workload

from slipway.components.pusher.publish_to_folder import publish


@pytest.fixture
def config():
    return small_workload()


@pytest.fixture
def output(tmp_path):
    return tmp_path / "output"


@pytest.fixture
def base(output):
    return output / "serving/toy"


@pytest.fixture
def pushed(tmp_path, base):
    """Pushes models by name; returns their versions."""

    def call(*names):
        found = []
        for name in names:
            folder = tmp_path / "models" / name
            (folder / "variables").mkdir(parents=True, exist_ok=True)
            (folder / "saved_model.pb").write_text(name, encoding="utf-8")
            (folder / "variables/variables.index").write_text(name * 9, encoding="utf-8")
            provenance = {"workload": "toy", "metrics": {"auc": 0.9}, "pushed_at": f"at {name}"}
            found.append(publish(folder, base=base, provenance=provenance).version)
        return found

    return call
