"""A TPU that does not answer holds nobody up."""

import os
import socket

import pytest
from counted import commands_run
from limits_of_commands import limit_counts_from

from slipway.components.errors import ComponentError
from slipway.components.trainer.devices.opening import open_devices
from slipway.components.trainer.devices.tpu_contact import count_tpu_cores, require_reachable
from slipway.components.trainer.settings.compute import ComputeSettings


@pytest.fixture
def dead_port():
    """A port on loopback that nobody listens on."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield held.getsockname()[1]


def test_address_that_listens_is_reachable():
    with socket.create_server(("127.0.0.1", 0)) as server:
        require_reachable(f"grpc://127.0.0.1:{server.getsockname()[1]}")


@pytest.mark.parametrize("address", ["local", "my-node"])
def test_names_are_not_probed(address):
    require_reachable(address)


def test_one_dead_host_of_several_is_named(dead_port):
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"grpc://127.0.0.1:{server.getsockname()[1]},127.0.0.1:{dead_port}"
        with pytest.raises(ComponentError, match=rf"no TPU answers at 127.0.0.1:{dead_port}: "):
            require_reachable(address)


def test_dead_address_is_an_error_before_anything_connects_to_it_for_minutes(dead_port):
    def opened():
        settings = ComputeSettings(device="tpu", tpu_address=f"grpc://127.0.0.1:{dead_port}")
        with pytest.raises(ComponentError, match=r"no TPU answers at .*: Connection refused"):
            open_devices(settings, {})

    assert commands_run(opened) == []  # no process that makes the first contact


def test_host_that_swallows_every_packet_is_given_up_after_the_limit():
    # A backlog of one that is full: the kernel drops what comes after, as a firewall does.
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen(0)
        port = server.getsockname()[1]
        waiting = [socket.socket() for _ in range(4)]
        try:
            for each in waiting:
                each.setblocking(False)
                each.connect_ex(("127.0.0.1", port))
            # The kernel's own words, after two minutes, are "Connection timed out".
            with pytest.raises(ComponentError, match=r": timed out \(tried for 0\.3 s at most\)"):
                require_reachable(f"grpc://127.0.0.1:{port}", limit_s=0.3)
        finally:
            for each in waiting:
                each.close()


@pytest.fixture
def first_contact(tmp_path, monkeypatch):
    """Has a shell script stand for the interpreter that makes the first contact."""

    def stands(script):
        python = tmp_path / "python"
        python.write_text(f"#!/bin/sh\n{script}\n")
        python.chmod(0o700)
        monkeypatch.setattr("slipway.components.trainer.devices.tpu_contact.sys.executable", str(python))

    return stands


def test_tpu_that_takes_the_connection_and_says_nothing_is_given_up_and_its_process_ended(
    first_contact, tmp_path, monkeypatch
):
    first_contact(f"echo $$ > {tmp_path}/new\nmv {tmp_path}/new {tmp_path}/pid\nexec sleep 3600")
    limit_counts_from(tmp_path / "pid", monkeypatch)
    with pytest.raises(ComponentError, match=r"the TPU 'local' did not answer within 0\.2 s"):
        count_tpu_cores("tensorflow", "local", limit_s=0.2)
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


def test_cores_are_those_that_the_first_contact_counted(first_contact):
    first_contact("echo 'words of a library'\necho '{\"cores\": 8}'")
    assert count_tpu_cores("jax", "local") == 8


def test_first_contact_that_fails_is_reported_with_its_last_words(first_contact):
    first_contact("echo libtpu: no such device >&2\nexit 1")
    with pytest.raises(
        ComponentError, match=r"'local' cannot be used by jax of .*: libtpu: no such device"
    ) as caught:
        count_tpu_cores("jax", "local")
    assert "jax[tpu]" in caught.value.hint


def test_explicit_tpu_without_evidence_says_what_was_looked_for(monkeypatch):
    monkeypatch.setattr(
        "slipway.components.trainer.devices.opening.find_evidence", lambda *_args, **_more: ()
    )
    with pytest.raises(
        ComponentError, match=r"looked for train.tpu_address, .*TPU_NAME.*/dev/accel\*.*found nothing"
    ):
        open_devices(ComputeSettings(device="tpu"), {})


def test_backend_that_the_interpreter_lacks_is_refused_with_the_remedy():
    with pytest.raises(ComponentError, match=r"train\.backend is jax") as caught:
        open_devices(ComputeSettings(backend="jax"), {})
    assert "make jax" in caught.value.hint


def test_modules_in_the_current_folder_are_not_run(first_contact):
    first_contact('echo "{\\"cores\\": ${#1}}"\n[ "$1" = -P ]')
    assert count_tpu_cores("jax", "local") == len("-P")
