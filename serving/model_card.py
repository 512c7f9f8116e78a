"""The model card of a Hugging Face folder: what the folder says about the model, and how it is used."""

import os
from typing import Final

from .. import __version__
from ..models.encoders import named_kind
from .checkpoint import Model

CARD: Final = "README.md"
_TEXT: Final = """---
library_name: sentence-transformers
pipeline_tag: sentence-similarity
tags: [sentence-transformers, sentence-similarity, feature-extraction, news, newsembed]
---

# {name}

An encoder of news articles, exported by newsembed {version}. It maps a text to {dimensions} numbers of unit length; the
cosine of two articles says how likely they report the same event.

| | |
|---|---|
| architecture | {kind}, {layers} layers, {width} wide |
| vocabulary | {pieces:,} pieces |
| tokens read of a text | {length} |
| steps of training | {step} |
| digest in newsembed | `{digest}` |

```python
from sentence_transformers import SentenceTransformer

model = SentenceTransformer("{name}"{trust})
vectors = model.encode(["Storm hits the coast. Wind and rain.", "The house votes on the budget."])
```

An article is given as its title, a space and its body.{prompts}

## Training data, licence, limits

The folder does not say on which articles the model was trained, nor under which licence it may be used: complete this
card before you publish it. The model knows the languages and publishers that it was trained on, and reads the start of
a text only.
"""


def write_card(folder: str, model: Model, name: str) -> None:
    """Writes ``README.md`` into an exported folder.

    Args:
      folder: with all other files.
      model: that was exported.
      name: of the folder, in the example.
    """
    config = model.config.to_dict()
    needs_code = os.path.exists(os.path.join(folder, "text_weights.py"))
    prompts = {"documents": model.prompts.document, "queries": model.prompts.query}
    said = [f"`{text}` before {kind}" for kind, text in prompts.items() if text]
    text = _TEXT.format(
        name=name,
        version=__version__,
        dimensions=config["embedding_size"],
        kind=named_kind(model.config) or "news",
        layers=config["num_layers"],
        width=config["hidden_size"],
        pieces=config["vocab_size"],
        length=model.text_length,
        step=model.step,
        digest=model.digest[:16],
        trust=", trust_remote_code=True" if needs_code else "",
        prompts=f" It wants {' and '.join(said)}." if said else "",
    )
    with open(os.path.join(folder, CARD), "w", encoding="utf-8") as file:
        file.write(text)
