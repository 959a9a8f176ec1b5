"""Rules for a user's own metrics; TFMA's part is in tests/integration/evaluator/test_parity.py."""

import sys
from types import ModuleType, SimpleNamespace

import pytest

from slipway.components.errors import ComponentError
from slipway.components.evaluator.own_metrics import (
    OwnMetric,
    failure,
    require_metrics,
    require_new_names,
    require_results,
    unsupported_failure,
    weighed_alike,
)


class Base:
    """Stands for TFMA's metrics."""

    def __init__(self, name):
        self.name = name

    @classmethod
    def from_config(cls, config):
        return cls(**config)


@pytest.fixture
def module(monkeypatch, tmp_path):
    """A module of the user's, empty, with a file."""
    made = ModuleType("mine_of_a_test")
    made.__file__ = str(tmp_path / "mine_of_a_test.py")
    monkeypatch.setitem(sys.modules, "mine_of_a_test", made)
    return made


def gain(**settings):
    return OwnMetric("gain", "mine_of_a_test", "Gain", {"name": "gain", **settings})


def refused(metric=None, taken=None):
    with pytest.raises(ComponentError) as told:
        require_metrics([metric or gain()], kinds=(Base,), taken=taken or {})
    return f"{told.value.message}; {told.value.hint}"


def test_what_is_no_metric_is_reported_before_a_row_is_read(module):
    where = "the metric gain (mine_of_a_test.Gain)"
    assert refused() == f"{where} does not exist: mine_of_a_test has no Gain; "
    for wrong in (len, dict):
        module.Gain = wrong
        assert refused().startswith(f"{where} is no metric; derive the class from ")
    module.Gain = type("Gain", (type("Metric", (), {"__module__": "keras.src.metrics"}),), {})
    assert f"{where} is one of Keras 3, which TensorFlow Model Analysis does not take" in refused()
    module.Gain = type("Gain", (Base,), {})
    require_metrics([gain()], kinds=(Base,), taken={"Gain": module.Gain})
    assert f"{where} has the name of one of TensorFlow Model Analysis" in refused(taken={"Gain": Base})
    told = refused(gain(fare=2))
    assert told.startswith(f"{where} cannot be constructed with name='gain', fare=2: TypeError: ")
    assert "unexpected keyword argument 'fare'" in told


def test_a_module_that_cannot_be_imported_is_reported_with_the_reason(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "broken_of_a_test.py").write_text("raise ValueError('no fares\\nat all')")
    for module, why in {
        "broken_of_a_test": "ValueError: no fares",
        "missing_of_a_test": "ModuleNotFoundError: No module named 'missing_of_a_test'",
    }.items():
        told = refused(OwnMetric("gain", module, "Gain", {}))
        assert told == f"the metric gain ({module}.Gain) cannot be imported: {why}; "


def raised(source, file):
    try:
        exec(compile(source, file, "exec"), {})  # noqa: S102
    except ValueError as error:
        return error


def test_an_error_while_computing_names_the_metric_the_place_and_the_reason(module):
    error = raised("\n\nraise ValueError('no fares')", module.__file__)
    words = "the metric gain (mine_of_a_test.Gain) failed at mine_of_a_test.py:3: ValueError: no fares"
    other = OwnMetric("other", "json", "Other", {})
    assert failure([other, gain()], error).message == words
    # Beam passes on the traceback of another process as text, with the name of the step.
    text = f"""Traceback (most recent call last):
  File "/opt/beam/worker.py", line 9, in process
    call()
  File "{module.__file__}", line 3, in add_input
    raise ValueError("no fares")
ValueError: no fares [while running 'ExtractEvaluate/Combine']
"""
    assert failure([other, gain()], RuntimeError(text)).message == words
    elsewhere = failure([other, gain()], ValueError("no room"))
    assert elsewhere.message == (
        "TFX's own executor failed while it computed the metric other (json.Other) or the metric gain "
        "(mine_of_a_test.Gain): ValueError: no room"
    )
    assert failure([gain()], OSError(28, "No space left on device")).hint == "make room on the disk"
    assert "--jobs 1" in failure([gain()], MemoryError()).hint


