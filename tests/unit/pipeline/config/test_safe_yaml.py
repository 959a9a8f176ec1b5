"""What YAML may hold, how its scalars are read, and which documents are refused with which words."""

import json

import pytest
import yaml
from counted import lines_run
from hypothesis import example, given
from hypothesis import strategies as st

from slipway.pipeline.config.safe_yaml import MAX_BYTES, MAX_DEPTH, Place, read_yaml, shown, shown_key
from slipway.pipeline.errors import ConfigError

LAUGHS = "a0: &a0 [lol]\n" + "".join(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 9))


def refusal(raw):
    with pytest.raises(ConfigError) as caught:
        read_yaml(raw, name="w.yaml")
    return caught.value.message


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1", 1),
        ("+1", 1),
        ("-1", -1),
        ("0", 0),
        ("9223372036854775807", 2**63 - 1),
        ("1.5", 1.5),
        ("1.10", 1.1),
        (".5", 0.5),
        ("1.", 1.0),
        ("1e-3", 0.001),
        ("-2.5E+3", -2500.0),
        ("true", True),
        ("False", False),
        ("null", None),
        ("~", None),
        ("", None),
        # Text everywhere, whatever YAML 1.1 takes it for.
        ("no", "no"),
        ("Yes", "Yes"),
        ("on", "on"),
        ("off", "off"),
        ("y", "y"),
        ("010", "010"),
        ("0o17", "0o17"),
        ("0x1f", "0x1f"),
        ("0b1", "0b1"),
        ("1_000", "1_000"),
        ("1:30", "1:30"),
        ("190:20:30", "190:20:30"),
        ("2024-01-02", "2024-01-02"),
        ("08123", "08123"),
        ("1.2.3", "1.2.3"),
        ("e5", "e5"),
        (".", "."),
        ("\u0661", "\u0661"),  # a digit in Python, text here
        ("nan", "nan"),
        ("=", "="),
        ("'1'", "1"),
        ('"true"', "true"),
        ("''", ""),
        ("|\n  1\n", "1\n"),
        ("[a, 1, [x]]", ["a", 1, ["x"]]),
        ("{b: {c: no}}", {"b": {"c": "no"}}),
        ("{0: x, -1: y, 010: z}", {"0": "x", "-1": "y", "010": "z"}),
    ],
)
def test_scalars_mean_the_same_everywhere(text, value):
    found = read_yaml(f"a: {text}", name="w").data["a"]
    assert (type(found), found) == (type(value), value)


@pytest.mark.parametrize(
    ("raw", "data"),
    [
        ("", None),
        (b"", None),
        ("# only a comment", None),
        ("---\na: 1\n...\n", {"a": 1}),
        ("text", "text"),
        (b"\xef\xbb\xbfa: 1", {"a": 1}),
        ("\ufeffa: 1", {"a": 1}),
        ("a: 1\r\nb: 2\r\n", {"a": 1, "b": 2}),
        ("größe: 日本", {"größe": "日本"}),
        (
            "a: b?\nc: {d: e?, f?: g}\n?h: [i?, j]",
            {"a": "b?", "c": {"d": "e?", "f?": "g"}, "?h": ["i?", "j"]},
        ),
        ("yes: 1\n'2': x\n'<<': y\nnull-ish: 3", {"yes": 1, "2": "x", "<<": "y", "null-ish": 3}),
    ],
)
def test_document_is_read_as_plain_data(raw, data):
    assert read_yaml(raw, name="w").data == data


