"""The names of the objects in the store on loopback that stands for Cloud Storage."""

import json
import urllib.request


def stored_names(store: str) -> list[str]:
    """All names in the bucket `bucket`; the store lists them on pages.

    Args:
        store: its address.
    """
    names: list[str] = []
    page = ""
    while True:
        with urllib.request.urlopen(f"{store}/storage/v1/b/bucket/o?pageToken={page}", timeout=10) as answer:  # noqa: S310
            found = json.load(answer)
        names += [item["name"] for item in found.get("items", ())]
        page = found.get("nextPageToken", "")
        if not page:
            return names
