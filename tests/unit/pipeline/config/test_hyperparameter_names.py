"""Which hyperparameters a model function takes is read from its source, as far as that can tell."""

import pytest

from slipway.components.project import PROJECT_ROOT
from slipway.pipeline.config.hyperparameter_names import find_unknown_hyperparameters, hyperparameter_names

SETTINGS = """
from dataclasses import KW_ONLY, dataclass, field
from typing import ClassVar

@dataclass(frozen=True)
class Hyperparameters:
    \"\"\"A docstring.\"\"\"
    units: int = 8
    rate: float = field(default=0.1)
    _: KW_ONLY
    depth: int = 1
    LIMIT: ClassVar[int] = 3
    made: int = field(init=False, default=0)

    def width(self): ...

class Other:
    def __init__(self, **anything): ...
"""

OF_LAYERS, OF_SETTINGS = ("features", "units", "rate"), ("units", "rate", "depth")
MODEL = f"""
{SETTINGS}
def layers(features, units=8, *, rate=0.1): ...
def any_layers(features, **more): ...
def decorated(function): return function

def build_model(features, hyperparameters):
    settings = Hyperparameters(**hyperparameters)
    return settings
"""


@pytest.fixture
def project(tmp_path):
    """A folder with a model whose function `build_model` is written anew by `build`."""
    for name, text in {"here/__init__.py": "", "here/settings.py": SETTINGS, "here/model.py": MODEL}.items():
        file = tmp_path / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
    return tmp_path


@pytest.fixture
def names_of(project):
    """The names that `build_model` takes, with this text in place of the one above."""

    def read(text):
        before = MODEL[: MODEL.index("def build_model")]
        (project / "here/model.py").write_text(before + text)
        return hyperparameter_names("here.model.build_model", root=project)

    return read


def test_the_fields_of_a_dataclass_that_they_are_unpacked_into(project):
    assert hyperparameter_names("here.model.build_model", root=project) == OF_SETTINGS


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("def build_model(f, h):\n    return layers(f, **h)\n", OF_LAYERS),
        ("def one(f, h): return layers(f, **h)\nbuild_model = one\n", None),
        ("def one(f, p): return layers(f, **p)\ndef build_model(f, h): return one(f, h)\n", OF_LAYERS),
        ("def one(f, p): return layers(f, **p)\ndef build_model(f, h): one(f, {'a': 1, **h})\n", OF_LAYERS),
        ("def one(f, p): return layers(f, **p)\ndef build_model(f, h): return one(f, dict(h))\n", OF_LAYERS),
        ("from here import settings as s\ndef build_model(f, h): x = s.Hyperparameters(**h)\n", OF_SETTINGS),
        ("from .settings import Hyperparameters as H\ndef build_model(f, h): H(**h)\n", OF_SETTINGS),
        ("import here.settings as s\ndef build_model(f, h): s.Hyperparameters(**h)\n", OF_SETTINGS),
    ],
)  # fmt: skip
def test_they_are_followed_to_where_they_are_unpacked(names_of, text, names):
    assert names_of(text) == names


@pytest.mark.parametrize(
    "text",
    [
        "def build_model(f, h): return any_layers(f, **h)\n",
        "def build_model(f, h): return Other(**h)\n",
        "def build_model(f, h): return unknown(**h)\n",
        "def build_model(f, h):\n    h = {}\n    return layers(f, **h)\n",
        "def build_model(f, h):\n    h.pop('mine')\n    return layers(f, **h)\n",
        "def build_model(f, h):\n    if f:\n        return layers(f, **h)\n",
        "def build_model(f, h): return layers(f, **h) if f else None\n",
        "def build_model(f, h): return layers(f, **{k: h[k] for k in ('units',)})\n",
        "def build_model(f, **h): return layers(f, **h)\n",
        "@decorated\ndef build_model(f, h): return layers(f, **h)\n",
        "def build_model(f, h): return layers(f, **h)\nlayers = print\n",
        "def build_model(f, h): return Hyperparameters(**h)\nclass Hyperparameters(Other): ...\n",
        "def build_model(f, h): return build_model(f, h)\n",
        "class build_model:\n    def __init__(self, f, h): layers(f, **h)\n",
        "from somewhere.else_ import Hyperparameters as H\ndef build_model(f, h): H(**h)\n",
        "def build_model(f, h):\n",
    ],
)
def test_where_reading_cannot_tell_nothing_is_known(names_of, project, text):
    assert names_of(text) is None
    assert find_unknown_hyperparameters(["any"], model="here.model.build_model", root=project) == {}


def test_a_model_elsewhere_is_left_to_the_trainer(project):
    assert hyperparameter_names("keras.applications.ResNet50", root=project) is None
    assert hyperparameter_names("here.nowhere.build", root=project) is None


def test_an_unknown_name_is_reported_with_the_nearest(project):
    found = find_unknown_hyperparameters(
        ["unitz", "rate", "zebra"], model="here.model.build_model", root=project
    )
    assert found == {
        "unitz": "here.model.build_model takes no hyperparameter of that name; nearest: units",
        "zebra": "here.model.build_model takes no hyperparameter of that name; there are: depth, rate, units",
    }


@pytest.mark.parametrize(
    ("model", "names"),
    [
        ("workloads.taxi.model.build_model", {"learning_rate", "hidden_units", "dropout"}),
        ("workloads.digits.model.build_model", {"learning_rate", "units", "dropout"}),
        ("slipway.components.trainer.models.cnn.build_model", {"classes", "augment", "filters", "units"}),
        ("slipway.components.trainer.models.residual.build_model", {"classes", "augment", "blocks"}),
        (
            "slipway.components.trainer.models.wide_and_deep.build_model",
            {"classes", "hidden_units", "dropout"},
        ),
    ],
)
def test_every_model_of_this_project_can_be_read(model, names):
    assert names <= set(hyperparameter_names(model, root=PROJECT_ROOT))


def test_a_model_of_ours_is_read_from_a_project_that_slipway_is_installed_for(project):
    model = "slipway.components.trainer.models.boosted_trees.build_model"
    found = find_unknown_hyperparameters(["clases"], model=model, root=project)
    assert found == {"clases": f"{model} takes no hyperparameter of that name; nearest: classes"}
