"""newsembed: document embeddings for news, from raw crawl to served encoder (NewsEmbed, KDD 2021)."""

__version__ = "0.1.0"
