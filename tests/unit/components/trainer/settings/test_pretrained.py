"""Where pretrained weights are taken from."""

import hashlib

from slipway.components.trainer.settings.pretrained import sha256_of


def test_the_digest_is_that_of_the_content(tmp_path):
    (tmp_path / "w.h5").write_bytes(b"weights")
    assert sha256_of(tmp_path / "w.h5") == hashlib.sha256(b"weights").hexdigest()
