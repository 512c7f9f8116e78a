"""The peer's side of `train_speed.py`: Hugging Face's BERT on torch.

Imports nothing of newsembed, so torch may be in another environment.
"""

import argparse
import contextlib
import itertools
import json
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 - torch's own convention
import transformers
from train_speed import BATCHES, LEARNING_RATE, MASKING_RATE, SPECIAL_TOKENS, TEMPERATURE, Case, make_batch, serve

MASK_ID = 4
MASK_SHARE, RANDOM_SHARE = 0.8, 0.1

Loss = Callable[[dict[str, torch.Tensor]], torch.Tensor]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--case", type=lambda text: Case(**json.loads(text)), required=True)
    parser.add_argument("--compile", action="store_true")
    args = parser.parse_args()
    case: Case = args.case
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high" if case.dtype != "float32" else "highest")
    config = transformers.BertConfig(
        vocab_size=case.vocabulary,
        hidden_size=case.hidden,
        num_hidden_layers=case.layers,
        num_attention_heads=case.heads,
        intermediate_size=case.mlp,
        max_position_embeddings=512,
        type_vocab_size=1,
        hidden_dropout_prob=case.dropout,
        attention_probs_dropout_prob=0.0,
        attn_implementation="sdpa",
    )
    model: Any = MaskedLanguageModel(config, case) if case.task == "mlm" else Triplets(config, case)
    model.to(device).train()
    if args.compile:
        name = "loss" if case.task == "mlm" else "embed"
        setattr(model, name, torch.compile(getattr(model, name)))
    optimizer = torch.optim.Adam(model.parameters(), lr=LEARNING_RATE, fused=True)
    batches = [
        {name: torch.from_numpy(values).long().to(device) for name, values in make_batch(case, seed).items()}
        for seed in range(BATCHES)
    ]
    about = {
        "versions": f"torch {torch.__version__}, transformers {transformers.__version__}"
        + (", compiled" if args.compile else ""),
        "device": torch.cuda.get_device_name() if device.type == "cuda" else f"cpu, {torch.get_num_threads()} threads",
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
    }
    turns = itertools.cycle(batches)

    def run(steps: int) -> float:
        loss = torch.zeros(())
        for _ in range(steps):
            optimizer.zero_grad(set_to_none=True)
            loss = model.backward(next(turns), autocast(case, device))
            optimizer.step()
        if loss.is_cuda:
            torch.cuda.synchronize()
        return float(loss)

    serve(about, run)


def autocast(case: Case, device: torch.device) -> Callable[[], contextlib.AbstractContextManager[Any]]:
    """Activations in the case's type over float32 parameters, as ours."""
    if case.dtype == "float32":
        return contextlib.nullcontext
    return lambda: torch.autocast(device.type, dtype=getattr(torch, case.dtype))


class MaskedLanguageModel(torch.nn.Module):
    """BertForMaskedLM with masks drawn on the device: the shares of BERT, single tokens instead of whole words."""

    def __init__(self, config: transformers.BertConfig, case: Case) -> None:
        super().__init__()
        self.model = transformers.BertForMaskedLM(config)
        self.case = case
        self.count = max(1, round(MASKING_RATE * case.length))

    def backward(self, batch: dict[str, torch.Tensor], cast: Callable[[], Any]) -> torch.Tensor:
        with cast():
            loss = self.loss(batch["tokens"])
        loss.backward()
        return loss.detach()

    def loss(self, tokens: torch.Tensor) -> torch.Tensor:
        chosen = torch.rand(tokens.shape, device=tokens.device).topk(self.count, dim=1).indices
        targets = tokens.gather(1, chosen)
        kind = torch.rand(targets.shape, device=tokens.device)
        pieces = torch.randint_like(targets, SPECIAL_TOKENS, self.case.vocabulary)
        replaced = torch.where(
            kind < MASK_SHARE, MASK_ID, torch.where(kind < MASK_SHARE + RANDOM_SHARE, pieces, targets)
        )
        corrupted = tokens.scatter(1, chosen, replaced)
        hidden = self.model.bert(input_ids=corrupted).last_hidden_state
        gathered = hidden.gather(1, chosen[..., None].expand(-1, -1, hidden.shape[-1]))
        logits = self.model.cls(gathered)
        return F.cross_entropy(logits.flatten(0, 1).float(), targets.flatten())


class Triplets(torch.nn.Module):
    """BertModel, a dense head on [CLS] and InfoNCE over the batch.

    The whole batch in one pass, or with gradient caching (Gao et al. 2021).
    """

    def __init__(self, config: transformers.BertConfig, case: Case) -> None:
        super().__init__()
        self.model = transformers.BertModel(config, add_pooling_layer=False)
        self.head = torch.nn.Linear(case.hidden, case.hidden)
        self.chunk = case.chunk
        self.seed = 0

    def embed(self, tokens: torch.Tensor) -> torch.Tensor:
        hidden = self.model(input_ids=tokens).last_hidden_state[:, 0]
        return F.normalize(self.head(hidden).float(), dim=-1)

    def backward(self, batch: dict[str, torch.Tensor], cast: Callable[[], Any]) -> torch.Tensor:
        tokens = torch.cat([batch[f"{name}_tokens"] for name in ("anchor", "positive", "negative")])
        if not self.chunk:
            with cast():
                embeddings = self.embed(tokens)
            loss = info_nce(embeddings)
            loss.backward()
            return loss.detach()
        chunks = tokens.split(self.chunk)
        self.seed += len(chunks)
        found = []
        with torch.no_grad(), cast():
            for number, chunk in enumerate(chunks):
                torch.manual_seed(self.seed + number)  # the second pass must drop what the first dropped
                found.append(self.embed(chunk))
        cached = torch.cat(found).requires_grad_()
        loss = info_nce(cached)
        loss.backward()
        assert cached.grad is not None
        for number, (chunk, gradient) in enumerate(zip(chunks, cached.grad.split(self.chunk), strict=True)):
            torch.manual_seed(self.seed + number)
            with cast():
                embeddings = self.embed(chunk)
            embeddings.backward(gradient)
        return loss.detach()


def info_nce(embeddings: torch.Tensor) -> torch.Tensor:
    """Ours without the masks of repeated documents: ids are random here."""
    anchor, positive, negative = embeddings.chunk(3)
    scores = anchor @ torch.cat([positive, negative]).T / TEMPERATURE
    return F.cross_entropy(scores, torch.arange(anchor.shape[0], device=anchor.device))


if __name__ == "__main__":
    main()
