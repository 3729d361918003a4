"""Figures 2 to 11 of the paper: on what, with which mechanisms and parameters.

Not here: running them (`outcomes`), drawing them (`charts`) and their captions' words (`captions`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from tallyveil_reproduce.populations import Population, high_income_heads, made_up
from tallyveil_reproduce.trials import Name, Trial
from tallyveil_reproduce.views import Point, View

EPSILON = 2.0
MADE_UP_VALUES = 100
BINS_SWEPT = (1, 2, 4, 8, 16, 32, 43, 56, 84)
COPIES_SWEPT = (1, 4, 8, 12, 16, 20)
EPSILONS_SWEPT = (0.1, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0)
VALUES_SWEPT = (16, 32, 64, 128, 256, 512)

VALUE = ("Value", "取值")
AGE = ("Age of head, years", "户主年龄（岁）")


@dataclass(frozen=True)
class Figure:
    """One figure of the paper.

    Args:
        number: The paper's.
        views: Its parts, side by side or one below the other.
    """

    number: int
    views: tuple[View, ...]

    @property
    def points(self) -> list[Point]:
        return [point for view in self.views for point in view.points]


def figure(number: int) -> Figure:
    """The figure with that number, 2 to 11."""
    return Figure(number, FIGURES[number]())


def label(mechanism: Name, bins: int, population: Population) -> str:
    """How a series is called in pictures and tables: what it protects is part of its name where that is less."""
    if mechanism == "histogram-laplace":
        departments = population.departments
        return "Noise at 1 department" if departments == 1 else f"Noise at {departments} departments"
    binned = f", {bins} bins" if bins > 1 else ""
    return {
        "grr": "GRR",
        "ss": "SS",
        "brr": f"BRR{binned} (within bin)",
        "brr-sealed": f"BRR sealed{binned}",
    }[mechanism]


def _point(panel: str, population: Population, mechanism: Name, bins: int = 1, epsilon: float = EPSILON,
           x: float | None = None, series: str = "") -> Point:  # fmt: skip
    trial = Trial(population, mechanism, epsilon, bins)
    return Point(panel, series or label(mechanism, bins, population), trial, x)


def _beside(panel: str, population: Population, bins: int, epsilon: float = EPSILON,
            x: float | None = None) -> list[Point]:  # fmt: skip
    """What the same epsilon buys otherwise: epsilon-LDP over the whole domain, and noise at the department."""
    return [
        _point(panel, population, "ss", 1, epsilon, x),
        _point(panel, population, "brr-sealed", bins, epsilon, x),
        _point(panel, population, "histogram-laplace", 1, epsilon, x),
    ]


def _zipf_and_normal(zoomed: bool) -> tuple[View, ...]:
    half, quarter, last = MADE_UP_VALUES // 2, MADE_UP_VALUES // 4, MADE_UP_VALUES - 1
    zipf, normal = made_up("Zipf", MADE_UP_VALUES), made_up("normal", MADE_UP_VALUES)
    panels: dict[str, tuple[Population, tuple[int, int]]] = {"Zipf": (zipf, (0, last)), "normal": (normal, (0, last))}
    if zoomed:
        panels = {
            "Zipf, right half": (zipf, (half, last)),
            "normal, left end": (normal, (0, quarter - 1)),
            "normal, right end": (normal, (last + 1 - quarter, last)),
        }
    points = [
        point
        for panel, (population, _) in panels.items()
        for point in (_point(panel, population, "grr"), *_beside(panel, population, 8))
    ]
    return (View("counts", points, VALUE, window={panel: window for panel, (_, window) in panels.items()}),)


def _binned() -> tuple[View, ...]:
    populations = {shape: made_up(shape, MADE_UP_VALUES) for shape in ("Zipf", "normal", "geometric", "uniform")}
    points = [
        point
        for shape, population in populations.items()
        for point in (_point(shape, population, "brr", 8), *_beside(shape, population, 8))
    ]
    return (View("counts", points, VALUE),)


def _by_age() -> list[Point]:
    heads = high_income_heads()
    return [_point("FIES", heads, "grr"), _point("FIES", heads, "brr", 16), *_beside("FIES", heads, 16)]


def _ages() -> tuple[View, ...]:
    return (View("counts", _by_age(), AGE),)


def _errors_by_age() -> tuple[View, ...]:
    return (View("errors", _by_age(), AGE),)


def _against_bins() -> tuple[View, ...]:
    heads, points = high_income_heads(), list[Point]()
    for bins in BINS_SWEPT:
        points.append(_point("FIES", heads, "grr", x=bins))
        points.append(_point("FIES", heads, "brr", bins, x=bins, series="BRR (within bin)"))
        points.append(_point("FIES", heads, "ss", x=bins))
        if 2 <= bins <= heads.domain_size // 2:
            points.append(_point("FIES", heads, "brr-sealed", bins, x=bins, series="BRR sealed"))
        points.append(_point("FIES", heads, "histogram-laplace", x=bins))
    ages = [_point(f"fxs = {bins}", heads, "brr", bins, series="BRR (within bin)") for bins in (1, 8, 32, 56)]
    return (View("sweep", points, ("Bins, fxs", "分箱数 fxs"), logarithmic=True), View("errors", ages, AGE))


def _against_records() -> tuple[View, ...]:
    points = [
        point
        for heads in map(high_income_heads, COPIES_SWEPT)
        for point in (
            _point("FIES", heads, "grr", x=heads.records),
            _point("FIES", heads, "brr", 16, x=heads.records),
            *_beside("FIES", heads, 16, x=heads.records),
        )
    ]
    return (View("sweep", points, ("Records", "记录数"), logarithmic=True),)


def _against_epsilon(bins: Sequence[int]) -> tuple[View, ...]:
    heads = high_income_heads()
    points = [
        point
        for epsilon in EPSILONS_SWEPT
        for point in (
            _point("FIES", heads, "grr", 1, epsilon, epsilon),
            *(_point("FIES", heads, "brr", number, epsilon, epsilon) for number in bins),
            *_beside("FIES", heads, bins[-1], epsilon, epsilon),
        )
    ]
    return (View("sweep", points, ("Epsilon", "隐私预算 ε")),)


def _against_values() -> tuple[View, ...]:
    points = [
        point
        for shape in ("Zipf", "uniform")
        for size in VALUES_SWEPT
        for population in (made_up(shape, size),)
        for point in (
            _point(shape, population, "grr", x=size),
            _point(shape, population, "brr", 8, x=size),
            *_beside(shape, population, 8, x=size),
        )
    ]
    return (View("sweep", points, ("Values in the domain, K", "数据域大小 K"), logarithmic=True),)


FIGURES: dict[int, Callable[[], tuple[View, ...]]] = {
    2: lambda: _zipf_and_normal(zoomed=False),
    3: lambda: _zipf_and_normal(zoomed=True),
    4: _binned,
    5: _ages,
    6: _errors_by_age,
    7: _against_bins,
    8: _against_records,
    9: lambda: _against_epsilon((8,)),
    10: lambda: _against_epsilon((4, 8, 16)),
    11: _against_values,
}


def trials_of(figures: Iterable[Figure]) -> list[Trial]:
    """Every different trial of these figures, once."""
    return list(dict.fromkeys(point.trial for item in figures for point in item.points))
