"""ModelGate: the one component that blesses a model."""

import json
from pathlib import Path

from tfx.dsl.component.experimental.annotations import InputArtifact, OutputArtifact, Parameter
from tfx.dsl.component.experimental.decorators import component
from tfx.types.standard_artifacts import Model, ModelBlessing, ModelEvaluation

from components.model_gate.evaluation import read_evaluation
from components.model_gate.rules import Limits, judge


@component
def ModelGate(  # noqa: N802 (component constructors are nouns)
    model: InputArtifact[Model],
    evaluation: InputArtifact[ModelEvaluation],
    blessing: OutputArtifact[ModelBlessing],
    thresholds: Parameter[dict[str, dict[str, float]]],
) -> None:
    """Judges the candidate by its evaluation and writes the blessing, with the reasons in `verdict.json`.

    Args:
        model: the candidate.
        evaluation: the Evaluator's metrics of the candidate and, where there is one, of the baseline.
        blessing: gets the file that stock components look for (`BLESSED` or `NOT_BLESSED`), the properties
            by which the resolver finds the latest blessed model, and `verdict.json`.
        thresholds: metric name -> `{min, max, max_drop}`, see `rules.Limits`.
    """
    measured = read_evaluation(evaluation.uri)
    verdict = judge(
        thresholds={name: Limits(**limits) for name, limits in thresholds.items()},
        metrics=measured.candidate.get("overall", {}),
        baseline_metrics=measured.baseline.get("overall", {}),
    )
    folder = Path(blessing.uri)
    (folder / ("BLESSED" if verdict.blessed else "NOT_BLESSED")).touch()
    document = {**verdict.to_json(), "slices": measured.candidate}
    (folder / "verdict.json").write_text(json.dumps(document, indent=2), encoding="utf-8")
    blessing.set_int_custom_property("blessed", int(verdict.blessed))
    blessing.set_int_custom_property("current_model_id", model.id)
    blessing.set_string_custom_property("current_model", model.uri)
