"""Using a trained encoder: loading, export, search index, server."""
