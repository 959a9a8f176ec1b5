"""What is asked of the Hub, and what its refusals mean in words; against a double on loopback."""

import socket

import pytest
from hub_double import TOKEN

from slipway.components.ingest import hub_client
from slipway.components.ingest.blocks import FileError
from slipway.components.ingest.hub_address import DataSet
from slipway.components.ingest.hub_client import PassingError, document, retried

DATA = DataSet("o/n")


@pytest.fixture
def refusal(hub):
    """The error of a request that is refused."""

    def call(data_set=DATA, path="revision/main"):
        with pytest.raises(FileError) as caught:
            document(data_set, path)
        assert TOKEN not in f"{caught.value}{caught.value.__cause__}{caught.value.__context__}"
        return caught.value

    return call


def test_answer_is_read(hub):
    commit = hub.commit("o/n", {"a.csv": b"a\n1\n"})
    assert document(DATA, "revision/main") == ({"id": "o/n", "sha": commit}, "")


def test_token_of_the_environment_is_sent_without_blanks_around_it(hub, monkeypatch):
    hub.commit("o/n", {})
    hub.data_sets["o/n"].is_private = True
    monkeypatch.setenv("HF_TOKEN", f" {TOKEN}\n")
    document(DATA, "revision/main")
    assert [token for _, token, _ in hub.requests] == [f"Bearer {TOKEN}"]


def test_login_of_netrc_is_not_sent(hub, monkeypatch, tmp_path):
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login somebody password other\n")
    monkeypatch.setenv("NETRC", str(netrc))
    hub.commit("o/n", {})
    document(DATA, "revision/main")
    assert [token for _, token, _ in hub.requests] == [""]


def test_missing_data_set_may_be_a_private_one(hub, refusal, monkeypatch):
    error = refusal()
    assert (
        "hf://datasets/o/n: there is no such data set, or it is private, and HF_TOKEN is not" in error.message
    )
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    assert "there is no such data set, or HF_TOKEN's account cannot see it" in refusal().message


def test_private_data_set_without_a_token_asks_for_one(hub, refusal):
    hub.commit("o/n", {})
    hub.data_sets["o/n"].is_private = True
    assert "set HF_TOKEN to a token of an account that may read it" in refusal().hint


def test_wrong_token_is_told_as_that(hub, refusal, monkeypatch):
    hub.commit("o/n", {})
    monkeypatch.setenv("HF_TOKEN", "hf_other")
    error = refusal()
    assert error.message == "hf://datasets/o/n: the Hub does not know the token in HF_TOKEN"
    assert "hf_other" not in str(error)


def test_missing_revision_is_named_with_the_page_of_all(hub, refusal):
    hub.commit("o/n", {})
    error = refusal(DataSet("o/n", "v9"), "revision/v9")
    assert error.message == "hf://datasets/o/n has no revision 'v9'"
    assert error.hint == f"its branches and tags: {hub.address}/datasets/o/n/tree/main"


def test_token_without_the_permission_is_refused_in_the_hubs_words(hub, refusal):
    hub.spoil((403, {"X-Error-Message": "this token may not read  repositories"}))
    assert refusal().message == "hf://datasets/o/n: permission denied: this token may not read repositories"


def test_other_refusals_are_told_with_status_and_page(hub, refusal):
    hub.spoil((410, {"X-Error-Message": "gone"}))
    error = refusal()
    assert error.message == "hf://datasets/o/n@main: the Hub answers 410: gone"
    assert f"{hub.address}/datasets/o/n" in error.hint


@pytest.mark.parametrize("fault", [429, 500, 502, 503, 504, "drop"])
def test_passing_failure_is_tried_again(hub, fault):
    hub.commit("o/n", {})
    hub.spoil(fault, fault)
    document(DATA, "revision/main")
    assert len(hub.requests) == 3


@pytest.mark.parametrize("fault", [401, 403, 404, 418])
def test_refusal_is_not_tried_again(hub, refusal, fault):
    hub.spoil(fault)
    refusal()
    assert len(hub.requests) == 1


