"""Reads pictures as patches of pixels (Dosovitskiy et al., 2021)."""

import numpy as np
from numpy.typing import NDArray

from transduce.system.errors import UserError, needing

WINDOW_PIXELS = (
    64  # width and height of the window into which each picture is put, at its upper left corner
)
PATCH_PIXELS = 8  # width and height of a patch
WHITE = (255, 255, 255)


def read_picture(path: str) -> NDArray[np.uint8]:
    """The patches of a picture on white, row by row: (64, 192), red, green and blue of each pixel.

    Raises UserError if the file is missing, no picture, damaged, or larger than the window.
    """
    with needing("lab", "Reading pictures"):
        from PIL import Image, UnidentifiedImageError
    window = Image.new("RGB", (WINDOW_PIXELS, WINDOW_PIXELS), WHITE)
    try:
        with Image.open(path) as picture:
            if max(picture.size) > WINDOW_PIXELS:
                width, height = picture.size
                raise UserError(
                    f"{path} has {width} x {height} pixels, more than {WINDOW_PIXELS} x {WINDOW_PIXELS}.",
                    "Make the picture smaller.",
                )
            seen = picture.convert("RGBA")
    except FileNotFoundError:
        raise UserError(
            f"There is no picture {path}.",
            "Write a path and its text, separated by a TAB. Paths begin at the working directory.",
        ) from None
    except UnidentifiedImageError:
        raise UserError(f"{path} is no picture that can be read.", "Convert it to PNG.") from None
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        raise UserError(
            f"{path} can't be read: {error}.", "Restore it from another copy."
        ) from None
    window.paste(seen, (0, 0), seen)
    patches = WINDOW_PIXELS // PATCH_PIXELS
    pixels = np.asarray(window).reshape(patches, PATCH_PIXELS, patches, PATCH_PIXELS, len(WHITE))
    return pixels.swapaxes(1, 2).reshape(patches * patches, -1)
