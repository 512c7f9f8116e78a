"""Makes tests/models/transformers/: tiny random models of each family, and what torch computes of them.

The tests need neither torch nor transformers. To make the files again, install both elsewhere and run, from the root of
the repository::

    pip install torch==2.9.1 transformers==4.57.6 sentence-transformers==5.7.0
    python tests/models/make_transformers_fixtures.py

Each folder has what `save_pretrained` of transformers or `save` of sentence-transformers wrote, and
expected.safetensors with ``input_ids`` [B, L], ``attention_mask`` [B, L] and either ``hidden`` [N, H] of all tokens
that are not padding and ``logits`` [B, 3, V] of the masked-LM head at the first places, or ``embeddings`` [B, D] of
sentence-transformers.
"""

import shutil
from pathlib import Path

import torch
import transformers
from safetensors.torch import save_file
from sentence_transformers import SentenceTransformer
from sentence_transformers.models import Dense, Normalize, Pooling, Transformer
from tokenizers import Tokenizer
from tokenizers.models import WordPiece
from tokenizers.pre_tokenizers import BertPreTokenizer
from tokenizers.processors import TemplateProcessing

ROOT = Path(__file__).parent / "transformers"
VOCABULARY, HIDDEN, LAYERS, HEADS, MLP = 40, 16, 2, 2, 24
POSITIONS = 150  # more than the 128 at which relative positions end
SIZES = {"vocab_size": VOCABULARY, "hidden_size": HIDDEN, "num_hidden_layers": LAYERS, "num_attention_heads": HEADS}
SIZES |= {"intermediate_size": MLP, "initializer_range": 0.3}
PLACES, MORE_PLACES = {"max_position_embeddings": POSITIONS}, {"max_position_embeddings": POSITIONS + 2}
DISTIL_SIZES = {"vocab_size": VOCABULARY, "dim": HIDDEN, "n_layers": LAYERS, "n_heads": HEADS, "hidden_dim": MLP}
MODERN_IDS = {f"{name}_token_id": 36 for name in ("cls", "bos")} | {f"{name}_token_id": 37 for name in ("sep", "eos")}
BERT_NAMES = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
FAIRSEQ_NAMES = ("<pad>", "<unk>", "<s>", "</s>", "<mask>")
# (configuration, names of padding, unknown, opening, closing and mask token, and their ids)
FAIRSEQ_IDS = (1, 3, 0, 2, 39)
MODELS = {
    "bert": (transformers.BertConfig(**SIZES, **PLACES), BERT_NAMES, (0, 10, 11, 12, 13)),
    "roberta": (transformers.RobertaConfig(**SIZES, **MORE_PLACES, type_vocab_size=1), FAIRSEQ_NAMES, FAIRSEQ_IDS),
    "xlm-roberta": (
        transformers.XLMRobertaConfig(**SIZES, **MORE_PLACES, type_vocab_size=1), FAIRSEQ_NAMES, FAIRSEQ_IDS
    ),
    "megatron-bert": (
        transformers.MegatronBertConfig(**SIZES, **PLACES, hidden_act="gelu_new"), BERT_NAMES, (0, 1, 2, 3, 4)
    ),
    "mpnet": (
        transformers.MPNetConfig(**SIZES, **MORE_PLACES), ("<pad>", "[UNK]", "<s>", "</s>", "<mask>"), (1, 34, 0, 2, 39)
    ),
    "distilbert": (
        transformers.DistilBertConfig(**DISTIL_SIZES, **PLACES, initializer_range=0.3), BERT_NAMES, (0, 30, 31, 32, 33)
    ),
    "modernbert": (
        transformers.ModernBertConfig(
            **SIZES | {"num_hidden_layers": 4}, **PLACES, **MODERN_IDS, local_attention=16, pad_token_id=35
        ),
        BERT_NAMES,
        (35, 34, 36, 37, 38),
    ),
}  # fmt: skip
# (family, pooling mode, width of a Dense module with Tanh, prompts, default prompt, max_seq_length)
SENTENCE_MODELS = {
    "sentence-labse": ("bert", "cls", 8, {}, None, 100),
    "sentence-e5": ("xlm-roberta", "mean", None, {"query": "query: ", "passage": "passage: "}, "query", None),
    "sentence-mpnet": ("mpnet", "mean", None, {}, None, 48),
    "sentence-max": ("distilbert", "max", None, {}, None, 64),
    "sentence-last": ("bert", "lasttoken", None, {}, None, 64),
}


