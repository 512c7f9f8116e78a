"""The peer of `serve_load.py`: a plain FastAPI server around sentence-transformers, without newsembed."""

import importlib.metadata
import json
import os
import socket
import sys

import fastapi
import numpy as np
import pydantic
import torch
import uvicorn
from sentence_transformers import SentenceTransformer

model_folder, data_folder = sys.argv[1:]
torch.set_num_threads(len(os.sched_getaffinity(0)))
model = SentenceTransformer(model_folder, device="cpu")
vectors = np.load(f"{data_folder}/vectors.npy")
with open(f"{data_folder}/titles.json", encoding="utf-8") as file:
    titles = json.load(file)
app = fastapi.FastAPI()


class Document(pydantic.BaseModel):
    title: str = ""
    body: str = ""


class Documents(pydantic.BaseModel):
    documents: list[Document]


@app.post("/embed")
def embed(request: Documents) -> dict[str, list[list[float]]]:
    texts = [f"{document.title} {document.body}".strip() for document in request.documents]
    return {"embeddings": model.encode(texts, normalize_embeddings=True, show_progress_bar=False).tolist()}


@app.get("/search")
def search(q: str, count: int = 10) -> dict[str, list[dict[str, float | str]]]:
    scores = vectors @ model.encode([q], normalize_embeddings=True, show_progress_bar=False)[0]
    best = np.argsort(-scores, kind="stable")[:count]
    return {"hits": [{"title": titles[row], "url": str(row), "score": float(scores[row])} for row in best]}


if __name__ == "__main__":
    listener = socket.create_server(("127.0.0.1", 0), backlog=2048)
    model.encode(["warm up"])
    packages = ("torch", "sentence-transformers", "fastapi", "uvicorn")
    print("; ".join(f"{name} {importlib.metadata.version(name)}" for name in packages), file=sys.stderr)
    print(f"listening on http://127.0.0.1:{listener.getsockname()[1]}", flush=True)
    config = uvicorn.Config(app, log_level="warning", access_log=False, timeout_graceful_shutdown=3)
    uvicorn.Server(config).run([listener])
