"""Entry point of the stock TFX Tuner: `tuner_fn='slipway.components.trainer.tuner_fn.tuner_fn'`.

Each trial is a training job like the Trainer's, in a separate process: same devices, input and rules.
"""

import json
import logging
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import keras_tuner
import tensorflow_transform as tft
from keras_tuner.engine.trial import TrialStatus
from keras_tuner.src.engine.stateful import Stateful
from tfx.components.tuner.component import TunerFnResult

from slipway.components import kept_state, progress
from slipway.components.atomic_file import UNFINISHED, whole_file
from slipway.components.errors import ComponentError
from slipway.components.trainer.job_layout import lay_out, read_settings
from slipway.components.trainer.launch import Elsewhere, launch
from slipway.components.trainer.search_space import Algorithm, Choices, chosen, search_space

_PROJECT = "trials"

ALGORITHMS: Mapping[Algorithm, Any] = {
    "random": keras_tuner.oracles.RandomSearchOracle,
    "bayesian": keras_tuner.oracles.BayesianOptimizationOracle,
}


def tuner_fn(fn_args: Any) -> TunerFnResult:
    """Return the tuner over the workload's search space.

    Args:
        fn_args: `tfx.components.FnArgs` with transform_graph_path, train_files, eval_files, working_dir, and
            a custom_config as for `run_fn`, with the additional key tune: the workload's section as plain
            values.

    Returns:
        A tuner that keeps the trials that an earlier attempt of this node finished.

    Raises:
        ComponentError: a setting breaks a rule.
    """
    tune = fn_args.custom_config["tune"]
    settings, machines = read_settings({k: v for k, v in fn_args.custom_config.items() if k != "tune"})
    if tune["metric"].startswith("val_") and settings["early_stopping"]["patience"] is None:
        logging.warning(
            "Trials are compared by %s of the eval split, which judges the model afterwards, so its metrics "
            "are a bit too good; train.early_stopping holds out rows of the train split for that",
            tune["metric"],
        )
    oracle = ALGORITHMS[tune["algorithm"]](
        objective=keras_tuner.Objective(tune["metric"], direction=tune["goal"]),
        max_trials=tune["trials"],
        hyperparameters=_hyperparameters(tune["search"]),
        seed=settings["seed"],
    )
    tuner = JobTuner(
        oracle,
        settings={**settings, "epochs": tune["epochs"] or settings["epochs"]},
        transform=tft.TFTransformOutput(fn_args.transform_graph_path),
        files=(fn_args.train_files, fn_args.eval_files),
        elsewhere=Elsewhere(machines, f"{fn_args.working_dir}/training") if machines else None,
        directory=str(kept_state.state_folder() or fn_args.working_dir),
    )
    return TunerFnResult(tuner=tuner, fit_kwargs={})


class NotMeasuredError(ComponentError, keras_tuner.errors.FatalError):
    """Trainings do not measure the metric that is tuned for; KerasTuner passes the error on at once."""


