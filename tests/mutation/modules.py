"""The modules that matter most, and the tests that must notice a fault in each: fast ones first."""

from pathlib import Path

_DEFAULTS = "tests/test_option_defaults.py::test_defaults_of_a_module_are_those_on_record"
_RECORD = Path(__file__).parents[1].joinpath("golden", "option_defaults.txt").read_text(encoding="utf-8").splitlines()
_PIPELINES = "tests/beam_pipelines"
_CLEAN = tuple(
    f"{_PIPELINES}/test_clean{part}.py"
    for part in ("_scripts", "_rules", "_thresholds", "_duplicates", "_signatures", "_yields", "")
)
_PACKING = tuple(f"{_PIPELINES}/test_{name}.py" for name in ("packing_algorithm", "pack"))
_TRIPLETS = (f"{_PIPELINES}/test_evergreen.py", f"{_PIPELINES}/test_triplets.py")
_EXTRACT = (
    *(f"{_PIPELINES}/extract/test_{name}.py" for name in ("content", "content_bounds", "names_and_days", "metadata")),
    *(f"{_PIPELINES}/extract/test_{name}.py" for name in ("body", "unusual_pages", "page", "gold")),
    f"{_PIPELINES}/test_extract.py",
)
_CRAWL = tuple(f"{_PIPELINES}/crawl/test_{name}.py" for name in ("retry_policy", "walk", "retries", "fetch"))
_JOBS = tuple(
    f"{_PIPELINES}/test_{name}.py" for name in ("output_folder", "jobs", "job_results", "graph", "shuffle", "shards")
)
_DIAGNOSTICS = ("tests/evaluation/diagnostics/test_arrays.py",)
_PROTOCOLS = "tests/evaluation/test_protocols.py"
_HEADS = "tests/evaluation/test_heads.py"
_TASKS = (_PROTOCOLS, _HEADS, "tests/evaluation/test_tasks.py")
_BITEXT = tuple(f"{_PIPELINES}/test_{name}.py" for name in ("bitext_mining", "bitext", "translations"))
_PAIRS = (f"{_PIPELINES}/test_halves.py", f"{_PIPELINES}/test_pairs.py")
_CATEGORIES = (f"{_PIPELINES}/test_categories.py",)
_WORD_ENCODERS = ("tests/models/test_word_encoders.py",)
_TRANSLATORS = ("tests/models/test_translators.py", "tests/models/test_bilingual.py")
_OBJECTIVES = "tests/learning/objectives"
_NEWSROOM = (
    "tests/golden/test_golden.py::test_newsroom",  # the digests of all its files
    *(f"tests/newsroom/test_{name}.py" for name in ("generate", "russian", "server", "prose")),
)
_HUGGING_FACE = (
    "tests/models/test_huggingface_parts.py",
    "tests/models/test_huggingface.py",
    "tests/models/test_transformers.py",
)
_WARC = (
    *(f"{_PIPELINES}/extract/test_{name}.py" for name in ("cdx", "sources", "path_lists")),
    *("tests/attack/test_damaged_warc.py", f"{_PIPELINES}/test_extract.py"),
)
_ENTITIES = tuple(
    f"{_PIPELINES}/test_{name}.py" for name in ("entity_names", "known_entities", "entities", "entity_spellings")
)
_UPDATES = (
    "tests/updates/test_report.py",
    "tests/updates/test_store.py",
    "tests/updates/test_duplicates.py",
    "tests/updates/test_feeds.py",
    "tests/updates/test_indexing.py",
    "tests/updates/test_intake.py",
    "tests/updates/test_update.py",
)

