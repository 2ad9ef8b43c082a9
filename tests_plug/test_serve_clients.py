"""The server with the clients that people use: OpenAI's package, and schemathesis, which tries its OpenAPI document."""

import base64
import re

import httpx
import numpy as np
import openai
import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis.generation import GenerationMode

import bilmo
from program import program, started

TEXTS = ["He sat on the bank.", "Yes", "银行"]


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    folder = tmp_path_factory.mktemp("server")
    (folder / "text.txt").write_text("He sat on the bank.\nThe bank was closed.\n")
    assert program(folder, "index", "en", "text.txt", "-o", "uses").code == 0
    process = started(folder, "serve", "en", "--index", "uses", "--port", 0)
    found = re.search(r"on (http://\S+)", process.stderr.readline())[1]
    with httpx.Client(transport=httpx.HTTPTransport(retries=8)) as client:
        assert client.get(f"{found}/health").status_code == 200
    yield found
    process.terminate()
    assert process.communicate(timeout=60) == ("", "") and process.returncode == 0


@pytest.fixture(scope="module")
def client(address):
    return openai.OpenAI(base_url=f"{address}/v1", api_key="none", max_retries=0)


@pytest.mark.parametrize("form", ["float", "base64", None])
def test_the_openai_client_gets_vectors_of_length_1(client, form):
    more = {} if form is None else {"encoding_format": form}
    answer = client.embeddings.create(model="en", input=TEXTS, **more)
    found = [one.embedding for one in answer.data]
    if isinstance(found[0], str):
        found = [np.frombuffer(base64.b64decode(one), dtype="<f4") for one in found]
    elmo = bilmo.load("en")
    np.testing.assert_allclose(found, elmo.embed(TEXTS, pool="mean", normalize=True), atol=1e-5)
    assert answer.model == "en"
    assert answer.usage.prompt_tokens == sum(len(elmo.embed(text).tokens) for text in TEXTS)


def test_the_openai_client_lists_models_and_understands_errors(client):
    assert [model.id for model in client.models.list()] == ["en"]
    assert client.models.retrieve("en").owned_by == "bilmo"
    with pytest.raises(openai.UnprocessableEntityError, match="string"):
        client.embeddings.create(model="en", input=[[1, 2, 3]])
    with pytest.raises(openai.NotFoundError, match="there is no model 'ada'"):
        client.embeddings.create(model="ada", input="a")


NOT_CHECKED = [schemathesis.checks.positive_data_acceptance]
"""A body may follow the document and still be refused, for example a text without brackets for /fill."""


@pytest.mark.parametrize("mode", list(GenerationMode), ids=str)
def test_every_answer_is_one_that_the_document_lists(address, mode):
    schema = schemathesis.openapi.from_url(f"{address}/openapi.json")
    operations = [found.ok() for found in schema.get_all_operations()]
    assert len(operations) > 10
    for operation in operations:
        if mode == GenerationMode.NEGATIVE and operation.method == "get":
            continue  # there is nothing to get wrong

        @settings(max_examples=15, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
        @given(case=operation.as_strategy(mode))
        def check(case):
            case.call_and_validate(excluded_checks=NOT_CHECKED)

        check()
