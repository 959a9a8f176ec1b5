import pytest

from slipway.pipeline.terminal.printable import plain_log, printable, say


@pytest.mark.parametrize(
    ("log", "plain"),
    [
        ("a\x1b[1;31mred\x1b[0m b", "ared b"),
        ("\x1b]0;title\x07text", "text"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1b[2K\x1b[1A\x1b(Bline", "line"),
        ("10%\r50%\r100%\nnext", "100%\nnext"),
        ("10%\r100%\r\nnext", "100%\nnext"),
        ("a\tb\x00", "a    b\\x00"),
        ("cut \x1b[3", "cut \\x1b[3"),
    ],
)
def test_a_log_is_shown_as_it_was_to_be_read(log, plain):
    assert plain_log(log) == plain


def test_text_is_shown_with_its_control_characters_written_out():
    assert printable("a\x1b[2Jb\nc\r") == "a\\x1b[2Jb\nc\\r"


def test_what_is_said_goes_to_stderr_line_by_line(capfd):
    say("a\x1b[2Jb", "c")
    say()

    assert capfd.readouterr() == ("", "a\\x1b[2Jb\nc\n")
