"""ModelGate: the only component that blesses a model."""

import json
import time
from typing import Any

from tfx.dsl.component.experimental.annotations import InputArtifact, OutputArtifact, Parameter
from tfx.dsl.component.experimental.decorators import component
from tfx.dsl.io import fileio
from tfx.types.artifact_utils import decode_split_names
from tfx.types.standard_artifacts import Examples, ExampleStatistics, Model, ModelBlessing, ModelEvaluation
from tfx.utils.path_utils import serving_model_path

from slipway.components.data_profile.label_score import LabelScore, label_score
from slipway.components.data_profile.profile import (
    BLESSED_DATA,
    Profile,
    data_digest,
    keep_profile,
    rows_behind,
)
from slipway.components.data_profile.sample import read_sample
from slipway.components.data_profile.single_scores import single_scores
from slipway.components.finite_json import finite
from slipway.components.model_gate.answer_rules import (
    answer_checks,
    finite_checks,
    fit_checks,
    measured_checks,
    probability_checks,
    quantile_checks,
)
from slipway.components.model_gate.evaluation import read_evaluation
from slipway.components.model_gate.measured import Measured, told
from slipway.components.model_gate.metric_bounds import intervals
from slipway.components.model_gate.reference_model_rules import reference_checks
from slipway.components.model_gate.serving_rules import ServingLimits, serving_checks
from slipway.components.model_gate.threshold_rules import Threshold, threshold_checks
from slipway.components.model_gate.trivial_rules import checks_of_outputs, trivial_document
from slipway.components.model_gate.verdict import OVERALL, conclude
from slipway.components.saved_model.digest import PROPERTY, require_unchanged
from slipway.components.saved_model.digest_files import exported_digest, model_digest
from slipway.schemas.artifacts import Quarantine, ReferenceReport, ServingReport


