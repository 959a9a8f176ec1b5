"""Opens S3 and Azure Blob Storage, s3://BUCKET and az://CONTAINER, and puts their errors into words.

Kubeflow Pipelines' minio://BUCKET is S3 at the endpoint that the environment names.

Account, region, endpoint and credentials come from the environment only, see docs/data.md; none is
ever logged. The library, obstore, is imported on use and may not be installed.
"""

import os
import re
from datetime import timedelta
from typing import TYPE_CHECKING

from slipway.components.errors import ComponentError
from slipway.components.store_address import MINIO, bucket_and_path, speaks_s3

if TYPE_CHECKING:
    from obstore.store import AzureStore, S3Store

INSTALL = "pip install 'obstore>=0.12,<0.13' (the extra `stores`)"
RETRY_S = 300.0
"""How long transient failures of one request are retried."""
_WHOLE_S = 3600.0  # for a whole object
STALLED_S = 60.0
"""How long a request may wait for a byte of its answer, which includes the time to send what it writes."""

_LOG_IN = {
    "s3": "set AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_REGION, or run on a machine with a role; for "
    "another store than Amazon's also AWS_ENDPOINT_URL",
    "az": "set AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY (or AZURE_STORAGE_SAS_TOKEN, or a "
    "service principal), or run on a machine with an identity",
}
_NEEDS = {
    "s3": "the account needs s3:ListBucket, GetObject, PutObject and DeleteObject",
    "az": "the account needs the role Storage Blob Data Contributor, or Reader to read only",
}
# What the library says if the environment has no credentials and it asks the machine for some.
_NO_CREDENTIALS = ("169.254.169.254", "169.254.170.2", "token request", "Account must be specified")
_WRONG_CREDENTIALS = (
    "InvalidAccessKeyId",
    "SignatureDoesNotMatch",
    "AuthenticationFailed",
    "AuthorizationFailure",
    "ExpiredToken",
    "InvalidToken",
    "invalid_client",
)
_WRONG_REGION = "without LOCATION"  # a redirect
_ENDPOINTS = {
    "s3": ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT"),
    "az": ("AZURE_STORAGE_ENDPOINT", "AZURE_ENDPOINT"),
}
VARIABLES = {
    "s3": (
        *("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_REGION"),
        *("AWS_ENDPOINT_URL", "AWS_ALLOW_HTTP"),
    ),
    "az": (
        *("AZURE_STORAGE_ACCOUNT_NAME", "AZURE_STORAGE_ACCOUNT_KEY", "AZURE_STORAGE_SAS_TOKEN"),
        *("AZURE_CLIENT_ID", "AZURE_CLIENT_SECRET", "AZURE_TENANT_ID"),
        *("AZURE_STORAGE_ENDPOINT", "AZURE_ALLOW_HTTP"),
    ),
}
"""The environment variables by which each kind of store is reached, as docs/data.md lists them."""
_PLAIN_HTTP = {"s3": "AWS_ALLOW_HTTP", "az": "AZURE_ALLOW_HTTP"}
_NO_BUCKET = ("NoSuchBucket", "ContainerNotFound")
_BAD_NAME = re.compile(r'Encountered object with invalid path: .*?"(.*?)"', re.DOTALL)
_DENIED = re.compile(r"status code: 40[13]\b")
_FINAL = re.compile(r"status code: 4(?!08|09|29)\d\d|BadScheme|without LOCATION")
_used_in: set[int] = set()  # the processes, this one and its ancestors, that have opened a store


