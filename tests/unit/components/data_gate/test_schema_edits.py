"""Edits of the schema's text: what is meant is changed, and nothing else."""

import pytest
from google.protobuf import text_format
from hypothesis import given
from hypothesis import strategies as st
from tensorflow_metadata.proto.v0 import schema_pb2

from slipway.components.data_gate.finding import Edit
from slipway.components.data_gate.schema_edits import apply_edits
from slipway.components.errors import ComponentError

SCHEMA = """# What a trip may hold. A brace in a comment: { and a quote: "
feature {
  name: "fare"  # US dollars
  type: FLOAT
  presence { min_fraction: 1.0 min_count: 1 }
  shape { dim { size: 1 } }
  float_domain { min: 0.0 max: 100.0 }  # seen: 0 to 70
}
feature {
  name: "pay"
  type: BYTES
  domain: "kinds"
  presence {
    min_fraction: 0.5
  }
}
feature { name: "hour" type: INT int_domain { min: -1 max: 23 } }
feature {
  name: "note"
  type: BYTES
  string_domain { value: "a } b" }
}
string_domain {
  name: "kinds"
  value: "Cash"  # coins
  value: "Card"
}
"""


def edited(*edits):
    text = apply_edits(SCHEMA, edits)
    return text, text_format.Parse(text, schema_pb2.Schema())


def message():
    return text_format.Parse(SCHEMA, schema_pb2.Schema())


def test_values_are_added_to_the_shared_domain_behind_the_others():
    text, schema = edited(Edit("add_values", "pay", values=("Pcard", 'say "hi"')))
    wanted = message()
    wanted.string_domain[0].value.extend(["Pcard", 'say "hi"'])
    assert schema == wanted
    before, after = SCHEMA.splitlines(), text.splitlines()
    assert [line for line in after if line not in before] == ['  value: "Pcard"', '  value: "say \\"hi\\""']
    assert [line for line in after if line in before] == before


def test_value_that_is_there_already_is_not_added_again():
    text, _ = edited(Edit("add_values", "pay", values=("Cash",)))
    assert text == SCHEMA


def test_feature_s_own_domain_on_one_line_grows_on_that_line():
    text, schema = edited(Edit("add_values", "note", values=("c",)))
    assert list(schema.feature[3].string_domain.value) == ["a } b", "c"]
    assert '  string_domain { value: "a } b" value: "c" }\n' in text


@pytest.mark.parametrize(
    ("edit", "line"),
    [
        (Edit("set_range", "fare", number=700.5, text="max"),
         "  float_domain { min: 0.0 max: 700.5 }  # seen: 0 to 70"),
        (Edit("set_range", "fare", number=-3.0, text="min"),
         "  float_domain { min: -3.0 max: 100.0 }  # seen: 0 to 70"),
        (Edit("set_range", "hour", number=-5.0, text="min"),
         'feature { name: "hour" type: INT int_domain { min: -5 max: 23 } }'),
        (Edit("set_range", "hour", number=17031980100.0, text="max"),
         'feature { name: "hour" type: INT int_domain { min: -1 max: 17031980100 } }'),
        (Edit("set_presence", "pay", number=0.25), "    min_fraction: 0.25"),
        (Edit("set_mass", "pay", number=0.9), "  distribution_constraints { min_domain_mass: 0.9 }"),
        (Edit("deprecate", "pay"), "  lifecycle_stage: DEPRECATED"),
    ],
)  # fmt: skip
def test_one_line_changes_and_the_comments_stay(edit, line):
    text, _ = edited(edit)
    before, after = SCHEMA.splitlines(), text.splitlines()
    assert [each for each in after if each not in before] == [line]


def test_feature_that_may_be_missing_loses_its_fixed_shape():
    _, schema = edited(Edit("set_presence", "fare", number=0.97))
    assert not schema.feature[0].HasField("shape")
    assert (schema.feature[0].value_count.min, schema.feature[0].value_count.max) == (0, 1)
    assert schema.feature[0].presence.min_fraction == 0.97


def test_presence_is_made_where_there_is_none():
    _, schema = edited(Edit("set_presence", "hour", number=0.9))
    assert schema.feature[2].presence.min_fraction == 0.9


def test_new_feature_comes_last():
    text, schema = edited(Edit("add_feature", "tolls", text="FLOAT"))
    assert text.startswith(SCHEMA)
    assert (schema.feature[4].name, schema.feature[4].type) == ("tolls", schema_pb2.FLOAT)


@pytest.mark.parametrize(
    "edit",
    [
        Edit("set_range", "gone", number=1.0, text="max"),
        Edit("set_range", "pay", number=1.0, text="max"),
        Edit("add_values", "fare", values=("x",)),
    ],
)
def test_schema_that_no_longer_fits_is_refused(edit):
    with pytest.raises(ComponentError, match="has no"):
        apply_edits(SCHEMA, [edit])


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"])), min_size=1, max_size=4, unique=True))
def test_any_text_becomes_a_value_and_nothing_else_changes(values):
    text, schema = edited(Edit("add_values", "pay", values=tuple(values)))
    wanted = message()
    wanted.string_domain[0].value.extend(value for value in values if value not in ("Cash", "Card"))
    assert schema == wanted
    assert apply_edits(text, [Edit("add_values", "pay", values=tuple(values))]) == text


@given(st.floats(allow_nan=False, allow_infinity=False, width=32))
def test_any_number_becomes_a_bound(number):
    _, schema = edited(Edit("set_range", "fare", number=number, text="max"))
    assert schema.feature[0].float_domain.max == number


def test_edits_of_the_real_schema_leave_every_other_line(project):
    text = (project / "schemas/taxi.pbtxt").read_text(encoding="utf-8")
    edits = [
        Edit("add_values", "payment_type", values=("Voucher",)),
        Edit("set_range", "fare", number=99999.0, text="max"),
        Edit("set_presence", "trip_seconds", number=0.5),
        Edit("deprecate", "company"),
    ]
    before, after = text.splitlines(), apply_edits(text, edits).splitlines()
    assert len([line for line in after if line not in before]) == 4
    assert len([line for line in before if line not in after]) == 2
