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
    """A request; unknown fields are errors."""

    model_config = ConfigDict(extra="forbid")


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
    """What to embed, and how."""

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


class Problem(BaseModel):
    """What is wrong."""

    message: str
    type: str
    param: str | None
    code: int


class ErrorAnswer(BaseModel):
    """Every error has this form."""

    error: Problem
