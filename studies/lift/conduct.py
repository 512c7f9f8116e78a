"""The steps of a lift: each is a folder that is made once, most by a command that users can run themselves."""

import dataclasses
import os
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from ...errors import InputError
from ...formats.articles import read_articles
from ...formats.model_folder import ModelFolder
from ...formats.teacher import write_teacher
from ...formats.vocabulary import VOCABULARY_FILE, read_vocabulary
from ...formats.weights import unflatten
from ..shared.mining import build_folder
from ..shared.static import write_static_model
from ..shared.steps import Command, absolute, claim, once, run_command, train_model, write_examples
from .teacher import TeacherOptions, chosen_articles, embedded, make_teacher

DISTILLATION: Final = "distillation"
# How the layers are trained: the run file, by name of the recipe.
RECIPES: Final = {DISTILLATION: "runs/lift_distillation.gin", "contrastive": "runs/lift.gin"}
_SETTINGS: Final = "lift.json"
_WINDOW: Final = 256  # what most sentence encoders were trained on
_ROW: Final = 256  # tokens of a text in training
_LEAD: Final = 128
_WORDS_BATCH: Final = 256
_WORDS_LEAD: Final = 64  # of architectures/static.gin
_TEXTS: Final = ("anchor", "positive", "negative")
_UNREAD: Final = 2  # tokens of a text that the objective does not read, but that every row has
_TEACHER: Final = "teacher.npz"


@dataclasses.dataclass(frozen=True)
class Settings:
    """The options of a lift, see ``newsembed lift --help``."""

    words_steps: int = 60
    train_steps: int = 100
    batch_size: int = 32
    train_length: int = 96
    context_length: int = 512
    max_length: int = 1024
    learning_rate: float = 1e-4
    trained_layers: int | None = None
    recipe: str = DISTILLATION
    teacher_share: float = TeacherOptions.words_share
    projection_size: int = 512
    words_share: float = 0.55
    average: float = 1.0
    gin: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name, fits, expected in (
            ("words_steps", self.words_steps >= 0, "0 or more"),
            ("train_steps", self.train_steps >= 0, "0 or more"),
            ("trained_layers", self.trained_layers is None or self.trained_layers > 0, "1 or more"),
            ("projection_size", self.projection_size >= 0, "0 or more"),
            ("learning_rate", self.learning_rate > 0, "a positive number"),
            ("recipe", self.recipe in RECIPES, " or ".join(RECIPES)),
            ("teacher_share", 0 <= self.teacher_share <= 1, "a number from 0 to 1"),
            ("words_share", 0 < self.words_share < 1, "a number between 0 and 1"),
            ("average", 0 < self.average <= 1, "a number above 0, up to 1"),
        ):
            if not fits:
                value = getattr(self, name)
                raise InputError(f"got {value}, expected {expected}", field=f"--{name}", remedy="see lift --help")
        if not self.words_steps and not self.projection_size:
            remedy = "Give a positive number for one of them."
            raise InputError("got 0, as --words_steps, so there are no words", field="--projection_size", remedy=remedy)