@component
def ModelGate(  # noqa: N802 (component constructors are nouns)
    model: InputArtifact[Model],
    evaluation: InputArtifact[ModelEvaluation],
    blessing: OutputArtifact[ModelBlessing],
    metrics: Parameter[list[str]],
    thresholds: Parameter[dict[str, dict[str, dict[str, float]]]],
    min_slice_rows: Parameter[int],
    beat_trivial: Parameter[str],
    sample_rows: Parameter[int],
    bless: Parameter[str] = "",
    classes: Parameter[list[str]] = None,
    output_classes: Parameter[dict[str, list[str]]] = None,
    serving: InputArtifact[ServingReport] = None,
    serving_limits: Parameter[dict[str, float]] = None,
    references: InputArtifact[ReferenceReport] = None,
    statistics: InputArtifact[ExampleStatistics] = None,
    examples: InputArtifact[Examples] = None,
    quarantine: InputArtifact[Quarantine] = None,
    raw_label: Parameter[str] = "",
    pass_through: Parameter[list[str]] = None,
) -> None:
    """Judge the candidate by its evaluation and write the blessing, with the reasons in `verdict.json`.

    Args:
        evaluation: the Evaluator's metrics of the candidate and, if there is one, of the baseline.
        blessing: gets the file that stock components look for (`BLESSED` or `NOT_BLESSED`), the properties
            by which the resolver finds the latest blessed model, the digest of the model's files, and
            `verdict.json`; if BLESSED, also the data profile that the DataGate compares later data with.
        metrics: names in `metrics.METRICS`, the most important first.
        thresholds: slices (`overall`, `all`, a column's, one) -> metric -> fields of `Threshold`.
        min_slice_rows: slices with fewer rows are not judged.
        beat_trivial: `one`, `all` or `none`, see `trivial_rules.trivial_checks`.
        bless: the reason for blessing the model despite all checks; empty: the checks decide.
        classes: names of the labels, in the order of their numbers; None: they have no names.
        output_classes: the same by output, of a model with several; None: no output's labels have names.
        serving: ServingCheck's measurements; None if the workload disables this check.
        serving_limits: fields of `serving_rules.ServingLimits`; a missing field means no limit, or, of the
            tolerance, the default.
        references: the scores of other models on the same examples; None if the workload has none.
        statistics: of the raw examples; None: no data profile is kept.
        examples: the raw examples; a sample of them is read if the model is blessed.
        quarantine: Ingest's quarantine; None if another component makes the examples.
        raw_label: the raw column that the label is computed from.
        pass_through: raw columns that are not an input of the model; None: none.

    Raises:
        ComponentError: the model's files changed after the export, or after ServingCheck tested them, so the
            model that was measured is not the one that would be pushed.
    """
    evaluated = read_evaluation(evaluation.uri)
    slices = evaluated.slices()
    overall = slices.get(OVERALL, Measured({}, {}, None))
    limits = {
        name: {metric: Threshold(**fields) for metric, fields in group.items()}
        for name, group in thresholds.items()
    }
    names = {"": classes} if classes else output_classes or {}
    checks, notes = threshold_checks(limits, slices, min_slice_rows=min_slice_rows)
    more_checks, more_notes = checks_of_outputs(
        metrics, limits.get(OVERALL, {}), overall, beat=beat_trivial, classes=names
    )
    more_checks += measured_checks(metrics, slices) + finite_checks(metrics, overall)
    more_checks += answer_checks(evaluated.not_finite, overall.rows)
    more_checks += probability_checks(metrics, evaluated.outside, overall.rows)
    more_checks += quantile_checks(metrics, overall)
    report: Any = _read_json(f"{serving.uri}/report.json") if serving else {}
    if serving:
        served = ServingLimits.of(serving_limits or {})
        more_checks += serving_checks(
            report,
            served,
            metrics=metrics,
            entries={name: overall.entries_of(name) for name in metrics},
            classes=names,
        )
    else:
        more_checks += fit_checks(metrics, evaluated.kinds, overall)
        more_notes.append("the served model was not checked (evaluate.serving: null)")
    serving_model = serving_model_path(model.uri)
    digest = model_digest(serving_model)
    checked = report.get(PROPERTY, "")
    require_unchanged(
        model.uri,
        digest,
        earlier={"exported": exported_digest(serving_model), "checked for serving": checked},
    )
    others = _read_json(f"{references.uri}/report.json") if references else {}
    more_checks += reference_checks(others, overall.metrics, metrics)
    verdict = conclude(
        checks + more_checks,
        metrics=overall.metrics,
        baseline_metrics=overall.baseline,
        notes=list(dict.fromkeys(notes + more_notes)),  # both may have the same note on a metric's bounds
        bless=bless,
    )
    document = {
        **verdict.to_json(),
        "slices": {name: told(each, overall=overall) for name, each in slices.items()},
        "intervals": {name: intervals(each) for name, each in slices.items()},
        "telling_rows": {name: each.effective_rows for name, each in slices.items() if each.has_weights},
        "min_slice_rows": min_slice_rows,
        "answers": evaluated.answers,
        "trivial": trivial_document(metrics, slices, names),
        "serving": report,
        "reference_models": others,
    }
    _write(f"{blessing.uri}/{'BLESSED' if verdict.blessed else 'NOT_BLESSED'}", "")
    _write(f"{blessing.uri}/verdict.json", json.dumps(finite(document), indent=2))
    if verdict.blessed and statistics and examples:
        splits = decode_split_names(statistics.split_names)
        sample = read_sample(examples.uri, splits, rows=sample_rows).columns
        columns = {name: column for name, column in sample.items() if name not in (pass_through or ())}
        _keep_data(
            f"{blessing.uri}/{BLESSED_DATA}",
            statistics=statistics,
            quarantine=quarantine.uri if quarantine else "",
            explained=label_score(columns, raw_label, single_scores(columns, raw_label)),
        )
    blessing.set_int_custom_property("blessed", int(verdict.blessed))
    blessing.set_int_custom_property("current_model_id", model.id)
    blessing.set_string_custom_property("current_model", model.uri)
    blessing.set_string_custom_property(PROPERTY, digest)


def _keep_data(folder: str, *, statistics: Any, quarantine: str, explained: LabelScore | None) -> None:
    """Store the profile for comparing later data, apart from the model, which has its own digest."""
    digest = data_digest(statistics.uri, quarantine)
    rows = rows_behind(statistics, quarantine)
    keep_profile(statistics.uri, folder, Profile(digest, time.time(), explained, rows))


def _read_json(path: str) -> Any:
    with fileio.open(path) as file:
        return json.loads(file.read())


def _write(path: str, text: str) -> None:
    with fileio.open(path, "w") as file:
        file.write(text)
