"""Hugging Face transformers: ELMo as a model and a tokenizer that AutoModel and AutoTokenizer load from a folder.

>>> from bilmo.plug.transformers import to_transformers                              # doctest: +SKIP
>>> model, tokenizer = to_transformers("en")                                         # doctest: +SKIP

Importing this module registers both classes.

Knows: Bundle, id arrays, text to ids, transformers. Blind to: the hub, training loops.
"""

# B sentences, T tokens, C characters, D one direction, L layers

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from itertools import chain
from os import PathLike
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor

from bilmo.embed.embedder import Embedder
from bilmo.embed.load import load
from bilmo.errors import need
from bilmo.net.bilm import BiLM
from bilmo.net.config import BiLMConfig
from bilmo.net.layers import Layers, PackedLayers
from bilmo.net.mix import Mix
from bilmo.net.start import StartState
from bilmo.net.state import State
from bilmo.plug.id_arrays import IdArrays, id_array
from bilmo.plug.text_to_ids import TextToIds
from bilmo.plug.usual_errors import usual_errors
from bilmo.store.validate import checked

need("transformers", extra="transformers", purpose="bilmo.plug.transformers")
from transformers import AutoConfig, AutoModel, AutoTokenizer, PretrainedConfig, PreTrainedModel  # noqa: E402
from transformers.modeling_outputs import BaseModelOutput  # noqa: E402
from transformers.tokenization_utils_base import BatchEncoding, PreTrainedTokenizerBase  # noqa: E402

TOKENIZER_FILE = "bilmo_tokenizer.json"


class BilmoHFConfig(PretrainedConfig):
    """The shape of the network, the marks of its ids, and the mix that gives `last_hidden_state`."""

    model_type = "bilmo"
    network: dict[str, Any] | None = None
    ids: dict[str, Any] | None = None
    mix: str = "mean"
    hidden_size: int = 0
    num_hidden_layers: int = 0


class BilmoModel(PreTrainedModel):
    """Ids (B, T, C) to the mixed vectors of the layers, and to all layers."""

    config_class = BilmoHFConfig
    base_model_prefix = "bilmo"
    main_input_name = "input_ids"

    def __init__(self, config: BilmoHFConfig) -> None:
        super().__init__(config)
        shape = checked(config.network, BiLMConfig, "config.json: network")
        self.network = BiLM(shape)
        with usual_errors():
            self.mix = Mix.for_network(shape, config.mix)  # type: ignore[arg-type]
        ids = dict(config.ids or {})
        self._arrays = IdArrays(**(ids | {"begin": tuple(ids["begin"]), "end": tuple(ids["end"])}))
        self._state_names = list(StartState.tensors(self.network.zero_state(1)))
        for name, value in StartState.tensors(self.network.zero_state(1)).items():
            self.register_buffer(f"start_{name}", value.clone())
        self.post_init()

    def _init_weights(self, module: torch.nn.Module) -> None:
        """Weights are initialized by the network itself."""

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        output_hidden_states: bool | None = None,
        return_dict: bool | None = None,
        **kwargs: Any,
    ) -> Any:
        """`last_hidden_state` (B, T, 2D), the mix of the layers; `hidden_states`, all L + 1 layers, on request."""
        if input_ids.ndim != 3:
            raise ValueError(
                f"input_ids have the shape {tuple(input_ids.shape)}; it must be (texts, tokens, characters)"
            )
        ids = input_ids.detach().cpu().numpy()
        if attention_mask is not None:
            ids = ids * attention_mask.detach().cpu().numpy()[..., None].astype(np.int64)
        with usual_errors():
            batch = self._arrays.batch(ids)
        parts = {name.replace("_", "."): cast("Tensor", getattr(self, f"start_{name}")) for name in self._state_names}
        start = State.from_named({name: part.expand(len(ids), -1) for name, part in parts.items()})
        packed: PackedLayers = self.network(batch, start)[0]
        inside = packed.padded().inside()
        more = ids.shape[1] - inside.values.shape[2]
        layers = Layers(
            torch.nn.functional.pad(inside.values, (0, 0, 0, more)), torch.nn.functional.pad(inside.mask, (0, more))
        )
        wanted = self.config.output_hidden_states if output_hidden_states is None else output_hidden_states
        found = BaseModelOutput(self.mix(layers), tuple(layers.values) if wanted else None)
        return found.to_tuple() if return_dict is False else found


