"""Our container entry point, where it differs from TFX's."""

import json
import shutil
import sys
from pathlib import Path

import pytest
from installed import needed

needed("kfp", reason="TFX brings kfp to Python 3.11 only")
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def container():
    from slipway.pipeline.cloud.container import task as container

    return container


@pytest.fixture
def blessing():
    from tfx.types.standard_artifacts import ModelBlessing

    made = ModelBlessing()
    made.set_int_custom_property("current_model_id", 7)
    return made


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory):
    """A folder that TFX's file system knows as far://, as it knows gs:// there."""
    from tfx.dsl.io import filesystem_registry
    from tfx.dsl.io.plugins.local import LocalFilesystem

    root = tmp_path_factory.mktemp("far")

    def here(path):
        return str(path).replace("far://", f"{root}/")

    def moved(name):
        function = getattr(LocalFilesystem, name)
        return staticmethod(lambda *args, **kw: function(*map(here, args[:1]), *args[1:], **kw))

    names = ("open", "exists", "glob", "isdir", "listdir", "makedirs", "mkdir", "remove", "rmtree", "stat")
    methods = {name: moved(name) for name in names}
    methods["copy"] = staticmethod(lambda a, b, overwrite=False: shutil.copyfile(here(a), here(b)))
    methods["walk"] = staticmethod(
        lambda top, *_, **__: [
            (folder.replace(str(root) + "/", "far://"), folders, files)
            for folder, folders, files in LocalFilesystem.walk(here(top))
        ]
    )
    far = type("Far", (LocalFilesystem,), {"SUPPORTED_SCHEMES": ["far://"], **methods})
    registry = filesystem_registry.DEFAULT_FILESYSTEM_REGISTRY
    registry.register(far, priority=10, use_as_fallback=False)
    return root


def test_blessing_names_the_model_as_the_service_does(container, blessing):
    container.name_models({"blessing": [blessing]}, {7: "projects/p/artifacts/model"})
    assert blessing.get_string_custom_property("current_model_id") == "projects/p/artifacts/model"


def test_model_that_the_service_does_not_know_stays_a_number(container, blessing):
    container.name_models({"blessing": [blessing]}, {8: "other"})
    assert blessing.get_int_custom_property("current_model_id") == 7


def test_lists_and_mappings_reach_a_function_component_as_such_and_text_as_text(container):
    from slipway.components.model_gate.component import ModelGate

    parameters = {"thresholds": '{"auc": {"min": 0.9}}', "other": '{"a": 1}'}
    decoded = container.decode_parameters(parameters, ModelGate.EXECUTOR_SPEC.executor_class)
    assert decoded == {"thresholds": {"auc": {"min": 0.9}}, "other": '{"a": 1}'}


def test_component_gets_files_and_what_it_makes_goes_where_the_service_keeps_it(elsewhere, blessing):
    from tfx.types.standard_artifacts import Model, ModelBlessing

    from slipway.pipeline.cloud.container.local_files import local_files

    (elsewhere / "bucket/model/sub").mkdir(parents=True, exist_ok=True)
    (elsewhere / "bucket/model/sub/saved").write_text("weights")
    model = Model()
    model.uri, blessing.uri = "far://bucket/model", "far://bucket/blessing"
    (elsewhere / "bucket/earlier").mkdir(exist_ok=True)
    earlier = ModelBlessing()
    earlier.uri = "far://bucket/earlier"
    # What the service hands over has its values as JSON.
    earlier.mlmd_artifact.custom_properties["current_model"].struct_value["__value__"] = model.uri
    with local_files({"model": [model], "earlier": [earlier]}, {"blessing": [blessing]}):
        assert Path(model.uri, "sub", "saved").read_text() == "weights"
        assert earlier.get_string_custom_property("current_model") == model.uri, (
            "the same place, as it is here"
        )
        Path(blessing.uri, "BLESSED").write_text("yes")
        blessing.set_string_custom_property("current_model", model.uri)
    assert (model.uri, blessing.uri) == ("far://bucket/model", "far://bucket/blessing")
    assert (elsewhere / "bucket/blessing/BLESSED").read_text() == "yes"
    for each in (blessing, earlier):
        assert each.get_string_custom_property("current_model") == "far://bucket/model"


