"""Requests to arrays and answers to JSON: exact types and shapes, or an error that names the input."""

import base64
import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slipway.components.saved_model.signatures import Signature, TensorInfo
from slipway.components.serving import request_decoding
from slipway.components.serving.request_decoding import RequestError, answer, parse_request

NUMBER, COUNT, TEXT = (
    TensorInfo("float", (None, 1)),
    TensorInfo("int64", (None, 1)),
    TensorInfo("string", (None, 1)),
)
EXAMPLES = TensorInfo("string", (None,))
OUT = {"outputs": TensorInfo("float", (None, 1))}
SIGNATURES = {
    "serve_raw": Signature({"fare": NUMBER, "hour": COUNT, "company": TEXT}, OUT),
    "serving_default": Signature({"examples": EXAMPLES}, OUT),
}
ROW = {"fare": [1.5], "hour": [7], "company": ["ä"]}


def raw(**changes):
    return {"signature_name": "serve_raw", "instances": [{**ROW, **changes}]}


def test_rows_and_columns_give_the_same_arrays():
    columns = {"signature_name": "serve_raw", "inputs": {name: [value] for name, value in ROW.items()}}
    for request, by_row in ((raw(), True), (columns, False)):
        name, rows, arrays = parse_request(request, SIGNATURES)
        assert (name, rows) == ("serve_raw", by_row)
        assert arrays["fare"].dtype == np.float32
        assert arrays["hour"].tolist() == [[7]]
        assert arrays["company"].tolist() == [["ä".encode()]]


def test_only_input_needs_no_name_and_bytes_come_as_base64():
    for instances in ([{"b64": "AP8="}], [{"examples": {"b64": "AP8="}}]):
        _, _, arrays = parse_request({"instances": instances}, SIGNATURES)
        assert arrays["examples"].tolist() == [b"\x00\xff"]


@pytest.mark.parametrize("request_", [{"instances": [ROW]}, {"inputs": ROW}, {"instances": [{"fare": 1}, 2]}])
def test_columns_without_a_signature_are_told_which_one_takes_them(request_):
    with pytest.raises(
        RequestError, match='takes examples; for these columns add "signature_name": "serve_raw"'
    ):
        parse_request(request_, SIGNATURES)


def test_a_number_that_would_become_infinite_is_refused_and_infinity_taken():
    with pytest.raises(RequestError, match="Input 'fare' holds a number that float cannot hold"):
        parse_request(raw(fare=[1e39]), SIGNATURES)
    _, _, arrays = parse_request(raw(fare=[-math.inf]), SIGNATURES)
    assert np.isneginf(arrays["fare"]).all()


def test_nan_is_an_empty_cell():
    _, _, arrays = parse_request(json.loads(json.dumps(raw(fare=[math.nan]))), SIGNATURES)
    assert np.isnan(arrays["fare"]).all()


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        ([], "must be a JSON object"),
        (None, "must be a JSON object"),
        ({}, "either 'instances' or 'inputs'"),
        ({"instances": [], "inputs": {}}, "either 'instances' or 'inputs'"),
        ({"instances": []}, "at least one row"),
        ({"instances": "x"}, "at least one row"),
        ({"instances": [1], "more": 2}, "unknown key 'more'"),
        (
            {"instances": [1], "signature_name": "no"},
            "no signature 'no'; there are serve_raw, serving_default",
        ),
        ({"instances": [1], "signature_name": {}}, "no signature"),
        ({"signature_name": "serve_raw", "instances": [1]}, "Row 0 of 'instances' must be an object"),
        (
            {"signature_name": "serve_raw", "instances": [{}]},
            "row 0 of 'instances' the input 'company' is miss",
        ),
        (raw(more=[1]), "unknown input 'more'"),
        (raw(fare=["a"]), "'fare' must be of type float"),
        (raw(fare=[True]), "'fare' must be of type float"),
        (raw(fare=[{}]), "'fare' must be of type float"),
        (raw(fare=[10**400]), "'fare' holds a number that float cannot hold"),
        (raw(fare=[[1.0], [2.0, 3.0]]), "'fare' must be numbers in lists of equal lengths"),
        (raw(fare=[]), "'fare' holds no value"),
        (
            raw(fare=1.0),
            r"has the shape \[1\], but needs \[any, 1\]. Put each value into a list of its own: \[VALUE\]",
        ),
        (raw(fare=[1.0, 2.0]), r"'fare' has the shape \[1, 2\], but needs \[any, 1\].$"),
        (raw(hour=[1.5]), "'hour' must be of type int64"),
        (raw(hour=[2**63]), "'hour' must be of type int64"),
        (raw(hour=[2**64]), "'hour' must be of type int64"),
        (raw(company=[1]), "'company' must be texts"),
        (raw(company=[{"b64": "?"}]), "'company' holds a text that cannot be decoded"),
        (raw(company=["\ud800"]), "'company' holds a text that cannot be decoded"),
        (raw(company=[["a"], "b"]), "'company' must be texts in lists"),
        (raw(company=[]), "'company' holds no value"),
        ({"signature_name": "serve_raw", "inputs": []}, "'inputs' must be an object"),
        (
            {
                "signature_name": "serve_raw",
                "inputs": {"fare": [[1], [2]], "hour": [[1]], "company": [["a"]]},
            },
            "differ in their number of rows",
        ),
    ],
)
def test_wrong_request_is_refused_with_the_rule(request_, words):
    with pytest.raises(RequestError, match=words) as raised:
        parse_request(request_, SIGNATURES)
    assert raised.value.status == 400