# Modules whose tests are in the file of the same name.
_MIRRORED = {
    "beam_pipelines": ("emptiness", "failures", "knowledge", "shuffle", "vocabulary_words", "workflow"),
    "beam_pipelines/crawl": ("addresses", "coding", "links", "rate_limits", "sitemaps", "state", "warc"),
    "beam_pipelines/extract": ("body", "decoding", "markup", "path_lists", "wire"),
    "evaluation": ("baselines", "events", "files", "recipe", "registry", "table"),
    "formats": (
        *("archive", "arrays", "articles", "digests", "files", "jsonl", "keys", "manifest", "model_folder"),
        *("object_stores", "parquet", "prompts", "records", "t5x", "vocabulary", "whole", "word_vectors"),
    ),
    "launch": ("config_file", "extensions", "extras", "pod"),
    "learning": ("batches", "optimizers", "options", "partitioning"),
    "models": ("attention", "chunks", "pooling", "softmax"),
    "serving": (
        *("access", "batching", "encoder", "gate", "limits", "long_documents", "monitoring", "precision", "probe"),
        *("reload", "shapes"),
    ),
    "t5x_bridge": ("checkpoints", "command", "datasets", "evaluator", "inference", "layout", "losses", "trees"),
    "tasks": (
        *("margin", "parts_of_speech", "plain_tokenizer", "registry", "rows", "sentences", "sizes", "smoothing"),
        "vocabulary",
    ),
    "training": ("gin_config", "gin_t5x", "guards", "held_out", "options", "retrieval", "whitening", "word_shares"),
}

