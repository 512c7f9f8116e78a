"""The embedded default: a generated news world that serves itself over HTTP on loopback, with the truth beside it."""

from .generate import generate_newsroom
from .options import NewsroomOptions, NewsroomSummary
from .server import NewsroomServer

__all__ = ["NewsroomOptions", "NewsroomServer", "NewsroomSummary", "generate_newsroom"]