def test_text_nested_a_thousand_times_is_refused():
    value = "x"
    for _ in range(900):
        value = [value]
    with pytest.raises(RequestError, match=r"nested too deeply|equal lengths"):
        parse_request(raw(company=value), SIGNATURES)
    with pytest.raises(RequestError):
        parse_request(raw(fare=value), SIGNATURES)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=12,
)


@given(JSON, st.sampled_from(["fare", "hour", "company"]))
def test_whatever_is_sent_is_an_array_or_a_request_error(value, name):
    for document in (value, raw(**{name: value}), {"instances": value}, {"inputs": value}):
        try:
            _, _, arrays = parse_request(document, SIGNATURES)
        except RequestError:
            continue
        assert all(isinstance(array, np.ndarray) for array in arrays.values())


def test_answers_have_the_form_of_tf_serving():
    one = {"outputs": np.array([[0.5], [1.0]], np.float32)}
    assert answer(one, by_row=True) == {"predictions": [[0.5], [1.0]]}
    assert answer(one, by_row=False) == {"outputs": [[0.5], [1.0]]}
    two = {"a": np.array([1, 2]), "name": np.array([b"x", b"\xff"], dtype=object)}
    assert answer(two, by_row=True) == {
        "predictions": [{"a": 1, "name": "x"}, {"a": 2, "name": {"b64": "/w=="}}]
    }
    assert answer({"raw_bytes": np.array([b"x"], dtype=object)}, by_row=False) == {
        "outputs": [{"b64": "eA=="}]
    }


def test_texts_where_numbers_belong_are_refused_before_there_is_an_array(monkeypatch):
    # As an array, each cell would be as wide as the longest text: 2 MB become gigabytes.
    monkeypatch.setattr(np, "array", None)
    for cells in (["x" * 1000, *["y"] * 1000], [{}], [[1.0, "x"]]):
        with pytest.raises(RequestError, match="must be of type float"):
            parse_request(raw(fare=cells), SIGNATURES)


@pytest.mark.parametrize(
    ("cell", "words"),
    [
        ({"fare": [None]}, "'fare' holds null, not float; an empty cell is NaN"),
        ({"hour": [None]}, "'hour' holds null, not int64; an empty cell is -9223372036854775808"),
        ({"company": [None]}, "'company' holds null, not string; an empty cell is \"\""),
    ],
)
def test_null_is_refused_with_what_stands_for_an_empty_cell(cell, words):
    with pytest.raises(RequestError, match=words):
        parse_request(raw(**cell), SIGNATURES)


@pytest.mark.parametrize(
    "request_",
    [
        {"x" * 10_000: 1},
        {"signature_name": "x" * 10_000, "instances": []},
        {"signature_name": ["x"] * 10_000, "instances": []},
        raw(**{"x" * 10_000: 1}),
    ],
)
def test_error_does_not_repeat_a_long_text(request_):
    with pytest.raises(RequestError) as refused:
        parse_request(request_, SIGNATURES)
    assert len(str(refused.value)) < 300


def png(width, height):
    return b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + width.to_bytes(4) + height.to_bytes(4)


def webp(flags, side):
    """The head of a WebP; its letters without the rest are not decoded here."""
    return b"RIFF____WEBPVP8X____" + bytes([flags, 0, 0, 0]) + (side - 1).to_bytes(3, "little") * 2


