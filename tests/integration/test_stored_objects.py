"""Objects below an address, against Moto's server and Azurite, and what a refusal says."""

import pytest

from slipway.components.errors import ComponentError
from slipway.components.stored_objects import StoredObjects

pytestmark = pytest.mark.slow


def test_folder_travels_there_and_back(object_server, tmp_path):
    (tmp_path / "here/sub").mkdir(parents=True)
    content = bytes(range(256)) * 80_000  # 20 MB, in several parts
    (tmp_path / "here/large.bin").write_bytes(content)
    (tmp_path / "here/sub/2.txt").write_text("two")
    objects = StoredObjects(f"{object_server.make_bucket()}/a/b")
    assert not objects.exist()
    objects.put(tmp_path / "here")
    assert (objects.names(), objects.children()) == (["large.bin", "sub/2.txt"], ["large.bin", "sub"])
    objects.fetch(tmp_path / "there")
    assert (tmp_path / "there/large.bin").read_bytes() == content
    objects.remove("large.bin")
    objects.remove("large.bin")
    with pytest.raises(FileNotFoundError):
        objects.read("large.bin")
    assert objects.read("sub/2.txt") == b"two"


def test_missing_bucket_is_named_by_every_request(object_server):
    scheme = object_server.make_bucket().partition("://")[0]
    objects = StoredObjects(f"{scheme}://nobody-has-this-bucket/a")
    for request in (
        objects.exist,
        objects.names,
        lambda: objects.read("1.txt"),
        lambda: objects.write("1.txt", b"1"),
    ):
        with pytest.raises(ComponentError, match=r"there is no (bucket|container) 'nobody-has-this-bucket'"):
            request()
