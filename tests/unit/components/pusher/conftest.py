import pytest

from slipway.components.pusher.publish_to_folder import publish


@pytest.fixture
def base(tmp_path):
    return tmp_path / "serving"


@pytest.fixture
def pushed(tmp_path, base):
    """Three versions of a push, and one made by hand before them."""
    (base / "7").mkdir(parents=True)
    (base / "7" / "saved_model.pb").write_bytes(b"by hand")
    model = tmp_path / "model"
    model.mkdir()
    found = []
    for graph in (b"first", b"second", b"third"):
        (model / "saved_model.pb").write_bytes(graph)
        found.append(publish(model, base=base).version)
    return found
