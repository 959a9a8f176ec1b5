"""Requests to the API of Kubeflow Pipelines, with timeouts, and repeated only where that is safe.

The generated client comes with kfp and is imported when first used. kfp.Client itself is not used: it prints,
writes to the user's home folder and has no timeouts.
"""

import json
import os
import ssl
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from typing import Any, Self

from slipway.pipeline.cloud.services import service_refusal as refusal
from slipway.pipeline.config.cloud_services import KubeflowConfig
from slipway.pipeline.errors import PipelineError

# For connecting and reading. A pair, because this client ignores a single number that is not an int.
_TIMEOUT_S = (30.0, 30.0)
_TRIES = 4
_WAIT_S = 0.5  # before the first retry; doubles
_PAGE = 100
_NEWEST_FIRST = "created_at desc"
_OF_A_PROXY = (502, 504)  # it has given up waiting for the service
_THERE_ALREADY = 409
_CHANGE_NOTHING = ("GET",)

Method = Callable[..., Any]
"""A method of the generated client, which sends one request."""


class _NoApiError(Exception):
    """Something else than the API has answered, such as the page of a login."""


class KubeflowClient:
    """The API of one installation of Kubeflow Pipelines.

    Args:
        settings: with a host.

    Attributes:
        host: the installation's address, without a slash at its end.
    """

    def __init__(self, settings: KubeflowConfig) -> None:
        self._settings = settings
        self.host = str(settings.host).rstrip("/")

    @cached_property
    def models(self) -> Any:
        """The generated client's module, with the messages of the API."""
        import kfp_server_api  # type: ignore[import-untyped]

        return kfp_server_api

    @cached_property
    def runs(self) -> Any:
        """The methods for runs."""
        return self.models.RunServiceApi(self._connection)

    @cached_property
    def recurring(self) -> Any:
        """The methods for recurring runs."""
        return self.models.RecurringRunServiceApi(self._connection)

    @cached_property
    def experiments(self) -> Any:
        """The methods for experiments."""
        return self.models.ExperimentServiceApi(self._connection)

    def ask(self, doing: str, method: Method, *given: object) -> Any:
        """Send one request and return the answer.

        Args:
            doing: what is asked for, e.g. "starting the run".

        Raises:
            PipelineError: the service refuses, or does not answer.
        """
        with self._in_words(doing):
            return method(*given, _request_timeout=_TIMEOUT_S)

    def latest(self, doing: str, list_some: Method, key: str, name: str) -> Any:
        """Return the latest item with that display name, which need not be unique; None if there is none.

        Raises the errors of `ask`.

        Args:
            list_some: lists items of the kind.
            key: the field of its answer that holds them.
        """
        with self._in_words(doing):
            return self._latest(list_some, key, name)

    def all_of(self, doing: str, list_some: Method, key: str) -> list[Any]:
        """Return all items of a kind, the newest first. Raises the errors of `ask`; see `latest`."""
        found: list[Any] = []
        token = ""
        with self._in_words(doing):
            while True:
                page = list_some(
                    page_token=token,
                    page_size=_PAGE,
                    sort_by=_NEWEST_FIRST,
                    _request_timeout=_TIMEOUT_S,
                    **self._namespace,
                )
                found += getattr(page, key) or ()
                token = page.next_page_token or ""
                if not token:
                    return found

    def made_once(
        self, doing: str, make: Method, body: object, *, list_some: Method, key: str, name: str
    ) -> Any:
        """Create an object only once, even if the service's answer is lost.

        After a server error, the request is repeated only if the object is not found by name. If no answer
        comes, or only that of a proxy before it, it is not repeated at all: the service may still be
        processing it, and would create a second object. One that another process has just created, where the
        name is unique, is taken.

        Raises the errors of `ask`; see `latest`. Where no object is found, or nobody can look for it, that is
        the error of the request itself, which tells whether the object may be there.

        Args:
            make: creates the object.
            body: the object.
            name: its display name.
        """
        from urllib3.exceptions import HTTPError

        with self._in_words(doing):
            try:
                return make(body, _request_timeout=_TIMEOUT_S)
            except self.models.ApiException as error:
                if (error.status or 500) < 500 and error.status != _THERE_ALREADY:
                    raise
                if found := self._found_after(error, list_some, key, name):
                    return found
                if _may_come_later(error) or error.status == _THERE_ALREADY:
                    raise
                return make(body, _request_timeout=_TIMEOUT_S)
            except HTTPError as error:
                if found := self._found_after(error, list_some, key, name):
                    return found
                raise

    def _found_after(self, error: Exception, list_some: Method, key: str, name: str) -> Any:
        """Return the object that a request made whose answer was this error; None if there is none.

        Raises:
            Exception: `error`, if the service does not let us look.
        """
        from urllib3.exceptions import HTTPError

        look = self._latest_in_a_while if _may_come_later(error) else self._latest
        try:
            return look(list_some, key, name)
        except (self.models.ApiException, HTTPError, _NoApiError):
            raise error from None  # that nobody could look says nothing of the request

    def _latest_in_a_while(self, list_some: Method, key: str, name: str) -> Any:
        for tried in range(_TRIES):
            time.sleep(_WAIT_S * 2**tried)
            if found := self._latest(list_some, key, name):
                return found
        return None

    def _latest(self, list_some: Method, key: str, name: str) -> Any:
        predicate = {"operation": "EQUALS", "key": "display_name", "stringValue": name}
        page = list_some(
            filter=json.dumps({"predicates": [predicate]}),
            sort_by=_NEWEST_FIRST,
            page_size=1,
            _request_timeout=_TIMEOUT_S,
            **self._namespace,
        )
        return next(iter(getattr(page, key) or ()), None)

    @property
    def _namespace(self) -> dict[str, str]:
        return {"namespace": self._settings.namespace} if self._settings.namespace else {}

    @cached_property
    def _connection(self) -> Any:
        configuration = self.models.Configuration(host=self.host)
        configuration.retries = _retries()
        if self._settings.ca_file:
            configuration.ssl_ca_cert = self._settings.ca_file
        if token := self._token():
            configuration.api_key["authorization"] = token
            configuration.api_key_prefix["authorization"] = "Bearer"
        client = self.models.ApiClient(configuration)
        client.deserialize = _of_the_api(client.deserialize)
        client.request = _with_text(client.request, self.models.ApiException)
        return client

    def _token(self) -> str:
        """Return the token, "" for none; Python's error about one that no header can hold would repeat it."""
        name = self._settings.token_env
        token = os.environ.get(name, "").strip()
        if not (token.isascii() and token.isprintable()):
            raise PipelineError(
                f"{name} is not a token: it holds a line break or letters that no header can",
                hint="copy it again",
            )
        return token

    @contextmanager
    def _in_words(self, doing: str) -> Iterator[None]:
        from urllib3.exceptions import HTTPError

        try:
            yield
        except self.models.ApiException as error:
            body = _answer(error)
            raise refusal.kubeflow_refusal(
                error.status or 500,
                str(body.get("message") or body.get("error") or error.reason or ""),
                doing=doing,
                token_env=self._settings.token_env,
                is_of_api="code" in body,
            ) from error
        except _NoApiError as error:
            raise refusal.no_api(
                self.host,
                doing=doing,
                hint="cloud.kubeflow.host must be the address of the API, and "
                f"{self._settings.token_env} hold a token that is valid there",
            ) from error
        except HTTPError as error:
            cause = getattr(error, "reason", None) or error  # that of the last of several tries
            if _is_unverified(cause):
                raise refusal.not_encrypted(
                    self.host, str(cause), doing=doing, ca_file=self._settings.ca_file
                ) from error
            told, is_sent = type(cause).__name__, refusal.may_be_sent(error)
            raise refusal.unreachable(self.host, told, doing=doing, is_sent=is_sent) from error


