import json
from dataclasses import replace

import pytest

from slipway.components.preflight.chip_specs import Price
from slipway.components.preflight.finding import Training
from slipway.components.preflight.question_and_answer import Compiled
from slipway.components.preflight.result import FORMAT, Preflight
from slipway.components.preflight.verdict import judge

AT = "2026-11-22T02:00:00+00:00"


def test_json_names_the_slice_the_keys_and_how_to_rent_it(result):
    document = json.loads(json.dumps(result().to_json()))

    assert document["format"] == FORMAT
    assert document["made_at"] == AT
    assert document["recommended"] == "v5e-8"
    assert document["keys"]["train.tpu"] == "v5e-8"
    assert json.loads(document["rent"]["job"])["workerPoolSpecs"][0]["replicaCount"] == 1
    assert document["rent"]["command"].startswith("gcloud ai custom-jobs create --region=us-central1")
    assert document["slices"][0]["estimate"]["training_s"] > 0


def test_a_fast_look_is_reported_as_one_in_json_and_on_the_screen(result):
    fast, full = result(is_fast=True), result()

    assert [each.to_json()["slices"][0]["is_fast"] for each in (fast, full)] == [True, False]
    assert ", a fast look)" in fast.text()
    assert "- fast: compiled with the compiler's least effort" in fast.text()
    assert "fast" not in full.text()


@pytest.mark.parametrize(
    ("priced", "words"),
    [
        ([True], "take v5e-8, the slice that can"),
        ([True, True], "take v5e-8, cheapest at roofline speed of those that can"),
        ([True, False], "take v5e-8, cheapest at roofline speed of those with a known price that can"),
        ([False, False], "take v5e-8, the smallest of those (no price is known) that can"),
    ],
)
def test_a_slice_is_called_the_cheapest_only_of_those_whose_prices_are_known(result, priced, words):
    [one] = result().verdicts

    def verdict(generation, is_priced):
        where = replace(one.question.slice, name=f"{generation}-8", generation=generation)
        price = one.estimate.price if is_priced else None
        return replace(
            one,
            question=replace(one.question, slice=where),
            estimate=replace(one.estimate, price=price),
        )

    verdicts = tuple(map(verdict, ("v5e", "v6e"), priced))

    assert words in Preflight(workload="taxi", verdicts=verdicts, made_at=AT).text()


@pytest.mark.parametrize(("searched", "rules"), [({}, ["does_not_fit"]), ({"units": 64}, [])])
def test_values_that_a_search_may_replace_stop_no_run_for_lack_of_memory(case, searched, rules):
    made = case(step=Compiled(batch_size=1024, error="Ran out", is_out_of_memory=True))

    verdict = judge(made.question, made.answer, Training(backend="jax", epochs=1, searched=searched))

    assert not verdict.can_train
    result = Preflight(workload="taxi", verdicts=(verdict,), made_at=AT)
    assert [each.rule for each in result.stopping] == rules
    assert ("what is said here is of {units: 64}" in result.text()) == bool(searched)


def test_nothing_is_recommended_where_nothing_can_train(result):
    found = result(step=Compiled(batch_size=1024, error="no strings"))

    assert found.exit_code == 1
    assert found.to_json()["recommended"] is None
    assert found.to_json()["rent"] == {}


def test_own_prices_count(case):
    made = case()

    own = {"v5e": Price(usd=12.0, month="2026-10")}
    dear = judge(made.question, made.answer, Training(backend="jax", epochs=1, prices=own))

    assert dear.estimate.price_usd == pytest.approx(8 * 12.0)
    document = Preflight(workload="taxi", verdicts=(dear,), made_at=AT).to_json()
    assert document["prices_of"] == "2026-10"
    assert document["slices"][0]["estimate"]["price"] == "12 USD a chip-hour of 2026-10, yours"


def test_prices_of_a_table_are_named_with_each_of_their_months(case):
    made = case()
    slices = [made.question.slice, replace(made.question.slice, name="v2-8", generation="v2")]
    training = Training(backend="jax", epochs=1)

    verdicts = tuple(judge(replace(made.question, slice=each), made.answer, training) for each in slices)

    document = Preflight(workload="taxi", verdicts=verdicts, made_at=AT).to_json()
    assert document["prices_of"] == "2018-09, 2025-02"


def test_example_that_the_docs_name_has_the_keys_that_are_written(result, project):
    example = json.loads((project / "tests/data/preflight/preflight.json").read_text(encoding="utf-8"))
    now = json.loads(json.dumps(result().to_json()))

    assert example.keys() == now.keys()
    for kept in example["slices"]:
        assert kept.keys() == now["slices"][0].keys()
        assert kept["estimate"].keys() == now["slices"][0]["estimate"].keys()
