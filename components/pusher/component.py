"""Pusher: publishes the blessed model, and only that."""

import contextlib
import logging
from pathlib import Path

from tfx.dsl.component.experimental.annotations import InputArtifact, OutputArtifact, Parameter
from tfx.dsl.component.experimental.decorators import component
from tfx.types.standard_artifacts import (
    Examples,
    InfraBlessing,
    Model,
    ModelBlessing,
    PushedModel,
    Schema,
)
from tfx.utils.path_utils import serving_model_path

from slipway.components.errors import ComponentError
from slipway.components.parameters import from_parameter
from slipway.components.pusher.artifact_folder import on_this_machine
from slipway.components.pusher.destination import (
    deployment_at,
    find_other_workload,
    find_rollback,
    push,
    remedy_of_rollback,
)
from slipway.components.pusher.endpoint import EndpointSettings
from slipway.components.pusher.hook import run_hook
from slipway.components.pusher.manifest_contents import About
from slipway.components.pusher.provenance import (
    collect_provenance,
    read_code,
    read_data,
    read_exports,
    read_sbom,
    read_schema,
    read_verdict,
)
from slipway.components.pusher.retention import thin_out
from slipway.components.pusher.signing_keys import (
    SigningKey,
    SigningSettings,
    read_signing_key,
    readable_by_others,
)
from slipway.components.pusher.version_files import Extras
from slipway.components.saved_model.digest import PROPERTY, SBOM_FOLDER, require_unchanged
from slipway.components.saved_model.digest_files import exported_digest, model_digest
from slipway.components.saved_model.reading import read_signatures
from slipway.schemas.artifacts import DataVerdict, Quarantine

_log = logging.getLogger(__name__)


@component
def Pusher(  # noqa: N802 (component constructors are nouns)
    model: InputArtifact[Model],
    blessing: InputArtifact[ModelBlessing],
    examples: InputArtifact[Examples],
    schema: InputArtifact[Schema],
    pushed_model: OutputArtifact[PushedModel],
    base: Parameter[str],
    about: Parameter[str],
    quarantine: InputArtifact[Quarantine] = None,
    data_verdict: InputArtifact[DataVerdict] = None,
    infra_blessing: InputArtifact[InfraBlessing] = None,
    keep: Parameter[int] = 0,
    hook: Parameter[list[str]] = None,
    endpoint: Parameter[str] = "",
    sign: Parameter[str] = "",
) -> None:
    """Publish the model with its provenance if it is blessed; otherwise push nothing and log why.

    Args:
        model: the Trainer's output; its SavedModel is in the artifact's folder for serving.
        blessing: the gate's verdict on this model: the property `blessed`, and the file `BLESSED`.
        examples: the training data; its span goes into the manifest.
        schema: the schema of the raw data, for the manifest.
        pushed_model: gets the properties that stock components set: `pushed` (1 or 0) and, when pushed,
            `pushed_destination` (the version's directory or address) and `pushed_version`. Nothing is
            copied into it.
        base: the directory, or the folder in an object store, that a model server watches.
        about: the workload's description of itself, by `as_parameter`; see `manifest_contents.About`.
        quarantine: Ingest's output beside the examples, with the digest of the data; None if the examples
            come from another component.
        data_verdict: the data gate's verdict; None if no gate judged the data.
        infra_blessing: an InfraValidator's verdict on this model; None if there is no such component.
        keep: number of versions to keep; 0: all.
        hook: a command to run after the push, see `run_hook`; None: none.
        endpoint: fields of `EndpointSettings` by `as_parameter`, for deploying the version after the push;
            empty: it is not deployed.
        sign: fields of `SigningSettings` by `as_parameter`, the key that signs versions; empty: they are not
            signed.

    Raises:
        ComponentError: the blessing is about another model, or is positive but its file is gone; there is no
            model, or its files changed after they were judged; the model cannot be signed or published;
            `base` holds the versions of another workload; the model was rolled back there.
    """
    told: About = from_parameter(about)
    for answer in filter(None, (blessing, infra_blessing)):
        if answer.get_int_custom_property("blessed") != 1:
            pushed_model.set_int_custom_property("pushed", 0)
            _log.warning("Not pushed: %s is not blessed (%s).", model.uri, answer.uri)
            return
    # Missing permission to deploy, or to sign, is reported before anything is pushed.
    deployment = deployment_at(EndpointSettings(**from_parameter(endpoint)) if endpoint else None)
    key = _signing_key(SigningSettings(**from_parameter(sign)) if sign else None)
    with contextlib.suppress(OSError):  # which the push tells with its remedy
        _require_own(base, told.get("workload", ""))
    with contextlib.ExitStack() as stack:

        def here(uri: str) -> Path:
            return stack.enter_context(on_this_machine(uri))

        blessed = here(blessing.uri)
        _check(blessing, blessed, model)
        serving_model = serving_model_path(model.uri)
        folder = here(serving_model)
        if not (folder / "saved_model.pb").is_file():
            raise ComponentError(
                f"{serving_model} holds no SavedModel; nothing is pushed.",
                hint="a Trainer exports the model to serve to fn_args.serving_model_dir",
            )
        judged = blessing.get_string_custom_property(PROPERTY)
        digest = model_digest(str(folder))
        require_unchanged(
            model.uri, digest, earlier={"exported": exported_digest(serving_model), "judged": judged}
        )
        with contextlib.suppress(OSError):  # as above
            _require_not_rolled_back(base, digest)
        environment = here(f"{model.uri}/{SBOM_FOLDER}")
        provenance = collect_provenance(
            about=told,
            verdict=read_verdict(blessed),
            data_verdict=read_verdict(here(data_verdict.uri)) if data_verdict else {},
            data=read_data(here(quarantine.uri) if quarantine else None, span=_span(examples)),
            schema=read_schema(here(schema.uri) / "schema.pbtxt"),
            signatures={name: each.to_json() for name, each in read_signatures(folder).items()},
            exports=read_exports(here(f"{model.uri}/exports")),
            code=read_code(environment),
        )
        # `push` checks the digest of the copy against this one.
        provenance["model"] = {**provenance.get("model", {}), "digest": digest}
        extras = Extras(key, sbom=read_sbom(environment))
        published = push(folder, base=base, provenance=provenance, extras=extras)
    pushed_model.set_int_custom_property("pushed", 1)
    pushed_model.set_string_custom_property("pushed_destination", published.address)
    pushed_model.set_string_custom_property("pushed_version", str(published.version))
    workload = told.get("workload", "")
    if deployment:
        _log.info("%s", deployment.deploy(published, workload=workload, provenance=provenance))
    run_hook(hook or [], published, workload=workload)
    done = "was there already, nothing was pushed" if published.was_there else "pushed"
    if keep:
        thin_out(base, keep=keep)
    _log.info("Version %d %s: %s.", published.version, done, published.address)