def _retries() -> Any:
    """Return a policy that repeats requests that were never sent, and those that change nothing."""
    from urllib3 import Retry
    from urllib3.exceptions import MaxRetryError, SSLError

    class Careful(Retry):
        """Does not repeat what an encrypted connection was cut after, which urllib3 takes for never sent."""

        def increment(self, method: Any = None, url: Any = None, *given: Any, **named: Any) -> Self:
            error: Any = named.get("error")
            pool: Any = named.get("_pool")
            if isinstance(error, SSLError) and method not in _CHANGE_NOTHING:
                raise MaxRetryError(pool, url, error) from error
            return super().increment(method, url, *given, **named)

    return Careful(
        total=_TRIES,
        backoff_factor=_WAIT_S,
        status_forcelist=(500, 502, 503, 504),
        allowed_methods=_CHANGE_NOTHING,
        raise_on_status=False,
    )


def _is_unverified(cause: Exception) -> bool:
    """Return True if the certificate could not be verified, before anything was sent.

    An encrypted connection that is cut later ends in an error of the same class.
    """
    from urllib3.exceptions import SSLError

    inner = cause.args[0] if isinstance(cause, SSLError) and cause.args else None
    is_of_file = isinstance(inner, OSError) and not isinstance(inner, ssl.SSLError)
    return is_of_file or isinstance(inner, ssl.SSLCertVerificationError)


def _of_the_api(read: Callable[[Any, str], Any]) -> Callable[[Any, str], Any]:
    """Return what reads an answer, as `read` does, but refuses one that is not of the API.

    The generated client takes a page, to which a proxy leads who is not logged in, for an object without any
    values: a run without an id, a list of nothing.
    """

    def read_checked(response: Any, kind: str) -> Any:
        try:
            is_object = isinstance(json.loads(response.data), dict)
        except ValueError:
            is_object = False
        if not is_object:
            raise _NoApiError
        return read(response, kind)

    return read_checked


def _with_text(ask: Method, kind: type[Any]) -> Method:
    """Return what sends a request, as `ask` does, whose errors hold text: the client fails at any other.

    Args:
        kind: the class of the errors.
    """

    def asked(*given: Any, **named: Any) -> Any:
        try:
            return ask(*given, **named)
        except kind as error:
            error.body = (error.body or b"").decode("utf-8", "replace").encode()
            raise

    return asked


def _may_come_later(error: Any) -> bool:
    """Return True if the service may still be working at a request that ended in this error."""
    status = getattr(error, "status", None)
    return not status or status in _OF_A_PROXY


def _answer(error: Any) -> Mapping[str, object]:
    """Return the object in an error response, with the service's `message` and `code`; empty if it has none.

    Args:
        error: the generated client's ApiException.
    """
    try:
        body = json.loads(error.body)
    except (TypeError, ValueError):
        return {}
    return body if isinstance(body, dict) else {}
