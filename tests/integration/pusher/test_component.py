"""The Pusher on artifacts as the Trainer and the gate leave them."""

import logging
from pathlib import Path

import pytest

from components.errors import ComponentError

pytestmark = pytest.mark.slow


@pytest.fixture
def push(tmp_path):
    """Runs the component's function with a blessing of the given value; returns the pushed artifact."""
    from tfx.types.standard_artifacts import Model, ModelBlessing, PushedModel

    from components.pusher.component import Pusher

    def call(*, blessed, file="BLESSED"):
        model, blessing, pushed = Model(), ModelBlessing(), PushedModel()
        model.uri, blessing.uri = str(tmp_path / "models/7"), str(tmp_path / "blessing")
        saved_model = tmp_path / "models/7/Format-Serving/saved_model.pb"
        saved_model.parent.mkdir(parents=True, exist_ok=True)
        saved_model.write_bytes(b"graph")
        Path(blessing.uri).mkdir(exist_ok=True)
        if file:
            Path(blessing.uri, file).touch()
        if blessed is not None:
            blessing.set_int_custom_property("blessed", blessed)
        function = Pusher.EXECUTOR_SPEC.executor_class._FUNCTION
        function(model=model, blessing=blessing, pushed_model=pushed, base=str(tmp_path / "serving"))
        return pushed

    return call


def properties(pushed):
    return (
        pushed.get_int_custom_property("pushed"),
        pushed.get_string_custom_property("pushed_destination"),
        pushed.get_string_custom_property("pushed_version"),
    )


def test_blessed_model_is_pushed_and_named_with_its_path_and_version(push, tmp_path):
    was_pushed, destination, version = properties(push(blessed=1))
    assert was_pushed == 1
    assert destination == str(tmp_path / "serving" / version)
    assert Path(destination, "saved_model.pb").read_bytes() == b"graph"


def test_model_pushed_before_its_record_was_kept_is_found_again(push, tmp_path):
    assert properties(push(blessed=1)) == properties(push(blessed=1))
    assert len(list((tmp_path / "serving").glob("[0-9]*"))) == 1


@pytest.mark.parametrize("blessed", [0, None])
def test_unblessed_model_is_not_pushed_and_the_log_says_so(push, tmp_path, caplog, blessed):
    with caplog.at_level(logging.WARNING):
        pushed = push(blessed=blessed, file="NOT_BLESSED")
    assert properties(pushed) == (0, "", "")
    assert not (tmp_path / "serving").exists()
    assert "Not pushed: " in caplog.text
    assert "is not blessed" in caplog.text


def test_blessing_whose_file_is_gone_is_an_error(push, tmp_path):
    with pytest.raises(ComponentError, match="holds no file BLESSED") as raised:
        push(blessed=1, file=None)
    assert "--from ModelGate" in raised.value.hint
    assert not (tmp_path / "serving").exists()