@pytest.mark.parametrize("cells", [[png(10_000, 10_000)], [png(5_000, 5_000)] * 3, [webp(0, 10_000)]])
@pytest.mark.parametrize("around", [b"", b"a tf.Example with "])
def test_images_that_are_large_once_they_are_decoded_are_refused_before_that(cells, around):
    encoded = [{"b64": base64.b64encode(around + cell).decode()} for cell in cells]
    with pytest.raises(RequestError, match="pixels; a request may have 50000000") as refused:
        parse_request({"instances": encoded}, SIGNATURES)
    assert refused.value.status == 413


def test_images_of_usual_sizes_pass_and_so_do_texts_that_begin_like_one():
    parse_request({"instances": [{"b64": base64.b64encode(png(4_000, 3_000)).decode()}]}, SIGNATURES)
    parse_request(raw(company=["GIF89a is a format"]), SIGNATURES)
    parse_request(raw(company=["THE CUSTOMS TARIFF. " * 100]), SIGNATURES)


def test_an_animated_webp_is_refused_since_tensorflow_writes_beyond_its_memory_for_it():
    cell = {"b64": base64.b64encode(b"a tf.Example with " + webp(2, 64)).decode()}
    with pytest.raises(RequestError, match="is an animated WebP, which cannot be decoded"):
        parse_request({"instances": [cell]}, SIGNATURES)


def test_cell_of_nothing_but_beginnings_costs_no_time():
    with pytest.raises(RequestError, match="holds more than 64 images"):
        parse_request(raw(company=["GIF8" * 100_000]), SIGNATURES)


LISTS = {
    "serve_raw": Signature(
        {
            "tags": TensorInfo("string", (None, None)),
            "clicks": TensorInfo("int64", (None, None)),
            "prices": TensorInfo("float", (None, None)),
        },
        OUT,
    )
}


def test_lists_of_any_length_are_filled_up_with_empty_cells():
    rows = [
        {"tags": ["a", "b"], "clicks": [], "prices": [1.5]},
        {"tags": [], "clicks": [], "prices": [0.5, 2.0]},
    ]
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    for request in ({"instances": rows}, {"inputs": columns}):
        _, _, arrays = parse_request({"signature_name": "serve_raw", **request}, LISTS)
        assert arrays["tags"].tolist() == [[b"a", b"b"], [b"", b""]]
        assert arrays["clicks"].tolist() == [[-(2**63)], [-(2**63)]], "at least one cell"
        assert np.isnan(arrays["prices"]).tolist() == [[False, True], [False, False]]


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"tags": "a"}, r"Input 'tags' has the shape \[1\], but needs \[any, any\]"),
        ({"clicks": [1.5]}, "Input 'clicks' must be of type int64"),
        ({"prices": None}, "Input 'prices' holds null, not float; an empty cell is NaN"),
        ({"prices": [[1.0]]}, r"Input 'prices' has the shape \[1, 1, 1\]"),
    ],
)
def test_what_is_no_list_is_refused_as_elsewhere(changed, words):
    row = {"tags": ["a"], "clicks": [1], "prices": [1.0], **changed}
    with pytest.raises(RequestError, match=words):
        parse_request({"signature_name": "serve_raw", "instances": [row]}, LISTS)


def test_one_long_list_among_many_short_ones_is_refused_before_it_takes_memory():
    rows = [[0.0] * 100_000, *[[]] * 99_999]
    signatures = {"serve_raw": Signature({"prices": TensorInfo("float", (None, None))}, OUT)}
    with pytest.raises(RequestError, match="take 10000000000 cells") as refused:
        parse_request({"signature_name": "serve_raw", "inputs": rows}, signatures)
    assert refused.value.status == 413


def test_lists_of_several_columns_count_together(monkeypatch):
    monkeypatch.setattr(request_decoding, "MAX_LIST_CELLS", 10)
    rows = [{"tags": ["a"] * 4, "clicks": [1] * 4, "prices": [1.0]}, {"tags": [], "clicks": [], "prices": []}]
    words = (
        "'tags' take 8 cells, 2 rows as long as the longest, those of all inputs 18; a request may have 10"
    )
    with pytest.raises(RequestError, match=words) as refused:
        parse_request({"signature_name": "serve_raw", "instances": rows}, LISTS)
    assert refused.value.status == 413


