"""Classes of protocol buffer messages from a table of their fields."""

from slipway.components.message_classes import message_classes

CLASSES = message_classes(
    "slipway.test",
    {
        "Value": {"number": (1, "|INT64"), "text": (2, "|STRING")},
        "Table": {"rows": (3, "*Value"), "by_name": (4, "{}Value"), "head": (5, "Value")},
    },
)


def test_fields_have_their_numbers_and_types():
    table = CLASSES["Table"]()
    table.rows.add(number=1)
    table.head.text = "a"
    assert table.SerializeToString() == b"\x1a\x02\x08\x01\x2a\x03\x12\x01a"


def test_a_map_is_read_by_its_keys():
    table = CLASSES["Table"]()
    table.by_name["one"].number = 1
    assert CLASSES["Table"].FromString(table.SerializeToString()).by_name["one"].number == 1


def test_a_message_has_one_field_of_a_oneof():
    value = CLASSES["Value"](number=1)
    value.text = "a"
    assert value.WhichOneof("kind") == "text"
    assert value.number == 0
