r"""Continues a public checkpoint on the pairs that a build has mined, and evaluates both.

The outcome is a hybrid encoder (`models.encoders.hybrid`): the checkpoint, which reads for meaning, and a lexical part,
which knows the names, places and numbers of the corpus. In order:

1. import: the checkpoint becomes a model folder (`newsembed import-hf`); of a model folder, the result of a lift
   included, the transformer is copied;
2. examples: the mined triplets in the checkpoint's word pieces (`newsembed examples`);
3. words: a static model is trained on them from latent semantics (`runs/train_static.gin`), and TF-IDF of all articles
   is projected at random;
4. centred: the checkpoint without the mean of the archive's embeddings, and without what tells its languages apart;
5. teacher: which articles are near to each other, by TF-IDF and the checkpoint's embeddings together;
6. layers: the checkpoint learns to find the articles that the teacher calls near, and the positives of the triplets,
   among all articles (`runs/lift_distillation.gin`);
7. untrained: the checkpoint and the words as one model, to compare with;
8. model: the trained layers and the words as one model. It reads longer texts than the checkpoint, in windows. Of a
   checkpoint for many languages, 7 and 8 are without what tells apart 25 languages, which the archive may lack.

Without --start there are only steps 2 and 3, in the word pieces of the build, and the result is a static model: any
language, no checkpoint.

An archive of less than a year has no triplets, but it has words: --work may be a build that stopped after clean. Then
the static model of step 3 is latent semantics, steps 2, 4 and 5 are left out, and the layers stay as they are.

Every step is a folder in --output. The same command continues where it stopped. With --suite, all of these models and
TF-IDF are evaluated.

example:
  newsembed lift --start e5 --work work --output lifted
  newsembed lift --start bge-small-en-v1.5 --work work --output lifted --suite events=heldout.jsonl --cross_publisher
  newsembed lift --work work --output words
  newsembed index --model lifted/model --input articles.jsonl --output lifted/index
"""

import dataclasses
import functools
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from ...beam_pipelines.progress import working
from ...errors import InputError, counted, refusing
from ...formats.arrays import unflatten, write_teacher
from ...formats.articles import read_articles
from ...formats.command_line import Options, option, required, several
from ...formats.folders import locked
from ...formats.manifest import has_manifest, read_manifest
from ...formats.model_folder import ModelFolder
from ...formats.remote import local_folder
from ...formats.vocabulary import VOCABULARY_FILE, read_vocabulary
from ..shared.mining import build_folder
from ..shared.runs import run_command
from ..shared.static import count_pieces, write_latent_semantics, write_static_model
from ..shared.steps import Command, claim, once, train_model, write_examples
from .centring import centred_head, head_without_languages, sampled, words_without_languages
from .teacher import DOCUMENTS, WORDS_SHARE, chosen_articles, embedded, make_teacher

_DISTILLATION: Final = "distillation"
# How the layers are trained: the run file, by name of the recipe.
_RECIPES: Final = {_DISTILLATION: "runs/lift_distillation.gin", "contrastive": "runs/lift.gin"}
_WINDOW: Final = 256  # what most sentence encoders were trained on
_LEAD: Final = 128
_WORDS_BATCH: Final = 256
_WORDS_LEAD: Final = 64  # of architectures/static.gin
_UNREAD: Final = 2  # tokens of a text that the objective does not read, but that every row has
_SHARE: Final = 0.55
_SHARE_ACROSS: Final = 0.3  # words of two languages have nothing in common, so a text of another one is farther away
_TEACHER: Final = "teacher.npz"
_MINILM: Final = 6 * 384**2  # layers times the square of their width
_PLACES: Final = ("start", "work", "output", "suite", "cross_publisher")  # options that change no number


