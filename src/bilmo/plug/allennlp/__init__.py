"""AllenNLP's names for ELMo, without AllenNLP: old code runs when its import is changed.

>>> from bilmo.plug.allennlp import Elmo, ElmoEmbedder, ElmoTokenEmbedder, batch_to_ids
>>> batch_to_ids([["The", "cat"], ["Hello"]]).shape
torch.Size([2, 2, 50])

`Elmo`, `ElmoTokenEmbedder` and `batch_to_ids` are those of AllenNLP 2.10.1, `ElmoEmbedder` that of 0.9, and
`python -m bilmo.plug.allennlp elmo` is its command `allennlp elmo`.

Knows: the files of this folder. Blind to: AllenNLP itself, which is not needed.
"""

from bilmo.errors import ConfigError as ConfigurationError
from bilmo.plug.allennlp.elmo import Elmo, ElmoTokenEmbedder, ScalarMix, batch_to_ids
from bilmo.plug.allennlp.embedder import ElmoEmbedder
from bilmo.plug.allennlp.network import _ElmoBiLm, _ElmoCharacterEncoder

__all__ = [
    "ConfigurationError",
    "Elmo",
    "ElmoEmbedder",
    "ElmoTokenEmbedder",
    "ScalarMix",
    "_ElmoBiLm",
    "_ElmoCharacterEncoder",
    "batch_to_ids",
]
