"""Foreign texts in messages: control characters are written out, long names are cut off."""

from slipway.components.escaped_text import escaped, short


def test_control_characters_are_written_out_but_those_that_may_stay():
    assert escaped("ä\x1b[2J\n\u202e") == "ä\\x1b[2J\\n\\u202e"
    assert escaped("a\r\nb", but="\n") == "a\\r\nb"


def test_only_the_beginning_of_a_long_name_is_shown():
    assert short("x" * 40) == "x" * 40
    assert short("x" * 200) == "x" * 37 + "..."
    assert short(7) == "7"
