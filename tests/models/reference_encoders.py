"""BERT, RoBERTa, Megatron-BERT and ModernBERT in plain NumPy, from their papers and the names in Hugging Face files."""

import json
import math
from pathlib import Path

import numpy as np
import safetensors.numpy
from scipy.special import erf

SIZES = {"vocab_size": 30, "hidden_size": 16, "num_hidden_layers": 4, "num_attention_heads": 2, "intermediate_size": 24}
_BERT = {"type_vocab_size": 2, "layer_norm_eps": 1e-12, "max_position_embeddings": 20}
_XLM = {"type_vocab_size": 1, "layer_norm_eps": 1e-5, "max_position_embeddings": 22, "pad_token_id": 1}
_MODERN = {"hidden_activation": "gelu", "norm_eps": 1e-5, "max_position_embeddings": 64, "local_attention": 6}
_MODERN |= {"global_rope_theta": 160000.0, "local_rope_theta": 10000.0, "global_attn_every_n_layers": 3}
CONFIGS = {
    "bert": SIZES | {"model_type": "bert", "hidden_act": "gelu"} | _BERT,
    "xlm-roberta": SIZES | {"model_type": "xlm-roberta"} | _XLM,
    "megatron-bert": SIZES | {"model_type": "megatron-bert", "hidden_act": "gelu_new"} | _BERT,
    "modernbert": SIZES | {"model_type": "modernbert"} | _MODERN,
}
PAD = {"bert": 0, "xlm-roberta": 1, "megatron-bert": 0, "modernbert": 27}
# [PAD], [UNK], [CLS], [SEP], [MASK] in each of these made-up vocabularies.
SPECIALS = {
    "bert": (0, 10, 11, 12, 13),
    "xlm-roberta": (1, 3, 0, 2, 29),
    "megatron-bert": (0, 1, 2, 3, 4),
    "modernbert": (27, 24, 25, 26, 28),
}
PREFIXES = {"bert": "bert.", "xlm-roberta": "roberta.", "megatron-bert": "bert.", "modernbert": "model."}


class RandomArrays:
    """Arrays by name, drawn in the order in which they are asked for."""

    def __init__(self, hidden, seed):
        self.arrays, self.rng, self.hidden = {}, np.random.default_rng(seed), hidden

    def linear(self, name, inputs, outputs, bias=True):
        self.arrays[f"{name}.weight"] = self.rng.normal(0, 0.3, (outputs, inputs))
        if bias:
            self.arrays[f"{name}.bias"] = self.rng.normal(0, 0.3, outputs)

    def norm(self, name, bias=True):
        self.arrays[f"{name}.weight"] = self.rng.normal(1, 0.2, self.hidden)
        if bias:
            self.arrays[f"{name}.bias"] = self.rng.normal(0, 0.2, self.hidden)


def random_arrays(values, seed=0):
    """A masked-LM checkpoint, float32."""
    made = RandomArrays(values["hidden_size"], seed)
    (fill_modernbert if values["model_type"] == "modernbert" else fill_bert)(made, values)
    return {name: array.astype(np.float32) for name, array in made.arrays.items()}


def fill_modernbert(made, values):
    hidden, inner, prefix = values["hidden_size"], values["intermediate_size"], PREFIXES["modernbert"]
    made.arrays[f"{prefix}embeddings.tok_embeddings.weight"] = made.rng.normal(0, 1, (values["vocab_size"], hidden))
    made.norm(f"{prefix}embeddings.norm", bias=False)
    for layer in range(values["num_hidden_layers"]):
        name = f"{prefix}layers.{layer}"
        if layer:
            made.norm(f"{name}.attn_norm", bias=False)
        made.linear(f"{name}.attn.Wqkv", hidden, 3 * hidden, bias=False)
        made.linear(f"{name}.attn.Wo", hidden, hidden, bias=False)
        made.norm(f"{name}.mlp_norm", bias=False)
        made.linear(f"{name}.mlp.Wi", hidden, 2 * inner, bias=False)
        made.linear(f"{name}.mlp.Wo", inner, hidden, bias=False)
    made.norm(f"{prefix}final_norm", bias=False)
    made.linear("head.dense", hidden, hidden, bias=False)
    made.norm("head.norm", bias=False)
    made.arrays["decoder.bias"] = made.rng.normal(0, 1, values["vocab_size"])