def test_nothing_is_put_there_by_a_component_that_failed(elsewhere, blessing):
    from slipway.pipeline.cloud.container.local_files import local_files

    blessing.uri = "far://failed/blessing"

    def fail():
        with local_files({}, {"blessing": [blessing]}):
            Path(blessing.uri, "BLESSED").touch()
            raise OSError("broken")

    with pytest.raises(OSError, match="broken"):
        fail()
    assert blessing.uri == "far://failed/blessing"
    assert not (elsewhere / "failed").exists()


def test_component_does_not_run_without_an_input_that_the_service_lists_and_the_store_lost(
    elsewhere, blessing
):
    """A gate would find nothing to compare with, and pass: as a first run does."""
    from slipway.components.errors import ComponentError
    from slipway.pipeline.cloud.container.local_files import local_files

    blessing.uri = "far://expired/blessing"
    with (
        pytest.raises(
            ComponentError, match=r"input blessing is gone from the store: .* far://expired/b"
        ) as no,
        local_files({"blessing": [blessing]}, {}),
    ):
        raise AssertionError
    assert "baseline --clear" in no.value.hint


@pytest.mark.parametrize("side", ["input", "output"])
def test_store_that_refuses_an_artifact_is_told_in_words(elsewhere, blessing, monkeypatch, side):
    from tensorflow import errors

    from slipway.components.errors import ComponentError
    from slipway.pipeline.cloud.container import local_files

    def refuse(*_):
        raise errors.PermissionDeniedError(None, None, "HTTP response code 403")

    (elsewhere / "there/blessing").mkdir(parents=True, exist_ok=True)
    monkeypatch.setattr(local_files.io_utils, "copy_dir", refuse)
    blessing.uri = "far://there/blessing"
    given, made = ({"b": [blessing]}, {}) if side == "input" else ({}, {"b": [blessing]})
    with (
        pytest.raises(ComponentError, match=f"its {side} .*cannot be copied .* far://there/blessing: HTTP"),
        local_files.local_files(given, made),
    ):
        pass


def test_folder_of_an_output_on_this_machine_is_made(blessing, tmp_path):
    from slipway.pipeline.cloud.container.local_files import local_files

    blessing.uri = str(tmp_path / "a" / "blessing")
    with local_files({}, {"blessing": [blessing]}):
        assert Path(blessing.uri).is_dir()


@pytest.mark.parametrize(
    ("error", "code", "told"),
    [
        ("GateStopError", 3, "error: drift\nfare moved\nhint: look\n"),
        ("ComponentError", 1, "error: drift\nhint: look\n"),
    ],
)
def test_gate_ends_with_its_own_code_and_both_with_their_words(
    container, monkeypatch, capsys, error, code, told
):
    from slipway.components import errors

    more = {"verdict": {"lines": ["fare moved"]}} if error == "GateStopError" else {}

    def refuse(_):
        raise getattr(errors, error)("drift", hint="look", **more)

    monkeypatch.setattr(container.executor, "main", refuse)
    parsed = container.executor._parse_flags(
        [
            "x",
            "--executor_class_path",
            "slipway.components.ingest.executor.Executor",
            "--json_serialized_invocation_args",
            "{}",
        ]
    )
    with pytest.raises(SystemExit) as ended:
        container.main(parsed)
    assert ended.value.code == code
    assert isinstance(ended.value.__cause__, getattr(errors, error))
    assert capsys.readouterr().err == told


def test_gate_that_stops_names_what_lets_it_pass_there(container, monkeypatch, capsys):
    from slipway.components.errors import GateStopError

    def refuse(_):
        raise GateStopError("drift", verdict={"override": "accept_data"})

    monkeypatch.setattr(container.executor, "main", refuse)
    words = ["x", "--executor_class_path", "slipway.components.ingest.executor.Executor"]
    parsed = container.executor._parse_flags([*words, "--json_serialized_invocation_args", "{}"])
    with pytest.raises(SystemExit):
        container.main(parsed)
    said = 'error: drift\nhint: submitted with --accept-data "why it is right" it passes, on the record\n'
    assert capsys.readouterr().err == said


