"""Small tokenizers of each family, trained with the `tokenizers` library, with the order of tokens of public models."""

import json

from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

FAMILIES = ("uncased", "cased", "unigram", "byte_level")
BERT = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
ROBERTA = ("<pad>", "<unk>", "<s>", "</s>", "<mask>")


def special_names(family):
    """The names of padding, unknown, first, last and mask token."""
    return BERT if family in ("uncased", "cased") else ROBERTA


def train(family, texts, size=400):
    """A tokenizer as its model would bring it: BERT's, XLM-R's or RoBERTa's pipeline and order of special tokens."""
    make = {"unigram": _unigram, "byte_level": _byte_level}.get(family)
    tokenizer = make(texts, size) if make else _wordpiece(texts, size, lowercase=family == "uncased")
    _, _, opening, closing, _ = special_names(family)
    ids = [(name, tokenizer.token_to_id(name)) for name in (opening, closing)]
    between = f"{closing} {closing}" if opening == "<s>" else closing
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{opening} $A {closing}", pair=f"{opening} $A {between} $B:1 {closing}:1", special_tokens=ids
    )
    tokenizer.enable_truncation(128)  # as sentence-transformers leaves them
    tokenizer.enable_padding(length=128, pad_id=tokenizer.token_to_id(special_names(family)[0]))
    return tokenizer


def _wordpiece(texts, size, *, lowercase):
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]", max_input_chars_per_word=100))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=lowercase)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    # BERT's order: [PAD], unused pieces, then the others.
    specials = ["[PAD]", "[unused0]", "[unused1]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    trainer = trainers.WordPieceTrainer(vocab_size=size, special_tokens=specials, show_progress=False)
    tokenizer.train_from_iterator(texts, trainer)
    values = json.loads(tokenizer.to_str())
    values["added_tokens"] = [token for token in values["added_tokens"] if "unused" not in token["content"]]
    return Tokenizer.from_str(json.dumps(values))


def _unigram(texts, size):
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Replace("  ", " ")])
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()])
    tokenizer.decoder = decoders.Metaspace()
    specials = ["<s>", "<pad>", "</s>", "<unk>"]
    trainer = trainers.UnigramTrainer(
        vocab_size=size, special_tokens=specials, unk_token="<unk>", show_progress=False, n_sub_iterations=1
    )
    tokenizer.train_from_iterator(texts, trainer)
    tokenizer.add_special_tokens([AddedToken("<mask>", lstrip=True, special=True)])
    return tokenizer


def _byte_level(texts, size):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=size,
        special_tokens=["<s>", "<pad>", "</s>", "<unk>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    tokenizer.add_tokens(["   "])  # as ModernBERT has for spaces
    tokenizer.add_special_tokens([AddedToken("<mask>", lstrip=True, special=True)])
    return tokenizer
