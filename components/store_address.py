"""Recognises addresses off this machine: in object stores and on the Hugging Face Hub."""

GS = "gs://"
S3 = "s3://"
AZ = "az://"
HF = "hf://"
MINIO = "minio://"
"""Kubeflow Pipelines' name for a store with S3's API at an endpoint of its own, in addresses of artifacts."""
IN_STORES = (GS, S3, AZ)
"""The beginnings of all addresses in object stores."""
REMOTE = (*IN_STORES, HF)
"""The beginnings of all addresses that data can be read from; the Hub is only read."""

_MOUNTED = "/gcs/"  # where Vertex AI mounts all buckets


def is_remote(path: str) -> bool:
    """Return True for an address of any kind, SCHEME://...; False for a path on this machine."""
    return "://" in path


def is_in_store(address: str) -> bool:
    """Return True for an address in Cloud Storage, S3 or Azure; False for a path on this machine."""
    return address.startswith(IN_STORES)


def is_elsewhere(address: str) -> bool:
    """Return True for an address in an object store or on the Hub; False for a path on this machine."""
    return address.startswith(REMOTE)


def outlives_its_container(folder: str) -> bool:
    """Return True if a folder is not gone with the container that writes it: at an address, or mounted."""
    return "://" in folder or folder.startswith(_MOUNTED)


def speaks_s3(address: str) -> bool:
    """Return True for an address whose store has S3's API: s3://, or minio:// of Kubeflow Pipelines."""
    return address.startswith((S3, MINIO))


def bucket_and_path(address: str) -> tuple[str, str]:
    """Return the bucket (on Azure the container) and the path of an address; either may be empty."""
    bucket, _, path = address.partition("://")[2].partition("/")
    return bucket, path
