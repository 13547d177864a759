"""Attention maps: for every piece of the translation, where in the source the model looked (section 3.2 of the paper).

Dimensions: s = source pieces (columns), t = target pieces (rows).
"""

import html
import unicodedata
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

CELL = 24  # pixels
FONT = 13
LETTER = 0.56 * FONT  # width of an average letter; a wide (East Asian) one takes two
COLOUR = "#4c8bd6"
FAINTEST = 0.004  # fainter cells can't be seen and are left out

# What XML forbids, as pictures (␀ ␁ …); a tab and a line feed may stay.
_PICTURES = {code: 0x2400 + code for code in range(32) if chr(code) not in "\t\n"}
_PICTURES |= {127: 0x2421, 0xFFFE: 0xFFFD, 0xFFFF: 0xFFFD}


def attention_map(weights: NDArray[np.floating], source_pieces: Sequence[str], target_pieces: Sequence[str]) -> str:
    """A heat map as SVG: the darker a cell, the more its row's piece attended to its column's.

    weights: (t, s), each between 0 and 1; pointing at a cell shows its number. Raises ValueError when the
    pieces don't fit the weights.
    """
    if weights.shape != (len(target_pieces), len(source_pieces)):
        raise ValueError(f"weights {weights.shape} for {len(target_pieces)} target, {len(source_pieces)} source pieces")
    left, top = _widest(target_pieces) + 10, _widest(source_pieces) * 0.87 + 14  # labels above lean by 60 degrees
    overhang = (_widest(source_pieces[-1:])) / 2
    width, height = left + CELL * len(source_pieces) + overhang, top + CELL * len(target_pieces) + 1
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="Attention of {len(target_pieces)} target '
            f'pieces to {len(source_pieces)} source pieces" width="{width:.0f}" height="{height:.0f}" '
            f'viewBox="0 0 {width:.0f} {height:.0f}" font-family="system-ui, sans-serif" font-size="{FONT}" '
            f'fill="currentColor">',
            *_columns(source_pieces, left, top),
            *_rows(target_pieces, left, top),
            *_cells(weights, source_pieces, target_pieces, left, top),
            f'<rect x="{left:.1f}" y="{top:.1f}" width="{CELL * len(source_pieces)}" '
            f'height="{CELL * len(target_pieces)}" fill="none" stroke="currentColor" stroke-opacity="0.25"/>',
            "</svg>",
        ]
    )


def shown(text: str) -> str:
    """`text` for HTML and SVG: escaped, with pictures of control characters in their stead."""
    return html.escape(text.translate(_PICTURES))


def _columns(pieces: Sequence[str], left: float, top: float) -> list[str]:
    places = [(left + CELL * (i + 0.6), top - 6) for i in range(len(pieces))]
    return [
        f'<text x="{x:.1f}" y="{y:.1f}" transform="rotate(-60 {x:.1f} {y:.1f})">{shown(piece)}</text>'
        for piece, (x, y) in zip(pieces, places, strict=True)
    ]


def _rows(pieces: Sequence[str], left: float, top: float) -> list[str]:
    baselines = [top + CELL * (i + 0.5) + FONT * 0.35 for i in range(len(pieces))]
    return [
        f'<text x="{left - 6:.1f}" y="{y:.1f}" text-anchor="end">{shown(piece)}</text>'
        for piece, y in zip(pieces, baselines, strict=True)
    ]


def _cells(
    weights: NDArray[np.floating], source: Sequence[str], target: Sequence[str], left: float, top: float
) -> list[str]:
    return [
        f'<rect x="{left + CELL * s:.1f}" y="{top + CELL * t:.1f}" width="{CELL}" height="{CELL}" fill="{COLOUR}" '
        f'fill-opacity="{weight:.3f}"><title>{shown(target[t])} ← {shown(source[s])}: {weight:.3f}</title></rect>'
        for (t, s), weight in np.ndenumerate(weights)
        if weight >= FAINTEST
    ]


def _widest(pieces: Sequence[str]) -> float:
    """Pixels that the longest label takes, about."""
    return LETTER * max((sum(_letters(letter) for letter in piece) for piece in pieces), default=0)


def _letters(letter: str) -> int:
    return 2 if unicodedata.east_asian_width(letter) in "WF" else 1
