"""Which versions a push leaves; tests/integration/pusher has those in object stores."""

import logging

import pytest

from slipway.components.pusher.retention import thin_out
from slipway.components.pusher.version_store import version_store_at


@pytest.mark.parametrize(("keep", "removed"), [(4, 0), (3, 0), (2, 1), (1, 2), (0, 2)])
def test_oldest_versions_go_but_never_the_newest_nor_what_no_push_made(pushed, base, keep, removed, caplog):
    caplog.set_level(logging.INFO)
    assert thin_out(str(base), keep=keep) == pushed[:removed]
    assert version_store_at(str(base)).numbers() == [7, *pushed[removed:]]
    told = [f"Removed version {each} of {base}: push.keep is {keep}." for each in pushed[:removed]]
    assert [text for text in caplog.messages if text.startswith("Removed ")] == told
