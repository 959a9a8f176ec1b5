"""What TensorFlow says of a row that a preprocessing_fn fails at, in words."""

from pathlib import Path

import pytest

from slipway.components.errors import ComponentError
from slipway.components.transform.failed_rows import in_words, told_in_words

SAID = f"""Graph execution error:

Detected at node assert_less/Assert/AssertGuard/Assert defined at (most recent call last):
  File "{Path.cwd()}/components/transform/executor.py", line 80, in _transform

  File "{Path.cwd()}/workloads/taxi/preprocessing.py", line 30, in preprocessing_fn

  File "{Path.cwd()}/components/trainer/lists.py", line 40, in padded_lists

  File "{Path.cwd()}/slipway/components/trainer/lists.py", line 41, in padded_lists

  File "/env/lib/python3.11/site-packages/tensorflow_transform/mappers.py", line 5, in scale

assertion failed: [a fare of 50 or more] [Condition x < y did not hold element-wise:]
\t [[{{{{node assert_less/Assert/AssertGuard/Assert}}}}]] [Op:__inference_f_34]"""


def test_sentence_and_the_place_in_the_user_s_code_are_reported():
    assert in_words(SAID) == (
        "assertion failed: [a fare of 50 or more] [Condition x < y did not hold element-wise:]",
        "workloads/taxi/preprocessing.py:30",
    )


def test_message_that_names_no_place_is_reported_alone():
    said = "{{function_node __wrapped__StringToNumber}} StringToNumberOp could not convert: 'a'"
    assert in_words(said) == ("StringToNumberOp could not convert: 'a'", "")
    assert in_words("") == ("no reason is given", "")


def test_error_is_reported_in_words():
    with (
        pytest.raises(ComponentError, match=r"fails at some rows: .*50 or more.* \(workloads/taxi/prep"),
        told_in_words(ZeroDivisionError, memory=RecursionError),
    ):
        raise ZeroDivisionError(SAID)


def test_other_errors_are_left_as_they_are():
    with pytest.raises(KeyError), told_in_words(ZeroDivisionError, memory=RecursionError):
        raise KeyError


def test_lack_of_memory_says_nothing_about_rows():
    with pytest.raises(MemoryError, match="no room"), told_in_words(Exception, memory=RecursionError):
        raise RecursionError("no room")
