"""What docs/testing.md and docs/add-component.md show: tests of one's own parts."""

import pytest

from slipway import components
from slipway.components.errors import ComponentError
from slipway.pipeline.testing import (
    blessed_model,
    run_component,
    schema_of,
    statistics_of,
    tiny_examples,
    transformed,
    transformed_table,
)

pytestmark = [
    pytest.mark.slow,
    # TensorFlow's and Beam's own imports warn of what they will change in themselves.
    pytest.mark.filterwarnings("default"),
]

DARK, LIGHT = {"image": [0] * 784, "label": [3]}, {"image": [255] * 784, "label": [7]}


def test_pixels_are_kept_as_bytes():
    from workloads.digits.preprocessing import preprocessing_fn

    dark, light = transformed(preprocessing_fn, [DARK, LIGHT], schema="schemas/digits.pbtxt")
    assert (dark["image"], light["image"]) == (b"\x00" * 784, b"\xff" * 784)


def test_the_model_tells_dark_from_light():
    from workloads.digits.model import build_model
    from workloads.digits.preprocessing import preprocessing_fn

    table = transformed_table(
        preprocessing_fn,
        [DARK, LIGHT] * 16,
        schema="schemas/digits.pbtxt",
        label="label",
        images={"image": [28, 28, 1]},
    )
    model = build_model(table.features, {"learning_rate": 0.01})
    model.fit(table.inputs, table.labels, epochs=20, verbose=0)
    assert list(model.predict(table.inputs, verbose=0)[:2].argmax(axis=1)) == [3, 7]


TRIPS = """
feature { name: "query" type: BYTES shape { dim { size: 1 } } presence { min_fraction: 1 min_count: 1 } }
feature { name: "a" type: FLOAT shape { dim { size: 1 } } presence { min_fraction: 1 min_count: 1 } }
feature { name: "sport" type: INT shape { dim { size: 1 } } presence { min_fraction: 1 min_count: 1 } }
feature { name: "music" type: INT shape { dim { size: 1 } } presence { min_fraction: 1 min_count: 1 } }
"""


@pytest.mark.parametrize(
    ("label", "labels"),
    [
        ("sport", [[1], [0]]),
        (["sport", "music"], [[1, 0], [0, 1]]),
        ({"one": "music", "two": "sport"}, {"one": [[0], [1]], "two": [[1], [0]]}),
    ],
)
def test_labels_come_as_a_model_is_fitted_to_them_and_what_is_passed_through_is_no_input(
    tmp_path, label, labels
):
    (tmp_path / "trips.pbtxt").write_text(TRIPS, encoding="utf-8")
    rows = [
        {"query": ["q1"], "a": [0.5], "sport": [1], "music": [0]},
        {"query": ["q2"], "a": [1.5], "sport": [0], "music": [1]},
    ]
    table = transformed_table(
        lambda inputs: dict(inputs),
        rows,
        schema=tmp_path / "trips.pbtxt",
        label=label,
        pass_through=["query", "sport", "music"],
    )
    assert list(table.features) == list(table.inputs) == ["a"]
    found = table.labels
    plain = (
        {name: each.tolist() for name, each in found.items()} if isinstance(found, dict) else found.tolist()
    )
    assert plain == labels


@pytest.fixture
def rare_classes(project, monkeypatch):
    """The example's component, as if it lay in components/."""
    folder = str(project / "tests/data/own_component")
    monkeypatch.setattr(components, "__path__", [*components.__path__, folder])
    from slipway.components.rare_classes.component import RareClasses

    return RareClasses


def test_a_class_with_too_few_rows_fails_the_node(rare_classes, tmp_path):
    examples = tiny_examples([{"kind": ["cat"]}] * 3 + [{"kind": ["dog"]}], into=tmp_path)
    with pytest.raises(ComponentError, match="kind: dog has fewer than 2 rows"):
        run_component(rare_classes, into=tmp_path / "few", examples=examples, label="kind", least=2)
    made = run_component(rare_classes, into=tmp_path / "enough", examples=examples, label="kind", least=1)
    assert made["counts"].value == {"cat": 3, "dog": 1}


def test_a_blessed_model_is_pushed(tmp_path):
    from slipway.components.parameters import as_parameter
    from slipway.components.pusher.component import Pusher

    model, blessing = blessed_model(into=tmp_path)
    made = run_component(
        Pusher,
        into=tmp_path,
        model=model,
        blessing=blessing,
        examples=tiny_examples([DARK], into=tmp_path),
        schema=schema_of("schemas/digits.pbtxt", into=tmp_path),
        base=str(tmp_path / "serving"),
        about=as_parameter({"workload": "digits"}),
    )
    [version] = (tmp_path / "serving").glob("[0-9]*")
    assert made["pushed_model"].get_string_custom_property("pushed_destination") == str(version)


def test_an_unblessed_model_is_not_pushed(tmp_path):
    from slipway.components.parameters import as_parameter
    from slipway.components.pusher.component import Pusher

    model, blessing = blessed_model(into=tmp_path, blessed=False)
    made = run_component(
        Pusher,
        into=tmp_path,
        model=model,
        blessing=blessing,
        examples=tiny_examples([DARK], into=tmp_path),
        schema=schema_of("schemas/digits.pbtxt", into=tmp_path),
        base=str(tmp_path / "serving"),
        about=as_parameter({"workload": "digits"}),
    )
    assert made["pushed_model"].get_int_custom_property("pushed") == 0
    assert not (tmp_path / "serving").exists()


@pytest.mark.external  # TFX's own component; ours run in the same way above
def test_stock_components_run_on_tiny_examples(tmp_path):
    from tfx.components.example_validator.component import ExampleValidator

    examples = tiny_examples({"train": [DARK] * 5, "eval": [{**DARK, "label": [12]}]}, into=tmp_path)
    made = run_component(
        ExampleValidator,
        into=tmp_path,
        statistics=statistics_of(examples, into=tmp_path),
        schema=schema_of("schemas/digits.pbtxt", into=tmp_path),
    )
    anomalies = (tmp_path / "anomalies" / "Split-eval" / "SchemaDiff.pb").read_bytes()
    assert made["anomalies"].uri == str(tmp_path / "anomalies")
    assert b"label" in anomalies


def test_what_is_no_column_is_refused(tmp_path):
    with pytest.raises(TypeError, match="column 'x' holds"):
        tiny_examples([{"x": [1, "one"]}], into=tmp_path)