TESTS: dict[str, tuple[str, ...]] = {
    **{
        f"{folder}/{name}.py": (f"tests/{folder}/test_{name}.py",)
        for folder, names in _MIRRORED.items()
        for name in names
    },
    "models/losses.py": (
        *("tests/models/test_losses.py", "tests/models/test_softmax.py"),
        "tests/learning/objectives/test_contrastive.py",
    ),
    "models/softmax.py": ("tests/models/test_softmax.py", "tests/training/test_sharding.py"),
    "models/masking.py": ("tests/models/test_masking.py",),
    "models/entmax.py": ("tests/models/test_entmax.py", *_WORD_ENCODERS),
    "models/bags.py": ("tests/models/test_bags.py", "tests/learning/objectives/test_denoising.py"),
    "models/greedy.py": ("tests/models/test_greedy.py", "tests/evaluation/test_display.py"),
    "models/distances.py": _TRANSLATORS,
    "models/recurrence.py": _TRANSLATORS,
    "models/star_attention.py": _WORD_ENCODERS,
    "models/encoders/star.py": _WORD_ENCODERS,
    "models/encoders/convolution.py": _WORD_ENCODERS,
    "models/encoders/recurrent.py": _WORD_ENCODERS,
    "models/encoders/autoencoder.py": ("tests/models/test_autoencoder.py",),
    "models/encoders/translator.py": _TRANSLATORS,
    "models/encoders/laser.py": _TRANSLATORS,
    "models/encoders/context.py": ("tests/models/test_context.py",),
    "models/encoders/hybrid.py": ("tests/models/test_hybrid.py",),
    "learning/objectives/linking.py": (f"{_OBJECTIVES}/test_linking.py",),
    "learning/objectives/denoising.py": (f"{_OBJECTIVES}/test_denoising.py",),
    "learning/objectives/translation.py": (f"{_OBJECTIVES}/test_translation.py",),
    "learning/objectives/masked_texts.py": (f"{_OBJECTIVES}/test_masked_texts.py",),
    "training/keeping.py": ("tests/training/test_keeping.py",),
    "launch/update.py": ("tests/launch/test_update.py",),
    "launch/verify.py": ("tests/launch/test_verify.py", "tests/launch/test_verify_held_out.py"),
    "beam_pipelines/encoders.py": (f"{_PIPELINES}/test_job_encoders.py",),
    "launch/encoders.py": (f"{_PIPELINES}/test_job_encoders.py",),
    "beam_pipelines/texts.py": (f"{_PIPELINES}/test_texts.py",),
    "tasks/pairs.py": _PAIRS,
    "tasks/topics.py": ("tests/tasks/test_rows.py", "tests/learning/test_batches.py"),
    "tasks/triplets.py": ("tests/tasks/test_rows.py", "tests/learning/test_batches.py"),
    "tasks/translation.py": (f"{_OBJECTIVES}/test_translation.py",),
    "training/latent_semantics.py": ("tests/training/test_latent_semantics.py",),
    "training/stopping.py": ("tests/training/test_early_stopping.py",),
    "training/checkpoints.py": tuple(
        f"tests/training/test_{name}.py"
        for name in ("checkpoints", "early_stopping", "learned_temperature", "bilingual_runs")
    ),
    "learning/mixture.py": ("tests/learning/test_batches.py",),
    "training/metrics.py": (
        *(f"tests/training/test_{name}.py" for name in ("metrics", "costs")),
        "tests/learning/objectives",
        "tests/training/test_loop.py",
    ),
    "serving/ranking.py": ("tests/serving/test_hybrid.py",),
    "serving/hybrid.py": ("tests/serving/test_hybrid.py",),
    "serving/words.py": ("tests/serving/test_words.py", "tests/serving/test_hybrid.py"),
    "serving/filters.py": ("tests/serving/test_filters.py",),
    "serving/tuning.py": ("tests/serving/test_tuning.py", "tests/serving/test_hybrid.py"),
    "serving/events.py": ("tests/serving/test_events.py",),
    "serving/extracts.py": ("tests/serving/test_words.py",),
    "formats/index.py": ("tests/formats/test_index_versions.py", "tests/formats/test_index_folder.py"),
    "beam_pipelines/packing.py": _PACKING,
    "beam_pipelines/pack.py": _PACKING,
    "beam_pipelines/triplets/dates.py": _TRIPLETS,
    "beam_pipelines/triplets/evergreen.py": _TRIPLETS,
    "beam_pipelines/triplets/mine.py": (
        *_TRIPLETS,
        *(f"{_PIPELINES}/test_{name}.py" for name in ("stories", "rarity", "learned_space")),
    ),
    "beam_pipelines/triplets/candidates.py": (*_TRIPLETS, f"{_PIPELINES}/test_stories.py"),
    "beam_pipelines/clean/duplicates.py": _CLEAN,
    "beam_pipelines/clean/rules.py": _CLEAN,
    "beam_pipelines/clean/lines.py": _CLEAN,
    "beam_pipelines/clean/dates.py": (f"{_PIPELINES}/test_clean_dates.py", *_CLEAN),
    "beam_pipelines/extract/content.py": _EXTRACT,
    "beam_pipelines/extract/layout.py": _EXTRACT,
    "beam_pipelines/extract/dates.py": _EXTRACT,
    "beam_pipelines/crawl/robots.py": (f"{_PIPELINES}/crawl/test_site.py", *_CRAWL),
    "beam_pipelines/crawl/fetch.py": _CRAWL,
    "beam_pipelines/crawl/retries.py": _CRAWL,
    **{
        f"beam_pipelines/bitext/{name}.py": _BITEXT
        for name in ("aligned", "documents", "known", "least", "mine", "pairs", "search", "sentences", "tmx", "tsv")
    },
    "beam_pipelines/pairs/halves.py": _PAIRS,
    "beam_pipelines/pairs/links.py": _PAIRS,
    "beam_pipelines/pairs/titles.py": _PAIRS,
    "beam_pipelines/pairs/writing.py": _PAIRS,
    "beam_pipelines/categories/__init__.py": _CATEGORIES,
    "beam_pipelines/categories/drawing.py": _CATEGORIES,
    "beam_pipelines/graph.py": (f"{_PIPELINES}/test_graph.py",),
    "beam_pipelines/accounting.py": (f"{_PIPELINES}/test_accounting.py", *_JOBS),
    "beam_pipelines/metrics.py": (f"{_PIPELINES}/test_metrics.py", *_JOBS),
    "beam_pipelines/shards.py": _JOBS,
    "beam_pipelines/worker_forks.py": (f"{_PIPELINES}/test_worker_forks.py",),
    "beam_pipelines/jobs.py": _JOBS,
    "beam_pipelines/output_folder.py": _JOBS,
    "beam_pipelines/output_lock.py": _JOBS,
    "evaluation/command.py": tuple(f"tests/evaluation/test_{name}.py" for name in ("command", "suites", "recipe")),
    "evaluation/retrieval.py": (_PROTOCOLS, "tests/evaluation/test_benchmarks.py"),
    "evaluation/classification.py": (*_TASKS, "tests/evaluation/test_simlte_head.py"),
    "evaluation/clustering.py": (_PROTOCOLS, "tests/evaluation/test_benchmarks.py", "tests/evaluation/test_tasks.py"),
    "evaluation/sts.py": (
        *(_PROTOCOLS, "tests/evaluation/test_benchmarks.py"),
        *("tests/evaluation/test_tasks.py", "tests/evaluation/test_trust.py"),
    ),
    "evaluation/crosslingual.py": _TASKS,
    "evaluation/bitext.py": _TASKS,
    "evaluation/mldoc.py": ("tests/evaluation/test_mldoc.py",),
    "evaluation/nli.py": ("tests/evaluation/test_mldoc.py",),
    "evaluation/perceptron.py": ("tests/evaluation/test_perceptron.py",),
    "evaluation/links.py": ("tests/evaluation/test_links.py",),
    "evaluation/display.py": ("tests/evaluation/test_display.py",),
    "evaluation/day_pairs.py": ("tests/evaluation/test_day_pairs.py",),
    "evaluation/shots.py": ("tests/evaluation/test_simlte_head.py",),
    "evaluation/mining.py": ("tests/evaluation/test_mining.py",),
    "evaluation/intervals.py": ("tests/evaluation/test_intervals.py", "tests/evaluation/test_benchmarks.py"),
    "evaluation/duplicates.py": _TASKS,
    "evaluation/compare.py": (*_TASKS, "tests/evaluation/test_mldoc.py"),
    "evaluation/benchmark.py": _TASKS,
    "evaluation/pairs.py": _TASKS,
    "evaluation/leakage.py": ("tests/evaluation/test_leakage.py", "tests/evaluation/test_trust.py"),
    "evaluation/labelled.py": ("tests/evaluation/test_labelled.py",),
    "evaluation/encoders.py": ("tests/evaluation/test_encoders.py", "tests/evaluation/test_baselines.py"),
    "evaluation/diagnostics/pairs.py": _DIAGNOSTICS,
    "evaluation/diagnostics/neighbors.py": _DIAGNOSTICS,
    "evaluation/diagnostics/geometry.py": _DIAGNOSTICS,
    "evaluation/diagnostics/redundancy.py": _DIAGNOSTICS,
    "evaluation/diagnostics/attention.py": ("tests/evaluation/diagnostics/test_attention.py",),
    "evaluation/diagnostics/articles.py": ("tests/evaluation/diagnostics/test_articles.py",),
    "serving/index.py": (
        *(f"tests/serving/test_{name}.py" for name in ("document_index", "hybrid", "queries", "index")),
        "tests/formats/test_index_versions.py",
    ),
    "serving/groups.py": ("tests/serving/test_groups.py",),
    **{
        f"updates/{name}.py": _UPDATES
        for name in ("duplicates", "indexing", "intake", "options", "report", "rules", "run", "signatures", "store")
    },
    "updates/replacement.py": ("tests/updates/test_train.py",),
    **{
        f"beam_pipelines/entities/{name}.py": (f"{_PIPELINES}/test_known_entities.py",)
        for name in ("forms", "gazetteer", "known", "sounds")
    },
    "beam_pipelines/entities/tables.py": (f"{_PIPELINES}/test_entity_tables.py",),
    "beam_pipelines/clean/yields.py": (f"{_PIPELINES}/test_clean_yields.py",),
    "beam_pipelines/topics/names.py": (f"{_PIPELINES}/test_topic_names.py",),
    "beam_pipelines/topics/sampling.py": (f"{_PIPELINES}/test_topic_sampling.py",),
    "beam_pipelines/extract/feeds.py": (f"{_PIPELINES}/extract/test_addresses_and_feeds.py",),
    "formats/urls.py": ("tests/formats/test_urls.py",),
    "formats/archive_parts.py": ("tests/formats/test_archive.py",),
    "formats/manifest.py": ("tests/formats/test_manifest.py", "tests/tasks/test_sizes.py"),
    "tasks/margin.py": ("tests/tasks/test_margin.py", "tests/evaluation/test_mining.py"),
    "serving/shapes.py": ("tests/serving/test_shapes.py", "tests/serving/test_encoder.py"),
    "formats/tfrecords/example.py": ("tests/formats/test_tfrecords.py",),
    "formats/tfrecords/reader.py": ("tests/formats/test_tfrecords.py",),
    "learning/day_order.py": ("tests/learning/test_day_order.py", "tests/learning/test_batches.py"),
    "serving/analysis.py": ("tests/serving/test_words.py",),
    "serving/explorer/topic_map.py": ("tests/serving/explorer/test_topic_map.py",),
    "studies/ablate/zscores.py": ("tests/studies/test_ablate_zscores.py",),
    **{
        f"studies/ablate/{name}.py": ("tests/studies/test_ablate_report.py", "tests/studies/test_ablate_supervision.py")
        for name in ("paired", "parts", "report")
    },
    **{
        f"studies/diagnose/{name}.py": ("tests/studies/test_diagnose_report.py", "tests/studies/test_diagnose.py")
        for name in ("charts", "page", "sections", "text")
    },
    **{
        f"studies/report/{name}.py": ("tests/studies/test_report.py",)
        for name in ("page", "plots", "samples", "yields")
    },
    "studies/shared/recipe.py": ("tests/studies/test_study_recipe.py",),
    "studies/retrain/options.py": ("tests/studies/test_retrain_options.py",),
    "studies/retrain/trial.py": ("tests/studies/test_retrain_trial.py",),
    "studies/shared/steps.py": ("tests/studies/test_study_steps.py",),
    "studies/shared/gin_text.py": ("tests/studies/test_study_steps.py",),
    "studies/staleness/report.py": ("tests/studies/test_staleness_report.py", "tests/studies/test_staleness.py"),
    "studies/staleness/cutoffs.py": ("tests/studies/test_staleness.py",),
    "studies/staleness/decay.py": ("tests/studies/test_staleness_report.py", "tests/studies/test_staleness.py"),
    **{
        f"studies/label/{name}.py": ("tests/studies/test_label_texts.py", "tests/studies/test_label.py")
        for name in ("pairs", "report", "sample", "session", "store", "terminal", "texts")
    },
}

