"""A search whose trials fail ends in their own error, and not with the values of one of them."""

import errno
import math

import pytest

from slipway.components.errors import ComponentError

pytestmark = [
    pytest.mark.slow,
    # The imports of TensorFlow, Beam and TFX warn of what they will change in themselves.
    pytest.mark.filterwarnings("default"),
]


@pytest.fixture
def tuner(tmp_path, monkeypatch):
    """Makes a tuner whose trainings have these outcomes in turn: metrics, or an error."""
    import keras_tuner

    from slipway.components.trainer import tuner_fn

    def made(*outcomes, trials):
        left = iter(outcomes)

        def launched(*_args, **_kwargs):
            outcome = next(left)
            if isinstance(outcome, Exception):
                raise outcome
            return True, {"metrics": outcome}

        monkeypatch.setattr(tuner_fn, "lay_out", lambda *_args, **_kwargs: None)
        monkeypatch.setattr(tuner_fn, "launch", launched)
        oracle = keras_tuner.oracles.RandomSearchOracle(
            objective=keras_tuner.Objective("val_loss", direction="min"),
            max_trials=trials,
            hyperparameters=tuner_fn._hyperparameters({"rate": {"low": 0.1, "high": 0.9}}),
            seed=1,
        )
        settings = {"hyperparameters": {}, "interpreter": None}
        return tuner_fn.JobTuner(
            oracle, settings=settings, transform=None, files=None, elsewhere=None, directory=str(tmp_path)
        )

    return made


@pytest.mark.parametrize("algorithm", ["random", "bayesian"])
def test_keras_tuner_takes_every_kind_of_values(algorithm):
    import keras_tuner

    from slipway.components.trainer.tuner_fn import ALGORITHMS, _hyperparameters

    space = {
        "dropout": {"choices": [0, 0.2]},
        "depth": {"choices": [None, 5]},
        "flip": {"choices": [True, False]},
        "rate": {"low": 1, "high": 2, "step": 0.5},
    }
    oracle = ALGORITHMS[algorithm](
        objective=keras_tuner.Objective("val_loss", direction="min"),
        max_trials=2,
        hyperparameters=_hyperparameters(space),
        seed=1,
    )
    values = oracle.populate_space("0")["values"]
    assert values.keys() == space.keys()


FAILED = ComponentError("training failed: no such layer", hint="write another")


@pytest.mark.parametrize("trials", [1, 2, 5])
def test_search_without_a_trial_that_could_be_trained_ends_in_its_error(tuner, trials):
    with pytest.raises(ComponentError, match="training failed: no such layer") as told:
        tuner(*[FAILED] * trials, trials=trials).search()
    assert told.value.hint == "write another"


def test_trial_that_fails_is_left_out(tuner):
    search = tuner({"val_loss": 0.5}, FAILED, {"val_loss": 0.25}, trials=3)
    search.search()
    assert [trial.score for trial in search.oracle.get_best_trials(2)] == [0.25, 0.5]


def test_metric_that_is_not_measured_ends_the_search_at_once(tuner):
    with pytest.raises(
        ComponentError, match=r"tune.metric 'val_loss' is not measured; there are loss, val_auc"
    ):
        tuner({"loss": 1.0, "val_auc": 0.5}, trials=2).search()


@pytest.mark.parametrize("trials", [2, 4])
def test_metric_that_is_nan_in_all_trials_is_told(tuner, trials):
    with pytest.raises(ComponentError, match=r"gives a number for tune.metric \(val_loss\)"):
        tuner(*[{"val_loss": math.nan}] * trials, trials=trials).search()


def test_search_whose_record_is_not_whole_begins_anew(tuner, tmp_path):
    tuner({"val_loss": 0.5}, {"val_loss": 0.25}, trials=2).search()
    again = tuner(trials=2)
    again.search()
    assert again.oracle.get_best_trials(1)[0].score == 0.25, "finished trials are kept"
    (tmp_path / "trials" / "oracle.json").write_bytes(b"")  # the disk was full
    search = tuner({"val_loss": 0.75}, {"val_loss": 0.625}, trials=2)
    search.search()
    assert [trial.score for trial in search.oracle.get_best_trials(2)] == [0.625, 0.75]


def test_what_a_full_disk_cuts_off_is_not_the_record(tuner, tmp_path, monkeypatch):
    tuner({"val_loss": 0.5}, trials=1).search()
    monkeypatch.setattr("pathlib.Path.write_text", _half_written)
    with pytest.raises(OSError, match="No space"):
        tuner({"val_loss": 0.25}, trials=2).search()
    monkeypatch.undo()
    (tmp_path / "trials/unfinished.7.oracle.json").write_bytes(b"{")  # of a process that was killed
    search = tuner({"val_loss": 0.25}, trials=2)
    search.search()
    assert [trial.score for trial in search.oracle.get_best_trials(2)] == [0.25, 0.5]


def _half_written(path, text, **_):
    path.write_bytes(text[: len(text) // 2].encode())
    raise OSError(errno.ENOSPC, "No space left on device")
