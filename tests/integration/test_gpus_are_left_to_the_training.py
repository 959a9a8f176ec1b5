"""Nodes beside the training that compute with TensorFlow keep to the CPU, before they read anything."""

import importlib

import pytest

pytestmark = pytest.mark.slow


class AskedError(Exception):
    """The node asked for the CPU."""


def transform(module):
    module.Executor().Do({}, {}, {})


def data_gate(module):
    names = ("examples", "statistics", "schema", "anomalies", "verdict", "label", "limits", "options")
    module.DataGate.EXECUTOR_SPEC.executor_class._FUNCTION(**dict.fromkeys(names), sample_rows=1)


def reference_models(module):
    names = ("examples", "transform_graph", "report", "labels", "tasks", "metrics", "models")
    module.ReferenceModels.EXECUTOR_SPEC.executor_class._FUNCTION(**dict.fromkeys(names))


@pytest.mark.parametrize(
    ("module", "start"),
    [
        ("transform.executor", transform),
        ("data_gate.component", data_gate),
        ("reference_models.component", reference_models),
    ],
)
def test_node_keeps_to_the_cpu(monkeypatch, module, start):
    def asked():
        raise AskedError

    module = importlib.import_module(f"slipway.components.{module}")
    monkeypatch.setattr(module, "keep_to_cpu", asked)
    with pytest.raises(AskedError):
        start(module)
