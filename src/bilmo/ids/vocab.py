"""Words and their ids, in the order of vocab.txt: the three marks, then words in descending order of frequency.

Knows: words. Blind to: files, arrays, characters.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from bilmo.errors import VocabError
from bilmo.ids.chars import SENTENCE_BEGIN, SENTENCE_END, UNKNOWN

MARKS = (SENTENCE_BEGIN, SENTENCE_END, UNKNOWN)


class Vocab:
    """Word to id and back. A blank or repeated entry keeps its id, so that the rows of old tables keep theirs.

    >>> Vocab(["<S>", "</S>", "<UNK>", "the"]).ids(["the", "cat"])
    [3, 2]
    """

    def __init__(self, words: Iterable[str]) -> None:
        self.words = tuple(words)
        self._lookup = {word: id for id, word in enumerate(self.words) if word}
        missing = [mark for mark in MARKS if mark not in self._lookup]
        if missing:
            raise VocabError(
                f"the vocabulary of {len(self.words)} words lacks {' '.join(missing)}. Each of {' '.join(MARKS)} "
                "must be on a separate line: without them the boundaries of a sentence, or unknown words, "
                "would silently become other words."
            )
        self.begin, self.end, self.unknown = (self._lookup[mark] for mark in MARKS)

    @classmethod
    def count(cls, sentences: Iterable[Sequence[str]], *, min_count: int = 1, max_words: int | None = None) -> Vocab:
        """Count the words of a text; ties are ordered by code point, so that the same text gives the same ids.

        A word that cannot be a line of vocab.txt (empty, or with white space) is left out.
        """
        counts: Counter[str] = Counter()
        for sentence in sentences:
            counts.update(sentence)
        kept = sorted(
            (-n, word) for word, n in counts.items() if n >= min_count and word not in MARKS and fits_a_line(word)
        )
        return cls((*MARKS, *(word for _, word in kept[:max_words])))

    def __len__(self) -> int:
        return len(self.words)

    def __contains__(self, word: str) -> bool:
        return word in self._lookup

    def ids(self, words: Iterable[str]) -> list[int]:
        """Ids of words; one that is not in the vocabulary has the id of `<UNK>`."""
        return [self._lookup.get(word, self.unknown) for word in words]


def fits_a_line(word: str) -> bool:
    """Whether a word can be a line of vocab.txt: not empty, no white space, no lone surrogate."""
    return word.split() == [word] and not any("\ud800" <= character <= "\udfff" for character in word)
