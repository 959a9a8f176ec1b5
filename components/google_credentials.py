"""Finds this machine's credentials for Google Cloud: a thin wrapper around google.auth."""

import os
import warnings
from typing import Any
from urllib.parse import urlsplit

from slipway.components.errors import ComponentError
from slipway.components.google_retries import TRUST, certificate_refused, says_nothing_about_credentials

_HOSTS = "https://www.googleapis.com"
_SCOPE = "https://www.googleapis.com/auth/cloud-platform"
_FILE = "GOOGLE_APPLICATION_CREDENTIALS"
_LONGEST_PATH = 512  # a key is longer
LOG_IN = "gcloud auth application-default login"
"""The command that creates new credentials."""
GIVER_OF_ACCESS = "the server that gives tokens of Google Cloud"


def find_credentials(what: str) -> Any:
    """Return the machine's application default credentials, with a fresh token.

    Args:
        what: the service that needs them, for messages.

    Raises:
        ComponentError: there are no credentials, they do not work, or no token could be had for them; or as
            `check_proxy`.
    """
    from google.auth.exceptions import DefaultCredentialsError, GoogleAuthError
    from google.auth.transport.requests import Request

    check_proxy()
    try:
        with warnings.catch_warnings():
            # Ignore the warning that a user's credentials have no quota project.
            warnings.simplefilter("ignore", UserWarning)
            credentials = _default()
        credentials.refresh(Request())
    except DefaultCredentialsError as error:
        is_key = may_be_key(os.environ.get(_FILE, ""))
        raise no_credentials(what, error) from (None if is_key else error)  # Google's error repeats it
    except GoogleAuthError as error:
        if said := certificate_refused(error):
            raise ComponentError(
                f"The certificate of {GIVER_OF_ACCESS}, for {what}, cannot be verified: {said}", hint=TRUST
            ) from error
        if says_nothing_about_credentials(error):
            raise ComponentError(
                f"{GIVER_OF_ACCESS}, for {what}, does not answer: {_said(error)}",
                hint="check the network and a proxy (https_proxy)",
            ) from error
        raise ComponentError(
            f"The credentials for {what} do not work: {_said(error)}", hint=LOG_IN
        ) from error
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        # google.auth does not check that an answer holds a token: a proxy's page or JSON has none.
        raise ComponentError(
            f"{GIVER_OF_ACCESS}, for {what}, answers with no token, but as a login or a proxy before it may.",
            hint="check a proxy (https_proxy), and log in where the network asks for it",
        ) from error
    return credentials


def check_proxy() -> None:
    """Refuse a proxy's address that cannot be read: the errors of the clients repeat a part of its password.

    Raises:
        ComponentError: the environment names such a proxy for Google's hosts.
    """
    from requests.utils import get_environ_proxies, select_proxy

    try:
        parts = urlsplit(select_proxy(_HOSTS, get_environ_proxies(_HOSTS)) or "")
        # What stands before a / or # of a password is taken for the port.
        is_sound = parts.port != 0 and "@" not in f"{parts.path}{parts.query}{parts.fragment}"
    except ValueError:
        is_sound = False
    if not is_sound:
        raise ComponentError(
            "The address of the proxy in https_proxy must look like http://USER:PASSWORD@HOST:PORT.",
            hint="in the password, write / as %2F, # as %23, ? as %3F and @ as %40",
        )


def no_credentials(what: str, error: Exception) -> ComponentError:
    """Return the error for credentials of which there are none, or which cannot be read.

    Args:
        what: the service that needs them.
        error: of google.auth, which may repeat a key that stands in the variable: this one does not.
    """
    named = os.environ.get(_FILE)
    if named and may_be_key(named):
        return ComponentError(
            f"{_FILE} does not hold the path of a file, so there are no credentials for {what}.",
            hint="write the service account's key into a file, and set the variable to its path; or "
            f"unset it, then {LOG_IN}",
        )
    if named:
        return ComponentError(
            f"{_FILE} names {named}, which gives no credentials for {what}: {_said(error)}",
            hint=f"set it to the key file of a service account; or unset it, then {LOG_IN}",
        )
    return ComponentError(
        f"There are no credentials for {what} on this machine{_of_gclouds_file(error)}.",
        hint=f"{LOG_IN}   # or set {_FILE} to the file of a service account",
    )


def may_be_key(named: str) -> bool:
    """Return True if the variable may hold a key instead of its file's path: no message may repeat it."""
    return len(named) > _LONGEST_PATH or bool(set(named) & set('{"\n'))


def _default() -> Any:
    """Return the default credentials.

    Raises:
        GoogleAuthError: there are none, or the file that the variable names, or gcloud's, holds none.
    """
    import google.auth
    from google.auth.exceptions import DefaultCredentialsError

    try:
        credentials, _ = google.auth.default(scopes=[_SCOPE])
    except (OSError, AttributeError, TypeError, ValueError) as error:
        # google.auth does not check that a file, the variable's or gcloud's, is readable and a JSON object.
        if isinstance(error, DefaultCredentialsError):
            raise
        raise DefaultCredentialsError(f"{type(error).__name__}: {error}") from error
    return credentials


def _of_gclouds_file(error: Exception) -> str:
    """Return that gcloud's file holds none, and why; "" if that is not the reason."""
    cause = error.__cause__
    return f": gcloud's file cannot be read ({type(cause).__name__}: {cause})" if cause else ""


def _said(error: Exception) -> str:
    return " ".join(str(error.args[0] if error.args else error).split())[:300]