@dataclasses.dataclass(frozen=True, kw_only=True)
class LiftOptions(Options):
    """The options of ``newsembed lift``."""

    start: str | None = option(
        None,
        "a Hugging Face folder, e5 or minilm (see import-hf), or a model folder, also of a lift; without it, the "
        "result is the words alone, a static model from nothing, and the options of layers are not read",
        metavar="DIR",
    )
    work: str = required("folder of a `newsembed build`, or of one that stopped for want of triplets", metavar="DIR")
    output: str = required("folder for all steps; the result is in model/", metavar="DIR", local=True)
    words_steps: int = option(60, "steps of the static model; 0 leaves it out", ge=0)
    train_steps: int = option(100, "steps of the layers; 0 leaves them as they are", ge=0)
    batch_size: int = option(32, "pairs or triplets in a step of the layers", ge=1)
    train_length: int = option(
        96, "tokens of a text that the layers read while they train, if the start has so many", ge=1
    )
    context_length: int = option(512, "tokens of a text that the layers of the result read", ge=1)
    max_length: int = option(1024, "tokens of a text that the lexical part of the result reads", ge=1)
    learning_rate: float = option(1e-4, "peak learning rate of the layers", gt=0)
    trained_layers: int | None = option(
        None,
        "layers from the top that the distillation trains; all layers, or more, trains the embeddings too "
        "(default: the upper half, which takes a third less time)",
        ge=1,
    )
    recipe: str = option(
        _DISTILLATION,
        "how the layers are trained: by a teacher and the triplets, or by the triplets and their negatives alone",
        choices=tuple(_RECIPES),
    )
    teacher_share: float = option(
        WORDS_SHARE, "share of TF-IDF in the teacher's similarity; the rest is the checkpoint's", ge=0, le=1
    )
    projection_size: int = option(
        512, "numbers of a random projection of TF-IDF next to the static model; 0 leaves it out", ge=0
    )
    words_share: float | None = option(
        None,
        f"share of the lexical part in the cosine (default: {_SHARE}, or {_SHARE_ACROSS} if the start knows many "
        "languages or the archive has several)",
        gt=0,
        lt=1,
    )
    average: float = option(
        1.0, "share of the trained weights in the result's layers; the rest is the start's", gt=0, le=1
    )
    gin: tuple[str, ...] = several("bindings for the run file of the layers", "NAME=VALUE")
    suite: tuple[str, ...] = option(
        (), "benchmarks as for `newsembed evaluate`, such as events=heldout.jsonl", metavar="SUITE=PATH", many=True
    )
    cross_publisher: bool = option(False, "events: leave out candidates of the query's publisher")

    def __post_init__(self) -> None:
        """Checks the values."""
        super().__post_init__()
        if not self.words_steps and not self.projection_size:
            remedy = "Give a positive number for one of them."
            raise InputError("got 0, as --words_steps, so there are no words", field="--projection_size", remedy=remedy)
        for suite in self.suite:
            if "=" not in suite:
                remedy = "write SUITE=PATH, such as events=heldout.jsonl"
                raise InputError(f"got {suite!r}", field="--suite", remedy=remedy)


OPTIONS: Final = LiftOptions


def run(options: LiftOptions) -> int:
    """Runs the command; returns 0, or the exit code of the step that failed."""
    lift = Lift(options)
    with locked(lift.output):
        code = lift.run() or lift.evaluate()
    if code == 0:
        print(f"the lifted model: {options.output.rstrip('/')}/model", file=sys.stderr)
    return code


