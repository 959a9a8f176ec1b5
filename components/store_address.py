"""Recognises the addresses of object stores: gs://, s3:// and az://."""

GS = "gs://"
S3 = "s3://"
AZ = "az://"
IN_STORES = (GS, S3, AZ)
"""The beginnings of all addresses in object stores."""


def is_in_store(address: str) -> bool:
    """Return True for an address in Cloud Storage, S3 or Azure; False for a path on this machine."""
    return address.startswith(IN_STORES)


def bucket_and_path(address: str) -> tuple[str, str]:
    """Return the bucket (on Azure the container) and the path of an address; either may be empty."""
    bucket, _, path = address.partition("://")[2].partition("/")
    return bucket, path
