"""Turns errors of Google's clients into readable errors, and checks that a run's resources exist."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from slipway.components.google_credentials import GIVER_OF_ACCESS
from slipway.components.google_retries import (
    certificate_refused,
    may_pass,
    odd_answer,
    says_nothing_about_credentials,
)
from slipway.pipeline.cloud.services import service_refusal as refusal
from slipway.pipeline.cloud.services.image_registry import find_image
from slipway.pipeline.errors import UnansweredError

_TIMEOUT_S = 20.0
_RETRY_S = 30.0
_CHECK_BETWEEN = "check a proxy (https_proxy), and cloud.vertex.endpoint"


@contextmanager
def translated_google_errors(doing: str, *, project: str, address: str) -> Iterator[None]:
    """Turn errors of Google's clients into errors that a user can act on.

    Args:
        doing: the action in progress, e.g. "starting the run".
        address: the address of the service, for the message.

    Raises:
        PipelineError: the service refused, or did not answer.
    """
    import requests
    from google.api_core.exceptions import GoogleAPICallError, RetryError
    from google.auth.exceptions import GoogleAuthError

    try:
        with _odd_answers_told(doing, address=address):
            yield
    except RetryError as error:
        if isinstance(error.cause, GoogleAPICallError):
            raise refusal.refusal(_answer(error.cause), doing=doing, project=project) from error
        who = GIVER_OF_ACCESS if isinstance(error.cause, GoogleAuthError) else address
        is_sent = who == address and refusal.may_be_sent(error.cause or error)
        raise refusal.unreachable(who, str(error.cause), doing=doing, is_sent=is_sent) from error
    except GoogleAPICallError as error:
        raise refusal.refusal(_answer(error), doing=doing, project=project) from error
    except GoogleAuthError as error:
        if said := certificate_refused(error):
            raise refusal.unverified(GIVER_OF_ACCESS, said, doing=doing) from error
        if says_nothing_about_credentials(error):
            raise refusal.unreachable(GIVER_OF_ACCESS, str(error), doing=doing, is_sent=False) from error
        raise refusal.stale_credentials(str(error)) from error
    except requests.RequestException as error:
        if said := certificate_refused(error):
            raise refusal.unverified(address, said, doing=doing) from error
        name, is_sent = type(error).__name__, refusal.may_be_sent(error)
        raise refusal.unreachable(address, name, doing=doing, is_sent=is_sent) from error
    except TimeoutError as error:
        raise refusal.unfinished(str(error), doing=doing) from error


@contextmanager
def _odd_answers_told(doing: str, *, address: str) -> Iterator[None]:
    """Turn the error of an answer that is not in the form of Google's services into one of ours."""
    try:
        yield
    except Exception as error:
        if (odd := odd_answer(error)) is None:
            raise
        told = refusal.no_api(address, doing=doing, hint=_CHECK_BETWEEN)
        if int(odd.code or 0) < 500:
            raise told from error
        # A gateway's, which may have waited for the service in vain.
        raise UnansweredError(told.message, hint=told.hint) from error


def _answer(error: Any) -> refusal.Answer:
    # The client prepends the HTTP method and the URL to the service's own message.
    message = str(error.message or "")
    _, colon, said = (
        message.partition(": ") if message.startswith(("GET ", "POST ", "DELETE ")) else ("", "", "")
    )
    line, end, rest = (said if colon else message).partition("\n")
    return refusal.Answer(
        status=int(error.code or 500),
        message=f"{line}{_refused_fields(error.details)}{end}{rest}",
        reason=error.reason or "",
        metadata=dict(error.metadata or {}),
    )


def _refused_fields(details: Any) -> str:
    """Return the fields of a request that its answer names, and why, in brackets; "" if it names none."""
    listed = [each for each in details if isinstance(each, Mapping)]
    wrong = [field for each in listed for field in each.get("fieldViolations") or ()]
    told = [": ".join(filter(None, (each.get("field"), each.get("description")))) for each in wrong]
    return f" ({'; '.join(told)})" if told else ""


def check_bucket(name: str, *, key: str, credentials: Any, project: str, region: str) -> Iterator[str]:
    """Raise an error if a bucket does not exist; yield warnings.

    Args:
        key: the key of the workload file that names the bucket.
        credentials: google.auth credentials.
        project: the project in which the user would create a missing bucket.

    Raises:
        PipelineError: there is no such bucket, or Cloud Storage could not be queried.
    """
    from google.api_core.exceptions import Forbidden, NotFound
    from google.cloud import storage
    from google.cloud.storage.retry import DEFAULT_RETRY

    retry = DEFAULT_RETRY.with_timeout(_RETRY_S).with_predicate(may_pass)
    client = storage.Client(project=project, credentials=credentials)
    with translated_google_errors(f"looking for gs://{name}", project=project, address="Cloud Storage"):
        try:
            bucket = client.get_bucket(name, timeout=_TIMEOUT_S, retry=retry)
        except NotFound as error:
            raise refusal.no_bucket(name, key=key, project=project, region=region) from error
        except Forbidden as error:
            if error.reason:  # an API that is not enabled, a project without billing
                raise
            yield f"not checked: gs://{name}, whose settings you may not see (storage.buckets.get)"
            return
    place = str(bucket.location or "").lower()
    if "-" in place and place != region:
        yield f"gs://{name} is in {place}, the pipeline in {region}: moving data costs time and money"


def check_images(images: Mapping[str, str], *, credentials: Any) -> Iterator[str]:
    """Raise an error if a registry lacks an image; yield a warning for each image that cannot be looked up.

    Args:
        images: the images' names, each with the Dockerfile target that builds it.
        credentials: google.auth credentials; with None, no token is sent.

    Raises:
        PipelineError: an image is missing.
    """
    for image, build_target in images.items():
        found = find_image(image, credentials=credentials)
        if found is False:
            raise refusal.no_image(image, build_target=build_target)
        if isinstance(found, str):
            yield f"not checked: the image {image}; {found}"
