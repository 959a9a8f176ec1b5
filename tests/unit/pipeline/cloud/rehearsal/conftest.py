"""What tests of rehearsals share."""

import pytest


@pytest.fixture
def program(tmp_path):
    """Makes a stand-in for Podman of a shell script's lines; it notes the words that it gets."""

    def made(*lines, name="podman"):
        path = tmp_path / name
        path.write_text("\n".join(["#!/bin/sh", f'echo "$@" >>{tmp_path}/asked', *lines, ""]))
        path.chmod(0o755)
        return str(path)

    return made
