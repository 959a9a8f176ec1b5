"""An HTTP session that sends a login of ~/.netrc to nobody.

`requests` sends the one of the server, or of `default`, in place of none, and in place of any where it is
redirected to, such as the Hugging Face Hub's servers for downloads.
"""

from requests import PreparedRequest, Response, Session


class PlainSession(Session):
    """Sends what a request's `auth` adds to it, and to another server that it is redirected to nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.auth = _as_it_is

    def rebuild_auth(self, prepared_request: PreparedRequest, response: Response) -> None:
        """Prepare a request that follows a redirect."""
        before, after = str(response.request.url), str(prepared_request.url)
        if "Authorization" in prepared_request.headers and self.should_strip_auth(before, after):
            del prepared_request.headers["Authorization"]


def _as_it_is(request: PreparedRequest) -> PreparedRequest:
    return request