def fill_bert(made, values):
    hidden, inner, kind = values["hidden_size"], values["intermediate_size"], values["model_type"]
    prefix = PREFIXES[kind]
    made.arrays[f"{prefix}embeddings.word_embeddings.weight"] = made.rng.normal(0, 1, (values["vocab_size"], hidden))
    for name, size in (("position", "max_position_embeddings"), ("token_type", "type_vocab_size")):
        table = made.rng.normal(0, 1, (values[size], hidden))
        made.arrays[f"{prefix}embeddings.{name}_embeddings.weight"] = table
    is_pre = kind == "megatron-bert"
    if not is_pre:
        made.norm(f"{prefix}embeddings.LayerNorm")
    for layer in range(values["num_hidden_layers"]):
        name = f"{prefix}encoder.layer.{layer}"
        for part in ("query", "key", "value"):
            made.linear(f"{name}.attention.self.{part}", hidden, hidden)
        made.linear(f"{name}.attention.output.dense", hidden, hidden)
        made.norm(f"{name}.attention.ln" if is_pre else f"{name}.attention.output.LayerNorm")
        made.linear(f"{name}.intermediate.dense", hidden, inner)
        made.linear(f"{name}.output.dense", inner, hidden)
        made.norm(f"{name}.ln" if is_pre else f"{name}.output.LayerNorm")
    if is_pre:
        made.norm(f"{prefix}encoder.ln")
    dense, last, bias = (
        ("lm_head.dense", "lm_head.layer_norm", "lm_head.bias")
        if kind == "xlm-roberta"
        else ("cls.predictions.transform.dense", "cls.predictions.transform.LayerNorm", "cls.predictions.bias")
    )
    made.linear(dense, hidden, hidden)
    made.norm(last)
    made.arrays[bias] = made.rng.normal(0, 1, values["vocab_size"])


def pieces_of(kind):
    """A vocabulary of 30 with the special tokens of `SPECIALS`; the others are a, b, c, …, ##a, ##b, … in our order."""
    fairseq = ("<pad>", "<unk>", "<s>", "</s>", "<mask>")
    names = fairseq if kind == "xlm-roberta" else ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
    specials = dict(zip(SPECIALS[kind], names, strict=True))
    others = iter([*"abcdefghijklmnop", *(f"##{letter}" for letter in "abcdefghi")])
    return [specials[token] if token in specials else next(others) for token in range(30)]