@dataclasses.dataclass(frozen=True)
class Lift:
    """One lift.

    Attributes:
      start: a Hugging Face folder, or a model folder; None: the result is the words alone, a static model.
      work: of a build.
      output: absolute.
      settings: the options.
      command: runs a command of newsembed and returns its exit code.
    """

    start: str | None
    work: str
    output: str
    settings: Settings
    command: Command = run_command

    def folder(self, step: str) -> str:
        """The folder of a step."""
        return f"{self.output}/{step}"

    @property
    def vocabulary(self) -> str:
        """The start's vocabulary; without a start, that of the build."""
        if self.start is None:
            return f"{build_folder(self.work)}/vocabulary/{VOCABULARY_FILE}"
        return f"{self.folder('import')}/{VOCABULARY_FILE}"

    def run(self) -> int:
        """Makes what is not there yet; returns 0, or the exit code of the command that failed.

        Raises:
          InputError: for a folder that does not fit.
        """
        work = build_folder(self.work)
        self._claim(work)
        hybrid: list[Callable[[], int]] = [
            self._import,
            lambda: self._examples(work),
            self._words,
            lambda: self._teacher(work),
            self._layers,
            self._untrained,
            lambda: self._once("model", lambda target: self._write_hybrid(target, average=self.settings.average)),
        ]
        words: list[Callable[[], int]] = [
            lambda: self._examples(work),
            self._words,
            lambda: self._once("model", self._write_words),
        ]
        for step in words if self.start is None else hybrid:
            if code := step():
                return code
        return 0

    def evaluate(self, suites: Sequence[str], *, cross_publisher: bool) -> int:
        """Evaluates start, words, the untrained hybrid, the result and TF-IDF; returns the exit code."""
        if not suites:
            return 0
        models = {"start": "import", "words": "words", "untrained": "untrained", "lifted": "model"}
        command = ["evaluate", "--encoder", "tfidf=tfidf"]
        for name, step in models.items():
            if os.path.isdir(self.folder(step)):
                command += ["--encoder", f"{name}=model:{self.folder(step)}"]
        for suite in suites:
            kind, _, path = suite.partition("=")
            command += ["--suite", kind, "--data", path]
        command += ["--cross_publisher"] if cross_publisher else []
        return self.command([*command, "--output", self.folder("evaluation"), "--cache", self.folder("cache")])

    def _claim(self, work: str) -> None:
        """Writes the settings into the output, or compares them with those there.

        Raises:
          InputError: for a folder of another lift.
        """
        start = None if self.start is None else absolute(self.start)
        mine: dict[str, Any] = {"start": start, "work": os.path.abspath(work)}
        mine |= dataclasses.asdict(self.settings) | {"gin": list(self.settings.gin)}
        claim(self.output, _SETTINGS, mine, study="lift")

    def _import(self) -> int:
        start, folder = self.start, self.folder("import")
        if start is None or os.path.isdir(folder):
            return 0
        if ModelFolder(start).is_described:
            return self._once("import", lambda target: self._copy(start, target))
        return self.command(["import-hf", "--from", start, "--output", folder])

    def _copy(self, start: str, target: str) -> None:
        """Writes the last parameters of a model folder; of the result of a lift, its transformer alone.

        Raises:
          InputError: if it is not a transformer.
        """
        from ...learning.model_files import architecture_gin, write_model_files
        from ...models.encoders import HybridConfig
        from ...serving.checkpoint import load_model
        from ...training import lexical

        model, params = load_model(start), _all_params(start)
        config = model.config
        if isinstance(config, HybridConfig):
            config, params = lexical.dense_part(config, params)
        shape = self._checked(config)
        vocabulary = read_vocabulary(model.vocabulary_path)
        length = min(model.text_length, shape.max_length)
        write_model_files(target, shape, vocabulary, length, model.prompts, model.long_documents)
        origin = {"copied_from": os.path.basename(os.path.abspath(start))}
        ModelFolder(target).write_import(params, architecture_gin(shape), origin)

    def _examples(self, work: str) -> int:
        return write_examples(self.command, work, self.vocabulary, self.folder("examples"), row_length=_ROW)

    def _words(self) -> int:
        if not self.settings.words_steps:
            return 0
        steps = {"TRAIN_STEPS": self.settings.words_steps, "BATCH_SIZE": _WORDS_BATCH}
        return self._train_model("words", ["runs/train_static.gin"], {**steps, "MIXTURE_OR_TASK_NAME": "triplets"})

    def _teacher(self, work: str) -> int:
        settings = self.settings
        if not settings.train_steps or settings.recipe != DISTILLATION:
            return 0

        def write(target: str) -> None:
            options = TeacherOptions(words_share=settings.teacher_share)
            articles = chosen_articles(work, options.documents)
            keys = embedded(self.folder("import"), articles, self._read_length())
            write_teacher(f"{target}/{_TEACHER}", make_teacher(articles, keys, options))

        return self._once("teacher", write)

    def _layers(self) -> int:
        settings = self.settings
        if not settings.train_steps:
            return 0
        lengths = dict.fromkeys((f"{text}_tokens" for text in _TEXTS), self._read_length())
        values = {
            "TRAIN_STEPS": settings.train_steps,
            "BATCH_SIZE": settings.batch_size,
            "LEARNING_RATE": settings.learning_rate,
            "INITIAL_CHECKPOINT_PATH": self.folder("import"),
            "TASK_FEATURE_LENGTHS": lengths,
        }
        if settings.recipe == DISTILLATION:
            values["TEACHER_PATH"] = f"{self.folder('teacher')}/{_TEACHER}"
            values["FROZEN"] = self._frozen()
            values["DROPOUT_RATE"] = 0.0  # as measured; it would also cost time, and texts have thousands of candidates
            lengths["negative_tokens"] = _UNREAD
        gin_files = [RECIPES[settings.recipe], ModelFolder(self.folder("import")).architecture_file]
        return self._train_model("layers", gin_files, values, settings.gin)

    def _start(self) -> Any:
        """The imported checkpoint.

        Raises:
          InputError: if it is not a transformer.
        """
        from ...serving.checkpoint import load_model

        start = load_model(self.folder("import"))
        self._checked(start.config)
        return start

    def _checked(self, config: Any) -> Any:
        """The shape of a start.

        Raises:
          InputError: if it is not a transformer.
        """
        from ...models.encoders.news import EncoderConfig

        if type(config) is EncoderConfig and config.num_layers:
            return config
        problem = f"got {config.summary()} (kind {config.kind}), expected a transformer"
        remedy = "Give a public checkpoint, a model that newsembed trained, or the result of a lift."
        raise InputError(problem, path=self.start, field="--start", remedy=remedy)

    def _read_length(self) -> int:
        """How many tokens of a text the layers read while they train."""
        return min(self.settings.train_length, int(self._start().config.max_length))

    def _frozen(self) -> str:
        """A pattern of the embeddings and the layers that keep their values; empty where all layers are trained."""
        layers = self._start().config.num_layers
        trained = (layers + 1) // 2 if self.settings.trained_layers is None else self.settings.trained_layers
        kept = "|".join(str(layer) for layer in range(layers - trained))
        return f"([a-z_]+_embedding|input_norm|layers_({kept}))(/|$)" if kept else ""

    def _train_model(
        self, step: str, gin_files: Sequence[str], values: dict[str, Any], bindings: Sequence[str] = ()
    ) -> int:
        values = {"DATA_DIR": self.folder("examples"), "VOCABULARY_PATH": self.vocabulary} | values
        return train_model(self.command, self.folder(step), gin_files, values, bindings)

    def _untrained(self) -> int:
        if not self.settings.train_steps:
            return 0  # it is the result
        return self._once("untrained", lambda target: self._write_hybrid(target, average=0.0))

    def _write_hybrid(self, target: str, *, average: float) -> None:
        """Writes the hybrid of the words and the layers, whose weights are an average of the start's and the trained.

        Raises:
          InputError: for a start that is not a transformer, or options that do not fit it.
        """
        from ...learning.model_files import architecture_gin, write_model_files
        from ...training import lexical

        start = self._start()
        shape = start.config
        params, words = _all_params(start.folder), self._lexical_part()
        if self.settings.train_steps and average:
            params = _averaged(params, _all_params(self.folder("layers")), average)
        window = context = min(_WINDOW, start.text_length)
        if shape.pooling in ("mean", "weighted"):  # other heads read the vectors of one window only
            context = self.settings.context_length
            shape = dataclasses.replace(shape, pooling="weighted", lead_length=shape.lead_length or _LEAD)
        try:
            config = lexical.hybrid_config(shape, words, max_length=self.settings.max_length, window_length=window)
            config = dataclasses.replace(config, context_length=context)
            params = lexical.hybrid_params(params, config, words, share=self.settings.words_share)
        except ValueError as error:
            raise InputError(str(error), path=self.start, field="--start", remedy="Correct the option.") from error
        write_model_files(target, config, read_vocabulary(self.vocabulary), config.max_length, start.prompts)
        name = os.path.basename(os.path.abspath(self.start or start.folder))
        origin = {"lifted_from": name, **dataclasses.asdict(self.settings)}
        ModelFolder(target).write_import(params, architecture_gin(config), origin)

    def _write_words(self, target: str) -> None:
        """Writes the words alone, as a static model."""
        words, settings = self._lexical_part(), self.settings
        write_static_model(
            target,
            read_vocabulary(self.vocabulary),
            words.table,
            np.exp(words.logits),
            lead_length=words.lead_length,
            max_length=settings.max_length,
            origin={"lifted_from": None, **dataclasses.asdict(settings)},
        )

    def _lexical_part(self) -> Any:
        """The words of the static model and TF-IDF, or one of them; both with one lead length."""
        from ...serving.checkpoint import load_model
        from ...tasks.vocabulary import Vocabulary
        from ...training import lexical
        from ..shared.corpus import count_pieces

        settings, lead_length = self.settings, _WORDS_LEAD
        trained = None
        if settings.words_steps:
            words = load_model(self.folder("words"))
            trained = lexical.lexical_part_of(words.config, words.params, path=words.folder)
            if not settings.projection_size:
                return trained
            lead_length = trained.lead_length
        articles = read_articles(f"{build_folder(self.work)}/clean/articles")
        lengths = {"max_length": settings.max_length, "lead_length": lead_length}
        corpus = count_pieces(articles, Vocabulary.load(self.vocabulary), **lengths)
        tfidf = lexical.random_projection_of_tfidf(corpus.texts, settings.projection_size, lead_length=lead_length)
        return tfidf if trained is None else lexical.joined([trained, tfidf], corpus.terms)

    def _once(self, step: str, write: Callable[[str], Any]) -> int:
        """Makes the folder of a step, complete or not at all."""
        return once(self.folder(step), write)


def _all_params(folder: str) -> dict[str, Any]:
    """Those of the last checkpoint, with the heads that embedding does not read."""
    nested: dict[str, Any] = unflatten(ModelFolder(folder).read_params()[0])
    return nested


def _averaged(start: Any, trained: Any, share: float) -> Any:
    """(1 - share) start + share trained, for nested dicts of arrays (Wortsman et al. 2022, "Robust fine-tuning")."""
    if isinstance(trained, dict):  # a head that the start lacks is the trained one
        return {name: _averaged(start.get(name, value), value, share) for name, value in trained.items()}
    mixed = (1 - share) * np.asarray(start, np.float64) + share * np.asarray(trained, np.float64)
    return mixed.astype(np.float32)
