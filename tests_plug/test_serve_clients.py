"""The server with the clients that people use: OpenAI's package, and schemathesis, which tries its OpenAPI document."""

import numpy as np
import openai
import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from starlette.testclient import TestClient

import bilmo
from bilmo.web.app import application
from bilmo.web.served import Served

elmo = bilmo.load("en")
app = application(Served({"en": elmo}))


def raw_document(guard):
    """The document as a client gets it."""
    with TestClient(guard, base_url="http://localhost") as client:
        return client.get("/openapi.json").json()


@pytest.fixture(scope="module")
def client():
    with TestClient(app, base_url="http://localhost") as found:
        yield found


@pytest.fixture(scope="module")
def openai_client(client):
    return openai.OpenAI(base_url="http://localhost/v1", api_key="none", http_client=client, max_retries=0)


@pytest.mark.parametrize("form", ["float", "base64", None])
def test_the_openai_client_gets_vectors_of_length_1(openai_client, form):
    texts = ["He sat on the bank.", "Yes", "银行"]
    more = {} if form is None else {"encoding_format": form}
    answer = openai_client.embeddings.create(model="en", input=texts, **more)
    found = [one.embedding for one in answer.data]
    if form == "base64":
        import base64

        found = [np.frombuffer(base64.b64decode(one), dtype="<f4") if isinstance(one, str) else one for one in found]
    np.testing.assert_allclose(found, elmo.embed(texts, pool="mean", normalize=True), atol=1e-5)
    assert answer.model == "en"
    assert answer.usage.prompt_tokens == sum(len(elmo.embed(text).tokens) for text in texts)


def test_the_openai_client_lists_models_and_understands_errors(openai_client):
    assert [model.id for model in openai_client.models.list()] == ["en"]
    assert openai_client.models.retrieve("en").owned_by == "bilmo"
    with pytest.raises(openai.UnprocessableEntityError, match="string"):
        openai_client.embeddings.create(model="en", input=[[1, 2, 3]])
    with pytest.raises(openai.NotFoundError, match="there is no model 'ada'"):
        openai_client.embeddings.create(model="ada", input="a")


schema = schemathesis.openapi.from_dict(raw_document(app))


@schema.parametrize()
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
def test_every_request_that_the_document_allows_is_answered_as_it_says(case, client):
    # A request may follow the document and still be refused, for example a text without brackets.
    checks = [
        schemathesis.checks.not_a_server_error,
        schemathesis.checks.load_all_checks and None,
    ]
    del checks
    case.call_and_validate(session=client)
