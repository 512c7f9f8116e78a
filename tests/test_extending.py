"""A system from one module of a user: a toy architecture, objective and task are trained, evaluated and served.

Nothing in the product knows their names. docs/extending.md explains this file.
"""

import dataclasses
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from fastapi.testclient import TestClient
from newsembed.errors import InputError
from newsembed.evaluation.benchmarks.retrieval import SameEventRetrieval
from newsembed.formats.manifest import DataSet, write_manifest
from newsembed.formats.tfrecords import PIECES, FeatureSpec, TFRecordShardWriter
from newsembed.formats.vocabulary import PAD_ID, SPECIAL_TOKENS
from newsembed.launch import cli
from newsembed.learning.objectives import OBJECTIVES, Metrics, Model, Objective
from newsembed.learning.objectives import register as register_objective
from newsembed.models.encoders import KINDS, Capability, require
from newsembed.models.encoders import register as register_architecture
from newsembed.serving.encoder import JaxEncoder, fresh_model, load_encoder
from newsembed.serving.interface import DocumentEncoder
from newsembed.serving.saved_model import SavedModelEncoder
from newsembed.serving.server import Service, create_app
from newsembed.tasks import registry
from newsembed.tasks.registry import TEXT, Task
from newsembed.tasks.vocabulary import Vocabulary

ROOT = Path(__file__).parents[1]


class ToyBag(nn.Module):
    """The mean of the embeddings of the tokens."""

    config: "ToyBagConfig"

    def setup(self):
        self.table = self.param("table", nn.initializers.normal(1.0), (self.config.vocab_size, 8), jnp.float32)

    def __call__(self, tokens):
        return self.embed(tokens)

    def embed(self, tokens, *, deterministic=True):
        del deterministic  # no dropout
        is_token = (tokens != PAD_ID)[..., None]
        vectors = jnp.sum(jnp.where(is_token, self.table[tokens], 0.0), axis=1)
        return vectors / jnp.maximum(jnp.linalg.norm(vectors, axis=-1, keepdims=True), 1e-12)


@dataclasses.dataclass(frozen=True)
class ToyBagConfig:
    """The architecture; what it does not declare as a capability, nobody asks of it."""

    kind: ClassVar[str] = "toy_bag"
    execution_options: ClassVar[tuple[str, ...]] = ()
    free_options: ClassVar[tuple[str, ...]] = ()
    embedding_size: ClassVar[int] = 8
    num_topics: ClassVar[int] = 0
    dropout_rate: ClassVar[float] = 0.0
    dtype: ClassVar[str] = "float32"
    capabilities: ClassVar[frozenset[Capability]] = frozenset()

    vocab_size: int
    max_length: int = 16

    def module(self):
        return ToyBag(self)

    def portable(self):
        return self

    def summary(self):
        return "a bag of tokens"

    def to_dict(self):
        return dataclasses.asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]):
        return cls(**values)


TOY_PAIRS = Task(
    name="toy_pairs",
    features=(
        FeatureSpec("left_tokens", "int", (None,), "one text", PIECES),
        FeatureSpec("right_tokens", "int", (None,), "a text about the same thing", PIECES),
    ),
    rules={"left_tokens": TEXT, "right_tokens": TEXT},
    text="left_tokens",
)


@dataclasses.dataclass(frozen=True)
class ToyMatching(Objective):
    """Softmax over the batch: each left text finds its right text."""

    tasks: ClassVar[tuple[str, ...]] = (TOY_PAIRS.name,)

    scale: float = 5.0

    def loss(self, model: Model, params: Any, batch: Any, key: jax.Array) -> tuple[jax.Array, Metrics]:
        left, right = (model.apply(params, key, "embed", batch[name]) for name in ("left_tokens", "right_tokens"))
        scores = jax.nn.log_softmax(self.scale * left @ right.T)
        return -jnp.mean(jnp.diag(scores)), {"accuracy": jnp.mean(jnp.argmax(scores, 1) == jnp.arange(len(scores)))}


@pytest.fixture(scope="module", autouse=True)
def registered():
    """A module of a user would register by decorators; other tests of this process must not see what is registered."""
    registries = (KINDS, registry._TASKS, OBJECTIVES)
    before = [dict(known) for known in registries]
    register_architecture(ToyBagConfig)
    registry.register(TOY_PAIRS)
    register_objective(ToyMatching)
    yield
    for known, entries in zip(registries, before, strict=True):
        known.clear()
        known.update(entries)


EVENTS = {f"event{number}": [f"w{number}{letter}" for letter in "abcdefgh"] for number in range(12)}


def text_about(event, rng):
    """Four of the event's own words: two texts of an event share some and may share none."""
    return " ".join(rng.choice(EVENTS[event], 4, replace=False))


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """A vocabulary, training pairs in TFRecords, and held-out articles in JSONL."""
    folder = tmp_path_factory.mktemp("toy")
    rng = np.random.default_rng(0)
    words = [word for event in EVENTS.values() for word in event]
    (folder / "vocab.txt").write_text("\n".join([*SPECIAL_TOKENS, *words]) + "\n")
    vocabulary = Vocabulary.load(str(folder / "vocab.txt"))
    stream = DataSet(TOY_PAIRS.name, "en")
    (folder / "data" / stream.stream).mkdir(parents=True)
    with TFRecordShardWriter(str(folder / "data" / stream.stream / "part-00000-of-00001.tfrecord")) as shard:
        for number in range(96):
            texts = [text_about(f"event{number % len(EVENTS)}", rng) for _ in range(2)]
            rows = vocabulary.encode_documents(["", ""], texts, 16)
            shard.write(dict(zip(("left_tokens", "right_tokens"), rows, strict=True)), TOY_PAIRS.features)
    write_manifest(str(folder / "data"), {"digest": "toy", "examples": {str(stream): 96}})
    with (folder / "heldout.jsonl").open("w") as file:
        for number in range(48):
            event = f"event{number % len(EVENTS)}"
            article = {"id": str(number), "title": text_about(event, rng), "body": "", "event": event}
            file.write(json.dumps(article | {"publisher": f"p{number}", "language": "en"}) + "\n")
    return folder


