"""sentence-transformers behind a plain FastAPI route: `python worker_transformer_server.py MODEL PORT`."""

from __future__ import annotations

import base64
import sys

import torch
import uvicorn
from fastapi import FastAPI
from pydantic import BaseModel
from sentence_transformers import SentenceTransformer

torch.set_num_threads(1)
model = SentenceTransformer(sys.argv[1], device="cpu")
app = FastAPI()


class Body(BaseModel):
    text: str


@app.post("/embed")
def embed(body: Body) -> dict[str, str]:
    return {"vector": base64.b64encode(model.encode(body.text).tobytes()).decode()}


uvicorn.run(app, port=int(sys.argv[2]), log_level="warning")
