"""Everything one run of the experiments found, and its tables.

Not here: pictures (`pictures`) and where it is shown (`report`, `page`, `folder`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass

from tallyveil_reproduce.captions import GUARANTEES, TITLES, Words, caption
from tallyveil_reproduce.figures import Figure, figure, trials_of
from tallyveil_reproduce.numeric_noise import MagnitudeRow, OneAnswer, one_answer, two_answers
from tallyveil_reproduce.outcomes import Outcome, run
from tallyveil_reproduce.trials import Trial
from tallyveil_reproduce.views import Row


@dataclass(frozen=True)
class FigureResult:
    """One figure's numbers.

    Args:
        figure: Which.
        rows: Those of each view.
        summaries: The MAPE of every point of the first view, over the values it shows.
    """

    figure: Figure
    rows: Sequence[Sequence[Row]]
    summaries: Sequence[Row]

    @property
    def number(self) -> int:
        return self.figure.number

    @property
    def title(self) -> Words:
        return TITLES[self.number]

    @property
    def caption(self) -> Words:
        return caption(self.number, self.trials)

    @property
    def trials(self) -> list[Trial]:
        return [point.trial for point in self.figure.points]

    @property
    def axis(self) -> str:
        """What `summaries` go along; empty where each is of a whole panel."""
        view = self.figure.views[0]
        return view.axis[0] if view.kind == "sweep" else ""

    def table(self) -> tuple[list[str], list[list[str]]]:
        """Headers and rows: a column for each series, MAPE as mean ± sd, with the expected mean in brackets."""
        series = list(dict.fromkeys(row.series for row in self.summaries))
        lines: dict[tuple[str, float], dict[str, str]] = {}
        for row in self.summaries:
            lines.setdefault((row.panel, row.x), {})[row.series] = mape_text(row)
        headers = ["", *([self.axis] if self.axis else []), *series]
        body = [
            [panel, *([f"{x:,g}" if x < 1000 else f"{x:,.0f}"] if self.axis else []),
             *(cells.get(name, "") for name in series)]
            for (panel, x), cells in lines.items()
        ]  # fmt: skip
        return headers, body


@dataclass(frozen=True)
class Results:
    """All of it.

    Args:
        figures: In the order of their numbers.
        one_answer: The note's first table.
        two_answers: The note's second table.
        repeats: How often each trial was run.
    """

    figures: Sequence[FigureResult]
    one_answer: OneAnswer
    two_answers: Sequence[MagnitudeRow]
    repeats: int

    def protections(self) -> list[Words]:
        """What each mechanism that occurs protects."""
        used = {trial.mechanism for item in self.figures for trial in item.trials}
        return [words for name, words in GUARANTEES.items() if name in used]

    def not_protected(self) -> list[str]:
        """What stays visible whichever of them is used, or only with some, in the project's words."""
        trials = {trial.mechanism: trial for item in self.figures for trial in item.trials if trial.guarantee}
        phrases: dict[str, list[str]] = {}
        for name, trial in trials.items():
            for phrase in trial.guarantee.not_protected if trial.guarantee else ():
                phrases.setdefault(phrase, []).append(name)
        return [f"{', '.join(names)}: {phrase}" for phrase, names in phrases.items()]

    def to_json(self) -> dict[str, object]:
        """For machines: every MAPE, and the note's tables."""
        return {
            "repeats": self.repeats,
            "not_protected": self.not_protected(),
            "figures": [
                {
                    "figure": item.number,
                    "title": item.title.english,
                    "caption": item.caption.english,
                    "axis": item.axis or None,
                    "points": [_point(row, bool(item.axis)) for row in item.summaries],
                }
                for item in self.figures
            ],
            "numeric_note": {
                "one_answer": asdict(self.one_answer),
                "two_answers": [asdict(row) for row in self.two_answers],
            },
        }


def mape_text(row: Row) -> str:
    """Mean ± sd over the repeats, the expected mean behind, and a mark where a value is in clear."""
    mark = " DISCLOSING" if row.disclosing else ""
    return f"{row.mean:.3g} ± {row.sd:.2g} ({row.expected:.3g}){mark}"


def experiment(numbers: Sequence[int], repeats: int, advance: Callable[[int], None]) -> Results:
    """Run what these figures need, each different trial `repeats` times, and the note's two tables.

    Args:
        numbers: Figures, 2 to 11.
        repeats: At least 2.
        advance: Called with 1 after each repeat of a trial; see `steps`.
    """
    figures = [figure(number) for number in numbers]
    outcomes = run(trials_of(figures), repeats, advance)
    found = [_result(item, outcomes) for item in figures]
    return Results(found, one_answer(repeats), two_answers(repeats), repeats)


def steps(numbers: Sequence[int], repeats: int) -> int:
    """How often `experiment` will call `advance`."""
    return repeats * len(trials_of(map(figure, numbers)))


def _result(item: Figure, outcomes: Mapping[Trial, Outcome]) -> FigureResult:
    rows = [view.rows(outcomes) for view in item.views]
    return FigureResult(item, rows, item.views[0].summaries(outcomes))


def _point(row: Row, swept: bool) -> dict[str, object]:
    point = asdict(row)
    for name in ("quantity", "truth", "one_run", "x"):
        del point[name]
    mape = {f"mape_{name}": point.pop(name) for name in ("mean", "sd", "expected")}
    return {**({"x": row.x} if swept else {}), **point, **mape}
