"""Text with backslashes, as ML Metadata can keep it in PostgreSQL."""

import pytest
from ml_metadata.proto import metadata_store_pb2 as mlmd
from ml_metadata.proto import metadata_store_service_pb2 as service

from slipway.pipeline.wiring.metadata_text import STAND_IN, keep_backslashes, replace

pytestmark = pytest.mark.filterwarnings("default")  # ML Metadata's own


def execution(text):
    """A text in a field, a mapping and a list of messages."""
    event = mlmd.Event(path=mlmd.Event.Path(steps=[mlmd.Event.Path.Step(key=text)]))
    properties = {"text": mlmd.Value(string_value=text), "number": mlmd.Value(int_value=3)}
    request = mlmd.Execution(name=text, custom_properties=properties)
    return request, event


def test_a_character_is_replaced_wherever_a_message_holds_it_and_comes_back():
    for message, wanted in zip(execution(r"a\d\\b"), execution(f"a{STAND_IN}d{STAND_IN * 2}b"), strict=True):
        begun = type(message).FromString(message.SerializeToString())
        replace(message, "\\", STAND_IN)
        assert message == wanted
        replace(message, STAND_IN, "\\")
        assert message == begun


def test_text_of_a_list_is_replaced_in_its_place():
    request = service.GetArtifactsByURIRequest(uris=["a\\b", "c"])
    replace(request, "\\", "/")
    assert list(request.uris) == ["a/b", "c"]


def test_a_message_without_it_stays_what_it_is():
    message, _ = execution("plain")
    begun = message.SerializeToString(deterministic=True)
    replace(message, "\\", STAND_IN)
    assert message.SerializeToString(deterministic=True) == begun


def test_a_store_is_asked_with_stand_ins_and_answers_with_backslashes(monkeypatch):
    import ml_metadata

    asked = []

    def call(store, method, request, response):
        asked.append((store, method, request.executions[0].name))
        response.executions.extend(request.executions)

    monkeypatch.setattr(ml_metadata.MetadataStore, "_call", call)
    keep_backslashes()
    keep_backslashes()  # changes nothing
    store = object.__new__(ml_metadata.MetadataStore)
    request = service.GetExecutionsResponse(executions=[mlmd.Execution(name=r"a\b")])
    response = service.GetExecutionsResponse()
    store._call("PutExecutions", request, response)
    assert asked == [(store, "PutExecutions", f"a{STAND_IN}b")]
    assert response.executions[0].name == r"a\b"
