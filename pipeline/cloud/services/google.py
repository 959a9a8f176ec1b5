"""Puts the errors of Google's clients into words, and checks that a run's resources exist. Thin."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from slipway.pipeline.cloud.services import service_refusal as refusal
from slipway.pipeline.cloud.services.image_registry import find_image

_TIMEOUT_S = 20.0
_RETRY_S = 30.0


@contextmanager
def in_words(doing: str, *, project: str, address: str) -> Iterator[None]:
    """Turns errors of Google's clients into errors that a user can act on.

    Args:
        doing: what is asked for, e.g. "starting the run".
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
    """Fails if the bucket for artifacts does not exist; yields warnings.

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


def check_images(images: Mapping[str, str], *, credentials: Any) -> Iterator[str]:
    """Fails if a registry lacks an image; yields why a registry could not be asked.

    Args:
        images: their names, each with the target that it is built by.
        credentials: of google.auth; None: no token is sent.

    Raises:
        PipelineError: one is not there.
    """
    for image, build_target in images.items():
        found = find_image(image, credentials=credentials)
        if found is False:
            raise refusal.no_image(image, build_target=build_target)
        if isinstance(found, str):
            yield f"not checked: the image {image}; {found}"
