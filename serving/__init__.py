"""Using a trained encoder: loading, export, search index, server."""

from .specs import factories

__all__ = ["factories"]