def write_folder(folder, kind, shards=1, arrays=None, **changes):
    """A folder like that of transformers save_pretrained: WordPiece for BERT and Megatron-BERT, else tokenizer.json."""
    folder = Path(folder)
    folder.mkdir(parents=True)
    values = CONFIGS[kind] | changes
    (folder / "config.json").write_text(json.dumps(values))
    arrays = random_arrays(CONFIGS[kind]) if arrays is None else arrays
    if shards == 1:
        safetensors.numpy.save_file(arrays, folder / "model.safetensors")
    else:
        names = [f"model-{number:05d}-of-{shards:05d}.safetensors" for number in range(1, shards + 1)]
        homes = {name: names[number % shards] for number, name in enumerate(arrays)}
        for file in names:
            safetensors.numpy.save_file({name: arrays[name] for name in arrays if homes[name] == file}, folder / file)
        (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": homes}))
    pieces = pieces_of(kind)
    if "bert" in kind and kind not in ("modernbert", "xlm-roberta"):
        (folder / "vocab.txt").write_text("".join(f"{piece}\n" for piece in pieces))
        (folder / "tokenizer_config.json").write_text(json.dumps({"do_lower_case": True}))
    else:
        (folder / "tokenizer.json").write_text(tokenizer_of(kind).to_str())
    return str(folder)


def tokenizer_of(kind):
    """A tokenizer of the `tokenizers` library with `pieces_of`: byte-level BPE, or unigram for XLM-R."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, processors

    pieces = pieces_of(kind)
    specials = [pieces[token] for token in SPECIALS[kind]]
    if kind == "xlm-roberta":
        scores = [0.0 if piece in specials else -1.0 - len(piece) for piece in pieces]
        tokenizer = Tokenizer(models.Unigram(list(zip(pieces, scores, strict=True)), unk_id=SPECIALS[kind][1]))
        tokenizer.pre_tokenizer, tokenizer.decoder = pre_tokenizers.Metaspace(), decoders.Metaspace()
    else:
        tokenizer = Tokenizer(models.BPE({piece: token for token, piece in enumerate(pieces)}, [], unk_token="[UNK]"))
        tokenizer.pre_tokenizer, tokenizer.decoder = pre_tokenizers.ByteLevel(False), decoders.ByteLevel()
    opening, closing = specials[2:4]
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{opening} $A {closing}", special_tokens=[(opening, SPECIALS[kind][2]), (closing, SPECIALS[kind][3])]
    )
    tokenizer.add_special_tokens([AddedToken(name, special=True) for name in specials])
    return tokenizer


def forward(values, arrays, rows):
    """Hidden states [B, L, H] and masked-LM logits [B, L, V], float64, of token ids [B, L] padded at the end."""
    arrays = {name: array.astype(np.float64) for name, array in arrays.items()}
    return (_modernbert if values["model_type"] == "modernbert" else _bert)(values, arrays, np.asarray(rows))


def _bert(values, arrays, rows):  # noqa: C901 - three papers in one
    kind = values["model_type"]
    eps, prefix, is_pre = values["layer_norm_eps"], PREFIXES[kind], kind == "megatron-bert"
    act = _gelu_tanh if values.get("hidden_act") == "gelu_new" else _gelu
    real = rows != PAD[kind]
    positions = np.arange(rows.shape[1])[None].repeat(len(rows), 0)
    if kind == "xlm-roberta":  # fairseq's: the first token has position padding_idx + 1
        positions = np.cumsum(real, axis=1) * real + PAD[kind]

    def linear(name, states):
        return states @ arrays[f"{name}.weight"].T + arrays[f"{name}.bias"]

    def norm(name, states):
        return _norm(states, arrays[f"{name}.weight"], arrays[f"{name}.bias"], eps)

    table = arrays[f"{prefix}embeddings.word_embeddings.weight"]
    states = table[rows] + arrays[f"{prefix}embeddings.position_embeddings.weight"][positions]
    states = states + arrays[f"{prefix}embeddings.token_type_embeddings.weight"][0]
    if not is_pre:
        states = norm(f"{prefix}embeddings.LayerNorm", states)
    for layer in range(values["num_hidden_layers"]):
        name = f"{prefix}encoder.layer.{layer}"

        def attention(states, name=name):
            heads = [
                _heads(values, linear(f"{name}.attention.self.{part}", states)) for part in ("query", "key", "value")
            ]
            return linear(f"{name}.attention.output.dense", _attention(*heads, real[:, None, None, :]))

        def mlp(states, name=name):
            return linear(f"{name}.output.dense", act(linear(f"{name}.intermediate.dense", states)))

        if is_pre:
            states = states + attention(norm(f"{name}.attention.ln", states))
            states = states + mlp(norm(f"{name}.ln", states))
        else:
            states = norm(f"{name}.attention.output.LayerNorm", states + attention(states))
            states = norm(f"{name}.output.LayerNorm", states + mlp(states))
    if is_pre:
        states = norm(f"{prefix}encoder.ln", states)
    if kind == "xlm-roberta":
        last = norm("lm_head.layer_norm", act(linear("lm_head.dense", states)))
        return states, last @ table.T + arrays["lm_head.bias"]
    last = norm("cls.predictions.transform.LayerNorm", act(linear("cls.predictions.transform.dense", states)))
    return states, last @ table.T + arrays["cls.predictions.bias"]


def _modernbert(values, arrays, rows):
    eps, prefix = values["norm_eps"], "model."
    real = rows != PAD["modernbert"]
    places = np.arange(rows.shape[1])
    near = np.abs(places[:, None] - places[None]) <= values["local_attention"] // 2

    def norm(name, states):
        return _norm(states, arrays[f"{name}.weight"], 0.0, eps)

    table = arrays[f"{prefix}embeddings.tok_embeddings.weight"]
    states = norm(f"{prefix}embeddings.norm", table[rows])
    for layer in range(values["num_hidden_layers"]):
        name, is_global = f"{prefix}layers.{layer}", layer % values["global_attn_every_n_layers"] == 0
        normed = norm(f"{name}.attn_norm", states) if layer else states
        parts = np.split(normed @ arrays[f"{name}.attn.Wqkv.weight"].T, 3, axis=-1)
        query, key, value = (_heads(values, part) for part in parts)
        theta = values["global_rope_theta" if is_global else "local_rope_theta"]
        mask = real[:, None, None, :] & (True if is_global else near)
        mixed = _attention(_rotate(query, theta), _rotate(key, theta), value, mask)
        states = states + mixed @ arrays[f"{name}.attn.Wo.weight"].T
        inner, gate = np.split(norm(f"{name}.mlp_norm", states) @ arrays[f"{name}.mlp.Wi.weight"].T, 2, axis=-1)
        states = states + (_gelu(inner) * gate) @ arrays[f"{name}.mlp.Wo.weight"].T
    states = norm(f"{prefix}final_norm", states)
    last = norm("head.norm", _gelu(states @ arrays["head.dense.weight"].T))
    return states, last @ table.T + arrays["decoder.bias"]


def _heads(values, states):
    rows, length, _ = states.shape
    return states.reshape(rows, length, values["num_attention_heads"], -1).transpose(0, 2, 1, 3)


def _attention(query, key, value, mask):
    scores = np.where(mask, query @ key.swapaxes(-1, -2) / math.sqrt(query.shape[-1]), -1e30)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    out = (weights @ value).transpose(0, 2, 1, 3)
    return out.reshape(*out.shape[:2], -1)


def _rotate(states, theta):
    """Each pair of units (i, i + d/2) as a complex number, turned by position / theta^(2 i / d)."""
    half = states.shape[-1] // 2
    angles = np.arange(states.shape[2])[:, None] * theta ** (-np.arange(half) / half)
    turned = (states[..., :half] + 1j * states[..., half:]) * np.exp(1j * angles)
    return np.concatenate([turned.real, turned.imag], axis=-1)


def _norm(states, weight, bias, eps):
    centred = states - states.mean(-1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(-1, keepdims=True) + eps) * weight + bias


def _gelu(states):
    return states * 0.5 * (1 + erf(states / math.sqrt(2)))


def _gelu_tanh(states):
    return 0.5 * states * (1 + np.tanh(math.sqrt(2 / math.pi) * (states + 0.044715 * states**3)))
