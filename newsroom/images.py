"""Thumbnails: one procedural picture per event, which every publisher crops, scales and compresses in its own way."""

import functools
import io
from typing import TYPE_CHECKING

from .options import stable_number

if TYPE_CHECKING:
    from PIL.Image import Image

_BASE_SIZE = (320, 240)


@functools.lru_cache(maxsize=4)  # stories of one event are drawn one after the other
def base_image(seed: str) -> "Image":
    """A soft field of colours with a few shapes on it, determined by the seed."""
    import numpy as np
    from PIL import Image, ImageDraw

    generator = np.random.default_rng(stable_number(f"image/{seed}"))
    field = generator.integers(0, 256, size=(5, 6, 3), dtype=np.uint8)
    image = Image.fromarray(field, "RGB").resize(_BASE_SIZE, Image.Resampling.BICUBIC)
    draw = ImageDraw.Draw(image)
    for _ in range(6):
        left, top = int(generator.integers(0, 260)), int(generator.integers(0, 190))
        width, height = int(generator.integers(30, 130)), int(generator.integers(30, 110))
        colour = tuple(int(value) for value in generator.integers(0, 256, size=3))
        box = (left, top, left + width, top + height)
        if generator.random() < 0.5:
            draw.ellipse(box, fill=colour)
        else:
            draw.rectangle(box, fill=colour)
    return image


def thumbnail(seed: str, publisher: str) -> bytes:
    """The picture of an event as one publisher's JPEG."""
    import random

    draw = random.Random(stable_number(f"thumbnail/{seed}/{publisher}"))
    image = base_image(seed)
    width, height = image.size
    left, right = (round(width * draw.uniform(0, 0.025)) for _ in range(2))
    top, bottom = (round(height * draw.uniform(0, 0.025)) for _ in range(2))
    cropped = image.crop((left, top, width - right, height - bottom))
    scaled = cropped.resize((draw.choice((200, 240, 280)), draw.choice((150, 168, 180))))
    return _jpeg(scaled, draw.randint(60, 90))


def logo(publisher: str) -> bytes:
    """The logo of a site, which replaces the picture on many of its pages."""
    from PIL import Image, ImageDraw

    number = stable_number(f"logo/{publisher}")
    image = Image.new(
        "RGB", (200, 150), ((number >> 8) % 90 + 150, (number >> 16) % 90 + 150, (number >> 24) % 90 + 150)
    )
    draw = ImageDraw.Draw(image)
    draw.rectangle((30, 45, 170, 105), outline=(20, 20, 40), width=4 + number % 5)
    draw.ellipse((60 + number % 40, 55, 100 + number % 40, 95), fill=(20, 20, (number >> 4) % 200))
    return _jpeg(image, 85)


def _jpeg(image: "Image", quality: int) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, "JPEG", quality=quality)
    return buffer.getvalue()
