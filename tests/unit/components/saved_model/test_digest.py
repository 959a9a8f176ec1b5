"""The digest of a model: equal for equal models, another one for any other byte or name."""

import pytest

from slipway.components.errors import ComponentError
from slipway.components.saved_model.digest import combined_digest, require_unchanged


def test_order_of_the_files_does_not_count():
    assert combined_digest({"a": "1", "b": "2"}) == combined_digest({"b": "2", "a": "1"})


def test_changed_model_is_refused_with_what_was_done_with_it_and_where_to_start_again():
    with pytest.raises(ComponentError) as raised:
        require_unchanged("/a/model/7", "f" * 64, earlier={"exported": "", "judged": "e" * 64})
    assert raised.value.message == (
        "/a/model/7 changed after it was judged: the SHA-256 over its files was eeeeeeeeeeee, and is "
        "ffffffffffff now. It is not known what changed it; it is neither blessed nor pushed."
    )
    assert "--from Trainer" in raised.value.hint
    assert raised.value.start == "Trainer"


def test_unchanged_model_and_one_of_which_no_digest_was_taken_pass():
    require_unchanged("/a/model/7", "f" * 64, earlier={"exported": "f" * 64, "judged": ""})
