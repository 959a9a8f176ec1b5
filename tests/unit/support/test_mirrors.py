"""Each module has unit tests, or a reason here why it has none."""

import pytest
from touched import above, dotted, own_modules, seen_by, unit_tests

REASONS = {
    "talks with a service: tests/integration/ has a double of that on loopback": (
        "pipeline.cloud.google",
        "pipeline.cloud.kubeflow",
        "pipeline.cloud.remote_files",
        "pipeline.cloud.schedule",
        "pipeline.cloud.submit",
        "pipeline.cloud.vertex",
        "components.pusher.artifact_folder",
        "components.pusher.bucket",
        "components.pusher.model_lock",
        "components.pusher.owner",
        "components.pusher.publish_to_bucket",
        "components.pusher.vertex_endpoint",
        "components.trainer.remote.vertex",
    ),
    "works in a process of its own, which tests/integration/ starts": (
        "pipeline.cloud.container",
        "pipeline.cloud.local_files",
        "pipeline.cloud.span_driver",
        "pipeline.cloud.task_server",
        "pipeline.local.beam_answers",
        "pipeline.local.compile",
        "pipeline.local.fork_server",
        "pipeline.local.handover",
        "pipeline.local.launch",
        "pipeline.local.node_process",
        "pipeline.local.parameters",
        "pipeline.local.resolved",
        "pipeline.local.store_upkeep",
        "pipeline.local.user_modules",
        "pipeline.local.warm",
        "components.ingest.worker",
        "components.preflight.compile_step",
        "components.preflight.shapes",
        "components.python_process",
        "components.serving_check.client",
        "components.serving_check.requests",
        "components.trainer.launch",
        "components.trainer.devices.first_contact",
        "components.trainer.remote.worker",
        "components.trainer.run_fn",
        "components.trainer.train",
        "components.trainer.model_run",
        "components.trainer.tuner_fn",
    ),
    "declares or carries out a command, which tests give as users do": (
        "pipeline.cloud.airflow",
        "pipeline.cloud.chosen",
        "pipeline.cloud.commands",
        "pipeline.local.asking",
        "pipeline.local.options",
        "pipeline.local.serve",
        "local_runner",
        "cloud_runner",
    ),
    "is a part of a module above it, which is tested with it": (
        "pipeline.cloud.needed",
        "pipeline.completion_scripts",
        "pipeline.config.beam",
        "pipeline.config.data",
        "pipeline.config.engine",
        "pipeline.config.evaluate",
        "pipeline.config.layers",
        "pipeline.config.notify",
        "pipeline.config.push",
        "pipeline.config.tune",
        "pipeline.dag",
        "pipeline.explanation",
        "pipeline.ingest_options",
        "pipeline.local.artifact_folders",
        "pipeline.local.display",
        "pipeline.local.signals",
        "pipeline.local.store_facts",
        "pipeline.metadata_text",
        "pipeline.preflight_question",
        "pipeline.report.artifacts",
        "pipeline.report.drift",
        "pipeline.report.nodes",
        "pipeline.report.run_page",
        "pipeline.start.images.writing",
        "pipeline.start.notes",
        "pipeline.start.number_like",
        "pipeline.start.writing",
        "components.data_gate.statistics",
        "components.data_profile.columns",
        "components.ingest.cell_letters",
        "components.ingest.compression",
        "components.ingest.convert",
        "components.ingest.float32_fit",
        "components.ingest.formats",
        "components.ingest.header_names",
        "components.ingest.image_structure",
        "components.ingest.json_objects",
        "components.ingest.suffixes",
        "components.preflight.case",
        "components.preflight.place_rules",
        "components.preflight.transformed",
        "components.pusher.papers",
        "components.saved_model.loading",
        "components.saved_model.quiet_tensorflow",
        "components.saved_model.reading",
        "components.serving.received",
        "components.trainer.boosting.layer",
        "components.trainer.devices.with_torch",
        "components.trainer.models.head",
        "components.trainer.models.image",
        "components.trainer.settings.export",
        "components.trainer.settings.watch",
        "components.trainer.resource_usage",
    ),
    "only joins rules with TFX, Beam or Keras: tests/integration/ and tests/e2e/ give it real artifacts": (
        "pipeline.beam_options",
        "pipeline.cloud.compile",
        "pipeline.testing.artifacts",
        "pipeline.testing.component",
        "components.data_gate.component",
        "components.data_gate.made_label",
        "components.data_gate.reference",
        "components.data_gate.span_strategy",
        "components.data_profile.profile",
        "components.data_profile.sample",
        "components.evaluator.component",
        "components.evaluator.executor",
        "components.evaluator.reading",
        "components.evaluator.written",
        "components.ingest.component",
        "components.ingest.driver",
        "components.ingest.executor",
        "components.model_gate.answers_metric",
        "components.model_gate.component",
        "components.model_gate.eval_config",
        "components.model_gate.evaluation",
        "components.model_gate.label_statistics",
        "components.preflight.component",
        "components.pusher.component",
        "components.reference_models.component",
        "components.saved_model.input_names",
        "components.serving_check.check",
        "components.serving_check.component",
        "components.serving_check.training_side",
        "components.trainer.saved_model_export",
        "components.trainer.litert_export",
        "components.transform.analysis",
        "components.transform.component",
        "components.transform.examples",
        "components.transform.executor",
        "components.transform.graph",
        "components.transform.materialize",
        "components.transform.operations",
        "schemas.artifacts",
    ),
    "is imported by its dotted name alone, as what users write is; so tests do": (
        "components.ingest.example_records",
        "components.trainer.models.residual",
        "components.trainer.models.wide_and_deep",
        "workloads.digits.preprocessing",
    ),
}
PARTS = "is a part of a module above it, which is tested with it"


@pytest.fixture(scope="module")
def tests(project):
    return unit_tests(project)


@pytest.fixture(scope="module")
def modules(project):
    return own_modules(project)


def test_each_module_has_unit_tests_or_one_reason_why_not(tests, modules):
    without = {dotted(file) for file in modules if file.name != "__init__.py" and not seen_by(file, tests)}
    listed = [name for names in REASONS.values() for name in names]
    assert len(listed) == len(set(listed))
    assert without - set(listed) == set(), "needs tests/unit/PACKAGE/test_MODULE.py"
    assert set(listed) - {dotted(file) for file in modules} == set(), "is gone"


def test_each_part_stands_below_a_module_with_unit_tests(tests, modules):
    files = {dotted(file): file for file in modules}
    left = set(REASONS[PARTS])
    while found := {
        name
        for name in left
        if any(
            seen_by(each, tests) or dotted(each) in set(REASONS[PARTS]) - left
            for each in above(files[name], modules)
        )
    }:
        left -= found
    assert left == set()
