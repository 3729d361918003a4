"""Bias and variance of every mechanism's raw column over many repeats, beside what the mechanism states.

Not here: intervals (`coverage`). What is compared is `variance` and `covariance` at the truth with real draws.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tallyveil.mechanisms import Mechanism
from tallyveil.mechanisms.sketch_law import SketchLaw
from tallyveil.randomness import Randomness
from tallyveil.survey import BINNED, MECHANISMS
from tallyveil_bench.populations import LARGEST_RAPPOR, Case, Counts, heads_by_age, zipf

Floats = NDArray[np.float64]
Step = Callable[[int], None]

WINDOWS = 7
"""Of the domain, as contrasts: their bounds are none of any bins'."""

CASES = tuple(
    Case(name, epsilon, population, counts, 16 if name in BINNED else 1)
    for population, epsilon, counts in (("FIES ages", 2.0, heads_by_age()), ("Zipf(1.1)", 1.0, zipf(1024, 20_000)))
    for name in MECHANISMS
    if name != "rappor" or counts.size <= LARGEST_RAPPOR
)


@dataclass(frozen=True, eq=False)
class Stated:
    """What a mechanism says of its errors on a population.

    Args:
        variance: Of each estimate, shape (K,).
        covariance: Shape (K, K).
        contrasts: Weights of linear statistics: windows, the mean, and the truth itself, to which a wrong scale shows
            best; shape (contrasts, K).
    """

    variance: Floats
    covariance: Floats
    contrasts: Floats

    @classmethod
    def by(cls, mechanism: Mechanism, counts: Counts) -> Stated:
        """At the truth."""
        return cls(mechanism.variance(counts), mechanism.covariance(counts), contrasts_of(counts))


@dataclass(frozen=True, eq=False)
class Spread:
    """Errors over many repeats beside the stated ones.

    Args:
        repeats: How many.
        bias: Of each estimate, then of each contrast, in standard errors of its own mean.
        ratio: Total empirical over total stated variance, around the truth.
        ratio_error: Standard error of the ratio.
        contrast_ratios: The same of each contrast by itself.
    """

    repeats: int
    bias: Floats
    ratio: float
    ratio_error: float
    contrast_ratios: Floats

    @property
    def largest_bias(self) -> float:
        """In standard errors."""
        return float(np.abs(self.bias).max())


def contrasts_of(counts: Counts) -> Floats:
    """Weights of the linear statistics that are looked at, shape (contrasts, K)."""
    places = np.arange(counts.size)
    windows = places * WINDOWS // counts.size == np.arange(WINDOWS)[:, None]
    others = np.stack([places - places.mean(), counts - counts.mean()])
    return np.concatenate([windows.astype(np.float64), others])


def draw_errors(case: Case, repeats: int, randomness: Randomness, step: Step) -> tuple[Mechanism, Floats]:
    """The mechanism of the last repeat, and estimate less truth in every one, shape (repeats, K)."""
    errors, drawn = np.empty((repeats, case.domain_size)), list[Mechanism]()
    for row, (mechanism, tally) in zip(errors, case.draw(repeats, randomness), strict=True):
        row[:] = mechanism.law.corrected(tally) - case.counts
        drawn = [mechanism]
        step(1)
    return drawn[0], errors


def spread_of(errors: Floats, stated: Stated) -> Spread:
    """Errors, shape (repeats, K), against what is stated of them."""
    repeats = len(errors)
    along = errors @ stated.contrasts.T
    expected = np.einsum("cv,vw,cw->c", stated.contrasts, stated.covariance, stated.contrasts, optimize=True)
    means = np.concatenate([errors.mean(axis=0), along.mean(axis=0)])
    variances = np.concatenate([stated.variance, expected])
    totals = (errors**2).sum(axis=1) / stated.variance.sum()
    return Spread(
        repeats,
        means / np.sqrt(variances / repeats),
        float(totals.mean()),
        float(totals.std() / repeats**0.5),
        (along**2).mean(axis=0) / expected,
    )


def fixed_seed_bias(law: SketchLaw, counts: Counts) -> Floats:
    """Exact bias of each estimate under the sketch's one seed, in records, shape (K,); the same at every epsilon.

    With s the records that share the value's bucket, on average over rows: (m·s − n)/(m − 1) − c.
    """
    sketch = law.sketch
    sharing = np.zeros(sketch.domain_size)
    for table in sketch.tables:
        sharing += np.bincount(table, weights=counts, minlength=sketch.width)[table] / sketch.rows
    bias: Floats = (sketch.width * sharing - counts.sum()) / (sketch.width - 1) - counts
    return bias
