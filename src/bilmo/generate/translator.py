"""The estimator of translation.

Knows: Generator. Blind to: files, the command line.
"""

from __future__ import annotations

from bilmo.generate.generator import Generator
from bilmo.generate.settings import TranslateSettings
from bilmo.generate.translate import TRANSLATE


class Translator(Generator[TranslateSettings]):
    """Translates texts.

    >>> Translator(elmo).fit(english, german).predict(["A man is riding a bicycle."])        # doctest: +SKIP
    """

    task = TRANSLATE
