"""Compares the embeddings of a sentence-transformers folder in torch and in newsembed: the largest difference.

The library runs in an environment of its own, so that there are two steps::

    TORCH/bin/python benchmarks/huggingface_parity.py --expect expected.npz FOLDER   # torch, sentence-transformers
    python benchmarks/huggingface_parity.py --compare expected.npz FOLDER            # newsembed

The texts are paragraphs of README.md and docs/ of all lengths. The first figure compares the models on the ids that the
tokenizer of the library gave, the second one from texts to embeddings: it includes that of `newsembed import-hf`.
"""

import argparse
import os
import tempfile
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
ROWS = 8
TEXTS = 24


def paragraphs() -> list[str]:
    """Paragraphs of the documentation, of all lengths, the shortest first."""
    files = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    parts = (part.strip() for file in files for part in file.read_text(encoding="utf-8").split("\n\n"))
    found = sorted({" ".join(part.split()) for part in parts if part}, key=lambda text: (len(text), text))
    return [found[number] for number in np.linspace(0, len(found) - 1, TEXTS).round().astype(int)]


def expect(folder: str, output: str) -> None:
    """Embeds the texts with the library."""
    import sentence_transformers
    import torch
    import transformers

    texts = paragraphs()
    model = sentence_transformers.SentenceTransformer(folder, device="cpu").float().eval()
    with torch.no_grad():
        embeddings = model.encode(texts, batch_size=ROWS, normalize_embeddings=True, convert_to_numpy=True)
        rows = [model.tokenize([text])["input_ids"][0].numpy() for text in texts]
    width = max(map(len, rows))
    ids = np.array([np.pad(row, (0, width - len(row)), constant_values=-1) for row in rows], np.int32)
    np.savez(output, texts=np.array(texts), ids=ids, embeddings=embeddings)
    versions = (torch.__version__, transformers.__version__, sentence_transformers.__version__)
    print("torch {}, transformers {}, sentence-transformers {}".format(*versions))


def compare(folder: str, expected_path: str) -> None:
    """Embeds the same ids and the same texts with newsembed, and prints the largest differences."""
    import jax
    from newsembed.launch import cli
    from newsembed.serving.encoder import load_encoder
    from newsembed.training.huggingface import read_huggingface

    expected = np.load(expected_path)
    model = read_huggingface(folder)
    to_ours = np.append(np.argsort(model.order), 0)  # -1 is padding
    tokens = to_ours[expected["ids"]].astype(np.int32)
    module, params = model.config.module(), model.with_heads()
    embed = jax.jit(lambda params, rows: module.apply({"params": params}, rows, method="embed"))
    found = np.concatenate([embed(params, tokens[start : start + ROWS]) for start in range(0, len(tokens), ROWS)])
    print(f"jax {jax.__version__}: {len(tokens)} texts, up to {tokens.shape[1]} tokens")
    print(f"same ids: largest difference {np.abs(found - expected['embeddings']).max():.1e}")
    with tempfile.TemporaryDirectory() as temporary:
        output = os.path.join(temporary, "model")
        if cli.main(["import-hf", "--from", folder, "--output", output]):
            raise SystemExit("newsembed import-hf failed")
        encoder = load_encoder(output, document_prompt="")
        texts = expected["texts"].tolist()
        found = encoder.encode([""] * len(texts), texts)
    difference = np.abs(found - expected["embeddings"]).max(axis=1)
    print(f"same texts: largest difference {difference.max():.1e}; below 1e-5: {np.mean(difference < 1e-5):.1%}")


def main() -> None:
    """Runs one of the two steps."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", metavar="FOLDER", help="what sentence-transformers saved")
    step = parser.add_mutually_exclusive_group(required=True)
    step.add_argument("--expect", metavar="FILE", help="write what the library computes")
    step.add_argument("--compare", metavar="FILE", help="compare with what the library computed")
    args = parser.parse_args()
    if args.expect:
        expect(args.folder, args.expect)
    else:
        compare(args.folder, args.compare)


if __name__ == "__main__":
    main()
