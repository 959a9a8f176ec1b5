"""A training resumes from its newest intact checkpoint."""

from contextlib import nullcontext

import numpy as np
import pytest
from small_job import small_job

from slipway.components.errors import ComponentError
from slipway.components.event_lines import read_event
from slipway.components.trainer.checkpoint_files import Checkpoint
from slipway.components.trainer.devices.devices import Devices
from slipway.components.trainer.loop.blow_up import BlownUpError
from slipway.components.trainer.settings.blow_up import BlowUpSettings

DEVICES = Devices(kind="cpu", backend="tensorflow", words="")


def job(output, **settings):
    return small_job(output_dir=str(output), **settings)


def model(weight):
    import keras

    built = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1, use_bias=False)])
    built.compile("sgd", "mse")
    built.optimizer.build(built.trainable_variables)
    built.set_weights([np.array([[weight]])])
    return built


def weight_of(built):
    return float(built.get_weights()[0][0, 0])


@pytest.mark.parametrize(
    ("settings", "kept_in"),
    [
        ({}, None),
        ({"blow_up": BlowUpSettings(trials=1)}, "output/checkpoints"),
        ({"checkpoint_dir": "own"}, "own"),
    ],
)
def test_checkpoints_are_kept_where_told_or_where_a_training_may_go_back(
    tmp_path, monkeypatch, settings, kept_in
):
    from slipway.components.trainer.loop.resume import checkpoint_folder

    monkeypatch.chdir(tmp_path)
    for name in ("output", "own"):
        (tmp_path / name).mkdir()
    folder = checkpoint_folder(job("output", **settings))
    assert (folder is None) == (kept_in is None)
    if folder:
        folder.begin_attempt(0.0)
        assert [file.name for file in (tmp_path / kept_in).iterdir()] == ["attempts.json"]


@pytest.mark.parametrize(
    ("begin", "calls", "words"),
    [
        (Checkpoint(), 35, ""),
        (Checkpoint(step=210, steps_per_epoch=105), 35, ""),
        (Checkpoint(step=98, steps_per_epoch=105), 7, ""),
        (
            Checkpoint(step=98, steps_per_epoch=105),
            35,
            "after step 98 comes from other epochs: now one",
        ),
        (
            Checkpoint(step=104, steps_per_epoch=104),
            1,
            "other epochs of 104 steps: now one has 105 steps, 1 in",
        ),
        (Checkpoint(step=104), 1, ""),
        (Checkpoint(step=104), 35, "after step 104 comes from other epochs: now"),
    ],
)
def test_a_training_goes_on_in_the_epochs_that_it_began_with(begin, calls, words):
    from slipway.components.trainer.loop.resume import require_same_epochs

    with pytest.raises(ComponentError, match=words) if words else nullcontext():
        require_same_epochs(begin, steps_per_epoch=105, steps_per_execution=calls)


def test_newest_checkpoint_is_restored_or_the_intact_one_before_it(tmp_path, capsys):
    from slipway.components.trainer.loop.model_state import snapshot
    from slipway.components.trainer.loop.resume import checkpoint_folder, restore_newest

    (tmp_path / "kept").mkdir()
    folder = checkpoint_folder(job(tmp_path, checkpoint_dir=str(tmp_path / "kept")))
    resumed = model(0.0)
    assert restore_newest(resumed, folder, DEVICES) == Checkpoint()
    for step, weight in [(1, 0.25), (2, 0.5)]:
        folder.save(Checkpoint(step=step, variables=snapshot(model(weight))))
    begin = restore_newest(resumed, folder, DEVICES)
    assert (begin.step, begin.variables, weight_of(resumed)) == (2, (), 0.5)
    assert capsys.readouterr().out == ""

    [newest] = (tmp_path / "kept").glob("*2.npz")
    newest.write_bytes(newest.read_bytes()[:-1])
    assert restore_newest(resumed, folder, DEVICES).step == 1
    assert weight_of(resumed) == 0.25
    told = read_event(capsys.readouterr().out)
    assert told["event"] == "damaged"
    assert "damaged" in told["message"]


