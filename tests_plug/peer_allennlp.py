"""What AllenNLP's own Elmo gives for a model: `python peer_allennlp.py MODEL OUT.npz`, in an environment with AllenNLP.

tests/parity/allennlp/elmo.npz is recorded with it; tests_plug runs it again for models of the published shapes.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch

BATCHES = [
    [["The", "cat", "sat", "on", "the", "mat", "."], ["naïve", "漢字"], ["<S>", "a", "x" * 70]],
    [["cat"], ["The", "the"]],
    [["one", "more"], ["row"], ["than", "before", "."], ["now"]],
]
"""Sentences of three calls, each with another number of rows."""


def outputs(Elmo: Any, Encoder: Any, to_ids: Any, options: str, weights: str) -> dict[str, np.ndarray]:
    """Arrays by name; the same function runs AllenNLP's classes and bilmo's."""
    found: dict[str, np.ndarray] = {}
    first = to_ids(BATCHES[0])

    def keep(name: str, result: dict[str, Any]) -> None:
        for k, vectors in enumerate(result["elmo_representations"]):
            found[f"{name}.{k}"] = vectors.detach().numpy()
        found[f"{name}.mask"] = result["mask"].numpy()

    plain = Elmo(options, weights, 2, dropout=0.0)
    with torch.no_grad():
        plain.scalar_mix_1.scalar_parameters[2].fill_(1.5)
        plain.scalar_mix_1.gamma.fill_(0.7)
    for k, batch in enumerate(BATCHES):  # the state is carried
        keep(f"call{k}", plain(to_ids(batch)))
    states = plain._elmo_lstm._elmo_lstm._states
    found |= {"states.outputs": states[0].detach().numpy(), "states.memories": states[1].detach().numpy()}
    cases = {
        "boundaries": {"keep_sentence_boundaries": True},
        "norm": {"do_layer_norm": True},
        "norm_boundaries": {"do_layer_norm": True, "keep_sentence_boundaries": True},
        "fixed": {"scalar_mix_parameters": [-9e10, 1, -9e10]},
    }
    for name, settings in cases.items():
        keep(name, Elmo(options, weights, 1, dropout=0.0, **settings)(first))
    keep("four", Elmo(options, weights, 1, dropout=0.0)(first.view(1, *first.shape)))
    wide = torch.nn.functional.pad(first, (0, 0, 0, 3))  # no sentence is as long as the batch
    keep("wide", Elmo(options, weights, 1, dropout=0.0)(wide))
    gaps = first.clone()
    gaps[:, :, 5:] = 0  # words without an end, which `batch_to_ids` never makes
    gaps[0, 1, 1] = 0
    keep("gaps", Elmo(options, weights, 1, dropout=0.0)(gaps))
    words = Encoder(options, weights)(first)
    real = words["token_embedding"] * words["mask"].unsqueeze(-1)  # AllenNLP leaves some values in padding
    found |= {"words": real.detach().numpy(), "words.mask": words["mask"].numpy()}

    tuned = Elmo(options, weights, 1, requires_grad=True, dropout=0.0)
    (tuned(first)["elmo_representations"][0] ** 2).sum().backward()
    found["gradient.gamma"] = tuned.scalar_mix_0.gamma.grad.numpy()
    found["gradient.weights"] = np.concatenate([w.grad.numpy() for w in tuned.scalar_mix_0.scalar_parameters])
    return found


def changed_state(elmo: Any) -> None:
    """Change every parameter, as training does."""
    draw = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for name, value in sorted(elmo.state_dict().items()):
            more = 0.05 * torch.randn(value.shape, generator=draw)
            if name.endswith("_char_embedding_weights"):
                more[0] = 0  # the row for no token
            value += more


def main(model: str, out: str) -> None:
    """Run AllenNLP and write the arrays, and a changed state dict with the vectors that it gives."""
    sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))
    import worker_allennlp

    worker_allennlp.install()
    from allennlp.data.token_indexers.elmo_indexer import ELMoCharacterMapper
    from allennlp.modules.elmo import Elmo, _ElmoCharacterEncoder

    mapper = ELMoCharacterMapper()

    def to_ids(sentences: list[list[str]]) -> torch.Tensor:
        ids = torch.zeros(len(sentences), max(map(len, sentences)), 50, dtype=torch.long)
        for row, sentence in enumerate(sentences):
            for place, word in enumerate(sentence):
                ids[row, place] = torch.tensor(mapper.convert_word_to_char_ids(word))
        return ids

    files = f"{model}/options.json", f"{model}/weights.hdf5"
    found = outputs(Elmo, _ElmoCharacterEncoder, to_ids, *files)
    found["ids"] = to_ids(BATCHES[0]).numpy()
    if "--state" in sys.argv:
        trained = Elmo(*files, 1, dropout=0.0)
        changed_state(trained)
        found |= {f"state.{name}": value.numpy() for name, value in trained.state_dict().items()}
        found["trained"] = trained(to_ids(BATCHES[0]))["elmo_representations"][0].detach().numpy()
    np.savez_compressed(out, **found)


if __name__ == "__main__":
    main(*sys.argv[1:3])
