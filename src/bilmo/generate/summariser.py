"""The estimator of summaries.

Knows: Generator. Blind to: files, the command line.
"""

from __future__ import annotations

from bilmo.generate.generator import Generator
from bilmo.generate.settings import SummariseSettings
from bilmo.generate.summarise import SUMMARISE


class Summariser(Generator[SummariseSettings]):
    """Writes headlines, titles and other summaries.

    >>> Summariser(elmo).fit(articles, headlines).predict([article])        # doctest: +SKIP
    """

    task = SUMMARISE
