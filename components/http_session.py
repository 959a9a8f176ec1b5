"""An HTTP session that sends a login of ~/.netrc to nobody.

`requests` sends the one of the server, or of `default`, in place of none, and in place of any where a request
is redirected to, such as the Hugging Face Hub's servers for downloads.
"""

from collections.abc import Callable

from requests import PreparedRequest, Response, Session
from requests.utils import get_auth_from_url


class PlainSession(Session):
    """Sends what a request's `auth` adds to it, else the login in its address; to another server nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.auth = _login_in_address

    def rebuild_auth(self, prepared_request: PreparedRequest, response: Response) -> None:
        """Prepare a request that follows a redirect."""
        before, after = response.request.url or "", prepared_request.url or ""
        if "Authorization" in prepared_request.headers and self.should_strip_auth(before, after):
            del prepared_request.headers["Authorization"]


def sends(authorization: str | None) -> Callable[[PreparedRequest], PreparedRequest]:
    """Return the `auth` of a request that sends this header, if there is one, and no other login."""

    def authorize(request: PreparedRequest) -> PreparedRequest:
        if authorization:
            request.headers["Authorization"] = authorization
        return request

    return authorize


def _login_in_address(request: PreparedRequest) -> PreparedRequest:
    login = get_auth_from_url(request.url or "")
    if any(login):
        request.prepare_auth(login)
    return request
