"""A generated news world, with the truth about its pages, and a local HTTP server for it."""

from .generate import generate_newsroom
from .server import NewsroomServer
from .world import NewsroomOptions

__all__ = ["NewsroomOptions", "NewsroomServer", "generate_newsroom"]