class JobTuner(keras_tuner.engine.base_tuner.BaseTuner):
    """Runs a training job for each trial.

    Args:
        oracle: chooses the values to try.
        settings: as `read_settings` returns them.
        transform: `tft.TFTransformOutput`.
        files: patterns of the train and of the eval split.
        elsewhere: other machines to train on; None: this one.
        directory: where finished trials are recorded.
    """

    def __init__(
        self,
        oracle: Any,
        *,
        settings: Mapping[str, Any],
        transform: Any,
        files: Any,
        elsewhere: Elsewhere | None,
        directory: str,
    ) -> None:
        self._elsewhere = elsewhere
        self._failure: Exception | None = None
        self._settings = settings
        self._transform = transform
        self._files = files
        if "://" not in directory:
            Stateful.save = _save_whole
            forget_damaged(Path(directory, _PROJECT))
        super().__init__(oracle, directory=directory, project_name=_PROJECT)

    def search(self, *args: Any, **kwargs: Any) -> None:
        """Run the trials, some of which may fail.

        Raises:
            Exception: the last trial's own, if all trials failed, or three in a row. Otherwise KerasTuner
                would take a failed trial's values for the best, or stop with a traceback as its message.
            ComponentError: the metric was NaN in these trials.
        """
        stopped: RuntimeError | None = None
        try:
            super().search(*args, **kwargs)
        except RuntimeError as error:
            stopped = error
        found = {trial.status for trial in self.oracle.trials.values()}
        if stopped is None and TrialStatus.COMPLETED in found:
            return
        raise self._failure or ComponentError(
            f"no trial, or none of the last three, gives a number for tune.metric ({self._metric})",
            hint="the node's log has the metrics of each trial; check tune.search, and tune.metric",
        ) from stopped

    @property
    def _metric(self) -> str:
        return str(self.oracle.objective.name)

    def run_trial(self, trial: Any, *_args: Any, **_kwargs: Any) -> dict[str, float]:
        """Train with the trial's values; return the metrics of the epoch that would be exported.

        Raises:
            ComponentError: the training failed, or did not measure the metric that is tuned for.
        """
        try:
            metrics = self._trained(trial)
        except Exception as error:
            self._failure = error
            raise
        self._failure = None
        wanted = self._metric
        if wanted not in metrics:
            raise NotMeasuredError(f"tune.metric {wanted!r} is not measured; there are {', '.join(metrics)}")
        done = len(self.oracle.end_order) + 1
        progress.report(f"{wanted} {metrics[wanted]:.4f}", done=done, total=self.oracle.max_trials)
        return metrics

    def _trained(self, trial: Any) -> dict[str, float]:
        values = {name: chosen(value) for name, value in trial.hyperparameters.values.items()}
        with tempfile.TemporaryDirectory(prefix="trial-") as folder:
            job = lay_out(
                self._settings,
                files=self._files,
                transform=self._transform,
                hyperparameters=self._settings["hyperparameters"] | values,
                folder=Path(folder),
            )
            there = self._elsewhere and replace(
                self._elsewhere, folder=f"{self._elsewhere.folder}/{trial.trial_id}"
            )
            _, result = launch(
                job, interpreter=self._settings["interpreter"], meanwhile=lambda: True, elsewhere=there
            )
        return result["metrics"]

    def load_model(self, trial: Any) -> Any:
        """Required by KerasTuner, but not needed, as the Trainer trains with the best values."""
        raise NotImplementedError(f"trial {trial.trial_id} leaves no model")


def _save_whole(state: Stateful, name: str) -> str:
    """Save the state of a search or a trial in place of `Stateful.save`, which writes in place.

    With a file that a full disk or a kill left empty, no later attempt could begin.
    """
    text = json.dumps(state.get_state())
    with whole_file(Path(name)) as partial:
        partial.write_text(text, encoding="utf-8")
    return text


def forget_damaged(record: Path) -> None:
    """Remove the record of a search if a file in it is not whole, so that the search begins anew.

    Before `_save_whole`, such a file could be left.

    Args:
        record: the folder of the search; need not exist.
    """
    for file in sorted(record.rglob("*.json")):
        if file.name.startswith(UNFINISHED):
            file.unlink()
            continue
        try:
            json.loads(file.read_bytes())
        except ValueError:
            logging.warning("%s is not whole, as after a full disk; the search begins anew", file)
            shutil.rmtree(record)
            return


def _hyperparameters(search: Mapping[str, Mapping[str, object]]) -> keras_tuner.HyperParameters:
    space = keras_tuner.HyperParameters()
    for name, entry in search_space(search).items():
        if isinstance(entry, Choices):
            space.Choice(name, list(entry.values))
        else:
            make = space.Int if entry.is_whole else space.Float
            sampling = "log" if entry.log else "linear"
            make(name, entry.low, entry.high, step=entry.step, sampling=sampling)
    return space
