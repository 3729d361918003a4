"""Figures as SVG and PNG files.

Not here: what is in them (`charts`). Needs the extra ``pictures``, which `require` tells in plain words.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module

from tallyveil.errors import ConfigurationError
from tallyveil_reproduce.figures import Figure
from tallyveil_reproduce.views import Row

PIXELS_PER_POINT = 2.0


@dataclass(frozen=True)
class Picture:
    """One figure, drawn.

    Args:
        svg: With both languages; whoever shows it chooses the font.
        png: With Chinese only where a font here has it.
    """

    svg: str
    png: bytes


def require() -> None:
    """Look for what pictures are made with, before anything else is done.

    Raises:
        ConfigurationError: It is not installed.
    """
    try:
        for package in ("altair", "vl_convert"):
            import_module(package)
    except ImportError as error:
        raise ConfigurationError(
            f"pictures need the package {error.name}, which is not installed",
            not_done="nothing was simulated or drawn",
            next_step="pip install 'tallyveil[pictures]', or say --no-pictures for the tables alone",
        ) from None


def paint(figure: Figure, rows: Sequence[Sequence[Row]]) -> Picture:
    """Draw one figure from the rows of its views."""
    import vl_convert

    from tallyveil_reproduce.charts import draw
    from tallyveil_reproduce.fonts import can_show_chinese

    svg = vl_convert.vegalite_to_svg(draw(figure, rows, chinese=True).to_dict())
    png = vl_convert.vegalite_to_png(draw(figure, rows, chinese=can_show_chinese()).to_dict(), scale=PIXELS_PER_POINT)
    return Picture(svg, png)
