"""What the fork server says when the metadata store fails it; how it starts nodes is seen with real ones."""

import pytest

from slipway.pipeline.engine.processes.fork_server import ForkServer
from slipway.pipeline.engine.processes.messages import FindPublished, Refused, Reuse, Settle


class Line:
    """Keeps what is sent."""

    def __init__(self):
        self.sent = []

    def send(self, message):
        self.sent.append(message)


@pytest.mark.parametrize(
    "asked", [Settle(""), Reuse({}), FindPublished(["1"])], ids=["settle", "reuse", "find"]
)
def test_store_without_room_is_reported_whatever_it_was_asked(asked, monkeypatch):
    def full(_request):
        raise RuntimeError("database or disk is full query: INSERT")

    server = ForkServer(line := Line())
    monkeypatch.setattr(server, "from_store", full)
    server._answer(asked)
    [refused] = line.sent
    assert isinstance(refused, Refused)
    assert refused.message == "RuntimeError: database or disk is full query: INSERT"
    assert refused.hint == "make room on the disk"
