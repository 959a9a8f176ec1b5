"""The model card: what it says, and that nobody's text does anything in it."""

import json

import pytest
import yaml

from slipway.components.pusher.model_card import model_card

PROVENANCE = {
    "workload": "taxi",
    "description": "Whether the tip exceeds 20% of the fare.",
    "label": "tips",
    "data": {
        "source": "trips.csv",
        "span": "2",
        "digest": "d1",
        "rows_in": 15,
        "rows_out": {"train": 10, "eval": 4},
        "rejected": {"not a number": 1},
    },
    "metrics": {"example_count": 4, "auc": 0.95},
    "baseline_metrics": {"auc": 0.94},
    "slices": {
        "overall": {"auc": 0.95, "example_count": 4},
        "payment_type=Cash": {"auc": 0.475, "example_count": 1},
    },
    "data_gate": {
        "message": "1 finding in 4 rows",
        "findings": ["fare: missing in 9% of the rows"],
        "overrides": [{"reason": "the city told us"}],
    },
    "gate": {"reasons": ["auc 0.95, meets at least 0.94"], "overrides": [{"by": "ann", "reason": "trial"}]},
    "model": {
        "digest": "m1",
        "signatures": {
            "serve_raw": {
                "inputs": {
                    "fare": {"dtype": "float", "shape": [None, 1]},
                    "company": {"dtype": "string", "shape": [None, 1]},
                },
                "outputs": {"outputs": {"dtype": "float", "shape": [None, 1]}},
            }
        },
    },
    "run": "20261120-1",
}


def test_card_has_purpose_data_metrics_limits_and_a_request():
    card = model_card(PROVENANCE)
    assert "It predicts the column tips." in card
    headings = [line for line in card.splitlines() if line.startswith("#")]
    assert headings == [
        "# taxi",
        "## Data",
        "## Metrics",
        "## Limits",
        "## How to call it",
        "## How it was made",
    ]
    assert "Whether the tip exceeds 20% of the fare." in card
    assert "| auc | 0.95 | 0.94 |" in card
    assert "| rows rejected | 1 |" in card
    assert "- **Passed despite the gate**: by ann, reason trial" in card
    assert "| the data gate | 1 finding in 4 rows |" in card
    assert "- fare: missing in 9% of the rows" in card
    assert "- **The data passed despite its gate**: reason the city told us" in card


def test_card_begins_with_what_the_hub_reads():
    provenance = {
        **PROVENANCE,
        "task": "tabular-classification",
        "metrics": {**PROVENANCE["metrics"], "loss": float("nan")},
    }
    card = model_card(provenance)
    assert card.startswith("---\nlibrary_name: tensorflow\n")
    assert yaml.safe_load(card.split("---\n")[1]) == {
        "library_name": "tensorflow",
        "pipeline_tag": "tabular-classification",
        "tags": ["tensorflow", "saved-model", "tfx", "slipway"],
        "metrics": ["roc_auc"],
        "model-index": [
            {
                "name": "taxi",
                "results": [
                    {
                        "task": {"type": "tabular-classification"},
                        "dataset": {"name": "trips.csv", "type": "custom", "split": "eval", "revision": "d1"},
                        "metrics": [{"type": "roc_auc", "name": "auc", "value": 0.95}],
                    }
                ],
            }
        ],
    }


@pytest.mark.parametrize("value", [1e-05, 1e16, 2.5e-07, 0.95, 12])
def test_metrics_are_numbers_for_the_hub(value):
    card = model_card({**PROVENANCE, "task": "tabular-regression", "metrics": {"mean_squared_error": value}})
    [results] = yaml.safe_load(card.split("---\n")[1])["model-index"][0]["results"]
    assert results["metrics"][0]["value"] == value


def test_results_of_a_model_without_a_task_are_in_no_index():
    assert "model-index" not in yaml.safe_load(model_card(PROVENANCE).split("---\n")[1])


def test_bars_are_as_long_as_the_values_with_the_lowest_first():
    lines = [line for line in model_card(PROVENANCE).splitlines() if "█" in line]
    assert [(line.split()[0], line.count("█")) for line in lines] == [
        ("payment_type=Cash", 20),
        ("overall", 40),
    ]


def test_example_request_is_one_that_can_be_sent():
    [command] = [line for line in model_card(PROVENANCE).splitlines() if line.startswith("curl")]
    body = command.split("'")[1]
    assert json.loads(body) == {
        "signature_name": "serve_raw",
        "instances": [{"fare": [0.0], "company": [""]}],
    }
    assert command.endswith("http://127.0.0.1:8501/v1/models/taxi:predict")


