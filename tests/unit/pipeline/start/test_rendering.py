"""What a user's data holds is read back as it was, in each language that `new` writes."""

import ast

import pytest
from google.protobuf import text_format
from tensorflow_metadata.proto.v0 import schema_pb2

from slipway.pipeline.config.safe_yaml import read_yaml
from slipway.pipeline.errors import UsageError
from slipway.pipeline.start.rendering import _literal, _proto, _wrapped

HOSTILE = {
    "beyond U+FFFF": "emoji 😀 and \U0001d4b3",
    "the last of all": "\U0010ffff",
    "quotes": "\" ' \"\"\" '''",
    "a backslash at the end": "C:\\new\\u0041\\",
    "line ends": "a\nb\r\nc\rd",
    "line ends of Unicode": "a\u2028b\u2029c\x85d",
    "not printable": "\x00\x07\x1b\x7f\x80\x9f",
    "a byte order mark": "\ufeffname",
    "no characters": "\ufdd0\ufffe\uffff",
    "right to left": "\u202eabc\u2066",
    "blanks": " \t\xa0",
    "YAML": "- a: [b] # {c} & *d !e | > % @ `",
    "a number": "1e3",
    "nothing": "",
    "null": "null",
    "a surrogate in words": "\\ud83d\\ude00",
    "all planes": "".join(map(chr, [*range(0, 0xD800, 97), *range(0xE000, 0x110000, 97)])),
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_a_text_is_the_same_in_yaml_and_in_python(text):
    written = _literal(text)
    assert written.isascii()
    assert written.isprintable()
    assert read_yaml(f"a: {written}\n", name="x").data == {"a": text}
    assert ast.literal_eval(written) == text


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_a_text_is_the_same_in_protobuf(text):
    feature = text_format.Parse(f"name: {_proto(text)}", schema_pb2.Feature())
    assert feature.name == text


@pytest.mark.parametrize("value", [[1, 2.5, "😀"], [], -7, 0.1])
def test_numbers_and_lists_are_the_same_in_python(value):
    assert ast.literal_eval(_literal(value)) == value


def test_values_too_long_for_a_line_stand_on_one_each_and_the_longest_are_marked_for_the_linter():
    short, long = "word " * 12, "слово " * 30
    written = _wrapped([short, long], "column")
    assert ast.literal_eval(written) == [short, long]
    first, second = written.splitlines()[1:3]
    assert not first.endswith("noqa: E501")
    assert second.endswith("  # noqa: E501")
    assert _wrapped(["a", "b"], "column") == '["a", "b"]'


@pytest.mark.parametrize("text", ["\udcff.csv", "\ud83d", "\ude00\ud83d"])
@pytest.mark.parametrize("write", [_literal, _proto])
def test_what_no_file_of_text_can_hold_is_refused(write, text):
    with pytest.raises(UsageError, match="bytes that are not UTF-8"):
        write(text)
