"""The reviews workload as a user runs it: texts of any length to a served model.

Seen only here: a vocabulary of words from the text to the answer, also to an empty text. External: its codes,
and the model that they teach, are seen in tests/unit/workloads/, texts of any length from files to answers in
test_lists.py.
"""

import json
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.slow,
    pytest.mark.external,
    # TensorFlow's own imports warn of what they will change in themselves.
    pytest.mark.filterwarnings("default"),
]

ASKED = ["A great film, one of the best.", "Bad, the worst of all.", "", "?!"]


@pytest.fixture(scope="module")
def output(tmp_path_factory):
    return tmp_path_factory.mktemp("reviews") / "output"


@pytest.fixture(scope="module")
def record(record_of, output):
    return record_of("reviews", output)


def test_reviews_are_distinguished_and_the_model_is_pushed(record):
    assert record["metrics"]["example_count"] == 43
    assert record["metrics"]["auc"] > 0.55
    assert record["pushed"], "the gates and the serving check passed, an empty text among its requests"


def test_empty_text_is_answered_with_a_number_in_predict_and_served(record, warm_runner, output, tmp_path):
    from slipway.components.saved_model.loading import LoadedModel
    from slipway.components.serving.request_decoding import parse_request

    rows = [{"text": text} for text in ASKED] + [{}]
    file = tmp_path / "new.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    to = tmp_path / "predicted"
    words = ("predict", "reviews", "--input", str(file), "--to", str(to), "--output", str(output))
    finished = warm_runner(*words)
    assert finished.returncode == 0, finished.stderr
    written = (to / "predictions-00000-of-00001.jsonl").read_text(encoding="utf-8").splitlines()
    found = [json.loads(line) for line in written]
    assert [line["class"] for line in found[:2]] == ["good", "bad"]
    none = found[2]["prediction"][0]
    assert 0.2 < none < 0.8
    assert [line["prediction"][0] for line in found[3:]] == pytest.approx([none, none])

    model = LoadedModel(Path(record["pushed"]["path"]))
    request = {"signature_name": "serve_raw", "instances": [{"text": [text]} for text in ASKED]}
    signature, _, arrays = parse_request(request, model.signatures)
    [answers] = model.call(signature, arrays).values()
    wanted = [line["prediction"][0] for line in found[:4]]
    assert answers[:, 0].tolist() == pytest.approx(wanted, abs=1e-6)