@pytest.mark.parametrize(
    "headers",
    [{"Retry-After": "301"}, {"RateLimit": '"api";r=0;t=301'}, {"Retry-After": "301", "RateLimit": ""}],
)
def test_hub_that_asks_for_more_time_than_there_is_ends_the_waiting(hub, refusal, headers):
    hub.spoil((429, headers))
    error = refusal()
    assert error.message == "hf://datasets/o/n: too many requests to the Hub in a short time (429)"
    assert error.hint == "run again in five minutes; it allows more with HF_TOKEN than without"
    assert (error.wait_s, len(hub.requests)) == (301, 1)


def test_time_that_the_hub_asks_for_is_waited(hub, monkeypatch):
    waited = []
    monkeypatch.setattr(hub_client.time, "sleep", waited.append)
    hub.commit("o/n", {})
    hub.spoil((429, {"RateLimit": '"api";r=0;t=55'}), (503, {"Retry-After": "Wed, 21 Oct 2026 07:28:00 GMT"}))
    document(DATA, "revision/main")
    assert waited == [55, 0]


def test_waits_grow_and_end_with_the_limit(monkeypatch):
    waited, now = [], [0.0]

    def sleep(seconds):
        waited.append(seconds)
        now[0] += seconds

    monkeypatch.setattr(hub_client.time, "sleep", sleep)
    monkeypatch.setattr(hub_client.time, "monotonic", lambda: now[0])

    def fail(is_away):
        raise PassingError("no", hint="", is_away=is_away)

    for is_away, away_s, expected in (
        (True, 15.0, [1, 2, 4, 8]),
        (True, None, [1, 2, 4, 8, 16, *[30] * 8]),
        (False, 15.0, [1, 2, 4, 8, 16, *[30] * 8]),
    ):
        waited.clear()
        with pytest.raises(PassingError):
            retried(lambda is_away=is_away: fail(is_away), away_s=away_s)
        assert waited == expected


def test_hub_that_cannot_be_reached_is_named(refusal, monkeypatch):
    monkeypatch.setattr(hub_client, "AWAY_S", -1.0)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # nobody listens
        address = f"http://127.0.0.1:{taken.getsockname()[1]}"
        monkeypatch.setenv("HF_ENDPOINT", f"{address}/")
        error = refusal()
    assert error.message == f"hf://datasets/o/n@main: {address} cannot be reached (ConnectionError)"
    assert "HF_ENDPOINT" in error.hint


@pytest.mark.parametrize("fault", ["page", (200, {})])
def test_answer_that_no_hub_would_give_is_told(hub, fault):
    from slipway.components.ingest.hub_objects import pinned

    hub.spoil(fault)
    with pytest.raises(FileError, match="answers something else than the Hub's API would"):
        pinned(DATA)


@pytest.mark.parametrize(
    ("endpoint", "said"),
    [
        ("https://me:secret@hub.example", "HF_ENDPOINT holds a user or a password"),
        ("me:secret@hub.example", "HF_ENDPOINT holds a user or a password"),
        ("https://me:secret#1@hub.example", "HF_ENDPOINT holds a user or a password"),
        ("hub.example", "HF_ENDPOINT: hub.example is not an address"),
        ("ftp://hub.example", "HF_ENDPOINT: ftp://hub.example is not an address"),
        (
            "http://hub.example",
            "http://hub.example is not encrypted: anybody on the way could read the token",
        ),
    ],
)
def test_wrong_address_of_the_hub_is_refused_before_anything_is_sent(refusal, monkeypatch, endpoint, said):
    monkeypatch.setenv("HF_ENDPOINT", endpoint)
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    error = refusal()
    assert said in error.message
    assert "secret" not in str(error)


@pytest.mark.parametrize("token", ["hf_a b", "hf_ä", "hf_a\nX-Other: 1"])
def test_token_that_no_header_can_hold_is_refused_without_showing_it(refusal, monkeypatch, token):
    monkeypatch.setenv("HF_TOKEN", token)
    error = refusal()
    assert error.message.startswith("HF_TOKEN is not a token")
    assert token not in str(error)


def test_hub_is_the_public_one_where_nothing_is_set(monkeypatch):
    monkeypatch.setenv("HF_ENDPOINT", "")
    assert hub_client._endpoint() == "https://huggingface.co"


def test_answer_without_an_end_is_not_the_hubs(hub, refusal, monkeypatch):
    hub.commit("o/n", {})
    monkeypatch.setattr(hub_client, "MOST_ANSWER_BYTES", 10)
    assert "answers something else than the Hub's API would" in refusal().message