class BilmoTokenizer(PreTrainedTokenizerBase):
    """Texts to ids (B, T, C) and an attention mask. A text is a string, which is split, or a list of tokens."""

    model_input_names = ["input_ids", "attention_mask"]  # noqa: RUF012 (the name and type that transformers expects)
    padding_side = "right"

    def __init__(self, settings: dict[str, Any], **kwargs: Any) -> None:
        """`settings`: what `save_pretrained` writes."""
        self._settings = settings
        ids = TextToIds(**settings)
        self._indexer, self._split = ids.indexer(), ids.splitter()
        super().__init__(**kwargs)

    @property
    def pad_token_id(self) -> int:
        """The id that pads the rows of a batch."""
        return 0

    @property
    def pad_token(self) -> str:
        """The name of padding; no token of a text has it."""
        return "<pad>"

    def __call__(
        self,
        text: str | Sequence[str] | Sequence[Sequence[str]],
        *args: Any,
        is_split_into_words: bool = False,
        return_tensors: str | None = None,
        truncation: Any = None,
        max_length: int | None = None,
        **kwargs: Any,
    ) -> BatchEncoding:
        """Ids (B, T, C) and mask (B, T), padded to the longest text; other options of transformers have no effect."""
        single = isinstance(text, str) or (is_split_into_words and all(isinstance(one, str) for one in text))
        given: list[Any] = [text] if single else list(text)
        rows: list[list[str]] = [self.tokenize(one) if isinstance(one, str) else list(one) for one in given]
        rows = [row[:max_length] for row in rows] if truncation and max_length else rows
        ids = id_array(self._indexer, rows)
        mask = (ids != 0).any(axis=2).astype(np.int64)
        found: dict[str, Any] = {"input_ids": ids, "attention_mask": mask}
        if return_tensors == "pt":
            found = {name: torch.from_numpy(value) for name, value in found.items()}
        elif return_tensors is None:
            found = {name: (value[0] if single else value).tolist() for name, value in found.items()}
        return BatchEncoding(found)

    def tokenize(self, text: str, *args: Any, **kwargs: Any) -> list[str]:
        """The tokens of a text; all its sentences are one sequence."""
        return list(chain.from_iterable(self._split(text)))

    @property
    def vocab_size(self) -> int:
        """Number of words in the vocabulary; words that are not in it are spelled."""
        return len(self._settings["vocab"] or ())

    def get_vocab(self) -> dict[str, int]:
        """Words and their ids."""
        return {word: id for id, word in enumerate(self._settings["vocab"] or ())}

    def __len__(self) -> int:
        return self.vocab_size

    def save_pretrained(self, save_directory: str | PathLike[str], *args: Any, **kwargs: Any) -> tuple[str, ...]:
        """Write the tokenizer into a folder."""
        folder = Path(save_directory)
        folder.mkdir(parents=True, exist_ok=True)
        config = {"tokenizer_class": "BilmoTokenizer", "model_type": "bilmo"}
        for name, content in (("tokenizer_config.json", config), (TOKENIZER_FILE, self._settings)):
            (folder / name).write_text(json.dumps(content, ensure_ascii=False, indent=1), encoding="utf-8")
        return str(folder / "tokenizer_config.json"), str(folder / TOKENIZER_FILE)

    @classmethod
    def from_pretrained(cls, pretrained_model_name_or_path: str | PathLike[str], *args: Any, **kwargs: Any) -> Any:
        """Read a tokenizer from a folder."""
        path = Path(pretrained_model_name_or_path) / TOKENIZER_FILE
        if not path.is_file():
            raise OSError(f"{path}: there is no such file; `to_transformers` and save_pretrained write it")
        return cls(json.loads(path.read_text(encoding="utf-8")))


def to_transformers(model: str | PathLike[str] | Embedder, mix: str = "mean") -> tuple[BilmoModel, BilmoTokenizer]:
    """A model of bilmo as a model and a tokenizer of transformers; save both into one folder with `save_pretrained`.

    mix: what `last_hidden_state` is: "mean" of all layers, "top", "concat", or "weighted", which can be trained.
    """
    with usual_errors():
        elmo = model if isinstance(model, Embedder) else load(model)
    bundle, shape = elmo.bundle, elmo.config
    indexer = bundle.indexer()
    config = BilmoHFConfig(
        network=json.loads(json.dumps(asdict(shape))),
        ids=json.loads(json.dumps(asdict(IdArrays.of(indexer)))),
        mix=mix,
        hidden_size=shape.vector_width,
        num_hidden_layers=shape.layers,
    )
    made = BilmoModel(config)
    made.network.load_state_dict({n: v for n, v in bundle.weights.items() if not n.startswith("softmax.")})
    for name, value in StartState.tensors(elmo.start_state).items():
        cast("Tensor", getattr(made, f"start_{name}")).copy_(value)
    return made.eval(), BilmoTokenizer(asdict(TextToIds.of(bundle)))


AutoConfig.register("bilmo", BilmoHFConfig)
AutoModel.register(BilmoHFConfig, BilmoModel)
AutoTokenizer.register(BilmoHFConfig, tokenizer_class=BilmoTokenizer)