def random_model(config):
    """A masked-LM model whose biases and norms are random, too."""
    model = transformers.AutoModelForMaskedLM.from_config(config).float().eval()
    with torch.no_grad():
        for name, array in model.named_parameters():
            if array.ndim == 1:
                array.add_(torch.randn_like(array) * 0.2)
            elif "position_embeddings" in name or "relative_attention_bias" in name:
                array.copy_(torch.randn_like(array))
    return model


def tokenizer(names, ids):
    """A WordPiece tokenizer of letters, with the special tokens at their ids."""
    specials = dict(zip(ids, names, strict=True))
    others = iter([*"ABCDEabcdefghijklmnopqrst", *(f"##{letter}" for letter in "abcdefghij")])
    pieces = [specials[token] if token in specials else next(others) for token in range(VOCABULARY)]
    made = Tokenizer(WordPiece({piece: token for token, piece in enumerate(pieces)}, unk_token=names[1]))
    made.pre_tokenizer = BertPreTokenizer()
    made.post_processor = TemplateProcessing(
        single=f"{names[2]} $A {names[3]}", special_tokens=[(names[2], ids[2]), (names[3], ids[3])]
    )
    roles = ("pad_token", "unk_token", "cls_token", "sep_token", "mask_token")
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=made, model_max_length=POSITIONS, **dict(zip(roles, names, strict=True))
    )


def batch(pad_id, seed):
    """Rows of 150, 40 and 1 tokens; the padding token only as padding, all other tokens anywhere."""
    rng = torch.Generator().manual_seed(seed)
    others = torch.tensor([token for token in range(VOCABULARY) if token != pad_id])
    rows, mask = torch.full((3, 150), pad_id), torch.zeros(3, 150, dtype=torch.int64)
    for row, length in enumerate((150, 40, 1)):
        rows[row, :length] = others[torch.randint(len(others), (length,), generator=rng)]
        mask[row, :length] = 1
    return {"input_ids": rows, "attention_mask": mask}


def write_model(name, config, names, ids):
    folder = ROOT / name
    config.pad_token_id = ids[0]
    model = random_model(config)
    model.save_pretrained(folder)
    tokenizer(names, ids).save_pretrained(folder)
    inputs = batch(ids[0], seed=1)
    with torch.no_grad():
        hidden = model.base_model(**inputs).last_hidden_state
        logits = model(**inputs).logits
    write_expected(folder, inputs, hidden=hidden[inputs["attention_mask"] > 0], logits=logits[:, :3])


def write_sentence_model(name, family, pooling, dense, prompts, default_prompt, length):
    config, names, ids = MODELS[family]
    folder, bare = ROOT / name, ROOT / f"{name}.bare"
    config.pad_token_id = ids[0]
    random_model(config).base_model.save_pretrained(bare)
    tokenizer(names, ids).save_pretrained(bare)
    modules = [Transformer(str(bare), max_seq_length=length), Pooling(HIDDEN, pooling_mode=pooling)]
    if dense:
        modules.append(Dense(HIDDEN, dense, activation_function=torch.nn.Tanh()))
    model = SentenceTransformer(modules=[*modules, Normalize()], prompts=prompts, default_prompt_name=default_prompt)
    model = model.float().eval()
    model.save(str(folder), create_model_card=False)
    shutil.rmtree(bare)
    inputs = batch(ids[0], seed=2)
    with torch.no_grad():
        found = model({name: array.clone() for name, array in inputs.items()})
    write_expected(folder, inputs, embeddings=found["sentence_embedding"])


def write_expected(folder, inputs, **arrays):
    whole = {name: array.to(torch.int32) for name, array in inputs.items()}
    whole |= {name: array.contiguous() for name, array in arrays.items()}
    save_file(whole, folder / "expected.safetensors")
    for file in folder.rglob("*.safetensors"):
        file.chmod(0o644)


def main():
    shutil.rmtree(ROOT, ignore_errors=True)
    torch.manual_seed(0)
    for name, (config, names, ids) in MODELS.items():
        write_model(name, config, names, ids)
    for name, options in SENTENCE_MODELS.items():
        write_sentence_model(name, *options)


if __name__ == "__main__":
    main()
