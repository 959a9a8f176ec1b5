"""The Pusher on artifacts as the Trainer and the gate leave them."""

import json
import logging
from dataclasses import asdict
from pathlib import Path

import pytest

from slipway.components.errors import ComponentError
from slipway.components.parameters import as_parameter
from slipway.components.pusher.endpoint import EndpointSettings
from slipway.components.pusher.publish_to_folder import publish
from slipway.components.pusher.signature import Trust
from slipway.components.pusher.signing_keys import SigningSettings, read_verify_key
from slipway.components.pusher.version_store import version_store_at
from slipway.components.saved_model.digest_files import keep_digest, model_digest

pytestmark = pytest.mark.slow


@pytest.fixture
def push(tmp_path):
    """Runs the component's function with a blessing of the given value; returns the pushed artifact."""
    from tfx.types.standard_artifacts import Examples, Model, ModelBlessing, PushedModel, Schema

    from slipway.components.pusher.component import Pusher
    from slipway.schemas.artifacts import DataVerdict, Quarantine

    def call(
        *,
        blessed,
        file="BLESSED",
        about_model="models/7",
        verdict=None,
        to=None,
        data_found=None,
        change=None,
        about=None,
        **settings,
    ):
        model, blessing, pushed = Model(), ModelBlessing(), PushedModel()
        examples, quarantine, schema, data_verdict = Examples(), Quarantine(), Schema(), DataVerdict()
        quarantine.uri = schema.uri = str(tmp_path / "beside")
        data_verdict.uri = str(tmp_path / "data_verdict")
        if data_found:
            Path(data_verdict.uri).mkdir(exist_ok=True)
            Path(data_verdict.uri, "verdict.json").write_text(json.dumps(data_found), encoding="utf-8")
        examples.set_string_custom_property("span", "3")
        model.uri, blessing.uri = str(tmp_path / "models/7"), str(tmp_path / "blessing")
        saved_model = tmp_path / "models/7/Format-Serving/saved_model.pb"
        saved_model.parent.mkdir(parents=True, exist_ok=True)
        saved_model.write_bytes(b"graph")
        Path(blessing.uri).mkdir(exist_ok=True)
        if file:
            Path(blessing.uri, file).touch()
        if verdict:
            Path(blessing.uri, "verdict.json").write_text(json.dumps(verdict), encoding="utf-8")
        if blessed is not None:
            blessing.set_int_custom_property("blessed", blessed)
            blessing.set_string_custom_property("current_model", str(tmp_path / about_model))
            blessing.set_string_custom_property("model_digest", model_digest(str(saved_model.parent)))
        if change:
            change(saved_model)
        function = Pusher.EXECUTOR_SPEC.executor_class._FUNCTION
        function(
            model=model,
            blessing=blessing,
            examples=examples,
            quarantine=quarantine,
            data_verdict=data_verdict,
            schema=schema,
            pushed_model=pushed,
            base=to or str(tmp_path / "serving"),
            about=as_parameter(about or {"workload": "taxi"}),
            **settings,
        )
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


def test_model_is_not_pushed_over_the_versions_of_another_workload(push, tmp_path):
    there = Path(properties(push(blessed=1, about={"workload": "fares"}))[1])
    with pytest.raises(
        ComponentError, match=r"holds the versions of the workload 'fares'.*nothing is pushed"
    ):
        push(blessed=1, keep=1)
    assert list((tmp_path / "serving").glob("[0-9]*")) == [there]


def test_model_that_was_rolled_back_is_not_pushed_again(push, tmp_path):
    base = tmp_path / "serving"
    version = int(properties(push(blessed=1))[2])
    other = tmp_path / "other"
    other.mkdir()
    (other / "saved_model.pb").write_bytes(b"before")
    again = {"version": 1, "instead_of": version, "at": "2027-01-01", "by": "ann", "reason": "wrong fares"}
    live = publish(other, base=base, provenance={"workload": "taxi", "republished": again})
    with pytest.raises(ComponentError, match=r"was rolled back \(2027-01-01, ann, wrong fares\)") as raised:
        push(blessed=1, keep=5)
    assert f"rollback --to {version}" in raised.value.hint
    assert version_store_at(str(base)).numbers()[-1] == live.version


@pytest.mark.parametrize("blessed", [0, None])
def test_unblessed_model_is_not_pushed_and_the_log_says_so(push, tmp_path, caplog, blessed):
    with caplog.at_level(logging.WARNING):
        pushed = push(blessed=blessed, file="NOT_BLESSED")
    assert properties(pushed) == (0, "", "")
    assert not (tmp_path / "serving").exists()
    assert "Not pushed: " in caplog.text
    assert "is not blessed" in caplog.text


@pytest.mark.parametrize(("blessed", "is_pushed"), [(1, 1), (0, 0), (None, 0)])
def test_infra_blessing_counts_as_the_gates_answer_does(push, blessed, is_pushed):
    from tfx.types.standard_artifacts import InfraBlessing

    infra = InfraBlessing()
    infra.uri = "infra/3"
    if blessed is not None:
        infra.set_int_custom_property("blessed", blessed)
    assert push(blessed=1, infra_blessing=infra).get_int_custom_property("pushed") == is_pushed


def test_artifact_without_a_model_is_named(push, tmp_path):
    with pytest.raises(
        ComponentError, match=r"models/7/Format-Serving holds no SavedModel; nothing is pushed"
    ):
        push(blessed=1, change=Path.unlink)
    assert not (tmp_path / "serving").exists()


def test_pusher_without_a_blessing_is_refused_when_the_pipeline_is_built():
    from tfx.types.channel import Channel
    from tfx.types.standard_artifacts import Examples, Model, Schema

    from slipway.components.pusher.component import Pusher

    channels = {"model": Channel(Model), "examples": Channel(Examples), "schema": Channel(Schema)}
    with pytest.raises(ValueError, match=r"Pusher.*blessing|blessing.*Pusher"):
        Pusher(**channels, base="/serving", about="{}")


