"""Each module has a file of unit tests at the mirrored place, or a reason here why it has none.

The mirror of components/x/y.py is tests/unit/components/x/test_y.py. In workloads/ a unit test that imports
the module is enough: `new` writes one file of tests for a workload.
"""

from pathlib import Path

import pytest
from touched import IN_SLIPWAY, above, dotted, mirror_of, own_modules, seen_by, unit_tests

REASONS = {
    "talks with a service: tests/integration/ has a double of that on loopback": (
        "slipway.pipeline.cloud.services.google",
        "slipway.pipeline.cloud.services.kubeflow",
        "slipway.pipeline.cloud.services.kubeflow_client",
        "slipway.pipeline.cloud.rehearsal.remote_files",
        "slipway.pipeline.cloud.experiment",
        "slipway.pipeline.cloud.reports",
        "slipway.pipeline.cloud.schedule_commands",
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
        "slipway.pipeline.engine.tfx.handover",
        "slipway.pipeline.engine.tfx.launch",
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
        "slipway.components.trainer.devices.first_contact",
        "slipway.components.trainer.remote.worker",
        "slipway.components.trainer.run_fn",
        "slipway.components.trainer.model_run",
    ),
    "declares or carries out a command, which tests give as users do": (
        "slipway.pipeline.cloud.baseline",
        "slipway.pipeline.cloud.cloud_choice",
        "slipway.pipeline.cloud.compile_and_rehearse",
        "slipway.pipeline.terminal.questions",
        "slipway.pipeline.commands.options",
        "local_runner",
        "cloud_runner",
    ),
    "declares types, errors or settings alone: tests of the modules that take them show what they hold": (
        "slipway.pipeline.errors",
        "slipway.pipeline.cloud.services.service",
        "slipway.pipeline.engine.launcher",
        "slipway.components.errors",
        "slipway.components.data_gate.schema",
        "slipway.components.ingest.blocks",
        "slipway.components.ingest.source_limits",
        "slipway.components.preflight.question_and_answer",
        "slipway.components.saved_model.signatures",
        "slipway.components.trainer.devices.devices",
        "slipway.components.trainer.settings.blow_up",
        "slipway.components.trainer.settings.early_stopping",
        "slipway.components.trainer.settings.step",
        "slipway.pipeline.tracking.tracker",
        "slipway.components.data_gate.statistics",
        "slipway.components.trainer.settings.export",
        "slipway.components.trainer.settings.watch",
        "slipway.components.preflight.finding",
    ),
    "is one of the models ready to use, or what they share: tests/unit/components/trainer/test_models.py": (
        "slipway.components.trainer.models.cnn",
        "slipway.components.trainer.models.head",
        "slipway.components.trainer.models.image",
        "slipway.components.trainer.models.residual",
        "slipway.components.trainer.models.wide_and_deep",
    ),
    "is a part of a module above it, which is tested with it": (
        "slipway.pipeline.watch.page",
        "slipway.components.data_gate.rules.anomaly_group",
        "slipway.components.progress",
        "slipway.components.request_log.prediction_log_message",
        "slipway.components.trainer.loop.preemption",
        "slipway.components.request_log.reserved_columns",
        "slipway.components.in_process_runner",
        "slipway.pipeline.commands.model_columns",
        "slipway.components.pusher.hub_metadata",
        "slipway.pipeline.runs.preflight_document",
        "slipway.pipeline.config.beam",
        "slipway.pipeline.config.data",
        "slipway.pipeline.config.engine",
        "slipway.pipeline.config.evaluate",
        "slipway.pipeline.config.layers",
        "slipway.pipeline.config.notify",
        "slipway.pipeline.config.push",
        "slipway.pipeline.config.tune",
        "slipway.pipeline.screen.display",
        "slipway.pipeline.commands.gc.store_facts",
        "slipway.pipeline.report.artifacts",
        "slipway.pipeline.report.nodes",
        "slipway.pipeline.report.run_page",
        "slipway.pipeline.start.images.writing",
        "slipway.pipeline.start.number_like",
        "slipway.pipeline.start.writing",
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
        "slipway.components.preflight.transformed",
        "slipway.components.pusher.manifest_contents",
        "slipway.components.pusher.version_files",
        "slipway.components.saved_model.loading",
        "slipway.components.saved_model.quiet_tensorflow",
        "slipway.components.saved_model.reading",
        "slipway.components.serving.client_connection",
        "slipway.components.trainer.boosting.layer",
        "slipway.components.trainer.devices.with_torch",
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
        "workloads.digits.preprocessing",
    ),
}
PARTS = "is a part of a module above it, which is tested with it"

OF_SEVERAL_MODULES = (
    "components/ingest/test_exact_values.py",
    "components/ingest/test_many_columns.py",
    "components/ingest/test_other_formats.py",
    "components/serving/test_smuggled_requests.py",
    "components/test_commands_in_words.py",
    "components/trainer/devices/test_prefetch_to_device.py",
    "components/trainer/loop/test_constant_batch.py",
    "components/trainer/test_checkpoint_writer.py",
    "components/trainer/test_models.py",
    "pipeline/engine/test_random_histories.py",
    "pipeline/testing/test_import.py",
)
"""Tests of what several modules do together, or of one duty of a module that has a mirror beside them."""


@pytest.fixture(scope="module")
def tests(project):
    return unit_tests(project)


@pytest.fixture(scope="module")
def modules(project):
    return {file: names for file, names in own_modules(project).items() if file.name != "__init__.py"}


def test_each_module_has_a_mirror_or_one_reason_why_not(tests, modules):
    without = {
        dotted(file)
        for file in modules
        if mirror_of(file) not in tests and not (file.parts[0] == "workloads" and seen_by(file, tests))
    }
    listed = [name for names in REASONS.values() for name in names]
    assert len(listed) == len(set(listed))
    assert without - set(listed) == set(), "needs tests/unit/PACKAGE/test_MODULE.py"
    assert set(listed) - without == set(), "has a mirror now, or is gone"


def test_each_test_in_the_folder_of_a_package_mirrors_a_module(tests, modules):
    mirrors = set(map(mirror_of, modules))
    folders = [Path("tests/unit") / package for package in IN_SLIPWAY]
    others = {
        test for test in tests if test not in mirrors and any(test.is_relative_to(each) for each in folders)
    }
    assert others == {Path("tests/unit") / file for file in OF_SEVERAL_MODULES}


def test_each_part_stands_below_a_module_with_a_mirror(tests, modules):
    files = {dotted(file): file for file in modules}
    left = set(REASONS[PARTS])
    while found := {
        name
        for name in left
        if any(
            mirror_of(each) in tests or dotted(each) in set(REASONS[PARTS]) - left
            for each in above(files[name], modules)
        )
    }:
        left -= found
    assert left == set()
