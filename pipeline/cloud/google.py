"""Who we are at Google Cloud, and whether what a run needs is there. Thin."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pipeline.cloud import refusal
from pipeline.cloud.registry import find_image

SCOPE = "https://www.googleapis.com/auth/cloud-platform"
_TIMEOUT_S = 20.0
_RETRY_S = 30.0


def find_credentials() -> Any:
    """The credentials of this machine's user, with a fresh token.

    Raises:
        PipelineError: there are none, or they are no longer valid.
    """
    import google.auth
    from google.auth.exceptions import DefaultCredentialsError, GoogleAuthError
    from google.auth.transport.requests import Request

    try:
        with warnings.catch_warnings():
            # That a user's own credentials name no quota project is of no concern here.
            warnings.simplefilter("ignore", UserWarning)
            credentials, _ = google.auth.default(scopes=[SCOPE])
        credentials.refresh(Request())
    except DefaultCredentialsError as error:
        raise refusal.no_credentials(str(error)) from error
    except GoogleAuthError as error:
        raise refusal.stale_credentials(str(error.args[0] if error.args else error)) from error
    return credentials


@contextmanager
def in_words(doing: str, *, project: str, address: str) -> Iterator[None]:
    """Turns what Google's clients raise into errors that a user can act on.

    Args:
        doing: what is asked for, e.g. "starting the run".
        project: whose resources it is about.
        address: who is asked.

    Raises:
        PipelineError: the service refused, or did not answer.
    """
    import requests
    from google.api_core.exceptions import GoogleAPICallError, RetryError
    from google.auth.exceptions import GoogleAuthError

    try:
        yield
    except RetryError as error:
        if isinstance(error.cause, GoogleAPICallError):
            raise refusal.refusal(_answer(error.cause), doing=doing, project=project) from error
        raise refusal.unreachable(address, str(error.cause), doing=doing) from error
    except GoogleAPICallError as error:
        raise refusal.refusal(_answer(error), doing=doing, project=project) from error
    except GoogleAuthError as error:
        raise refusal.stale_credentials(str(error)) from error
    except requests.RequestException as error:
        raise refusal.unreachable(address, type(error).__name__, doing=doing) from error


def _answer(error: Any) -> refusal.Answer:
    # The client puts the method and the address before the service's own words.
    message = str(error.message or "")
    _, colon, said = (
        message.partition(": ") if message.startswith(("GET ", "POST ", "DELETE ")) else ("", "", "")
    )
    return refusal.Answer(
        status=int(error.code or 500),
        message=said if colon else message,
        reason=error.reason or "",
        metadata=dict(error.metadata or {}),
    )


def check_bucket(root: str, *, credentials: Any, project: str, region: str) -> Iterator[str]:
    """Refuses where the bucket for artifacts does not exist; yields what else is to say of it.

    Args:
        root: gs://BUCKET/PATH.
        credentials: of google.auth.
        project: where the bucket would be made.
        region: where the pipeline runs.

    Raises:
        PipelineError: there is no such bucket, or Cloud Storage could not be asked.
    """
    from google.api_core.exceptions import Forbidden, NotFound
    from google.cloud import storage
    from google.cloud.storage.retry import DEFAULT_RETRY

    name = root.removeprefix("gs://").partition("/")[0]
    client = storage.Client(project=project, credentials=credentials)
    with in_words(f"looking for gs://{name}", project=project, address="Cloud Storage"):
        try:
            bucket = client.get_bucket(name, timeout=_TIMEOUT_S, retry=DEFAULT_RETRY.with_timeout(_RETRY_S))
        except NotFound as error:
            raise refusal.no_bucket(name, project=project, region=region) from error
        except Forbidden as error:
            if error.reason:  # an API that is not enabled, a project without billing
                raise
            yield f"not checked: gs://{name}, whose settings you may not see (storage.buckets.get)"
            return
    place = str(bucket.location or "").lower()
    if "-" in place and place != region:
        yield f"gs://{name} is in {place}, the pipeline in {region}: moving data costs time and money"


def check_image(image: str, *, credentials: Any) -> Iterator[str]:
    """Refuses where the registry has no such image; yields why that could not be found out.

    Raises:
        PipelineError: it is not there.
    """
    found = find_image(image, credentials=credentials)
    if found is False:
        raise refusal.no_image(image)
    if isinstance(found, str):
        yield f"not checked: the image {image}; {found}"
