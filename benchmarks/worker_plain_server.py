"""A plain FastAPI route, one model call per request: `python worker_plain_server.py bilmo|transformer MODEL PORT`."""

from __future__ import annotations

import base64
import sys
from threading import Lock

import torch
import uvicorn
from fastapi import FastAPI
from pydantic import BaseModel

torch.set_num_threads(1)
kind, path, port = sys.argv[1:]
if kind == "bilmo":
    import bilmo

    elmo = bilmo.load(path)
    vector_of = lambda text: elmo.embed([text], pool="mean")[0]  # noqa: E731
else:
    from sentence_transformers import SentenceTransformer

    vector_of = SentenceTransformer(path, device="cpu").encode
app, one_at_a_time = FastAPI(), Lock()


class Body(BaseModel):
    text: str


@app.post("/embed")
def embed(body: Body) -> dict[str, str]:
    with one_at_a_time:
        vector = vector_of(body.text)
    return {"vector": base64.b64encode(vector.tobytes()).decode()}


uvicorn.run(app, port=int(port), log_level="warning")
