"""A vertical chart for the terminal: true counts as bars, estimates as dots with their error bars.

Not here: numbers' meaning; it draws what it is given.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.text import Text

AXIS_WIDTH = 7


@dataclass(frozen=True)
class Bar:
    """One column of the chart: the truth, the estimate and its interval, in the same unit."""

    label: str
    truth: float
    estimate: float
    low: float
    high: float


def draw_chart(bars: Sequence[Bar], *, height: int, width: int) -> Text:
    """The chart as styled text; neighbouring bars are thinned evenly where they do not fit.

    Args:
        bars: Left to right.
        height: Rows of the plot, without its axis.
        width: Characters of a line.
    """
    stride = -(-len(bars) // max(width - AXIS_WIDTH, 1))
    shown = bars[::stride]
    top = max(max(bar.high, bar.truth, bar.estimate) for bar in shown) or 1.0
    step = top / height
    chart = Text()
    for row in reversed(range(height)):
        chart.append(f"{step * (row + 0.5):>{AXIS_WIDTH - 2}.0f} ┤", style="dim")
        for bar in shown:
            chart.append(*_glyph(bar, row * step, (row + 1) * step))
        chart.append("\n")
    chart.append(" " * (AXIS_WIDTH - 2) + " └" + "─" * len(shown) + "\n", style="dim")
    chart.append(_labels(shown), style="dim")
    return chart


def _glyph(bar: Bar, low: float, high: float) -> tuple[str, str]:
    if low <= max(bar.estimate, 0.0) < high or (bar.estimate >= high and bar.estimate - high < 1e-9):
        return "●", "bold cyan"
    if bar.low < high and bar.high >= low and bar.high > bar.low:
        return "│", "cyan"
    return ("▒", "green") if bar.truth > (low + high) / 2 else (" ", "")


def _labels(shown: Sequence[Bar]) -> str:
    line = [" "] * (len(shown) + 8)
    for position in range(0, len(shown), 10):
        line[position : position + len(shown[position].label)] = shown[position].label
    return " " * AXIS_WIDTH + "".join(line).rstrip()
