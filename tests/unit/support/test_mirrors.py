"""Each module has unit tests, or a reason here why it has none."""

import pytest
from touched import above, dotted, own_modules, seen_by, unit_tests

REASONS = {
    "talks with a service: tests/integration/ has a double of that on loopback": (
        "slipway.pipeline.cloud.services.google",
        "slipway.pipeline.cloud.services.kubeflow",
        "slipway.pipeline.cloud.services.kubeflow_client",
        "slipway.pipeline.cloud.rehearsal.remote_files",
        "slipway.pipeline.cloud.experiment",
        "slipway.pipeline.cloud.reports",
        "slipway.pipeline.cloud.schedule_commands",
        "slipway.pipeline.cloud.submit",
        "slipway.pipeline.cloud.services.vertex",
        "slipway.pipeline.cloud.services.vertex_metadata",
        "slipway.components.pusher.artifact_folder",
        "slipway.components.pusher.google_folder",
        "slipway.components.pusher.model_lock",
        "slipway.components.pusher.publish_to_bucket",
        "slipway.components.pusher.vertex_endpoint",
        "slipway.components.trainer.remote.vertex",
    ),
    "works in a process of its own, which tests/integration/ starts": (
        "slipway.pipeline.cloud.container.task",
        "slipway.pipeline.cloud.container.find_artifacts",
        "slipway.pipeline.cloud.container.kubeflow_task",
        "slipway.pipeline.cloud.container.local_files",
        "slipway.pipeline.cloud.container.span_driver",
        "slipway.pipeline.cloud.rehearsal.task_server",
        "slipway.pipeline.engine.tfx.beam_caching",
        "slipway.pipeline.engine.tfx.compile",
        "slipway.pipeline.engine.processes.fork_server",
        "slipway.pipeline.engine.tfx.handover",
        "slipway.pipeline.engine.tfx.launch",
        "slipway.pipeline.engine.processes.node_process",
        "slipway.pipeline.engine.tfx.parameters",
        "slipway.pipeline.engine.tfx.read_graph",
        "slipway.pipeline.engine.tfx.resolver_lookup",
        "slipway.pipeline.engine.tfx.store_upkeep",
        "slipway.pipeline.engine.tfx.user_modules",
        "slipway.pipeline.engine.processes.warm",
        "slipway.components.ingest.worker",
        "slipway.components.pool_worker",
        "slipway.components.preflight.compile_and_measure",
        "slipway.components.preflight.slice_mesh",
        "slipway.components.preflight.training_step",
        "slipway.components.serving_check.client",
        "slipway.components.serving_check.requests",
        "slipway.components.trainer.devices.first_contact",
        "slipway.components.trainer.remote.worker",
        "slipway.components.trainer.run_fn",
        "slipway.components.trainer.train",
        "slipway.components.trainer.model_run",
        "slipway.components.trainer.tuner_fn",
    ),
    "declares or carries out a command, which tests give as users do": (
        "slipway.pipeline.cloud.airflow.command",
        "slipway.pipeline.cloud.baseline",
        "slipway.pipeline.cloud.cloud_choice",
        "slipway.pipeline.cloud.compile_and_rehearse",
        "slipway.pipeline.terminal.questions",
        "slipway.pipeline.commands.baseline",
        "slipway.pipeline.commands.options",
        "slipway.pipeline.commands.serve",
        "local_runner",
        "cloud_runner",
    ),
    "is a part of a module above it, which is tested with it": (
        "slipway.components.request_log.reserved_columns",
        "slipway.components.in_process_runner",
        "slipway.pipeline.commands.completion_scripts",
        "slipway.pipeline.commands.model_columns",
        "slipway.components.pusher.hub_metadata",
        "slipway.components.trainer.remote.custom_job",
        "slipway.pipeline.runs.preflight_document",
        "slipway.pipeline.config.beam",
        "slipway.pipeline.config.data",
        "slipway.pipeline.config.engine",
        "slipway.pipeline.config.evaluate",
        "slipway.pipeline.config.layers",
        "slipway.pipeline.config.notify",
        "slipway.pipeline.config.push",
        "slipway.pipeline.config.tune",
        "slipway.pipeline.fingerprint.rerun_reasons",
        "slipway.pipeline.wiring.ingest_options",
        "slipway.pipeline.commands.gc.unneeded_artifacts",
        "slipway.pipeline.screen.display",
        "slipway.pipeline.tracking.tracker",
        "slipway.pipeline.engine.signal_handlers",
        "slipway.pipeline.commands.gc.store_facts",
        "slipway.pipeline.wiring.metadata_text",
        "slipway.pipeline.report.artifacts",
        "slipway.pipeline.report.drift",
        "slipway.pipeline.report.nodes",
        "slipway.pipeline.report.run_page",
        "slipway.pipeline.start.images.writing",
        "slipway.pipeline.start.notes",
        "slipway.pipeline.start.number_like",
        "slipway.pipeline.start.writing",
        "slipway.components.data_gate.statistics",
        "slipway.components.data_profile.columns",
        "slipway.components.ingest.string_buffers",
        "slipway.components.ingest.compression",
        "slipway.components.ingest.convert",
        "slipway.components.ingest.float32_fit",
        "slipway.components.ingest.formats",
        "slipway.components.ingest.header_names",
        "slipway.components.ingest.image_damage",
        "slipway.components.ingest.json_objects",
        "slipway.components.ingest.suffixes",
        "slipway.components.preflight.finding",
        "slipway.components.preflight.input_and_runtime_rules",
        "slipway.components.preflight.transformed",
        "slipway.components.pusher.manifest_contents",
        "slipway.components.pusher.version_files",
        "slipway.components.saved_model.loading",
        "slipway.components.saved_model.quiet_tensorflow",
        "slipway.components.saved_model.reading",
        "slipway.components.serving.client_connection",
        "slipway.components.trainer.boosting.layer",
        "slipway.components.trainer.devices.with_torch",
        "slipway.components.trainer.models.head",
        "slipway.components.trainer.models.image",
        "slipway.components.trainer.settings.export",
        "slipway.components.trainer.settings.watch",
    ),
    "only joins rules with TFX, Beam or Keras: tests/integration/ and tests/e2e/ give it real artifacts": (
        "slipway.pipeline.dag",
        "slipway.pipeline.wiring.beam_options",
        "slipway.pipeline.wiring.own_metrics",
        "slipway.pipeline.cloud.compile",
        "slipway.pipeline.testing.artifacts",
        "slipway.pipeline.testing.component",
        "slipway.components.data_gate.component",
        "slipway.components.data_gate.transformed_label",
        "slipway.components.data_gate.reference",
        "slipway.components.data_gate.span_strategy",
        "slipway.components.data_profile.profile",
        "slipway.components.data_profile.sample",
        "slipway.components.evaluator.stock_executor",
        "slipway.components.evaluator.component",
        "slipway.components.evaluator.executor",
        "slipway.components.evaluator.reading",
        "slipway.components.evaluator.metric_files",
        "slipway.components.ingest.component",
        "slipway.components.ingest.driver",
        "slipway.components.ingest.executor",
        "slipway.components.model_gate.prediction_counts_metric",
        "slipway.components.model_gate.component",
        "slipway.components.model_gate.eval_config",
        "slipway.components.model_gate.evaluation",
        "slipway.components.model_gate.label_statistics_metric",
        "slipway.components.preflight.component",
        "slipway.components.pusher.component",
        "slipway.components.reference_models.component",
        "slipway.components.saved_model.input_names",
        "slipway.components.serving_check.check",
        "slipway.components.serving_check.component",
        "slipway.components.serving_check.training_side",
        "slipway.components.statistics_gen.component",
        "slipway.components.statistics_gen.executor",
        "slipway.components.trainer.saved_model_export",
        "slipway.components.trainer.litert_export",
        "slipway.components.transform.analysis",
        "slipway.components.transform.component",
        "slipway.components.transform.examples",
        "slipway.components.transform.executor",
        "slipway.components.transform.annotations",
        "slipway.components.transform.graph",
        "slipway.components.transform.materialize",
        "slipway.components.transform.operations",
        "slipway.schemas.artifacts",
    ),
    "is imported by its dotted name alone, as what users write is; so tests do": (
        "slipway.components.ingest.tfrecord_examples",
        "slipway.components.trainer.models.residual",
        "slipway.components.trainer.models.wide_and_deep",
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