@pytest.fixture(scope="module")
def trained(corpus):
    """The model folder after 20 steps."""
    (corpus / "toy.gin").write_text(
        """
include "models/trainer.gin"
ModelOptions.architecture = @ToyBagConfig
ToyBagConfig.max_length = 16
ToyMatching.scale = 10.0
MIXTURE_OR_TASK_NAME = "toy_pairs"
TASK_FEATURE_LENGTHS = {"left_tokens": 16, "right_tokens": 16}
TRAIN_STEPS = 20
BATCH_SIZE = 24
LEARNING_RATE = 0.3
LOG_PERIOD = 1
"""
    )
    places = {"MODEL_DIR": corpus / "model", "DATA_DIR": corpus / "data", "VOCABULARY_PATH": corpus / "vocab.txt"}
    bindings = [f'--gin.{name}="{place}"' for name, place in places.items()]
    assert cli.main(["train", f"--gin_file={corpus / 'toy.gin'}", *bindings]) == 0
    return corpus / "model"


def test_it_learns_what_its_objective_asks(corpus, trained):
    losses = [json.loads(line)["loss/toy_pairs/en"] for line in (trained / "metrics.jsonl").read_text().splitlines()]
    assert len(losses) == 20
    assert losses[-1] < losses[0] / 2
    assert json.loads((trained / "model.json").read_text())["kind"] == "toy_bag"


def test_it_is_evaluated_by_any_benchmark(corpus, trained):
    benchmark = SameEventRetrieval(str(corpus / "heldout.jsonl"))

    def mean_average_precision(encoder):
        scores = benchmark.score(DocumentEncoder(encoder).encode(benchmark.documents()))
        return next(score.value for score in scores if (score.metric, score.part) == ("mAP", "all"))

    learned, fresh = (
        mean_average_precision(load_encoder(str(trained))),
        mean_average_precision(JaxEncoder(fresh_model(str(trained)))),
    )
    assert learned > fresh + 0.1


def test_the_saved_model_equals_it_and_is_served(corpus, trained):
    assert cli.main(["export", "--model", str(trained), "--output", str(corpus / "saved_model")]) == 0
    titles, bodies = ["", "w1a"], ["w1a w1b w2c", ""]
    ours, exported = load_encoder(str(trained)).encode(titles, bodies), SavedModelEncoder(str(corpus / "saved_model"))
    np.testing.assert_allclose(exported.encode(titles, bodies), ours, atol=1e-6)
    request = {"documents": [{"title": title, "body": body} for title, body in zip(titles, bodies, strict=True)]}
    with TestClient(create_app(Service(exported)), base_url="http://localhost") as client:
        served = client.post("/embed", json=request)
    np.testing.assert_allclose(served.json()["embeddings"], ours, atol=1e-6)


def test_it_is_indexed_and_searched(corpus, trained, capsys):
    folder = str(corpus / "index")
    assert (
        cli.main(["index", "--model", str(trained), "--input", str(corpus / "heldout.jsonl"), "--output", folder]) == 0
    )
    assert cli.main(["search", "--index", folder, "--json", "--count=3", "w7a w7b w7c"]) == 0
    printed = capsys.readouterr().out
    hits = json.loads(printed[printed.index("[") :])
    assert len(hits) == 3
    assert all("w7" in hit["title"] for hit in hits)


def test_it_refuses_what_it_cannot_do(trained, tmp_path, refused):
    with pytest.raises(InputError, match=r"masked_lm.*toy_bag"):
        require(ToyBagConfig(10), Capability.MASKED_LM, by="the masked language model")
    assert "toy_bag" in refused(
        "export", "--model", str(trained), "--format=huggingface", "--output", str(tmp_path / "hf")
    )


def test_the_parts_of_the_page_train_together(corpus, tmp_path, monkeypatch):
    page = (ROOT / "docs" / "extending.md").read_text(encoding="utf-8")
    (tmp_path / "my_company").mkdir()
    (tmp_path / "my_company" / "my_system.py").write_text("".join(re.findall(r"```python\n(.*?)```", page, re.DOTALL)))
    (tmp_path / "mine.gin").write_text("".join(re.findall(r"```\n(import .*?)```", page, re.DOTALL)))
    monkeypatch.syspath_prepend(str(tmp_path))
    places = {"MODEL_DIR": tmp_path / "model", "DATA_DIR": corpus / "data", "VOCABULARY_PATH": corpus / "vocab.txt"}
    bindings = [f'--gin.{name}="{place}"' for name, place in places.items()]
    bindings += ['--gin.MIXTURE_OR_TASK_NAME="toy_pairs"', "--gin.TRAIN_STEPS=2"]
    bindings += ["--gin.TASK_FEATURE_LENGTHS={'left_tokens': 16, 'right_tokens': 16}"]
    assert cli.main(["train", "--allow_import=my_company", f"--gin_file={tmp_path / 'mine.gin'}", *bindings]) == 0
    assert json.loads((tmp_path / "model" / "model.json").read_text())["kind"] == "mine"


def test_no_file_of_the_product_knows_these_names():
    product = [
        path for path in ROOT.rglob("*.py") if path.relative_to(ROOT).parts[0] not in ("tests", ".venv", "build")
    ]
    assert len(product) > 200
    for path in [*product, *(ROOT / "gin").rglob("*.gin")]:
        assert "toy_" not in path.read_text(encoding="utf-8"), path