def test_blessing_whose_file_is_gone_is_an_error(push, tmp_path):
    with pytest.raises(ComponentError, match="holds no file BLESSED") as raised:
        push(blessed=1, file=None)
    assert "--from ModelGate" in raised.value.hint
    assert not (tmp_path / "serving").exists()


def test_blessing_of_another_model_is_refused(push, tmp_path):
    with pytest.raises(
        ComponentError, match=r"blessing is about .*models/6, not .*models/7; nothing is pushed"
    ):
        push(blessed=1, about_model="models/6")
    assert not (tmp_path / "serving").exists()


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("is_bucket", [False, True])
def test_model_that_changed_after_it_was_judged_is_not_pushed(push, tmp_path, base, is_bucket):
    to = base if is_bucket else str(tmp_path / "serving")
    with pytest.raises(ComponentError, match=r"models/7 changed after it was judged: the SHA-256") as raised:
        push(blessed=1, to=to, change=lambda saved_model: saved_model.write_bytes(b"Graph"))
    assert raised.value.start == "Trainer"
    assert version_store_at(to).numbers() == []


def test_model_that_changed_before_a_gate_of_another_kind_judged_it_is_not_pushed(push, tmp_path):
    def change(saved_model):
        keep_digest(str(saved_model.parent))
        saved_model.write_bytes(b"Graph")

    with pytest.raises(ComponentError, match=r"models/7 changed after it was exported"):
        push(blessed=1, change=change)
    assert not (tmp_path / "serving").exists()


def test_provenance_holds_the_verdict_the_run_and_the_span(push, monkeypatch):
    monkeypatch.setenv("SLIPWAY_RUN", "20261120-1")
    verdict = {"metrics": {"auc": 0.95}, "reasons": ["auc 0.95, meets at least 0.9"]}
    verdict["overrides"] = [{"by": "ann", "reason": "trial"}]
    stopped = {"text": "fare: missing", "stops": True}
    data_found = {"message": "1 finding in 3 rows", "findings": [stopped], "accepted": "told us"}
    version = Path(properties(push(blessed=1, verdict=verdict, data_found=data_found))[1])
    manifest = json.loads((version / "manifest.json").read_text(encoding="utf-8"))
    assert (manifest["workload"], manifest["run"], manifest["data"]) == ("taxi", "20261120-1", {"span": "3"})
    assert manifest["metrics"] == {"auc": 0.95}
    assert manifest["gate"]["reasons"] == ["auc 0.95, meets at least 0.9"]
    assert manifest["gate"]["overrides"] == [{"by": "ann", "reason": "trial"}]
    assert manifest["data_gate"] == {
        "message": "1 finding in 3 rows",
        "findings": ["fare: missing"],
        "overrides": [{"reason": "told us"}],
    }
    assert manifest["stack"]["python"].startswith("3.")
    assert "auc" in (version / "MODEL_CARD.md").read_text(encoding="utf-8")


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_version_is_signed_and_a_key_that_others_may_read_is_warned_of(push, key_files, tmp_path, caplog):
    private, public = key_files()
    private.chmod(0o644)
    sign = as_parameter(asdict(SigningSettings(str(private))))
    path = properties(push(blessed=1, sign=sign))[1]
    trusted = version_store_at(str(tmp_path / "serving"), Trust(read_verify_key(str(public)), "taxi"))
    assert trusted.problem(int(Path(path).name)) == ""
    assert f"{private}, the key that signs models, is open to other users (0644)" in caplog.text
    secret = private.read_text(encoding="utf-8").splitlines()[1]
    assert not any(secret.encode() in file.read_bytes() for file in Path(path).rglob("*") if file.is_file())
    assert secret not in caplog.text


def test_nothing_is_pushed_where_the_key_is_missing(push, tmp_path):
    with pytest.raises(ComponentError, match="the environment variable NO_SUCH_KEY is not set"):
        push(blessed=1, sign=as_parameter(asdict(SigningSettings(key_env="NO_SUCH_KEY"))))
    assert not (tmp_path / "serving").exists()


def test_bucket_is_pushed_to_as_a_directory_is(push, base):
    was_pushed, destination, version = properties(push(blessed=1, to=base))
    assert (was_pushed, destination) == (1, f"{base}/{version}")
    assert properties(push(blessed=1, to=base)) == (1, destination, version)
    assert version_store_at(base).numbers() == [int(version)]


def test_hook_runs_after_the_push_and_its_failure_fails_the_node(push, tmp_path):
    told = tmp_path / "told"
    _, destination, _ = properties(push(blessed=1, hook=["sh", "-c", f"echo $SLIPWAY_VERSION_PATH > {told}"]))
    assert told.read_text(encoding="utf-8") == f"{destination}\n"
    with pytest.raises(ComponentError, match=r"is pushed, but push\.hook 'false' ended with code 1"):
        push(blessed=1, hook=["false"])


def test_who_may_not_deploy_is_told_before_anything_is_pushed(push, tmp_path, monkeypatch):
    monkeypatch.delenv("GOOGLE_APPLICATION_CREDENTIALS", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("NO_GCE_CHECK", "true")
    settings = EndpointSettings(
        project="p",
        region="r",
        name="taxi",
        container="image",
        machine_type="m",
        min_replicas=1,
        max_replicas=1,
        traffic=100,
    )
    with pytest.raises(ComponentError, match=r"no credentials for push\.endpoint"):
        push(blessed=1, endpoint=as_parameter(asdict(settings)))
    assert not (tmp_path / "serving").exists()
