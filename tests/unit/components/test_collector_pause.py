import gc

import pytest

from slipway.components.collector_pause import collector_paused


def test_nothing_is_collected_meanwhile_and_all_as_before_afterwards():
    with collector_paused():
        assert not gc.isenabled()
    assert gc.isenabled()


def test_collector_runs_again_after_an_import_that_fails():
    with pytest.raises(ImportError), collector_paused():
        raise ImportError("no such module")
    assert gc.isenabled()


def test_who_wants_no_collector_keeps_it_off():
    gc.disable()
    try:
        with collector_paused():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()
