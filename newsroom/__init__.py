"""A generated news world, with the truth about its pages, and a local HTTP server for it."""

from .generate import generate_newsroom
from .options import NewsroomOptions, NewsroomSummary
from .server import NewsroomServer

__all__ = ["NewsroomOptions", "NewsroomServer", "NewsroomSummary", "generate_newsroom"]
