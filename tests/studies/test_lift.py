"""newsembed lift: every step on a small archive, with the real jobs and trainer, from a random BERT."""

import ast
import dataclasses
import datetime
import json
import os
import shutil
import string
from pathlib import Path

import numpy as np
import pytest
import small_encoders
from drawn_parameters import write_model
from manifests import doc, write_manifest
from newsembed.beam_pipelines.workflow import STEPS
from newsembed.formats import files, parquet
from newsembed.formats.arrays import read_teacher, unflatten
from newsembed.formats.articles import read_articles
from newsembed.formats.model_folder import ModelFolder
from newsembed.formats.records import Article, Triplet
from newsembed.formats.vocabulary import SPECIAL_TOKENS, read_vocabulary
from newsembed.launch import cli
from newsembed.models.encoders import HybridConfig
from newsembed.serving.encoder import load_encoder, load_model
from newsembed.studies import lift
from newsembed.studies.lift import Lift, LiftOptions, seconds_of_steps
from newsembed.studies.lift.centring import centred_head, sampled
from newsembed.studies.shared import static
from newsembed.tasks.vocabulary import Vocabulary
from newsembed.training.lexical import lexical_part_of
from reference_encoders import write_folder
from refusals import refuses

LENGTHS = {"train_length": 8, "context_length": 12, "max_length": 16}
STEPS_OF = {"words_steps": 0, "train_steps": 2, "gin": ("CHECKPOINT_PERIOD=2",)}
SETTINGS = LiftOptions(work="", output="", batch_size=4, average=0.5, **LENGTHS, **STEPS_OF)
DOCUMENTS = 24


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    """A build of 24 articles and 8 triplets; its other jobs are manifests only."""
    folder = tmp_path_factory.mktemp("work")
    for step in STEPS:
        write_manifest(f"{folder}/{step.job}", step.job)
    rng = np.random.default_rng(0)
    articles = []
    for number in range(DOCUMENTS):
        words = " ".join(rng.choice(list("abcdefgh"), 30))
        day = datetime.date(2020 + number % 2, 1, 1 + number // 2)
        url = f"http://p.example/{number}"
        articles.append(Article(doc(number), url, f"p{number % 3}", words[:9], words, ("A B",), day, language="en"))
    near, far = (1.0, np.nan, 1.0), (0.1, np.nan, 0.1)
    thirds = [[doc(3 * number + place) for place in (0, 2, 1)] for number in range(8)]
    triplets = [Triplet(*three, "en", near, far, 0, 400, 0.1) for three in thirds]
    parquet.write_shard(f"{folder}/clean/articles/part-00000-of-00001.parquet", articles, Article)
    parquet.write_shard(f"{folder}/triplets/triplets/part-00000-of-00001.parquet", triplets, Triplet)
    return str(folder)


@pytest.fixture(scope="module")
def start(tmp_path_factory):
    """A folder as sentence-transformers saves it: BERT and mean pooling."""
    folder = write_folder(tmp_path_factory.mktemp("start") / "bert", "bert")
    kinds = {"": "Transformer", "1_Pooling": "Pooling"}
    modules = [{"path": path, "type": f"sentence_transformers.models.{kind}"} for path, kind in kinds.items()]
    for name, values in {
        "modules.json": [{"idx": n, "name": f"{n}", **module} for n, module in enumerate(modules)],
        "sentence_bert_config.json": {"max_seq_length": 6},
        "1_Pooling/config.json": {"pooling_mode_mean_tokens": True},
        "config_sentence_transformers.json": {"prompts": {"query": "a "}},
    }.items():
        files.write_json(f"{folder}/{name}", values)
    return folder


@pytest.fixture(scope="module")
def lifted(work, start, tmp_path_factory):
    """(folder, commands that ran) of a whole lift."""
    output, commands = str(tmp_path_factory.mktemp("lifted") / "out"), []
    assert lift_of(start, work, output, command=recorded(commands)).run() == 0
    return output, commands


def lift_of(start, work, output, options=SETTINGS, command=None):
    """A lift that runs its commands in this process."""
    places = {"start": start, "work": work, "output": str(output)}
    return Lift(dataclasses.replace(options, **places), command or recorded([]))


def untrained(*given):
    """The commands of a lift whose commands do nothing; it ends where the trained model is missing."""
    commands = []
    refuses("layers", lift_of(*given, lambda arguments: commands.append(arguments) or 0).run)
    return commands


def recorded(commands):
    def command(arguments):
        commands.append(list(arguments))
        more = ["--direct_num_workers=1"] if arguments[0] in ("examples", "vocabulary") else []
        return cli.main([*arguments, *more])

    return command


def params_of(folder):
    return unflatten(ModelFolder(folder).read_params()[0])


def test_every_step_is_a_folder_and_most_are_commands(lifted):
    output, commands = lifted
    assert [command[0] for command in commands] == ["import-hf", "examples", "train"]
    steps = {"import", "examples", "centred", "teacher", "layers", "untrained", "model"}
    assert set(os.listdir(output)) == {"lift.json", *steps}


def test_a_build_without_triplets_gives_words_and_keeps_the_layers(work, start, tmp_path, capsys):
    shutil.copytree(f"{work}/clean", tmp_path / "work" / "clean")
    options, commands = dataclasses.replace(SETTINGS, words_steps=1, projection_size=16), []
    for name, first in (("", ["vocabulary"]), (start, ["import-hf"])):
        output, commands = str(tmp_path / f"out{len(name)}"), []
        lift = lift_of(name or None, str(tmp_path / "work"), output, options, recorded(commands))
        assert lift.run() == 0
        assert [command[0] for command in commands] == first
        said = capsys.readouterr().err
        assert "has no triplets: words are latent semantics" in said
        assert "1 article: about 2 minutes on two free cores" in said
        assert ("lift: centred …" in said) == bool(name)
        assert ModelFolder(f"{output}/model").is_described
        assert not {"examples", "teacher", "layers", "untrained"} & set(os.listdir(output))
    kept, had = (params_of(f"{output}/{step}") for step in ("model", "import"))
    np.testing.assert_array_equal(kept["token_embedding"], had["token_embedding"])
    (tmp_path / "work" / "triplets").mkdir()
    write_manifest(str(tmp_path / "work" / "triplets"), "triplets")
    refuses("no finished build", lift_of, None, str(tmp_path / "work"), str(tmp_path / "other"))


def test_the_estimate_is_the_17_minutes_of_the_measured_lift_and_grows_with_the_work():
    options = LiftOptions(work="", output="")
    measured = seconds_of_steps(options, 16_480, 1.0, has_triplets=True)
    assert sum(measured.values()) / 60 == pytest.approx(17, abs=0.5)
    deeper = seconds_of_steps(options, 16_480, 2.0, has_triplets=True)
    assert {step: deeper[step] / measured[step] for step in measured} == pytest.approx(
        {"examples": 1, "words": 1, "teacher": 2, "layers": 2, "model": 1}
    )
    frozen = seconds_of_steps(dataclasses.replace(options, train_steps=0), 16_480, 1.0, has_triplets=True)
    assert [step for step in frozen if not frozen[step]] == ["teacher", "layers"]
    young = seconds_of_steps(options, 16_480, 1.0, has_triplets=False)
    assert [step for step in young if not young[step]] == ["examples", "teacher", "layers"]
    assert young["words"] < measured["words"] / 4
    large = seconds_of_steps(options, 10**6, 1.0, has_triplets=True)
    assert large["teacher"] == pytest.approx(600)  # it knows 50,000 articles at most


@pytest.mark.parametrize(("asked", "expected"), [(None, 0.3), (0.4, 0.4)])
def test_words_have_a_smaller_share_where_the_archive_has_several_languages(
    work, start, tmp_path, monkeypatch, asked, expected
):
    monkeypatch.setattr(static, "LEAST_OF_LANGUAGE", 12)
    articles = list(parquet.read_records(f"{work}/clean/articles/part-00000-of-00001.parquet", Article))
    articles = [dataclasses.replace(one, language="en" if number % 2 else "de") for number, one in enumerate(articles)]
    parquet.write_shard(f"{tmp_path}/work/clean/articles/part-00000-of-00001.parquet", articles, Article)
    write_manifest(f"{tmp_path}/work/clean", "clean")
    options = dataclasses.replace(SETTINGS, words_share=asked, projection_size=16)
    assert lift_of(start, f"{tmp_path}/work", tmp_path / "out", options).run() == 0
    share = 1 / (1 + np.exp(-load_model(f"{tmp_path}/out/model").params["lexical_gate"]))
    np.testing.assert_allclose(share, expected, atol=1e-6)
    assert f'"words_share": {expected}' in Path(tmp_path, "out", "model", "import.json").read_text()


def test_a_start_for_many_languages_gets_its_head_without_them_and_fewer_words(work, start, tmp_path, monkeypatch):
    def without(model):
        return {name: value + 1 for name, value in model.params["embedding_head"].items()}

    monkeypatch.setattr(lift, "head_without_languages", without)
    options = dataclasses.replace(SETTINGS, projection_size=16)
    assert lift_of(start, work, tmp_path / "out", options).run() == 0
    centred, lifted = (load_model(f"{tmp_path}/out/{step}").params for step in ("centred", "untrained"))
    np.testing.assert_allclose(lifted["embedding_head"]["bias"], centred["embedding_head"]["bias"] + 1, atol=1e-6)
    np.testing.assert_allclose(1 / (1 + np.exp(-lifted["lexical_gate"])), 0.3, atol=1e-6)


def test_the_same_command_makes_nothing_twice(lifted, work, start):
    output, _ = lifted
    commands = []
    before = {path: path.stat().st_mtime_ns for path in Path(output).rglob("*") if path.is_file()}
    assert lift_of(start, work, output, command=recorded(commands)).run() == 0
    assert [command[0] for command in commands] == ["examples"]  # which skips what is finished
    assert {path: path.stat().st_mtime_ns for path in Path(output).rglob("*") if path.is_file()} == before


def test_the_start_holds_the_checkpoint_and_tfidf(lifted, work):
    output, _ = lifted
    imported, begun = load_model(f"{output}/import"), load_model(f"{output}/untrained")
    assert isinstance(begun.config, HybridConfig)
    assert begun.config.window_length == 6  # the checkpoint reads no more at a time
    assert (begun.config.context_length, begun.text_length) == (12, 16)
    assert begun.config.pooling == "weighted"
    assert begun.prompts == imported.prompts
    np.testing.assert_array_equal(begun.params["token_embedding"], imported.params["token_embedding"])
    np.testing.assert_array_equal(begun.params["position_embedding"], imported.params["position_embedding"][:6])
    share = 1 / (1 + np.exp(-begun.params["lexical_gate"]))
    np.testing.assert_allclose(share, 0.55, atol=1e-6)
    # The letters of the archive are word pieces 5 and up; "a" is in some of its 24 texts.
    weights = np.exp(begun.params["lexical_logits"])
    assert weights[:5].max() == 0
    assert weights[5:].max() <= np.log(25) + 1 + 1e-5


def test_the_result_is_the_average_and_reads_as_the_untrained(lifted):
    output, _ = lifted
    before, trained, model = (params_of(f"{output}/{step}") for step in ("untrained", "layers", "model"))
    assert load_model(f"{output}/model").config == load_model(f"{output}/untrained").config
    assert load_model(f"{output}/layers").text_length == SETTINGS.train_length
    layers = sorted(name for name in before if name.startswith("layers_"))
    kept, upper = layers[: len(layers) // 2], layers[len(layers) // 2 :]
    assert kept
    for name in layers:
        first, second, mixed = (params[name]["mlp_in"]["kernel"] for params in (before, trained, model))
        assert (np.abs(first - second).max() > 0) == (name in upper)
        np.testing.assert_allclose(mixed, (first + second) / 2, atol=1e-6)
    np.testing.assert_array_equal(trained["token_embedding"], before["token_embedding"])


@pytest.mark.parametrize(("layers", "pattern"), [(None, "layers_(0|1))(/|$)"), (4, '--gin.FROZEN=""')])
def test_layers_below_the_trained_ones_are_frozen_and_there_is_no_dropout(
    lifted, work, start, tmp_path, layers, pattern
):
    output = str(tmp_path / "out")
    for step in ("import", "examples", "centred", "teacher"):
        shutil.copytree(f"{lifted[0]}/{step}", f"{output}/{step}")
    shutil.copy(f"{lifted[0]}/lift.json", output)
    settings = json.loads(Path(output, "lift.json").read_text())
    Path(output, "lift.json").write_text(json.dumps(settings | {"trained_layers": layers}))
    settings = dataclasses.replace(SETTINGS, trained_layers=layers)
    commands = untrained(start, work, output, settings)
    assert any(word.endswith(pattern) or pattern in word for word in commands[-1] if "FROZEN" in word)
    assert "--gin.DROPOUT_RATE=0.0" in commands[-1]


def test_the_teacher_is_made_from_the_start_and_read_by_the_training(lifted, work):
    output, commands = lifted
    teacher = read_teacher(f"{output}/teacher/teacher.npz")
    assert teacher.doc_ids.shape == (DOCUMENTS, 2)
    articles = sorted(read_articles(f"{work}/clean/articles"), key=lambda article: article.doc_id)
    encoder = load_encoder(f"{output}/centred", max_length=SETTINGS.train_length, long_documents="head")
    keys = encoder.encode([article.title for article in articles], [article.body for article in articles])
    np.testing.assert_allclose(teacher.keys, keys, atol=1e-5)
    train = commands[-1]
    assert "--gin_file=runs/lift_distillation.gin" in train
    assert f'--gin.TEACHER_PATH="{output}/teacher/teacher.npz"' in train
    lengths = next(word for word in train if word.startswith("--gin.TASK_FEATURE_LENGTHS="))
    expected = dict.fromkeys(("anchor_tokens", "positive_tokens"), SETTINGS.train_length) | {"negative_tokens": 2}
    assert ast.literal_eval(lengths.partition("=")[2]) == expected


def test_the_start_is_centred_by_the_archive(lifted, work):
    output, _ = lifted
    imported, centred = load_model(f"{output}/import"), load_model(f"{output}/centred")
    articles = sampled(read_articles(f"{work}/clean/articles"))
    assert len(articles) == DOCUMENTS
    head = centred_head(imported, articles, imported.text_length)  # 6 tokens: less than the layers may read
    np.testing.assert_allclose(centred.params["embedding_head"]["bias"], head["bias"], atol=1e-6)
    assert np.abs(head["bias"]).max() > 0.01
    assert (centred.text_length, centred.prompts) == (imported.text_length, imported.prompts)
    np.testing.assert_array_equal(centred.params["token_embedding"], imported.params["token_embedding"])


def test_the_contrastive_recipe_has_no_teacher_and_reads_negatives(lifted, work, start, tmp_path):
    output = str(tmp_path / "out")
    settings = dataclasses.replace(SETTINGS, recipe="contrastive")
    assert lift_of(start, work, output, settings, lambda _: 2).run() == 2
    shutil.copytree(f"{lifted[0]}/import", f"{output}/import")
    commands = untrained(start, work, output, settings)
    assert [command[0] for command in commands] == ["examples", "train"]
    assert "--gin_file=runs/lift.gin" in commands[1]
    lengths = next(word for word in commands[1] if word.startswith("--gin.TASK_FEATURE_LENGTHS="))
    assert set(ast.literal_eval(lengths.partition("=")[2]).values()) == {SETTINGS.train_length}
    assert not any("TEACHER_PATH" in word for word in commands[1])
    assert not os.path.exists(f"{output}/teacher")


def test_all_models_are_evaluated_side_by_side(lifted, work, start):
    output, commands = lifted[0], []
    note = lambda arguments: commands.append(arguments) or 0  # noqa: E731
    assert lift_of(start, work, output, command=note).evaluate() == 0
    assert commands == []
    asked = dataclasses.replace(SETTINGS, suite=("events=held=out.jsonl",), cross_publisher=True)
    lift_of(start, work, output, asked, note).evaluate()
    text = " ".join(commands[0])
    for name, step in (("start", "import"), ("untrained", "untrained"), ("lifted", "model")):
        assert f"--encoder {name}=model:{output}/{step} " in text
    assert "words=" not in text  # this lift trained none
    assert "--suite events --data held=out.jsonl --cross_publisher" in text


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("suite", ("events",), "--suite: got 'events'"),
        ("projection_size", 0, "--projection_size: got 0, as --words_steps, so there are no words"),
    ],
)
def test_options_out_of_range_are_refused(option, value, message):
    refuses(message, dataclasses.replace, SETTINGS, **{option: value})