def test_every_artifact_type_of_ours_is_found_by_its_name_as_tfx_looks_for_it_there(container):
    from kfp.pipeline_spec.pipeline_spec_pb2 import ArtifactTypeSchema
    from tfx.orchestration.kubeflow.v2 import compiler_utils
    from tfx.types.artifact import Artifact
    from tfx.utils import import_utils

    from slipway.schemas import artifacts

    ours = [
        kind
        for kind in vars(artifacts).values()
        if isinstance(kind, type) and issubclass(kind, Artifact) and kind.__module__ == artifacts.__name__
    ]
    assert ours
    for kind in ours:
        assert compiler_utils._SCHEMA_TITLE_RE.fullmatch(kind.TYPE_NAME), kind
        schema = ArtifactTypeSchema(instance_schema=compiler_utils.get_artifact_schema(kind))
        assert import_utils.import_class_by_path(container.class_path(schema)) is kind
        assert json.dumps(compiler_utils.get_artifact_schema(kind))


def test_artifact_types_do_not_import_tfx_with_their_package(project):
    import subprocess

    code = "import sys, slipway.schemas; sys.exit('tfx' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=project, check=False).returncode == 0


ON_S3 = {"name": "m", "uri": "s3://bucket/m", "type": {"schemaTitle": "tfx.Model"}, "metadata": {}}


@pytest.fixture
def s3_without_credentials(monkeypatch):
    from slipway.components import s3_and_azure_store
    from slipway.components.errors import ComponentError

    def refuse(address):
        raise ComponentError(
            f"{address}: the environment holds no credentials.", hint="set AWS_ACCESS_KEY_ID"
        )

    monkeypatch.setattr(s3_and_azure_store, "open_store", refuse)


def test_look_up_on_s3_without_credentials_ends_in_two_lines(s3_without_credentials, tmp_path, capsys):
    from slipway.pipeline.cloud.container.find_artifacts import main

    given = {"inputs": {}, "outputs": {"artifacts": {"model": {"artifacts": [ON_S3]}}, "outputFile": "o"}}
    queries = json.dumps({"model": 'schema_title="tfx.Model"'})
    with pytest.raises(SystemExit) as end:
        main([f"--given={json.dumps(given)}", f"--queries={queries}", "--records=s3://bucket/records/taxi"])
    assert end.value.code == 1
    error, hint = capsys.readouterr().err.splitlines()
    assert error == "error: s3://bucket/records/taxi/tfx.Model: the environment holds no credentials."
    assert hint == "hint: set AWS_ACCESS_KEY_ID"


def test_record_that_s3_refuses_ends_in_two_lines(s3_without_credentials, tmp_path, monkeypatch, capsys):
    """After the executor, which is a double here, has done its work."""
    from types import SimpleNamespace

    from slipway.pipeline.cloud.container import kubeflow_task

    file = tmp_path / "output.json"
    given = {
        "inputs": {},
        "outputs": {"artifacts": {"model": {"artifacts": [ON_S3]}}, "outputFile": str(file)},
    }
    monkeypatch.setenv("ARTIFACT_LOCAL_PATH", str(tmp_path))
    monkeypatch.setattr(kubeflow_task.task, "main", lambda parsed: file.write_text('{"artifacts": {}}'))
    own = SimpleNamespace(records="s3://bucket/records/taxi", keep="tfx.Model", producers="")
    flags = SimpleNamespace(
        json_serialized_invocation_args=json.dumps(given), json_serialized_inputs_spec_args=""
    )
    with pytest.raises(SystemExit) as end:
        kubeflow_task.main((own, (flags, [])))
    assert end.value.code == 1
    error, hint = capsys.readouterr().err.splitlines()
    assert error == "error: s3://bucket/records/taxi/tfx.Model: the environment holds no credentials."
    assert hint == "hint: set AWS_ACCESS_KEY_ID"