def test_place_of_each_key_and_item_is_known_with_its_text():
    places = read_yaml("a: 1.10\nb:\n  - x\n  - {c: 'no'}\n", name="w").places
    assert places == {
        ("a",): Place(1, "1.10"),
        ("b",): Place(2),
        ("b", 0): Place(3, "x"),
        ("b", 1): Place(4),
        ("b", 1, "c"): Place(4, "no"),
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        # Reliability, case 12: tags, aliases, duplicates, depth, size.
        (
            "x: 1\na: !!python/object/apply:os.system [id]",
            "w.yaml:2: text that begins with ! is a tag",
        ),
        ("a: !!python/name:os.system", "w.yaml:1: text that begins with ! is a tag"),
        (
            "a: !!str 1",
            "w.yaml:1: text that begins with ! is a tag, which is not allowed; remove it, or quote the text",
        ),
        ("a: !mine 1", "w.yaml:1: text that begins with ! is a tag"),
        ("a: ! 1", "w.yaml:1: text that begins with ! is a tag"),
        ("!!map {a: 1}", "w.yaml:1: text that begins with ! is a tag"),
        ("!!str a: 1", "w.yaml:1: text that begins with ! is a tag"),
        ("a: [!x b]", "w.yaml:1: text that begins with ! is a tag"),
        (
            LAUGHS,
            "w.yaml:1: text that begins with & is an anchor, which is not allowed; repeat the",
        ),
        ("a: &x 1\nb: *x", "w.yaml:1: text that begins with & is an anchor"),
        ("b: *x", "w.yaml:1: text that begins with * is an alias"),
        ("*x : 1", "w.yaml:1: text that begins with * is an alias"),
        ("&x a: 1", "w.yaml:1: text that begins with & is an anchor"),
        ("a: &x [*x]", "w.yaml:1: text that begins with & is an anchor"),
        ("a: 1\n<<: {b: 1}", "w.yaml:2: the merge key '<<' is not allowed; repeat the keys"),
        ("a: [b, ?x]", "w.yaml:1: text that begins with ? is a key to YAML; put it in quotes"),
        ("a: 1\nb: 2\na: 3", "w.yaml:3: a: given twice, first on line 1; keep one"),
        ("t:\n  b: 2\n  'b': 3", "w.yaml:3: t.b: given twice, first on line 2; keep one"),
        ("[" * (MAX_DEPTH + 1), f"w.yaml:1: nested deeper than {MAX_DEPTH} levels"),
        ("[" * 900_000, f"w.yaml:1: nested deeper than {MAX_DEPTH} levels"),
        ("{a: " * 200_000, f"w.yaml:1: nested deeper than {MAX_DEPTH} levels"),
        ("- " * 300_000, f"w.yaml:1: nested deeper than {MAX_DEPTH} levels"),
        ("a: " + "x" * MAX_BYTES, f"w.yaml: {MAX_BYTES + 3} bytes; at most {MAX_BYTES} are read"),
        # Keys and numbers.
        ("null: a", "w.yaml:1: the key null is not text; put it in quotes"),
        ("1: a\n'1': b", "w.yaml:2: 1: given twice, first on line 1; keep one"),
        ("? \n: a", "w.yaml:1: the key null is not text"),
        ("true: a", "w.yaml:1: the key true is not text"),
        ("1.10: a", "w.yaml:1: the key 1.1 is not text"),
        ("? [a]\n: 1", "w.yaml:1: a list or mapping is used as a key; keys are text"),
        ("{{a: 1}: 2}", "w.yaml:1: a list or mapping is used as a key"),
        ("a:\n  b: .inf", "w.yaml:2: a.b = .inf: a number must be finite"),
        ("a: -.INF", "a number must be finite"),
        ("a: .nan", "a number must be finite"),
        ("a: 1e999", "w.yaml:1: a = 1e999: too large for a number"),
        ("a: 9223372036854775808", "a whole number must fit in 64 bits"),
        ("a: " + "9" * 50_000, "a whole number must fit in 64 bits"),
        ("a: 1\n---\nb: 2", "w.yaml:2: a second document begins after '---'; a file holds one"),
        # Bytes and characters.
        (b"a: 1\nb: caf\xe9", "w.yaml:2: byte 0xe9 is not UTF-8; save the file as UTF-8"),
        ("a: 1\nb: \x1b[31m", "w.yaml:2: the invisible character U+001B is not allowed in YAML; remove it"),
        ("a: \x00", "U+0000"),
        ("a: \ud800", "U+D800"),
        # Syntax, in plain words.
        ("a:\n\tb: 1", "w.yaml:2: a tab indents this line; YAML takes spaces only (column 1)"),
        ("a: @x", "w.yaml:1: text cannot begin with '@'; put it in quotes (column 4)"),
        ("a: `x`", "text cannot begin with '`'; put it in quotes"),
        ("a: %x", "text cannot begin with '%'"),
        ("a: b: c", "w.yaml:1: a ': ' too many"),
        ("a: 1\n b: 2", "w.yaml:2: a ': ' too many, or the line is indented too far"),
        ("a:\n  b: 1\n c: 2", "w.yaml:3: not aligned with the keys around it"),
        ("a: 1\nb: [1, 2\nc: 3", "w.yaml:2: the list in [ ] is not closed, or a comma is missing (column 4)"),
        ("a: {x: 1", "w.yaml:1: the mapping in { } is not closed"),
        ("x: 1\na: 'x\n\n", "w.yaml:2: a quote is not closed (column 4)"),
        ('a: "x', "w.yaml:1: a quote is not closed (column 4)"),
        ('a: "\\q"', "an unknown escape after '\\'"),
        ("a: - b", "a list item '- ' is not allowed here"),
        ("- a\nb: 1", "w.yaml:2: not aligned with the list items above it"),
        ("a: 1\nkey\nb: 2", "w.yaml:2: the ': ' after a key is missing"),
    ],
    ids=lambda value: repr(value[:40]) if isinstance(value, str | bytes) else None,
)
def test_what_yaml_may_not_hold_is_refused_with_line_and_words(text, message):
    assert message in refusal(text)