def open_store(
    address: str, *, retry_s: float = RETRY_S, stalled_s: float | None = STALLED_S
) -> "S3Store | AzureStore":
    """Return the store that holds an address.

    Args:
        address: s3://BUCKET/..., minio://BUCKET/... or az://CONTAINER/...
        retry_s: how long transient failures of one request are retried.
        stalled_s: see `STALLED_S`; None: as long as the whole request.

    Raises:
        ComponentError: the library is not installed, the environment does not name the account, names a user
            in an endpoint or holds what no header can, minio:// has no endpoint, or this process was forked
            from one that has used a store.
    """
    try:
        from obstore.exceptions import BaseError
        from obstore.store import AzureStore, S3Store
    except ImportError:
        raise ComponentError(
            f"{address} needs the package obstore, which is not installed.", hint=INSTALL
        ) from None
    if _used_in - {os.getpid()}:
        # The library's threads do not survive a fork, and requests would wait for them forever.
        raise ComponentError(
            f"{address} cannot be used in a process that was forked from one that has used a store.",
            hint="start that process afresh",
        )
    _used_in.add(os.getpid())
    bucket, _ = bucket_and_path(address)
    retry = {"retry_timeout": timedelta(seconds=retry_s), "max_retries": 20}
    kind = kind_of_store(address)
    for name in _ENDPOINTS[kind]:
        if "@" in os.environ.get(name, ""):
            raise ComponentError(
                f"{address}: {name} holds a user or a password.", hint="name the address of the store alone"
            )
    for name in VARIABLES[kind]:
        value = os.environ.get(name, "")
        if not (value.isprintable() and (value.isascii() or name in _ENDPOINTS[kind])):
            # No header can hold it, and the library ends in a panic, which is no Exception.
            raise ComponentError(
                f"{address}: {name} holds a line break or another letter that cannot be sent.",
                hint=f"set it without: export {name}=\"$(tr -d '\\r\\n' < FILE)\"",
            )
    if address.startswith(MINIO) and not any(os.environ.get(name) for name in _ENDPOINTS[kind]):
        raise ComponentError(  # Amazon may have a bucket of that name, of somebody else
            f"{address}: the environment does not name its endpoint, AWS_ENDPOINT_URL.",
            hint="set AWS_ENDPOINT_URL to the store's address, and AWS_ALLOW_HTTP=true if that is http://",
        )
    client = {
        "timeout": timedelta(seconds=_WHOLE_S),
        "read_timeout": timedelta(seconds=stalled_s or _WHOLE_S),
        "allow_http": os.environ.get(_PLAIN_HTTP[kind], "").lower() in ("1", "true"),
    }
    make = S3Store if kind == "s3" else AzureStore
    try:
        return make(bucket, client_options=client, retry_config=retry)  # type: ignore[arg-type]
    except (BaseError, ValueError) as error:
        raise refusal(address, error) from error


def failures() -> tuple[type[Exception], ...]:
    """Return the exceptions that a store's requests raise; another OSError is of a local file."""
    from obstore.exceptions import BaseError

    return (BaseError, FileNotFoundError, ValueError)


def is_missing_bucket(error: Exception) -> bool:
    """Return True if a request failed because there is no such bucket or container."""
    return any(word in str(error) for word in _NO_BUCKET)


def is_not_implemented(error: Exception) -> bool:
    """Return True if the store does not know what a request asks for, such as a conditional write."""
    from obstore.exceptions import NotSupportedError

    return isinstance(error, NotSupportedError) or "status code: 501" in str(error)


def is_passing(error: Exception) -> bool:
    """Return True if the same request may succeed a moment later."""
    from obstore.exceptions import GenericError

    is_final = _FINAL.search(str(error)) or is_missing_bucket(error)
    return isinstance(error, GenericError) and not is_final


def refusal(address: str, error: Exception) -> ComponentError:
    """Return the error that tells a user why a store refused a request, and the remedy."""
    kind, said = kind_of_store(address), words_of(error)
    bucket, _ = bucket_and_path(address)
    what = "bucket" if kind == "s3" else "container"
    if is_missing_bucket(error):
        return ComponentError(
            f"{address}: there is no {what} {bucket!r}.", hint="create it, or correct the address"
        )
    if "BadScheme" in str(error):
        return ComponentError(
            f"{address}: the environment names an address that is not encrypted.",
            hint=f"name one with https://, or allow http:// with {_PLAIN_HTTP[kind]}=true",
        )
    if _WRONG_REGION in str(error):
        return ComponentError(
            f"{address}: the bucket is in another region.", hint="set AWS_REGION to the bucket's region"
        )
    if bad_name := _BAD_NAME.search(str(error)):
        return ComponentError(
            f"{address}: {bad_name[1]!r} cannot be read, because a part of its path is empty, '.' or '..', "
            "or it holds a line break or another control character.",
            hint="rename or remove that object, or name a folder without it",
        )
    if any(word in str(error) for word in _WRONG_CREDENTIALS):
        return ComponentError(f"{address}: the credentials do not work: {said}", hint=_LOG_IN[kind])
    if any(word in str(error) for word in _NO_CREDENTIALS):
        return ComponentError(f"{address}: the environment holds no credentials.", hint=_LOG_IN[kind])
    if _DENIED.search(str(error)):  # where a listing is denied, the library has no class of its own
        return ComponentError(
            f"{address}: permission denied: {said}", hint=f"{_LOG_IN[kind]}; {_NEEDS[kind]}"
        )
    return ComponentError(f"{address} cannot be used: {said}", hint="try again when the store answers")


def kind_of_store(address: str) -> str:
    """Return the kind of an address' store, a key of `VARIABLES`: s3, or az for Azure."""
    return "s3" if speaks_s3(address) else "az"


def words_of(error: Exception) -> str:
    """Return what the store said, in one line, without what may hold keys in its addresses."""
    text = str(error).partition("\n\nDebug source:")[0]
    code = re.search(r"<Code>(.*?)</Code>\s*<Message>(.*?)</Message>", text, re.DOTALL)
    if code:
        text = f"{code[1]}: {code[2]}"
    text = re.sub(r"//[^/\s@]*@", "//", text)
    return " ".join(re.sub(r"\?[^\s\"']*", "", text).split())[:300]
