"""The addresses that folders in object stores have, and the checksum of what is written there."""

import pytest

from slipway.components.errors import ComponentError
from slipway.components.pusher.stored_folder import EMPTY_CRC32C, crc32c_of, folder_at


def test_checksum_of_a_file_is_that_of_its_content(tmp_path):
    (tmp_path / "x").write_bytes(b"123456789")
    assert crc32c_of(tmp_path / "x") == crc32c_of(b"123456789") == "4waSgw=="  # the check value of CRC-32C
    assert crc32c_of(b"") == EMPTY_CRC32C


@pytest.mark.parametrize("address", ["gs://b/", "s3://b", "s3:///x", "az://b//"])
def test_address_without_bucket_or_folder_is_refused(address):
    with pytest.raises(ComponentError, match="must be gs://BUCKET/FOLDER, s3://BUCKET/FOLDER or az://"):
        folder_at(address)
