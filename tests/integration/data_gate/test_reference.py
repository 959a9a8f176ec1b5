"""What the data is compared with, as folders."""

import pytest

from slipway.components.errors import ComponentError

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("default")]


def test_folder_of_the_user_s_has_to_be_there_and_to_hold_statistics(tmp_path):
    from slipway.components.data_gate.reference import find_reference

    nowhere = str(tmp_path / "nowhere")
    with pytest.raises(ComponentError, match="nowhere does not exist, and data_gate names it as a folder of"):
        find_reference([(nowhere, nowhere)], digest="d")
    with pytest.raises(ComponentError, match="holds no statistics"):
        find_reference([(str(tmp_path), str(tmp_path))], digest="d")


def test_blessing_that_kept_nothing_is_no_reference(tmp_path):
    from slipway.components.data_gate.reference import find_reference

    assert find_reference([("the last", str(tmp_path / "nowhere")), ("", "")], digest="d").name == ""
