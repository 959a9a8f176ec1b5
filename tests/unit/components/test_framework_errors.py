"""What TensorFlow and Keras put around the reason of an error is left out."""

import time

import pytest

from slipway.components.framework_errors import reason, rewritten, sentence, shortened, words

GRAPH = """Graph execution error:

Detected at node GatherV2 defined at (most recent call last):
<stack traces unavailable>
  File "/project/workloads/mine/model.py", line 7, in call

  File "/venv/keras/src/layers/core/embedding.py", line 196, in call

{{function_node __wrapped__Take}} indices[0,0] = 8 is not in [0, 3)
\t [[{{node functional_1/embedding_1/GatherV2}}]] [Op:__inference_execution_865]"""
# As TensorFlow 2.21 writes it where another device waits for the operation.
DEVICES = """Graph execution error:

Detected at node GatherV2 defined at (most recent call last):
  File "/a/model.py", line 13, in call

2 root error(s) found.
  (0) INVALID_ARGUMENT:  indices[0] = 8 is not in [0, 2)
\t [[{{node GatherV2}}]]
\t [[GatherV2/_4]]
  (1) INVALID_ARGUMENT:  indices[0] = 8 is not in [0, 2)
\t [[{{node GatherV2}}]]
0 successful operations.
0 derived errors ignored. [Op:__inference_g_20]"""
SHAPE = "Could not automatically infer the output shape / dtype of 'own'. Error encountered:\n\n"
LAYER = "Exception encountered when calling Own.call().\n\n\x1b[1m{}\x1b[0m\n\nArguments received: x"


@pytest.mark.parametrize(
    ("message", "lines"),
    [
        ("", []),
        ("first\n\n  second", ["first", "second"]),
        (GRAPH, ["indices[0,0] = 8 is not in [0, 3) (in functional_1/embedding_1/GatherV2)"]),
        ("Graph execution error:\n\nno variable\n\t[[dump]]", ["no variable"]),
        ("Graph execution error:\n", ["Graph execution error"]),
        (LAYER.format("3 is not 4\nor 5"), ["3 is not 4", "or 5"]),
        (
            LAYER.format(f"{SHAPE}Own has no `call()`"),
            ["Own has no `call()`"],
        ),
        (f"{SHAPE}Dense expects 1 input\nand more", ["Dense expects 1 input", "and more"]),
        ("Exception encountered when calling", ["Exception encountered when calling"]),
    ],
)
def test_the_reason_is_what_is_left(message, lines):
    assert reason(message) == lines


@pytest.mark.parametrize(
    ("message", "first"),
    [
        ("", ""),
        ("  first \n  second", "first"),
        (GRAPH, "indices[0,0] = 8 is not in [0, 3)"),
        ("Graph execution error:\n", ""),
        (DEVICES, "indices[0] = 8 is not in [0, 2)"),
        ("x" * 999, "x" * 300),
    ],
)
def test_the_sentence_is_the_first_line_that_is_not_about_the_graph(message, first):
    assert sentence(message) == first


@pytest.mark.parametrize("name", ["{{function_node ", "[[{{node "])
def test_what_looks_like_many_nodes_in_a_quoted_request_takes_no_time(name):
    began_s = time.process_time()
    reason(f"Graph execution error:\n\nCould not parse: '{name * 25_000}'")
    assert time.process_time() - began_s < 1


def test_the_labels_of_a_whole_batch_are_cut():
    [line] = reason("Graph execution error:\n\nLabel values: " + "2 " * 1024 + "\n[[{{node loss}}]]")
    assert len(line) == 300 + len(" (in loss)")


def test_a_message_that_cannot_be_made_is_told_as_such():
    class BrokenError(Exception):
        def __str__(self):
            raise KeyError

    assert words(BrokenError()) == "its message cannot be shown: __str__ raised KeyError"
    assert words(ValueError("no 3")) == "no 3"


def test_a_key_that_keras_has_put_words_around_is_told_as_any_reason():
    assert words(KeyError("fares")) == "'fares'"
    assert reason(words(KeyError(LAYER.format("'fares'")))) == ["'fares'"]


def test_an_error_in_rewritten_code_is_told_with_its_class_and_lines():
    lines = '    File "/a/model.py", line 9, in f  *\n        g()\n    File "/a/model.py", line 2, in g  *\n'
    assert rewritten(f"in user code:\n\n{lines}\n    KeyError: 'fares'\n") == (
        *("KeyError", "'fares'\n"),
        [("/a/model.py", 9), ("/a/model.py", 2)],
    )
    assert rewritten(f"in user code:\n\n{lines}\n    AssertionError\n")[:2] == ("AssertionError", "")
    assert rewritten(f"in the code:\n\n{lines}\n    KeyError: 'fares'\n") is None


def test_a_message_that_would_fill_the_screen_is_cut():
    assert shortened("x" * 1000) == "x" * 1000
    assert shortened("x" * 1001) == "x" * 1000 + "... (the log has the rest)"