def _signing_key(sign: SigningSettings | None) -> SigningKey | None:
    if sign is None:
        return None
    if warning := readable_by_others(sign):
        _log.warning("%s", warning)
    return read_signing_key(sign)


def _require_own(base: str, workload: str) -> None:
    if other := find_other_workload(base, workload):
        raise ComponentError(
            f"{base} holds the versions of the workload {other!r}, whose servers would take this model of "
            f"{workload!r} for a newer one of theirs; nothing is pushed.",
            hint="choose another push.destination; if the workload was renamed, move its versions elsewhere",
        )


def _require_not_rolled_back(base: str, digest: str) -> None:
    """Refuse a model that a person took out of service: the push of a changed setting would bring it back."""
    if again := find_rollback(base, digest):
        version = again["instead_of"]
        facts = filter(None, (again.get("at"), again.get("by"), again.get("reason")))
        raise ComponentError(
            f"This model was version {version} of {base}, and was rolled back ({', '.join(facts)}); nothing "
            "is pushed.",
            hint=remedy_of_rollback(base, version),
        )


def _check(blessing: ModelBlessing, folder: Path, model: Model) -> None:
    again = "let the gate judge again: run from it (--from ModelGate), or else without the cache"
    if not (folder / "BLESSED").is_file():
        raise ComponentError(
            f"{blessing.uri} is recorded as a blessing, but holds no file BLESSED; nothing is pushed.",
            hint=again,
        )
    judged = blessing.get_string_custom_property("current_model")
    if judged != model.uri:
        judged = judged or "a model that it does not name"
        raise ComponentError(
            f"{blessing.uri} is about {judged}, not {model.uri}; nothing is pushed.",
            hint=again,
        )


def _span(examples: Examples) -> str:
    # Text or a number, depending on the driver that resolved the examples.
    return examples.get_string_custom_property("span") or str(examples.get_int_custom_property("span") or "")