@pytest.mark.parametrize(
    "request_", [{"instances": [ROW] * 4}, {"inputs": {n: [v] * 4 for n, v in ROW.items()}}]
)
def test_rows_are_limited_before_any_array_is_made(request_):
    request_ = {"signature_name": "serve_raw", **request_}
    _, _, arrays = parse_request(request_, SIGNATURES, most_rows=4)
    assert len(arrays["fare"]) == 4
    with pytest.raises(RequestError, match=r"has 4 rows; it may have 3: .* --max-rows") as refused:
        parse_request(request_, SIGNATURES, most_rows=3)
    assert refused.value.status == 413


def test_whole_numbers_beyond_64_bits_are_numbers_for_fractions_alone():
    _, _, arrays = parse_request(
        {"signature_name": "serve_raw", "instances": [ROW, {**ROW, "fare": [10**30]}]}, SIGNATURES
    )
    assert arrays["fare"].tolist() == [[1.5], [pytest.approx(1e30)]]
    _, _, arrays = parse_request(raw(fare=[2**63]), SIGNATURES)
    assert arrays["fare"].tolist() == [[2.0**63]]
    for number in (10**39, -(10**400)):
        with pytest.raises(RequestError, match="Input 'fare' holds a number that float cannot hold"):
            parse_request(raw(fare=[number]), SIGNATURES)
    with pytest.raises(RequestError, match="Input 'hour' must be of type int64"):
        parse_request(raw(hour=[10**30]), SIGNATURES)


def test_jpeg_of_very_many_scans_is_refused_before_it_is_decoded():
    scan = b"\xff\xda\0\6\0\0\0\0"
    cell = b"an image: \xff\xd8\xff\xc2\0\x09\x08\0\1\0\1\0\0" + scan * 101 + b"\xff\xd9"
    with pytest.raises(RequestError, match=r"An image of the input .* has more than 100 scans") as refused:
        parse_request({"instances": [{"b64": base64.b64encode(cell).decode()}]}, SIGNATURES)
    assert refused.value.status == 413


@pytest.mark.parametrize(
    "cell",
    [
        b"\xff\xd8\xff" * 64,
        b"\xff\xd8\xff" * 60 + b"\xff" * 4000,
        b"\xff\xd8\xff" * 60 + b"\xff\xda" * 101 + b"\xff\xd0" * 4000,
        b"GIF89a\1\0\1\0\xf7\0\0\0\0" * 50 + bytes(100) + b"!\xf9\0" * 4000,
    ],
    ids=["begins", "fill bytes", "restarts", "blocks"],
)
def test_files_that_only_pretend_to_be_images_cost_a_bounded_time(cell, monkeypatch):
    monkeypatch.setattr(request_decoding, "MAX_PARTS", 2000)
    with pytest.raises(RequestError, match="more than 2000 parts before their pixels") as refused:
        parse_request({"instances": [{"b64": base64.b64encode(cell).decode()}]}, SIGNATURES)
    assert refused.value.status == 413


@pytest.mark.parametrize("second", [np.array(0.5), np.zeros(3)])
def test_outputs_that_are_not_one_for_each_row_are_refused_by_row(second):
    outputs = {"a": np.zeros([2, 1]), "total": second}
    with pytest.raises(RequestError, match=r"not answer row by row \(a \[2, 1\], total .*: send 'inputs'"):
        answer(outputs, by_row=True)
    assert answer(outputs, by_row=False)["outputs"]["total"] == second.tolist()


DAYS = {"serve_raw": Signature({"day": TEXT, "company": TEXT}, OUT)}


@pytest.mark.parametrize("by", ["instances", "inputs"])
def test_another_text_than_a_date_is_refused_where_training_had_dates_only(by):
    def asked(day, company="31.01.2024"):
        row = {"day": [[day]], "company": [[company]]}
        rows = [{name: cells for name, [cells] in row.items()}] if by == "instances" else row
        return parse_request({"signature_name": "serve_raw", by: rows}, DAYS, dates={"day", "gone"})

    for day in ("2024-01-31", "2024-01-31 10:30:00", "2024-01-31T10:30Z", ""):
        _, _, arrays = asked(day)
        assert arrays["day"].tolist() == [[day.encode()]]
    with pytest.raises(
        RequestError, match=r"'day' holds '31\.01\.2024', and held dates only in training: write"
    ):
        asked("31.01.2024")