def test_what_no_executor_can_evaluate_is_reported_by_the_first_error_and_not_by_the_rows():
    reason, cause = LookupError("the model answers string"), ValueError("no number: 'a word'")
    error = RuntimeError("add_input failed with inputs:\n[{'labels': array([0.])}]")
    error.__context__, cause.__context__ = cause, reason
    told = unsupported_failure(reason, error)
    assert told.message == (
        "TFX's own executor failed at what ours does not support: the model answers string: "
        "ValueError: no number: 'a word'"
    )
    assert told.hint.startswith("check evaluate.metrics and transform.label against what the model answers;")


def test_of_several_metrics_of_one_module_each_may_have_failed(module):
    error = raised("raise ValueError('no fares')", module.__file__)
    loss = OwnMetric("loss", "mine_of_a_test", "Loss", {})
    assert failure([gain(), loss], error).message == (
        "the metric gain (mine_of_a_test.Gain) or the metric loss (mine_of_a_test.Loss) failed at "
        "mine_of_a_test.py:1: ValueError: no fares"
    )


def test_a_metric_that_gives_its_result_another_name_is_reported():
    require_results([gain()], {("", "", "gain"), ("", "", "other")})
    with pytest.raises(ComponentError, match="gives no result of that name; there is a, b"):
        require_results([gain()], {("", "", "b"), ("", "", "a")})


def test_each_output_and_each_model_must_have_a_result():
    models = ("candidate", "baseline")
    metrics = [OwnMetric("gain", "mine_of_a_test", "Gain", {}, output, models) for output in ("sold", "cost")]
    found = {(model, output, "gain") for model in models for output in ("sold", "cost")}
    require_results(metrics, found)
    for lacking, words in {
        ("baseline", "sold", "gain"): r"the metric sold/gain \(mine_of_a_test.Gain\) gives no result of that "
        "name for the model baseline; there is cost/gain, sold/gain",
        ("candidate", "cost", "gain"): "the metric cost/gain .* for the model candidate; ",
    }.items():
        with pytest.raises(ComponentError, match=words):
            require_results(metrics, found - {lacking})
    unnamed = {("", output, name) for _, output, name in found}
    with pytest.raises(
        ComponentError, match="for the model candidate; there is cost/gain, sold/gain"
    ) as told:
        require_results(metrics, unnamed)
    assert "the model_name and the output_name" in told.value.hint


def test_a_result_in_the_place_of_another_is_refused():
    metrics = [gain()]
    require_new_names(metrics, {("", "", "gain"), ("", "", "more")}, taken={("", "sold", "gain")})
    for name in ("auc", "label_mean", "example_count", "answers", "taken"):
        with pytest.raises(ComponentError) as told:
            require_new_names(metrics, {("", "sold", name)}, taken={("", "sold", "taken")})
        assert told.value.message == (
            f"the metric gain (mine_of_a_test.Gain) gives a result called sold/{name}, which is the name of "
            "another metric"
        )


def models(*names):
    return SimpleNamespace(
        model_specs=[SimpleNamespace(name=name, is_baseline=name == "baseline") for name in names]
    )


def test_baseline_has_the_candidate_s_weights_whether_it_gives_others_or_none():
    pair, wanted = models("candidate", "baseline"), {"candidate": [1, 2], "baseline": [1, 2]}
    assert weighed_alike({"candidate": [1, 2], "baseline": [3, 3]}, pair) == wanted
    assert weighed_alike({"candidate": [1, 2]}, pair) == wanted
    assert weighed_alike({"baseline": [3, 3]}, pair) == {"baseline": [3, 3]}
    assert weighed_alike([1, 2], models("")) == [1, 2]
    assert weighed_alike({"a": [1], "b": [2]}, models("a", "b")) == {"a": [1], "b": [2]}
