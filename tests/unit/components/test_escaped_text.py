"""Control characters of foreign texts are written out."""

from slipway.components.escaped_text import escaped


def test_control_characters_are_written_out_but_those_that_may_stay():
    assert escaped("ä\x1b[2J\n\u202e") == "ä\\x1b[2J\\n\\u202e"
    assert escaped("a\r\nb", but="\n") == "a\\r\nb"