class Lift:
    """The steps of a lift: each is a folder that is made once, most by a command that users can run themselves.

    Args:
      options: of the command.
      command: runs a command of newsembed and returns its exit code.
    """

    def __init__(self, options: LiftOptions, command: Command = run_command) -> None:
        self.options, self.command = options, command
        self.output, self.work = os.path.abspath(options.output), build_folder(options.work, ("clean",))
        self.has_triplets = has_manifest(f"{self.work}/triplets")
        if self.has_triplets:
            build_folder(options.work)  # a build that has triplets is finished, or the user wants to finish it
        place = self.work if has_manifest(f"{self.work}/vocabulary") else self.output
        place = self.folder("import") if options.start else f"{place}/vocabulary"
        self.vocabulary = f"{place}/{VOCABULARY_FILE}"

    def folder(self, step: str) -> str:
        """The folder of a step."""
        return f"{self.output}/{step}"

    def run(self) -> int:
        """Makes what is not there yet; returns 0, or the exit code of the command that failed."""
        options = self.options
        asked = {"start": options.start, "work": self.work} | self._settings()
        claim(self.output, "lift.json", asked, ("start", "work"), study="lift")
        has_layers = options.start is not None and options.train_steps > 0 and self.has_triplets
        average = options.average if has_layers else 0.0
        write = self._write_words if options.start is None else lambda to: self._write_hybrid(to, average)
        if not self.has_triplets:
            print(f"{self.work} has no triplets: words are latent semantics, layers stay as they are", file=sys.stderr)
        steps: dict[Callable[[], int], bool] = {
            self._import: options.start is not None,
            self._say_minutes: True,
            self._vocabulary: options.start is None and not os.path.exists(self.vocabulary),
            lambda: write_examples(
                self.command, self.work, self.vocabulary, self.folder("examples")
            ): self.has_triplets,
            self._words: options.words_steps > 0,
            lambda: self._shown("centred", self._write_centred): options.start is not None,
            lambda: once(self.folder("teacher"), self._write_teacher): has_layers and options.recipe == _DISTILLATION,
            self._layers: has_layers,
            lambda: self._shown("untrained", lambda to: self._write_hybrid(to, 0.0)): has_layers,
            lambda: self._shown("model", write): True,
        }
        return next((code for step, is_asked in steps.items() if is_asked and (code := step())), 0)

    def evaluate(self) -> int:
        """Evaluates start, words, the untrained hybrid, the result and TF-IDF; returns the exit code."""
        if not self.options.suite:
            return 0
        models = {"start": "import", "words": "words", "untrained": "untrained", "lifted": "model"}
        command = ["evaluate", "--encoder", "tfidf=tfidf"]
        for name, step in models.items():
            if os.path.isdir(self.folder(step)):
                command += ["--encoder", f"{name}=model:{self.folder(step)}"]
        for suite in self.options.suite:
            kind, _, path = suite.partition("=")
            command += ["--suite", kind, "--data", path]
        command += ["--cross_publisher"] if self.options.cross_publisher else []
        return self.command([*command, "--output", self.folder("evaluation"), "--cache", self.folder("cache")])

    def _settings(self) -> dict[str, Any]:
        """The options that change the result."""
        return {name: value for name, value in dataclasses.asdict(self.options).items() if name not in _PLACES}

    def _import(self) -> int:
        start, folder = local_folder(str(self.options.start)), self.folder("import")
        if os.path.isdir(folder):
            return 0
        if ModelFolder(start).is_described:
            return once(folder, lambda target: self._copy(start, target))
        return self.command(["import-hf", "--from", start, "--output", folder])

    def _copy(self, start: str, target: str) -> None:
        """Writes the last parameters of a model folder; of the result of a lift, its transformer alone."""
        from ...models.encoders import HybridConfig
        from ...serving.encoder import load_model
        from ...training import lexical

        model, params = load_model(start), _all_params(start)
        config = model.config
        if isinstance(config, HybridConfig):
            config, params = lexical.dense_part(config, params)
        changed = dataclasses.replace(model, config=self._checked(config))
        _write_start(target, changed, params, {"copied_from": _name(start)})

    def _write_centred(self, target: str) -> None:
        """Writes the start with another embedding head, see `centring`."""
        from ...serving.encoder import load_model

        start, params = load_model(self.folder("import")), _all_params(self.folder("import"))
        if self._checked(start.config).embedding_activation == "identity":  # after another there is no mean to take out
            articles = sampled(read_articles(f"{self.work}/clean/articles"))
            params["embedding_head"] = centred_head(start, articles, min(self.options.train_length, start.text_length))
        _write_start(target, start, params, {"centred_from": _name(str(self.options.start))})

    def _say_minutes(self) -> int:
        """Says how long the steps that are left take; returns 0."""
        from ...serving.encoder import read_description

        articles = int(read_manifest(f"{self.work}/clean")["counts"]["out"])
        shape = self._checked(read_description(self.folder("import")).config) if self.options.start else None
        size = shape.num_layers * shape.hidden_size**2 / _MINILM if shape else 0.0
        seconds = seconds_of_steps(self.options, articles, size, has_triplets=self.has_triplets)
        left = sum(value for step, value in seconds.items() if not os.path.isdir(self.folder(step)))
        said = f"{counted(articles, 'article')}: about {counted(round(left / 60), 'minute')} on two free cores"
        print(said, file=sys.stderr, flush=True)
        return 0

    def _shown(self, step: str, write: Callable[[str], None]) -> int:
        with working(f"lift: {step}"):
            return once(self.folder(step), write)

    def _vocabulary(self) -> int:
        return self.command(["vocabulary", "--articles", f"{self.work}/clean", "--output", self.folder("vocabulary")])

    def _words(self) -> int:
        if not self.has_triplets:
            articles = f"{self.work}/clean/articles"
            return self._shown("words", lambda to: write_latent_semantics(to, self.vocabulary, read_articles(articles)))
        steps = {"TRAIN_STEPS": self.options.words_steps, "BATCH_SIZE": _WORDS_BATCH}
        return self._train("words", ["runs/train_static.gin"], {**steps, "MIXTURE_OR_TASK_NAME": "triplets"})

    def _write_teacher(self, target: str) -> None:
        with working("lift: articles"):
            articles = chosen_articles(self.work)
        keys = embedded(self.folder("centred"), articles, self._read_length())
        write_teacher(f"{target}/{_TEACHER}", make_teacher(articles, keys, self.options.teacher_share))

    def _layers(self) -> int:
        options = self.options
        lengths = dict.fromkeys(("anchor_tokens", "positive_tokens", "negative_tokens"), self._read_length())
        values = {
            "TRAIN_STEPS": options.train_steps,
            "BATCH_SIZE": options.batch_size,
            "LEARNING_RATE": options.learning_rate,
            "INITIAL_CHECKPOINT_PATH": self.folder("centred"),
            "TASK_FEATURE_LENGTHS": lengths,
        }
        if options.recipe == _DISTILLATION:
            values |= {"TEACHER_PATH": self.folder(f"teacher/{_TEACHER}"), "FROZEN": self._frozen()}
            values["DROPOUT_RATE"] = 0.0  # as measured; it would also cost time, and texts have thousands of candidates
            lengths["negative_tokens"] = _UNREAD
        gin_files = [_RECIPES[options.recipe], ModelFolder(self.folder("centred")).architecture_file]
        return self._train("layers", gin_files, values, options.gin)

    def _start(self) -> Any:
        """The centred checkpoint."""
        from ...serving.encoder import load_model

        start = load_model(self.folder("centred"))
        self._checked(start.config)
        return start

    def _checked(self, config: Any) -> Any:
        """The shape of a start, which is a transformer."""
        from ...models.encoders.news import EncoderConfig

        if type(config) is EncoderConfig and config.num_layers:
            return config
        problem = f"got {config.summary()} (kind {config.kind}), expected a transformer"
        remedy = "Give a public checkpoint, a model that newsembed trained, or the result of a lift."
        raise InputError(problem, path=self.options.start, field="--start", remedy=remedy)

    def _read_length(self) -> int:
        """How many tokens of a text the layers read while they train."""
        return min(self.options.train_length, int(self._start().config.max_length))

    def _frozen(self) -> str:
        """A pattern of the embeddings and the layers that keep their values; empty where all layers are trained."""
        layers = self._start().config.num_layers
        trained = self.options.trained_layers or (layers + 1) // 2
        kept = "|".join(str(layer) for layer in range(layers - trained))
        return f"([a-z_]+_embedding|input_norm|layers_({kept}))(/|$)" if kept else ""

    def _train(self, step: str, gin_files: Sequence[str], values: dict[str, Any], bindings: Sequence[str] = ()) -> int:
        values = {"DATA_DIR": self.folder("examples"), "VOCABULARY_PATH": self.vocabulary} | values
        return train_model(self.command, self.folder(step), gin_files, values, bindings)

    def _write_hybrid(self, target: str, average: float) -> None:
        """Writes the hybrid of the words and the layers, an average of the start's and the trained."""
        from ...learning.model_files import architecture_gin, write_model_files
        from ...training import lexical

        start, options = self._start(), self.options
        shape, params, (words, languages) = start.config, _all_params(start.folder), self._lexical_part
        if options.train_steps and average:
            params = _averaged(params, _all_params(self.folder("layers")), average)
        if head := head_without_languages(dataclasses.replace(start, params=params)):
            params["embedding_head"] = head
        share = options.words_share or (_SHARE_ACROSS if head or languages > 1 else _SHARE)
        window = context = min(_WINDOW, start.text_length)
        if shape.pooling in ("mean", "weighted"):  # other heads read the vectors of one window only
            context = options.context_length
            shape = dataclasses.replace(shape, pooling="weighted", lead_length=shape.lead_length or _LEAD)
        with refusing("", ValueError, path=options.start, field="--start", remedy="Correct the option."):
            config = lexical.hybrid_config(shape, words, max_length=options.max_length, window_length=window)
            config = dataclasses.replace(config, context_length=context)
            params = lexical.hybrid_params(params, config, words, share=share)
        write_model_files(target, config, read_vocabulary(self.vocabulary), config.max_length, start.prompts)
        origin = {"lifted_from": _name(str(options.start))} | self._settings() | {"words_share": share}
        ModelFolder(target).write_import(params, architecture_gin(config), origin)

    def _write_words(self, target: str) -> None:
        """Writes the words alone, as a static model."""
        words = self._lexical_part[0]
        write_static_model(
            target,
            read_vocabulary(self.vocabulary),
            words.table,
            np.exp(words.logits),
            lead_length=words.lead_length,
            max_length=self.options.max_length,
            origin={"lifted_from": None} | self._settings(),
        )

    @functools.cached_property  # the untrained and the trained hybrid have the same
    def _lexical_part(self) -> tuple[Any, int]:
        """The words of the static model and TF-IDF, or one of them; and the number of the archive's languages."""
        from ...serving.encoder import load_model
        from ...tasks.vocabulary import Vocabulary
        from ...training import lexical

        parts, size, lead_length = list[lexical.LexicalPart](), self.options.projection_size, _WORDS_LEAD
        if self.options.words_steps:
            trained = load_model(self.folder("words"))
            parts.append(lexical.lexical_part_of(trained.config, trained.params))
            lead_length = parts[0].lead_length
        articles = read_articles(f"{self.work}/clean/articles")
        corpus = count_pieces(
            articles, Vocabulary.load(self.vocabulary), max_length=self.options.max_length, lead_length=lead_length
        )
        if size:
            parts.append(lexical.random_projection_of_tfidf(corpus.rarity, size, lead_length=lead_length))
        words = lexical.joined(parts, corpus.terms) if len(parts) > 1 else parts[0]
        return words_without_languages(words, corpus), len(corpus.of_language)