@pytest.mark.long  # `make attack`
def test_the_result_of_a_lift_is_lifted_again_without_its_words(lifted, work, tmp_path):
    first, commands = f"{lifted[0]}/model", []
    output = str(tmp_path / "second")
    assert lift_of(first, work, output, command=recorded(commands)).run() == 0
    assert [command[0] for command in commands] == ["examples", "train"]
    begun, result = load_encoder(f"{output}/import"), load_model(f"{output}/model")
    shape = load_model(f"{output}/import").config
    assert (shape.kind, shape.max_length) == ("news", 6)  # one window
    texts = ["a b", "c", ""], ["c", "d", "h a b"]
    dense = load_encoder(first).encode(*texts)[:, : shape.embedding_size]
    np.testing.assert_allclose(begun.encode(*texts), dense / np.linalg.norm(dense, axis=1, keepdims=True), atol=1e-5)
    # Its words are those of this lift, not of both.
    assert result.config == load_model(first).config
    trained = params_of(f"{output}/layers")
    assert trained.keys() == params_of(f"{lifted[0]}/layers").keys() | {"pooling_logits"}
    assert result.prompts.query == "a "


def test_a_start_without_layers_is_refused_before_anything_else(work, tmp_path):
    start = write_model(tmp_path / "static", small_encoders.static(30), [*SPECIAL_TOKENS, *string.ascii_lowercase[:25]])
    commands = []
    caught = refuses("expected a transformer", lift_of(start, work, tmp_path / "out", command=recorded(commands)).run)
    assert caught.path == start
    assert commands == []