def test_inputs_too_large_to_write_down_are_listed_without_a_request():
    image = {"serve_raw": {"inputs": {"image": {"dtype": "float", "shape": [None, 28, 28]}}}}
    card = model_card({**PROVENANCE, "model": {"signatures": image}})
    assert "| image | float | [28, 28] |" in card.replace("\\", "")
    assert "curl" not in card


def test_column_of_lists_is_of_any_length_and_shown_with_one_value():
    tags = {"serve_raw": {"inputs": {"tags": {"dtype": "string", "shape": [None, None]}}}}
    card = model_card({**PROVENANCE, "model": {"signatures": tags}})
    assert "| tags | string | [any] |" in card.replace("\\", "")
    assert "a row has a list: as long as the longest, with empty cells at its end" in card
    assert '"instances": [{"tags": [""]}]' in card
    assert "a row has a list" not in model_card(PROVENANCE)


HOSTILE = "<script>alert(1)</script> [x](javascript:1) `rm` | ~~~~\n# heading \x1b[31m ![i](http://h/i)"


PLACES = [
    "description",
    "label",
    "source",
    "slice",
    "reason",
    "override",
    "metric",
    "finding",
    "task",
    "workload",
]


@pytest.mark.parametrize("place", PLACES)
def test_text_of_anybody_does_nothing_in_the_card(place):
    provenance = {
        **PROVENANCE,
        "description": HOSTILE if place == "description" else "",
        "label": HOSTILE if place == "label" else "tips",
        "data": {"source": HOSTILE if place == "source" else "s"},
        "task": HOSTILE if place == "task" else "tabular-classification",
        "workload": HOSTILE if place == "workload" else "taxi",
        "metrics": {"auc": 0.5, **({HOSTILE: 0.1} if place == "metric" else {})},
        "data_gate": {"message": "m", "findings": [HOSTILE if place == "finding" else "f"]},
        "slices": {"overall": {"auc": 0.5}, (HOSTILE if place == "slice" else "x=1"): {"auc": 0.4}},
        "gate": {
            "reasons": [HOSTILE if place == "reason" else "r"],
            "overrides": [HOSTILE] if place == "override" else [],
        },
    }
    card = model_card(provenance)
    outside = "\n".join(part for number, part in enumerate(card.split("~~~~")) if number % 2 == 0)
    assert card.count("~~~~") % 2 == 0
    assert "<script>" not in outside
    assert "[x](" not in outside
    assert "\x1b" not in card
    assert not any(line.startswith("# heading") for line in card.splitlines())
    assert yaml.safe_load(card.split("\n---\n")[0])["library_name"] == "tensorflow"
    columns = {line.count("|") - line.count("\\|") for line in card.splitlines() if line.startswith("| auc")}
    assert columns == {4}


@pytest.mark.parametrize(
    "provenance", [{}, {"metrics": 3, "slices": [], "gate": None, "data": "x", "model": 1}]
)
def test_provenance_that_says_little_or_nonsense_makes_a_short_card(provenance):
    block, _, card = model_card(provenance).partition("\n---\n\n")
    assert card.startswith("# A model")
    assert yaml.safe_load(block) == {
        "library_name": "tensorflow",
        "tags": ["tensorflow", "saved-model", "tfx", "slipway"],
    }


def test_card_tells_the_size_of_each_smaller_form_and_what_it_loses():
    form = {"kind": "litert_int8", "size_bytes": 54321, "metrics": {"auc": 0.93}, "change": {"auc": -0.02}}
    report = {"rows": 355, "metrics": {"auc": 0.95}, "exports": [form]}
    weights = {"path": "gs://b/w.h5", "sha256": "0ab"}
    card = model_card({**PROVENANCE, "exports": report, "pretrained": weights})
    assert "| began with the weights | gs://b/w.h5 |\n| their SHA-256 | 0ab |" in card
    assert "## Smaller forms" in card
    assert "measured on 355 rows" in card
    assert "| form | kB | auc |\n| --- | --- | --- |\n| litert\\_int8 | 54 | 0.93 (-0.02) |" in card
    assert "Smaller forms" not in model_card(PROVENANCE)
    form |= {"metrics": {}, "change": {}, "no_number": ["auc"]}
    assert "| litert\\_int8 | 54 | no number |" in model_card({**PROVENANCE, "exports": report})