@pytest.mark.parametrize(
    ("spoil", "words"),
    [(lambda file: file.write_bytes(b"torn"), "is damaged"), (lambda file: file.unlink(), "is missing")],
)
def test_a_best_epoch_that_cannot_be_read_is_told_with_what_helps(tmp_path, spoil, words):
    from slipway.components.trainer.loop.model_state import snapshot
    from slipway.components.trainer.loop.resume import checkpoint_folder, restore_best

    folder = checkpoint_folder(job(tmp_path, checkpoint_dir=str(tmp_path)))
    folder.save(Checkpoint(step=1, variables=snapshot(model(0.25))))
    resumed = model(0.0)
    restore_best(resumed, folder, 1)
    assert weight_of(resumed) == 0.25
    spoil(tmp_path / "step-000000001.npz")
    with pytest.raises(
        ComponentError, match=f"after step 1, cannot be used: step-000000001.npz {words}"
    ) as told:
        restore_best(resumed, folder, 1)
    assert "remove the checkpoints" in told.value.hint


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda file: file.write_bytes(b"torn"), "step-000000000.json cannot be used: .* is damaged"),
        (lambda file: file.with_suffix(".json").unlink(), "their files are gone"),
    ],
)
def test_a_model_that_has_blown_up_is_not_trained_on_where_no_checkpoint_is_left(tmp_path, spoil, words):
    from slipway.components.trainer.loop.model_state import snapshot
    from slipway.components.trainer.loop.resume import checkpoint_folder, go_back

    folder = checkpoint_folder(job(tmp_path, checkpoint_dir=str(tmp_path)))
    folder.save(Checkpoint(variables=snapshot(model(0.25))))
    spoil(tmp_path / "step-000000000.npz")
    with pytest.raises(ComponentError, match=f"the loss is nan, and there is no checkpoint to go .*{words}"):
        go_back(model(np.nan), folder, DEVICES, BlownUpError("the loss is nan"))


def test_a_checkpoint_of_weights_that_have_blown_up_is_not_gone_back_to(tmp_path, capsys):
    from slipway.components.trainer.loop.model_state import snapshot
    from slipway.components.trainer.loop.resume import checkpoint_folder, go_back

    folder = checkpoint_folder(job(tmp_path, checkpoint_dir=str(tmp_path)))
    for step, weight in [(1, 0.25), (2, np.nan)]:
        folder.save(Checkpoint(step=step, variables=snapshot(model(weight))))
    blown = model(np.nan)
    assert go_back(blown, folder, DEVICES, BlownUpError("the loss is nan")).step == 1
    assert weight_of(blown) == 0.25
    assert "a weight is NaN" in read_event(capsys.readouterr().out)["message"]


def test_a_checkpoint_of_another_keras_is_refused_and_of_another_backend_told(tmp_path, capsys):
    from slipway.components.trainer.loop.model_state import snapshot
    from slipway.components.trainer.loop.resume import checkpoint_folder, keras_versions, restore_newest

    now = keras_versions()
    assert list(now) == ["keras", "tensorflow"]
    folder = checkpoint_folder(job(tmp_path, checkpoint_dir=str(tmp_path)))
    for step, versions in enumerate([{}, now, {**now, "tensorflow": "2.1"}], start=1):
        folder.save(Checkpoint(step=step, versions=versions, variables=snapshot(model(step))))
        resumed = model(0.0)
        assert restore_newest(resumed, folder, DEVICES).versions == versions
        assert weight_of(resumed) == step
    told = read_event(capsys.readouterr().out)
    assert told["message"].startswith("goes on from a checkpoint of tensorflow 2.1 with tensorflow ")

    folder.save(Checkpoint(step=9, versions={**now, "keras": "3.0.1"}, variables=snapshot(model(9))))
    with pytest.raises(ComponentError, match=r"after step 9 was written with Keras 3\.0\.1") as refused:
        restore_newest(resumed, folder, DEVICES)
    assert refused.value.hint.startswith("go on with Keras 3.0.1, or remove the checkpoints")
