"""A tiny inventory and a tiny labelled text, as files."""

from __future__ import annotations

import json
from pathlib import Path

INVENTORY = """\
bank%1:14:00:: 08420278 2 20
bank%1:17:01:: 09213565 1 25
banking_company%1:14:00:: 08420278 1 0
be%2:42:03:: 02604760 1 90
bench%1:06:00:: 02828884 1 3
box%1:06:00:: 02883344 1 30
fast%3:00:01:: 00976508 1 7
go%2:38:00:: 01835496 1 90
leave%2:38:01:: 02009433 1 40
river%1:17:00:: 09411430 1 60
sit%2:35:00:: 01543123 1 30
take_off%2:30:00:: 02641957 1 2
"""
SENTENCES = [
    (["He", "sat", "on", "the", "bank"], [None, "sit%2:35:00::", None, None, "bank%1:17:01::"]),
    (["The", "river", "has", "a", "bank"], [None, "river%1:17:00::", None, None, "bank%1:17:01::"]),
    (["The", "bank", "was", "closed"], [None, "bank%1:14:00::", "be%2:42:03::", None]),
    (["They", "took_off", "fast"], [None, "take_off%2:30:00::", "fast%3:00:01::"]),
    (["She", "went"], [None, "go%2:38:00::"]),
]
XML = """\
<?xml version="1.0" encoding="UTF-8" ?>
<corpus lang="en"><text id="d0"><sentence id="d0.s0">
<wf lemma="the" pos="DET">The</wf>
<instance id="d0.t0" lemma="bank" pos="NOUN">bank</instance>
<instance id="d0.t1" lemma="take_off" pos="VERB">took off</instance>
<instance id="d0.t2" lemma="bench" pos="NOUN">benches</instance>
<instance id="d0.t3" lemma="zzz" pos="ADV">zzz</instance>
</sentence></text></corpus>
"""
KEYS = """\
d0.t0 bank%1:14:00:: bank%1:17:01::
d0.t1 take_off%2:30:00::
d0.t2 river%1:17:00::
d0.t3 river%1:17:00::
"""


def write_sense_files(folder: Path) -> None:
    """`semcor.jsonl`, `index.sense`, `test.xml` and its gold keys `test.key`."""
    rows = (json.dumps({"words": words, "senses": senses}) for words, senses in SENTENCES)
    (folder / "semcor.jsonl").write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")
    (folder / "index.sense").write_text(INVENTORY, encoding="utf-8")
    (folder / "test.xml").write_text(XML, encoding="utf-8")
    (folder / "test.key").write_text(KEYS, encoding="utf-8")
