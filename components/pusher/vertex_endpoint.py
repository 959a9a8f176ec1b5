"""A Vertex AI endpoint as a destination after the push: a version is uploaded once and deployed once.

It uses Google's generated clients. Each created resource has an id or alias that we choose, so that a retry
after a lost response or a crash finds the resource instead of creating a second one.
"""

import contextlib
import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from slipway.components import google_retries
from slipway.components.errors import ComponentError
from slipway.components.google_credentials import find_credentials
from slipway.components.google_retries import odd_answers_as_errors, passing_errors, patience
from slipway.components.pusher import model_registry as registry
from slipway.components.pusher.endpoint import EndpointSettings, deploy_request
from slipway.components.pusher.manifest_contents import Provenance
from slipway.components.pusher.versions import Published

UPLOAD_S = 1800.0
"""Time limit for uploading a model."""
DEPLOY_S = 3600.0
"""Time limit for starting the machines, which usually takes a quarter of an hour."""

_log = logging.getLogger(__name__)


class VertexEndpoint:
    """An endpoint, accessed with this machine's credentials.

    Raises:
        ComponentError: there are no valid credentials.
    """

    def __init__(self, settings: EndpointSettings) -> None:
        from google.api_core.client_options import ClientOptions
        from google.cloud.aiplatform_v1.services.endpoint_service import EndpointServiceClient
        from google.cloud.aiplatform_v1.services.model_service import ModelServiceClient

        connection: dict[str, object] = {
            "credentials": find_credentials("push.endpoint"),
            "transport": "rest",
            "client_options": ClientOptions(api_endpoint=settings.url),
        }
        self._settings = settings
        self._models, self._endpoints = ModelServiceClient(**connection), EndpointServiceClient(**connection)

    def deploy(self, published: Published, *, workload: str, provenance: Provenance | None = None) -> str:
        """Upload and deploy a version, unless that is done, and undeploy versions that get no requests any
        more.

        A version that is already deployed keeps its share of the requests, and only older ones are
        undeployed: a newer one may be waiting for its share.

        Args:
            published: the version, in gs://.
            provenance: for the registry; None: it gets none.

        Returns:
            What was done, in words.

        Raises:
            ComponentError: the service refused or did not respond, the registry has a model of that name
                that is not the workload's, or another workload's model answers at the endpoint; the version
                stays pushed.
        """
        with self._in_words(f"version {published.version} is pushed, but not deployed"):
            model = self._registered(published, provenance or {}, workload)
            # In the past each version was a model of its own.
            earlier = f"{self._settings.parent}/models/{registry.earlier_id(workload, published.version)}@1"
            names = (model, earlier)
            endpoint = self._endpoint()
            name = self._settings.name
            if any(_is_one_of(each, names) for each in endpoint.deployed_models):
                done = f"Version {published.version} is already deployed at the endpoint {name}"
                newest = published.version
            else:
                self._require_own(endpoint, published, workload)
                asked = deploy_request(
                    self._settings,
                    published,
                    workload=workload,
                    model=model,
                    shares=dict(endpoint.traffic_split),
                )
                self._done(self._endpoints.deploy_model, asked, lambda: self._is_deployed(names), DEPLOY_S)
                share, newest = asked["traffic_split"]["0"], None
                done = f"Version {published.version} gets {share}% of the requests to the endpoint {name}"
        so_far = f"version {published.version} is deployed, but versions without traffic still hold machines"
        with self._in_words(so_far):
            removed = self._without_traffic(workload, keep=names, newest=newest)
        gone = f"; undeployed {', '.join(removed)}" if removed else ""
        return f"{done}{gone}."

    def _registered(self, published: Published, provenance: Provenance, workload: str) -> str:
        """Return the resource name of the version in the registry, adding the version if necessary."""
        model = f"{self._settings.parent}/models/{registry.model_id(workload)}"
        name = f"{model}@{registry.alias(published.version)}"
        found = self._found(self._models.get_model, name)
        if found is None:
            found = self._uploaded(published, provenance, workload=workload, model=model, name=name)
        if found.artifact_uri.rstrip("/") != published.address:
            raise ComponentError(
                f"{name} is {found.artifact_uri}, not {published.address}; version {published.version} is "
                "pushed, but not deployed.",
                hint="remove that version from the registry, then resume the run",
            )
        versioned = f"{model}@{found.version_id}"
        self._tell_metrics(versioned, published.version, provenance)
        return versioned

    def _uploaded(
        self, published: Published, provenance: Provenance, *, workload: str, model: str, name: str
    ) -> Any:
        """Add a version to the registry: the first creates the model, each later one goes beneath it.

        The registry, not we, gives a version its id, so a retry first looks for the version. If the service
        was still processing the first request, the version may be there twice; the alias points to one of
        them.
        """
        from google.api_core.exceptions import Conflict

        began, wait_s = time.monotonic(), google_retries.FIRST_WAIT_S
        while True:
            there = self._found(self._models.get_model, model)
            if there is not None and registry.is_foreign(there.labels, workload):
                label = f"{registry.WORKLOAD_LABEL}={registry.model_id(workload)}"
                raise ComponentError(
                    f"{model} is in the registry, without the label {label}, so it is not this workload's; "
                    f"version {published.version} is pushed, but not deployed.",
                    hint="rename or remove that model, or give it the label to put versions beneath it; "
                    "then resume the run",
                )
            key = self._settings.encryption_key
            if there is not None:
                # A model's versions share its key.
                self._warn_of_other_key(there, model)
                key = there.encryption_spec.kms_key_name
            asked = registry.upload_request(
                published,
                provenance,
                parent=self._settings.parent,
                container=self._settings.container,
                workload=workload,
                is_first=there is None,
                encryption_key=key,
            )
            try:
                with odd_answers_as_errors():
                    _finish(self._models.upload_model(asked, timeout=google_retries.TIMEOUT_S), UPLOAD_S)
                    return self._models.get_model(name=name, **patience())
            except (Conflict, *passing_errors()) as error:
                # A conflict: another publisher is creating the model, which takes a while.
                if time.monotonic() - began > (
                    UPLOAD_S if isinstance(error, Conflict) else google_retries.RETRY_S
                ):
                    raise
                time.sleep(wait_s)
                wait_s = min(2 * wait_s, google_retries.LONGEST_WAIT_S)
            if found := self._found(self._models.get_model, name):
                return found

    def _tell_metrics(self, model: str, version: int, provenance: Provenance) -> None:
        """Add the version's metrics to the registry, once; an error here does not stop the deployment."""
        from google.api_core.exceptions import GoogleAPIError

        asked = registry.evaluation(version, provenance)
        if asked is None:
            return
        try:
            with odd_answers_as_errors():
                told = self._models.list_model_evaluations(parent=model, **patience())
                if not any(each.display_name == asked["display_name"] for each in told):
                    self._models.import_model_evaluation(
                        {"parent": model, "model_evaluation": asked}, timeout=google_retries.TIMEOUT_S
                    )
        except (GoogleAPIError, *passing_errors()) as error:
            _log.warning("The registry did not take the metrics of version %d: %s", version, _said(error))

    def _endpoint(self) -> Any:
        name = self._settings.endpoint
        found = self._found(self._endpoints.get_endpoint, name)
        if found is None:
            endpoint: dict[str, object] = {"display_name": self._settings.name}
            if self._settings.encryption_key:
                endpoint["encryption_spec"] = {"kms_key_name": self._settings.encryption_key}
            asked = {
                "parent": self._settings.parent,
                "endpoint": endpoint,
                "endpoint_id": self._settings.name,
            }
            self._done(
                self._endpoints.create_endpoint,
                asked,
                lambda: self._found(self._endpoints.get_endpoint, name),
                UPLOAD_S,
            )
            found = self._endpoints.get_endpoint(name=name, **patience())
        self._warn_of_other_key(found, name)
        return found

    def _require_own(self, endpoint: Any, published: Published, workload: str) -> None:
        """Refuse an endpoint where another workload answers: it would lose a part of its requests."""
        from google.api_core.exceptions import Forbidden

        for each in endpoint.deployed_models:
            if registry.is_ours(each.model, workload) or not endpoint.traffic_split.get(each.id, 0):
                continue
            with contextlib.suppress(Forbidden):  # of another project, which is no workload's of ours
                found = self._found(self._models.get_model, each.model)
                if found is not None and (other := registry.other_workload(found.labels, workload)):
                    raise ComponentError(
                        f"models of the workload {other!r} answer at the endpoint {self._settings.name}, and "
                        f"{workload!r} would get a part of their requests; version {published.version} is "
                        "pushed, but not deployed.",
                        hint="choose another push.endpoint.name, then run again",
                    )

    def _warn_of_other_key(self, made: Any, name: str) -> None:
        """Say so if a model or endpoint was made before the key was set: its key cannot be changed."""
        wanted, used = self._settings.encryption_key, made.encryption_spec.kms_key_name
        if wanted and used != wanted:
            _log.warning(
                "%s was made with %s, not with cloud.vertex.encryption_key; once removed it is made anew",
                name,
                used or "Google's keys",
            )

    def _without_traffic(self, workload: str, *, keep: Sequence[str], newest: int | None) -> list[str]:
        """Undeploy the workload's models that get no requests: their machines cost money for nothing.

        Args:
            keep: resource names of the version to keep.
            newest: versions above this one stay; None: none of them does.

        Returns:
            The names of the undeployed models.
        """
        endpoint = self._endpoints.get_endpoint(name=self._settings.endpoint, **patience())
        removed = []
        for each in endpoint.deployed_models:
            idle = not endpoint.traffic_split.get(each.id, 0) and (newest is None or int(each.id) <= newest)
            if idle and registry.is_ours(each.model, workload) and not _is_one_of(each, keep):
                asked = {"endpoint": self._settings.endpoint, "deployed_model_id": each.id}
                self._done(
                    self._endpoints.undeploy_model,
                    asked,
                    partial(self._is_gone, each.id),
                    DEPLOY_S,
                )
                removed.append(each.display_name)
        return removed

    def _is_deployed(self, names: Sequence[str]) -> bool:
        endpoint = self._endpoints.get_endpoint(name=self._settings.endpoint, **patience())
        return any(_is_one_of(each, names) for each in endpoint.deployed_models)

    def _is_gone(self, deployed_id: str) -> bool:
        endpoint = self._endpoints.get_endpoint(name=self._settings.endpoint, **patience())
        return all(each.id != deployed_id for each in endpoint.deployed_models)

    def _found(self, get: Any, name: str) -> Any:
        from google.api_core.exceptions import NotFound

        try:
            return get(name=name, **patience())
        except NotFound:
            return None

    def _done(
        self, ask: Any, request: Mapping[str, object], is_there: Callable[[], Any], limit_s: float
    ) -> None:
        """Request a long-running operation and wait for it.

        A conflict with an earlier request is not an error: its response was lost, or another publisher made
        it.
        """
        from google.api_core.exceptions import Conflict

        until = time.monotonic() + limit_s
        try:
            _finish(ask(dict(request), **patience()), limit_s)
        except Conflict:
            while not is_there():
                if time.monotonic() > until:
                    raise
                time.sleep(google_retries.FIRST_WAIT_S)

    @contextlib.contextmanager
    def _in_words(self, so_far: str) -> Iterator[None]:
        import requests
        from google.api_core.exceptions import Forbidden, GoogleAPIError, Unauthorized
        from google.auth.exceptions import GoogleAuthError

        again = "then resume the run"
        try:
            with odd_answers_as_errors():
                yield
        except (Forbidden, Unauthorized) as error:
            need = f"the account needs roles/aiplatform.user in {self._settings.project}; {again}"
            raise ComponentError(f"{so_far}: permission denied: {_said(error)}", hint=need) from error
        except (GoogleAPIError, GoogleAuthError, requests.RequestException, TimeoutError) as error:
            where = f"{self._settings.url} ({self._settings.endpoint})"
            raise ComponentError(
                f"{so_far}: {where}: {type(error).__name__}: {_said(error)}", hint=f"fix that, {again}"
            ) from error


def _finish(operation: Any, limit_s: float) -> None:
    """Wait until an operation ends; the client itself gives up at one question without an answer."""
    until = time.monotonic() + limit_s
    while True:
        try:
            with odd_answers_as_errors():
                operation.result(timeout=max(until - time.monotonic(), 0.0))
        except passing_errors():
            # The operation's own error looks the same as that of the question for its state.
            if operation.operation.done or time.monotonic() > until:
                raise
            time.sleep(google_retries.FIRST_WAIT_S)
        else:
            return


def _is_one_of(deployed: Any, names: Sequence[str]) -> bool:
    return any(registry.is_version(deployed.model, deployed.model_version_id, of=name) for name in names)


def _said(error: Exception) -> str:
    return " ".join(str(error).split())[:300]