@pytest.mark.parametrize(
    "text",
    [
        *(f"db_password: {sign}hunter2hunter2" for sign in "*&!"),
        *(f"api_key: {number}" for number in ("23426732342673234267323426732", "23426732342e999")),
        "token_env: 23426732342673234267323426732",
        "passwords: [ 23426732342673234267323426732]",
        "database: {password: {old: 23426732342673234267323426732}}",
    ],
)
def test_what_may_be_a_secret_is_not_repeated(text):
    secret = text.rpartition(" ")[2].lstrip("*&!")
    assert secret[:8] not in refusal(text)


def test_a_number_that_is_given_for_a_key_unknown_here_is_not_repeated():
    """As by `--set database.password=NUMBER`."""
    assert (
        refusal("23426732342673234267323426732") == "w.yaml:1: a whole number must fit in 64 bits; quote text"
    )


@pytest.mark.parametrize(
    "text",
    [
        *(f"a: {sign}{'x' * 9000}" for sign in "*&!"),
        f"k: {'9' * 9000}",
        f"{'k' * 9000}: .inf",
        f"{'k' * 9000}: 1\n{'k' * 9000}: 2",
    ],
    ids=lambda text: text[:4],
)
def test_message_is_short_however_long_the_text_is(text):
    assert len(refusal(text)) < 250


def test_depth_up_to_the_bound_is_read():
    assert read_yaml("[" * MAX_DEPTH + "]" * MAX_DEPTH, name="w").data[0]


def test_exploding_aliases_are_refused_at_once():
    assert lines_run(lambda: refusal(LAUGHS)) < 200  # what they would stand for is 9**8 items


def test_largest_file_is_read_and_each_of_its_items_once():
    item = "1" * 15 + ","
    items = read_yaml("[" + item * (MAX_BYTES // len(item) - 1) + "]", name="w").data
    assert len(items) == MAX_BYTES // len(item) - 1
    few, many = (lines_run(lambda n=n: read_yaml("[" + "1," * n + "]", name="w")) for n in (1000, 4000))
    assert many - few < 3000 * 60  # 47 measured, whatever the file's size


def test_file_name_and_hostile_key_do_not_reach_the_terminal_raw():
    message = refusal('"\\e[31m\\u202e": 1\n"\\e[31m\\u202e": 2')
    assert message == "w.yaml:2: '\\x1b[31m\\u202e': given twice, first on line 1; keep one"


@given(st.text())
@example("a: *")
@example("\u2028@")
@example("%TAG ! x\n---\na: 1")
@example("%YAML 9.1\n---\na: 1")
@example("a: b\ufeffc")
def test_any_text_is_read_or_refused(text):
    try:
        read_yaml(text, name="w")
    except ConfigError as error:
        assert error.message.startswith("w:")  # noqa: PT017
        assert error.message.isprintable()  # noqa: PT017


@given(st.binary())
def test_any_bytes_are_read_or_refused(raw):
    try:
        read_yaml(raw, name="w")
    except ConfigError as error:
        assert error.message.startswith("w:")  # noqa: PT017


YAML_LIKE = st.text(alphabet="ab:-[]{},&*!|>'\"#%@\n\t 01.~<?\\", max_size=40)


@given(YAML_LIKE)
def test_any_mixture_of_yaml_signs_is_read_or_refused(text):
    try:
        read_yaml(text, name="w")
    except ConfigError as error:
        assert error.message.startswith("w:")  # noqa: PT017


PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63) + 1, 2**63 - 1)
    | st.text("abc 0:no\n-é'\"", max_size=8)
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text("abcno1-", max_size=5), inner, max_size=3)
    ),
    max_leaves=12,
)


def test_long_key_as_a_yaml_library_writes_it_is_read_back():
    text = yaml.safe_dump({"a" * 200: {"b": 1}})
    assert text.startswith("? a")
    assert read_yaml(text, name="w").data == {"a" * 200: {"b": 1}}


@given(PLAIN)
def test_data_written_by_a_yaml_library_is_read_back(data):
    # JSON-like scalars: text is always quoted, so that only the structure and the numbers are at stake.
    text = yaml.safe_dump(data, default_style='"', allow_unicode=True)
    if "!!" in text or "&id" in text:  # default_style tags what is not text
        text = json.dumps(data)
    assert read_yaml(text, name="w").data == data


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (True, "true"),
        (None, "null"),
        ("a", "'a'"),
        ("\x1b", "'\\x1b'"),
        (1.5, "1.5"),
        ("x" * 99, "'" + "x" * 56 + "..."),
    ],
)
def test_values_are_shown_short_and_harmless(value, text):
    assert shown(value) == text


def test_key_path_quotes_what_is_no_plain_word():
    assert shown_key(("train", "a b", 0, "x.y", "ü")) == "train.'a b'.0.'x.y'.'ü'"
