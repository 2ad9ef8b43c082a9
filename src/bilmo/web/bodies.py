"""The JSON of requests and answers, which the OpenAPI document describes.

Knows: pydantic. Blind to: models, how answers are computed.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

Tokens = list[str]
Vectors = list[Any] | str
"""Nested lists of numbers, or base64."""


class Body(BaseModel):
    """A request; unknown fields and values of another type are errors."""

    model_config = ConfigDict(extra="forbid", strict=True)


class ModelBody(Body):
    """A request to a model."""

    model: str | None = Field(None, description="Name of a model; without it, the first one.")


class TextBody(ModelBody):
    """Texts, or sentences that are lists of tokens."""

    text: str | list[str] | None = Field(None, description="A text or a list of texts, which are split into tokens.")
    tokens: Tokens | list[Tokens] | None = Field(None, description="Instead of text: a list of tokens, or of lists.")


Layer = Annotated[int, Field(ge=0, le=1000)]
Mix = Literal["mean", "top", "concat"] | Layer | Annotated[list[Layer], Field(min_length=1, max_length=1000)]


class EmbedBody(TextBody):
    """A request for vectors."""

    inputs: str | list[str] | None = Field(None, description="Instead of text: as text-embeddings-inference has it.")
    mix: Mix = "mean"
    layers: bool = Field(False, description="Every layer instead of a mix.")
    pool: Literal["none", "mean", "max"] | None = Field(None, description="none, except with inputs: mean.")
    normalize: bool | None = Field(None, description="Vectors of length 1; false, except with inputs.")
    encoding: Literal["numbers", "base64"] = "numbers"
    truncate: Literal[False] = Field(False, description="With inputs; texts are never cut.")


class EmbeddedText(BaseModel):
    """The vectors of one text."""

    tokens: Tokens
    sentences: list[int] = Field(description="Number of tokens of each sentence.")
    offsets: list[tuple[int, int]] | None = Field(description="Begin and end of each token in the text.")
    shape: list[int]
    vectors: Vectors


class EmbedAnswer(BaseModel):
    """The vectors of all texts."""

    model: str
    results: list[EmbeddedText]


class OpenAIBody(BaseModel):
    """OpenAI's request for embeddings; fields that do not matter here are ignored."""

    model_config = ConfigDict(strict=True)

    model: str
    input: str | Annotated[list[str], Field(min_length=1)] = Field(description="A text or a list of texts.")
    encoding_format: Literal["float", "base64"] = "float"
    dimensions: int | None = Field(None, description="The width of the model, if it is given.")


class OpenAIEmbedding(BaseModel):
    """One vector, as a list of numbers or in base64."""

    object: Literal["embedding"]
    index: int
    embedding: list[float] | str


class OpenAIUsage(BaseModel):
    """The number of tokens."""

    prompt_tokens: int
    total_tokens: int


class OpenAIAnswer(BaseModel):
    """OpenAI's answer."""

    object: Literal["list"]
    data: list[OpenAIEmbedding]
    model: str
    usage: OpenAIUsage


class OpenAIModel(BaseModel):
    """A model in OpenAI's list."""

    id: str
    object: Literal["model"] = "model"
    created: int = 0
    owned_by: str = "bilmo"


class OpenAIModels(BaseModel):
    """OpenAI's list of models."""

    object: Literal["list"] = "list"
    data: list[OpenAIModel]


Number = Annotated[int, Field(ge=1, le=1000, description="Number of results.")]


class WordsBody(ModelBody):
    """Words."""

    words: list[str]


class WordFacts(BaseModel):
    """What the network reads of a word."""

    word: str
    known: bool
    id: int | None
    characters: list[str] | None
    character_ids: list[int] | None


class WordsAnswer(BaseModel):
    """The facts of each word."""

    model: str
    results: list[WordFacts]


Among = Annotated[
    list[str] | list[Tokens] | None,
    Field(description="Texts, or sentences as lists of tokens; without them, the index of the model is searched."),
]


class PlaceBody(ModelBody):
    """One word of a sentence: in square brackets in a text, or the number of a token."""

    text: str | None = Field(None, description="A text with one word in square brackets.")
    tokens: Tokens | None = Field(None, description="Instead of text: a sentence.")
    position: int | None = Field(None, ge=0, description="With tokens: the number of the token, from 0.")


class FillBody(PlaceBody):
    """A request for the words that fit a place."""

    n: Number = 10


class SimilarBody(PlaceBody):
    """Words to compare with the vocabulary; or a word in its sentence, to compare with its uses elsewhere."""

    words: list[str] | None = Field(None, description="Words; the answer has similar words.")
    among: Among = None
    mix: Mix = Field("mean", description="With among; an index has its own mix.")
    same_word: bool = Field(False, description="Only uses of the same word.")
    n: Number = 10


class SensesBody(ModelBody):
    """A request for the uses of a word in groups."""

    word: str
    among: Among = None
    mix: Mix = Field("top", description="With among; an index has its own mix.")
    n: Number = 10


class PredictBody(Body):
    """Examples of a task. Which field is needed depends on its kind."""

    text: str | list[str] | None = None
    tokens: Tokens | list[Tokens] | None = None
    pairs: list[Annotated[list[str | Tokens], Field(min_length=2, max_length=2)]] | None = None
    context: str | None = None
    questions: list[str] | None = None
    documents: list[list[Tokens]] | None = None
    probabilities: bool = False


class PredictAnswer(BaseModel):
    """Predictions; `input` is the number of the example, from 0."""

    task: str
    kind: str
    results: list[dict[str, Any]]


class Answer(BaseModel):
    """An answer with the name of the model; the guide describes the other fields."""

    model_config = ConfigDict(extra="allow")
    model: str


class Problem(BaseModel):
    """The description of an error."""

    message: str
    type: str
    param: str | None
    code: int


class ErrorAnswer(BaseModel):
    """Every error has this form."""

    error: Problem
