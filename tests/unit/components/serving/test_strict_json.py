"""JSON that other parsers silently change: repeated keys, numbers that are too large."""

import numpy as np
import pytest

from slipway.components.serving.request_decoding import RequestError
from slipway.components.serving.strict_json import read_json, refuse_overflow


@pytest.mark.parametrize(
    "body", [b'{"instances": [1], "instances": [2]}', b'{"instances": [{"instances": 1, "instances": 1}]}']
)
def test_a_key_twice_is_refused_wherever_it_stands(body):
    with pytest.raises(RequestError, match="An object has the key 'instances' twice") as caught:
        read_json(body)
    assert caught.value.status == 400


def test_of_many_keys_the_one_that_is_there_twice_is_found_at_once():
    """Counting each in turn is quadratic: a client got no answer to such a request of 4 MB in 12 s."""
    keys = [f'"{number}": 0' for number in range(300_000)]
    with pytest.raises(RequestError, match="the key '299999' twice"):
        read_json(f"{{{', '.join([*keys, keys[-1]])}}}".encode())


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"{", "Expecting property name"),
        (b'{"a": "\xff"}', "byte 7 is not UTF-8"),
        ('{"a": 1}'.encode("utf-16"), "byte 0 is not UTF-8"),
        (b"[" * 100_000, "it is nested too deeply"),
        (b"9" * 10_000, "a whole number has more than 4,300 digits"),
    ],
)
def test_what_is_no_json_is_refused(body, why):
    with pytest.raises(RequestError, match=f"JSON Parse error: {why}"):
        read_json(body)


def test_a_byte_order_mark_is_no_part_of_it():
    assert read_json(b"\xef\xbb\xbf[1]") == [1]


@pytest.mark.parametrize(("number", "is_refused"), [("1e400", True), ("-1e309", True), ("Infinity", False)])
def test_only_what_is_written_as_infinite_is_infinite(number, is_refused):
    body = b'{"instances": [{"fare": [%s, NaN, 1e30]}]}' % number.encode()
    arrays = {"fare": np.array(read_json(body)["instances"][0]["fare"])}
    if not is_refused:
        refuse_overflow(body, arrays)
        return
    with pytest.raises(RequestError, match=f"The number {number} is beyond 64-bit fractions"):
        refuse_overflow(body, arrays)


def test_finite_numbers_are_not_read_again():
    refuse_overflow(b"no JSON", {"fare": np.array([1.5]), "n": np.array([1]), "t": np.array(["x"], object)})
