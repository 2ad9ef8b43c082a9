"""Classify sentences by topic: the mean of ELMo vectors over the words, and one dense layer, in torch.

    python examples/classify_texts.py [MODEL]

This is what tutorials for the TF-Hub module google/elmo do, without sessions and placeholders. The texts are in
topics.tsv beside this file, 40 for each topic; any file with one `label<TAB>text` per line works. Few words of a text
occur in other texts of its topic, so the classifier depends on what the model knows about words. Guessing gives 0.25.
"""

import random
import sys
from pathlib import Path

import torch
from torch import nn

from bilmo.plug.tfhub import Module

EPOCHS, BATCH, SHARE_FOR_TEST = 12, 8, 0.25


class Classifier(nn.Module):
    """Texts to one score per label."""

    def __init__(self, model: str, labels: int) -> None:
        super().__init__()
        self.elmo = Module(model, trainable=True)  # trains the weights of the layers, as google/elmo does
        width = self.elmo(["a"]).shape[1]
        self.layers = nn.Sequential(nn.Dropout(0.3), nn.Linear(width, labels))

    def forward(self, texts: list[str]) -> torch.Tensor:
        """Scores (texts, labels)."""
        scores: torch.Tensor = self.layers(self.elmo(texts))  # the output "default": the mean over the words
        return scores


def read(path: Path) -> list[tuple[str, str]]:
    """Labels and texts in a random order; marks at the end of a word become words of their own."""
    rows = [line.split("\t") for line in path.read_text(encoding="utf-8").splitlines()]
    random.Random(0).shuffle(rows)
    return [(label, text.replace(",", " ,").replace(".", " .").replace("!", " !")) for label, text in rows]


def main(model: str = "en") -> None:
    """Train, show the loss of each epoch, and measure on texts that were not trained on."""
    torch.manual_seed(0)
    rows = read(Path(__file__).with_name("topics.tsv"))
    names = sorted({label for label, _ in rows})
    cut = int(len(rows) * SHARE_FOR_TEST)
    test, train = rows[:cut], rows[cut:]
    classifier = Classifier(model, len(names))
    optimizer = torch.optim.Adam(classifier.parameters(), lr=5e-3)
    for epoch in range(1, EPOCHS + 1):
        losses = []
        random.Random(epoch).shuffle(train)
        for at in range(0, len(train), BATCH):
            labels, texts = zip(*train[at : at + BATCH], strict=True)
            scores = classifier(list(texts))
            loss = nn.functional.cross_entropy(scores, torch.tensor([names.index(label) for label in labels]))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        print(f"epoch {epoch:2d}  loss {sum(losses) / len(losses):.3f}")
    classifier.eval()
    with torch.no_grad():
        found = [names[k] for k in classifier([text for _, text in test]).argmax(dim=1).tolist()]
    right = sum(one == label for one, (label, _) in zip(found, test, strict=True))
    print(f"accuracy on {len(test)} other texts: {right / len(test):.2f}")


if __name__ == "__main__":
    main(*sys.argv[1:])