def test_trained_words_and_the_projection_are_joined(lifted, work, start, tmp_path):
    done, output = lifted[0], str(tmp_path / "out")
    size = load_model(f"{done}/import").config.vocab_size
    table = small_encoders.static(size, lead_length=4, sublinear=True)

    def command(arguments):
        if arguments[0] != "train":
            return recorded([])(arguments)
        write_model(f"{output}/words", table, read_vocabulary(f"{output}/import/vocab.txt").pieces, 16)
        return 0

    settings = dataclasses.replace(SETTINGS, words_steps=1, train_steps=0, projection_size=8, gin=())
    assert lift_of(start, work, output, settings, command).run() == 0
    model = load_model(f"{output}/model")
    assert (model.config.lexical_size, model.config.lexical_lead_length) == (6 + 8, 4)
    words = load_model(f"{output}/words")
    trained = lexical_part_of(words.config, words.params)
    known = slice(5, None)  # letters of the archive
    rows = model.params["lexical_table"][known, :6] * np.exp(model.params["lexical_logits"])[known, None]
    expected = trained.table[known] * np.exp(trained.logits)[known, None]
    np.testing.assert_allclose(rows / np.linalg.norm(rows), expected / np.linalg.norm(expected), atol=1e-5)


def test_without_a_start_the_result_is_the_words_in_the_pieces_of_the_build(work, tmp_path):
    pieces = [*SPECIAL_TOKENS, *"abcdefgh"]
    Path(work, "vocabulary", "vocab.txt").write_text("\n".join(pieces) + "\n")
    output = str(tmp_path / "out")
    settings = dataclasses.replace(SETTINGS, projection_size=512)
    assert lift_of(None, work, output, settings).run() == 0
    assert set(os.listdir(output)) == {"lift.json", "examples", "model"}
    model = load_encoder(f"{output}/model")
    articles = list(parquet.read_records(f"{work}/clean/articles/part-00000-of-00001.parquet", Article))
    titles, bodies = [article.title for article in articles], [article.body for article in articles]
    found = model.encode(titles, bodies)
    assert found.shape == (DOCUMENTS, 512)
    # The cosines are those of TF-IDF, by letters here: early ones count more, copies by the logarithm of their sum.
    rows = Vocabulary(tuple(pieces)).encode_documents(titles, bodies, settings.max_length)
    counts = np.zeros((DOCUMENTS, 13))
    for number, row in enumerate(rows):
        np.add.at(counts[number], row, 1 / (1 + np.arange(len(row)) / 64))
    counts = np.log1p(counts[:, 5:])
    vectors = counts * (np.log((1 + DOCUMENTS) / (1 + np.count_nonzero(counts, axis=0))) + 1)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    assert np.abs(found @ found.T - vectors @ vectors.T).max() < 0.2