TESTS |= {
    **{
        f"newsroom/{name}.py": _NEWSROOM
        for name in (
            *("articles", "command", "evaluation_sets", "feeds", "generate", "images", "interface_words", "junk"),
            *("mldoc", "names", "options", "pages", "prose", "publishers", "russian", "server", "site", "store"),
            *("telling", "world"),
        )
    },
    "t5x_bridge/recipe.py": tuple(f"tests/t5x_bridge/test_{name}.py" for name in ("datasets", "inference", "layout")),
    "t5x_bridge/rows.py": tuple(f"tests/t5x_bridge/test_{name}.py" for name in ("datasets", "inference", "evaluator")),
    **{
        f"models/huggingface/{name}.py": _HUGGING_FACE
        for name in ("__init__", "configs", "family", "interface", "layouts", "values")
    },
    **{f"beam_pipelines/extract/{name}.py": _WARC for name in ("sources", "warc")},
    "beam_pipelines/extract/read.py": (
        *(f"{_PIPELINES}/extract/test_{name}.py" for name in ("read", "posts", "unread_fields")),
        *_WARC,
    ),
    "beam_pipelines/extract/isolation.py": (f"{_PIPELINES}/extract/test_hostile.py",),
    **{f"beam_pipelines/entities/{name}.py": _ENTITIES for name in ("aliases", "linking")},
    "studies/lift/conduct.py": ("tests/studies/test_lift.py", "tests/studies/test_lift_teacher.py"),
    "studies/retrain/conduct.py": (
        *(f"tests/studies/test_retrain_{name}.py" for name in ("values", "trial", "options")),
        "tests/updates/test_train.py",
    ),
}

# The defaults of options of a module, where it has some.
TESTS |= {path: (f"{_DEFAULTS}[{path}]", *tests) for path, tests in TESTS.items() if f"## {path}" in _RECORD}
