"""All that a model needs to turn text into ids, as plain data that can be saved beside its weights in any format.

Knows: Indexer, characters, vocab, how text is split. Blind to: tensors, every library.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from bilmo.embed.texts import splitter_for
from bilmo.ids.batch import Indexer
from bilmo.ids.chars import ByteChars, Chars, CharTable
from bilmo.ids.vocab import Vocab
from bilmo.text.dictionary import Dictionary
from bilmo.text.split import Splitter

if TYPE_CHECKING:  # a Bundle holds tensors, and these settings are also read where torch is not installed
    from bilmo.store.bundle import Bundle

BYTES = "bytes"


@dataclass(frozen=True, kw_only=True)
class TextToIds:
    """Its fields are plain data, so `dataclasses.asdict` gives JSON."""

    characters: str | list[str] | None
    """"bytes", the lines of a character table, or None for a model without characters."""
    max_characters: int | None
    widest_filter: int
    table: bool
    """Whether the model has a table of words."""
    lower: bool
    lang: str
    vocab: list[str] | None
    dictionary: list[str] | None = None

    @classmethod
    def of(cls, bundle: Bundle) -> Self:
        """The data that this model needs."""
        indexer = bundle.indexer()
        chars = indexer.chars
        return cls(
            characters=None if chars is None else BYTES if isinstance(chars, ByteChars) else chars.lines(),
            max_characters=None if chars is None else chars.max_characters,
            widest_filter=indexer.widest_filter,
            table=indexer.vocab is not None,
            lower=indexer.lower,
            lang=bundle.lang,
            vocab=None if bundle.vocab is None else list(bundle.vocab.words),
            dictionary=None if bundle.dictionary is None else list(bundle.dictionary.words),
        )

    def indexer(self) -> Indexer:
        """The indexer that makes batches for the model."""
        chars: Chars | None = None
        if self.characters == BYTES:
            chars = ByteChars(self.max_characters)
        elif self.characters is not None:
            chars = CharTable.from_lines(self.characters, max_characters=self.max_characters)
        vocab = Vocab(self.vocab or ()) if self.table else None
        return Indexer(chars, vocab, lower=self.lower, widest_filter=self.widest_filter)

    def splitter(self, lang: str = "auto") -> Splitter:
        """The function from a text to its sentences, as in `bilmo.load`."""
        vocab = None if self.vocab is None else Vocab(self.vocab)
        return splitter_for(lang, self.lang, vocab, Dictionary(tuple(self.dictionary)) if self.dictionary else None)
