# pyright: standard
"""A figure as a chart: what is drawn where, in which colour, on which scale.

Not here: files (`pictures`) and numbers (`views`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import altair as alt

from tallyveil.guarantee import KIND_WITHIN_BIN
from tallyveil_reproduce.captions import TITLES
from tallyveil_reproduce.figures import Figure
from tallyveil_reproduce.fonts import FAMILIES
from tallyveil_reproduce.views import Row, View

AnyChart = alt.Chart | alt.LayerChart | alt.FacetChart | alt.HConcatChart | alt.VConcatChart

_COLOURS = {
    "grr": ["#D55E00"],
    "ss": ["#B05A8C"],
    "brr-sealed": ["#009E73"],
    "histogram-laplace": ["#4D4D4D"],
    "brr": ["#0072B2"],
}
_SHADES_OF_BRR = ["#7CC0EA", "#2A8CCB", "#08467C"]
_SHAPES = {
    "grr": "triangle-up",
    "ss": "diamond",
    "brr-sealed": "square",
    "histogram-laplace": "triangle-down",
    "brr": "circle",
}
_DISCLOSING = "#C00000"
_TRUTH = "#CFCFCF"
_POWERS = [10.0**power for power in range(-6, 5)]
_MAPE = ("MAPE, as a fraction", "平均绝对百分比误差")
_ERROR = ("Relative error", "相对误差")
_COUNT = ("Records", "频数")


def draw(figure: Figure, rows: Sequence[Sequence[Row]], chinese: bool) -> AnyChart:
    """The whole figure.

    Args:
        figure: Which one.
        rows: Those of each of its views.
        chinese: Whether Chinese characters may be used beside the English.
    """
    painters = {"counts": _counts, "errors": _errors, "sweep": _sweep}
    parts = [painters[view.kind](view, part, chinese) for view, part in zip(figure.views, rows, strict=True)]
    chart: Any = (
        parts[0]
        if len(parts) == 1
        else alt.hconcat(*parts, spacing=40).resolve_scale(color="independent", shape="independent")
    )
    title = TITLES[figure.number]
    below = [title.chinese] if chinese else []
    if any(point.trial.mechanism == "brr" for point in figure.points):
        below.append(f"BRR: {KIND_WITHIN_BIN}" + ("（仅箱内有保护，箱号公开）" if chinese else ""))
    heading = alt.TitleParams(
        f"Figure {figure.number}. {title.english}", subtitle=below, anchor="start", offset=16, fontSize=17,
        subtitleFontSize=13, subtitleColor="#444444", subtitlePadding=5,
    )  # fmt: skip
    done: AnyChart = (
        chart.properties(title=heading, background="white", padding=16)
        .configure(font=FAMILIES)
        .configure_axis(labelFontSize=11, titleFontSize=12, titleFontWeight="normal", gridColor="#ECECEC")
        .configure_header(labelFontSize=12, labelFontWeight="bold", title=None)
        .configure_legend(labelFontSize=12, labelLimit=300, symbolSize=90, symbolStrokeWidth=2)
        .configure_view(stroke="#D8D8D8")
    )
    return done


def _counts(view: View, rows: Sequence[Row], chinese: bool) -> Any:
    """A row of charts for each panel, a column for each series: the truth behind, one run and the spread before it."""
    panels = list(dict.fromkeys(row.panel for row in rows))
    colour = _colour(rows, legend=False)
    lines = list[Any]()
    for panel in panels:
        mine = [row for row in rows if row.panel == panel]
        data = _data(mine)
        x = alt.X("x:Q", title=_both(view.axis, chinese), scale=_tight(mine), axis=alt.Axis(tickCount=6, grid=False))
        truth = alt.Chart().mark_area(interpolate="step", color=_TRUTH, line={"color": "#9A9A9A", "strokeWidth": 1})
        spread = alt.Chart().mark_rule(opacity=0.55, strokeWidth=1.3)
        dots = alt.Chart().mark_circle(size=16, opacity=1)
        zero = alt.Chart().mark_rule(color="#888888", strokeWidth=0.7)
        layered = alt.layer(
            truth.encode(x, alt.Y("truth:Q", title=_both(_COUNT, chinese), axis=alt.Axis(minExtent=52))),
            zero.encode(y=alt.datum(0)),
            spread.encode(x, alt.Y("low:Q"), alt.Y2("high:Q"), colour),
            dots.encode(x, alt.Y("one_run:Q"), colour),
            data=data,
        ).properties(width=225, height=150)
        order = list(dict.fromkeys(row.series for row in mine))
        title = alt.TitleParams(panel, fontSize=13, anchor="start")
        faceted = layered.facet(column=alt.Column("series:N", sort=order), spacing=12)
        lines.append(faceted.properties(title=title) if len(panels) > 1 else faceted)
    return alt.vconcat(*lines, spacing=18) if len(lines) > 1 else lines[0]


def _errors(view: View, rows: Sequence[Row], chinese: bool) -> Any:
    """A small chart for each panel, or for each series where there is one panel; one logarithmic scale for all."""
    several = len({row.panel for row in rows}) > 1
    cell = "panel" if several else "series"
    order = list(dict.fromkeys(getattr(row, cell) for row in rows))
    colour = _colour(rows, legend=False)
    x = alt.X("x:Q", title=_both(view.axis, chinese), scale=_tight(rows), axis=alt.Axis(tickCount=6))
    y = alt.Y("mean:Q", title=_both(_ERROR, chinese), scale=alt.Scale(type="log"), axis=_powers())
    bars = alt.Chart().mark_rule(opacity=0.5, strokeWidth=1.3).encode(x, alt.Y("low:Q", scale=alt.Scale(type="log")),
                                                                      alt.Y2("high:Q"), colour)  # fmt: skip
    dots = alt.Chart().mark_circle(size=18, opacity=1).encode(x, y, colour)
    positive = [row for row in rows if row.mean > 0]
    width, height = (240, 150) if several else (330, 180)
    layered = alt.layer(bars, dots, data=_data(positive)).properties(width=width, height=height)
    return layered.facet(facet=alt.Facet(f"{cell}:N", sort=order), columns=2 if several else 3, spacing=16)


def _sweep(view: View, rows: Sequence[Row], chinese: bool) -> Any:
    """A chart of lines for each panel, side by side on one logarithmic scale."""
    panels = list(dict.fromkeys(row.panel for row in rows))
    places = sorted({row.x for row in rows})
    scale = alt.Scale(type="log", base=2, nice=False) if view.logarithmic else alt.Scale(nice=False, zero=True)
    wide = max(places) > 10_000
    ticks = alt.Axis(values=places if view.logarithmic else alt.Undefined, format=".3~s" if wide else "~g",
                     labelAngle=-35 if wide else 0, grid=True, labelOverlap=False)  # fmt: skip
    x = alt.X("x:Q", title=_both(view.axis, chinese), scale=scale, axis=ticks)
    y = alt.Y("mean:Q", title=_both(_MAPE, chinese), scale=alt.Scale(type="log"), axis=_powers())
    low, high = (alt.Y(f"{end}:Q", scale=alt.Scale(type="log")) for end in ("low", "high"))
    colour, shape = _colour(rows), _shape(rows)
    charts = list[Any]()
    for panel in panels:
        mine = [row for row in rows if row.panel == panel]
        layers: list[Any] = [
            alt.Chart().mark_line(strokeWidth=2).encode(x, y, colour),
            alt.Chart().mark_rule(strokeWidth=1.5).encode(x, low, alt.Y2("high:Q"), colour),
            alt.Chart().mark_tick(orient="horizontal", size=7, thickness=1.5, opacity=1).encode(x, low, colour),
            alt.Chart().mark_tick(orient="horizontal", size=7, thickness=1.5, opacity=1).encode(x, high, colour),
            alt.Chart().mark_point(filled=True, size=60, opacity=1).encode(x, y, colour, shape),
        ]
        if any(row.disclosing for row in mine):
            only = alt.Chart().transform_filter("datum.disclosing")
            layers.append(only.mark_point(shape="cross", angle=45, size=170, color=_DISCLOSING, filled=True,
                                          opacity=1).encode(x, y))  # fmt: skip
            word = "DISCLOSING 泄露" if chinese else "DISCLOSING"
            last = alt.Chart().transform_filter(f"datum.x == {max(places)} && datum.disclosing")
            layers.append(last.mark_text(text=word, align="right", dx=-12, dy=4, color=_DISCLOSING, fontSize=12,
                                         fontWeight="bold").encode(x, y))  # fmt: skip
        charts.append(alt.layer(*layers, data=_data(mine)).properties(width=430, height=330, **_titled(panel, panels)))
    return alt.hconcat(*charts, spacing=30).resolve_scale(y="shared") if len(charts) > 1 else charts[0]


def _titled(panel: str, panels: Sequence[str]) -> dict[str, Any]:
    return {"title": alt.TitleParams(panel, fontSize=13, anchor="start")} if len(panels) > 1 else {}


def _data(rows: Sequence[Row]) -> alt.InlineData:
    """What the marks need; a spread that reaches 0 is cut off there, where a logarithm has no place for it."""
    return alt.InlineData(
        values=[
            {
                "panel": row.panel,
                "series": row.series,
                "x": row.x,
                "truth": row.truth,
                "one_run": row.one_run,
                "mean": row.mean,
                "low": row.mean - row.sd if row.quantity == "count" else max(row.mean - row.sd, row.mean / 20),
                "high": row.mean + row.sd,
                "disclosing": row.disclosing,
            }
            for row in rows
        ]
    )


def _series(rows: Sequence[Row]) -> dict[str, str]:
    """Series and their mechanisms, in order."""
    return {row.series: row.mechanism for row in rows}


def _colour(rows: Sequence[Row], legend: bool = True) -> alt.Color:
    """One mechanism, one colour, in every figure; several of BRR are shades of its blue."""
    series = _series(rows)
    shades = iter(_SHADES_OF_BRR)
    several = sum(mechanism == "brr" for mechanism in series.values()) > 1
    range_ = [next(shades) if m == "brr" and several else _COLOURS[m][0] for m in series.values()]
    shown: Any = alt.Legend(title=None, orient="right") if legend else None
    return alt.Color("series:N", scale=alt.Scale(domain=list(series), range=range_), legend=shown)


def _shape(rows: Sequence[Row]) -> alt.Shape:
    series = _series(rows)
    scale = alt.Scale(domain=list(series), range=[_SHAPES[mechanism] for mechanism in series.values()])
    return alt.Shape("series:N", scale=scale, legend=alt.Legend(title=None, orient="right"))


def _powers() -> alt.Axis:
    return alt.Axis(values=_POWERS, format="~r")


def _tight(rows: Sequence[Row]) -> alt.Scale:
    places = [row.x for row in rows]
    return alt.Scale(domain=[min(places) - 1, max(places) + 1], nice=False, zero=False)


def _both(words: tuple[str, str], chinese: bool) -> str:
    return " ".join(words) if chinese else words[0]
