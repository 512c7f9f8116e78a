"""The peer's side of `sibling_speed.py`: SimLTE, LASER and AST with torch's own layers.

Imports nothing of newsembed, so torch may be in another environment.
"""

import sys
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 - torch's own convention
from sibling_speed import BATCHES, SPECIAL_TOKENS, VOCABULARY, make_batch
from torch import nn
from train_speed import serve_torch

TEMPERATURE, MLM_WEIGHT, MASKING_RATE, MASK_ID = 0.05, 0.1, 0.15, 4
MARGIN, MINING_MARGIN = 0.075, 0.1


class SimLte(nn.Module):
    """Two layers x 128: InfoNCE of halves on [CLS] through a dense layer, and masked words of both texts."""

    def __init__(self, width: int = 128, length: int = 64) -> None:
        super().__init__()
        self.table, self.places = nn.Embedding(VOCABULARY, width), nn.Embedding(length, width)
        layer = nn.TransformerEncoderLayer(width, 2, 4 * width, 0.1, F.gelu, batch_first=True, norm_first=True)
        layer.self_attn.dropout = 0.0  # ours drops no attention
        self.encoder = nn.TransformerEncoder(layer, 2, nn.LayerNorm(width), enable_nested_tensor=False)
        self.head, self.transform, self.norm = nn.Linear(width, width), nn.Linear(width, width), nn.LayerNorm(width)
        self.bias = nn.Parameter(torch.zeros(VOCABULARY))

    def encode(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.encoder(self.table(tokens) + self.places.weight[: tokens.shape[1]])

    def forward(self, first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
        texts = torch.cat([first, second])
        left, right = F.normalize(self.head(self.encode(texts)[:, 0]), dim=-1).chunk(2)
        own = F.cross_entropy(left @ right.T / TEMPERATURE, torch.arange(len(left)))
        chosen = torch.rand(texts.shape).topk(round(MASKING_RATE * texts.shape[1]), dim=1).indices
        targets = texts.gather(1, chosen)
        kind = torch.rand(targets.shape)
        pieces = torch.randint_like(targets, SPECIAL_TOKENS, VOCABULARY)
        replaced = torch.where(kind < 0.8, MASK_ID, torch.where(kind < 0.9, pieces, targets))
        hidden = self.encode(texts.scatter(1, chosen, replaced))
        states = self.norm(F.gelu(self.transform(hidden.gather(1, chosen[..., None].expand(-1, -1, hidden.shape[-1])))))
        logits = states @ self.table.weight.T + self.bias
        return own + MLM_WEIGHT * F.cross_entropy(logits.flatten(0, 1), targets.flatten())


class Laser(nn.Module):
    """A BiLSTM of 64 units a direction, the largest values, and an LSTM decoder of 256 units with input feeding."""

    def __init__(self, token: int = 128, hidden: int = 64, size: int = 256, language: int = 32) -> None:
        super().__init__()
        self.source, self.target = nn.Embedding(VOCABULARY, token), nn.Embedding(VOCABULARY, token)
        self.language = nn.Embedding(2, language)
        self.encoder = nn.LSTM(token, hidden, bidirectional=True, batch_first=True)
        self.cell = nn.LSTMCell(token + 2 * hidden + language + size, size)
        self.first_output, self.first_cell = nn.Linear(2 * hidden, size), nn.Linear(2 * hidden, size)
        self.output, self.dropout = nn.Linear(size, VOCABULARY), nn.Dropout(0.1)

    def forward(self, first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
        states, _ = self.encoder(self.dropout(self.source(first)))
        sentence = states.masked_fill((first == 0)[..., None], -torch.inf).amax(dim=1)
        words = self.dropout(self.target(second[:, :-1]))
        fixed = torch.cat([sentence, self.language.weight[0].expand(len(first), -1)], dim=1)
        memory = (self.first_output(sentence), self.first_cell(sentence))
        before = torch.zeros_like(memory[0])
        kept = self.dropout(torch.ones_like(before))
        outputs = []
        for place in range(words.shape[1]):
            memory = self.cell(torch.cat([words[:, place], fixed, before], dim=1), memory)
            before = memory[0] * kept
            outputs.append(before)
        logits = self.output(torch.stack(outputs, dim=1))
        return F.cross_entropy(logits.flatten(0, 1), second[:, 1:].flatten(), ignore_index=0, label_smoothing=0.1) / 2


class Star(nn.Module):
    """AST, 96 wide with six heads and a window of two on each side; alpha-entmax of the package `entmax`."""

    def __init__(self, width: int = 96, heads: int = 6, window: int = 2) -> None:
        super().__init__()
        self.table, self.heads, self.window = nn.Embedding(VOCABULARY, width), heads, window
        self.ring = nn.ModuleDict({name: nn.Linear(width, width) for name in ("query", "key", "value", "output")})
        self.star = nn.ModuleDict({name: nn.Linear(width, width) for name in ("query", "key", "value", "output")})
        self.alphas = nn.Parameter(torch.randn(2, heads))

    def share(self, scores: torch.Tensor, number: int) -> torch.Tensor:
        """Shares of scores [..., heads, keys]."""
        from entmax import entmax_bisect

        alpha = (1 + torch.sigmoid(self.alphas[number])).clamp(min=1.01)
        return entmax_bisect(scores, alpha[:, None].expand(*scores.shape[:-1], 1), dim=-1, n_iter=25)

    def embed(self, tokens: torch.Tensor) -> torch.Tensor:
        embedded = self.table(tokens)
        length, width = embedded.shape[1:]
        star = embedded.mean(dim=1)

        def headed(values: torch.Tensor) -> torch.Tensor:
            return values.view(*values.shape[:-1], self.heads, width // self.heads)

        def around(layer: nn.Module) -> torch.Tensor:
            own = headed(layer(embedded))
            padded = F.pad(own, (0, 0, 0, 0, self.window, self.window))
            near = [padded[:, place : place + length] for place in range(2 * self.window + 1)]
            of_star = headed(layer(star))[:, None].expand(-1, length, -1, -1)
            # The first iteration's hidden states are the embeddings, which the ring reads once more.
            return torch.stack([*near, own, of_star], dim=3)

        scale = (width // self.heads) ** -0.5
        query = headed(self.ring["query"](embedded))
        shares = self.share(torch.einsum("blhd,blhkd->blhk", query, around(self.ring["key"])) * scale, 0)
        mixed = torch.einsum("blhk,blhkd->blhd", shares, around(self.ring["value"]))
        hidden = self.ring["output"](mixed.flatten(2))
        keys = torch.cat([star[:, None], hidden], dim=1)
        scores = torch.einsum("bhd,blhd->bhl", headed(self.star["query"](star)), headed(self.star["key"](keys))) * scale
        mixed = torch.einsum("bhl,blhd->bhd", self.share(scores, 1), headed(self.star["value"](keys)))
        star = self.star["output"](mixed.flatten(1))
        return F.normalize(0.5 * (hidden.amax(dim=1) + star), dim=-1)

    def forward(self, first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
        scores = self.embed(first) @ self.embed(second).T
        same = torch.eye(len(scores), dtype=torch.bool)
        fixed = scores.detach()
        least = fixed.masked_fill(~same, torch.inf).amin(dim=1, keepdim=True)
        most = fixed.masked_fill(same, -torch.inf).amax(dim=1, keepdim=True)
        positive = scores.masked_fill(~(same & (fixed < most + MINING_MARGIN)), torch.inf)
        negative = scores.masked_fill(~(~same & (fixed > least - MINING_MARGIN)), -torch.inf)
        losses = (2 * (negative[:, None, :] - positive[:, :, None]) + MARGIN).clamp(min=0)
        return losses.sum() / (losses > 0).sum().clamp(min=1)


def main() -> None:
    """Serves the steps of one system."""
    system = sys.argv[1]
    torch.manual_seed(0)
    model: Any = {"simlte": SimLte, "laser": Laser, "ast": Star}[system]().train()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4, fused=True)
    batches = [[torch.from_numpy(texts).long() for texts in make_batch(system, seed)] for seed in range(BATCHES)]
    count = sum(parameter.numel() for parameter in model.parameters())

    def backward(texts: list[torch.Tensor]) -> torch.Tensor:
        loss = model(*texts)
        loss.backward()
        return loss

    serve_torch({"versions": f"torch {torch.__version__}", "parameters": count}, backward, optimizer, batches)


if __name__ == "__main__":
    main()