def seconds_of_steps(options: LiftOptions, articles: int, size: float, *, has_triplets: bool) -> dict[str, float]:
    """About how long each long step of a lift takes on two cores, in seconds.

    They add up to the 17 minutes of a lift of MiniLM on 16,480 articles (docs/results.md); how these are divided among
    the steps was estimated. A vocabulary as large as that of E5 takes longer.

    Args:
      options: of the lift.
      articles: of the archive.
      size: of the layers, times MiniLM's; 0: none.
      has_triplets: else nothing is trained.
    """
    pairs = options.train_steps * options.batch_size * has_triplets
    return {
        "examples": (15 + 0.004 * articles) * has_triplets,
        "words": 45 + 3.3 * options.words_steps * has_triplets if options.words_steps else 0.0,
        "teacher": 0.012 * min(articles, DOCUMENTS) * size * (pairs > 0),
        "layers": 0.12 * pairs * size * options.train_length / 96,
        "model": 70 + 0.003 * articles,
    }


def _name(path: str) -> str:
    return os.path.basename(os.path.abspath(path))


def _write_start(target: str, model: Any, params: dict[str, Any], origin: dict[str, str]) -> None:
    """Writes a start with other parameters; of a longer shape it reads what the shape allows."""
    from ...learning.model_files import architecture_gin, write_model_files

    vocabulary, length = read_vocabulary(model.vocabulary_path), min(model.text_length, model.config.max_length)
    write_model_files(target, model.config, vocabulary, length, model.prompts, model.long_documents)
    ModelFolder(target).write_import(params, architecture_gin(model.config), origin)


def _all_params(folder: str) -> dict[str, Any]:
    """Those of the last checkpoint, with the heads that embedding does not read."""
    return unflatten(ModelFolder(folder).read_params()[0])


def _averaged(start: Any, trained: Any, share: float) -> Any:
    """(1 - share) start + share trained, for nested dicts of arrays (Wortsman et al. 2022, "Robust fine-tuning")."""
    if isinstance(trained, dict):  # a head that the start lacks is the trained one
        return {name: _averaged(start.get(name, value), value, share) for name, value in trained.items()}
    mixed = (1 - share) * np.asarray(start, np.float64) + share * np.asarray(trained, np.float64)
    return mixed.astype(np.float32)
