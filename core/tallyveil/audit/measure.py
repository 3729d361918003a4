"""An audit: the worst event is searched for in one half of the draws and measured in the other.

Not here: where reports come from (`watch`) and how events are searched for (`search`). Delta is 0 throughout.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from math import inf, log
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tallyveil.audit.binomial import clopper_pearson
from tallyveil.audit.claim import Claim
from tallyveil.audit.looks import BlackBox
from tallyveil.audit.repetition import share_coins
from tallyveil.audit.search import Counts, Event, worst_event
from tallyveil.audit.watch import BoxWatcher, Watcher, drawn
from tallyveil.errors import ConfigurationError

CONFIDENCE = 0.99999
"""Of each interval: what it says is wrong with a chance of at most one in 100,000."""

TAIL = (1 - CONFIDENCE) / 4

WHOLE, WITHIN, BETWEEN = "the whole domain", "within a bin", "between bins"
BETWEEN_SHARE = 0.1
"""Of the measuring draws, where bins are disclosed: a certain event needs few."""

MAX_DRAWS = 10**11
REPEATED_RECORDS = 4_096

Streams = Mapping[str, tuple[NDArray[Any], NDArray[Any]]]
"""Two streams of reports of one value that should have coins of their own, by what they are from."""


@dataclass(frozen=True)
class Measured:
    """One event, measured on draws that had no part in choosing it.

    Args:
        scope: `WHOLE`, `WITHIN` or `BETWEEN`: which pairs were searched.
        values: x and x′, the event being the likelier under x.
        event: In words.
        happened: How often, under x and under x′.
        records: Of how many reports.
    """

    scope: str
    values: tuple[int, int]
    event: str
    happened: tuple[int, int]
    records: tuple[int, int]

    @property
    def estimate(self) -> float:
        """The log-ratio of the shares seen; infinite where the event never happened under x′."""
        first, second = (count / total for count, total in zip(self.happened, self.records, strict=True))
        return _log_ratio(first, second)

    @property
    def bounds(self) -> tuple[float, float]:
        """Lower and upper bound of the event's epsilon, in nats, together right with `CONFIDENCE`."""
        (low, high), (other_low, other_high) = (
            clopper_pearson(count, total, TAIL) for count, total in zip(self.happened, self.records, strict=True)
        )
        return max(_log_ratio(low, other_high), 0.0), max(_log_ratio(high, other_low), 0.0)

    @property
    def half_width(self) -> float:
        """Half the distance of the bounds, in nats."""
        lower, upper = self.bounds
        return (upper - lower) / 2


@dataclass(frozen=True)
class Audit:
    """What an audit came to.

    Args:
        claim: What was audited.
        draws: Asked for.
        main: The worst event among the pairs that the claim is about.
        between: The worst between values of different bins, where these are disclosed: the claim is not about it.
        repeated: What shares its coins with another that should not.
    """

    claim: Claim
    draws: int
    main: Measured
    between: Measured | None
    repeated: tuple[str, ...]

    @property
    def exceeded(self) -> bool:
        """The claim does not hold: the lower bound lies above it."""
        return self.main.bounds[0] > self.claim.epsilon

    @property
    def conclusive(self) -> bool:
        """A fault was found; or the two values could be told apart, and the bounds are at most the claim apart.

        Where no event tells two values apart, draws are too few or reports hardly depend on values: nobody knows which.
        """
        told_apart = self.main.bounds[0] > 0 and self.main.half_width <= self.claim.epsilon / 2
        return self.exceeded or bool(self.repeated) or told_apart

    @property
    def unbounded_between(self) -> bool:
        """Bins are disclosed, and were told apart beyond the claimed epsilon."""
        return self.between is not None and self.between.bounds[0] > self.claim.epsilon


def audit(
    make: Callable[[], BlackBox],
    claim: Claim,
    draws: int,
    *,
    streams: Streams | None = None,
    advance: Callable[[int], None] = lambda records: None,
) -> Audit:
    """Audit a mechanism as a black box.

    Args:
        make: Makes it; every one should have coins of its own.
        claim: What is said of it.
        draws: Records to perturb, about: half to search, half to measure.
        streams: Pairs of `REPEATED_RECORDS` reports each of the first value of `Claim.compared`, from elsewhere.
        advance: Called with the number of records just perturbed.

    Raises:
        ConfigurationError: `draws` is out of range, or reports are nothing an audit can look at.

    Accuracy: see `Measured.bounds`. A bound is of the one event that was measured. No audit shows that there is no
        worse one.
    Source: Ding et al.: Detecting Violations of Differential Privacy, CCS 2018; Jagielski, Ullman, Oprea: Auditing
        Differentially Private Machine Learning, NeurIPS 2020 (bounds by Clopper and Pearson).
    """
    check_draws(draws)
    watcher = BoxWatcher(make(), claim.domain_size, claim.compared, advance)
    return measure(watcher, claim, draws, _repeated(make, watcher, claim, streams or {}))


def measure(watcher: Watcher, claim: Claim, draws: int, repeated: tuple[str, ...] = ()) -> Audit:
    """Search and measure, whatever the reports come through."""
    check_draws(draws)
    values, half = claim.compared, draws // 2
    each = max(half // len(values), 1)
    seen = dict[int, dict[int, list[Counts]]]()
    for value in values:
        others = [other for other in values if other != value]
        seen[value] = dict(zip(others, watcher.watch(value, others, each), strict=True))
    bin_of = claim.binning.bin_of
    pairs = list(permutations(values, 2))
    within = [pair for pair in pairs if bin_of[pair[0]] == bin_of[pair[1]]]
    between = [pair for pair in pairs if bin_of[pair[0]] != bin_of[pair[1]]]
    aside = int(half * BETWEEN_SHARE) if within and between else 0

    def measured(scope: str, pairs: Sequence[tuple[int, int]], records: int) -> Measured:
        found = _worst(watcher, seen, pairs, each)
        return _measure(watcher, scope, *found, records)

    if not between:
        return Audit(claim, draws, measured(WHOLE, within, half), None, repeated)
    across = measured(BETWEEN, between, aside or half)
    main = measured(WITHIN, within, half - aside) if within else across
    return Audit(claim, draws, main, across, repeated)


def check_draws(draws: int) -> None:
    """Raises ConfigurationError where so many draws cannot be made."""
    if not 2 <= draws <= MAX_DRAWS:
        raise ConfigurationError(
            f"draws are from 2 to {MAX_DRAWS}", not_done="nothing was audited", next_step="correct --draws"
        )


Found = tuple[tuple[int, int], int, Event, tuple[float, float]]
"""The pair, the view's place, the event, and how likely it seemed under either value."""


def _worst(
    watcher: Watcher, seen: Mapping[int, Mapping[int, list[Counts]]], pairs: Sequence[tuple[int, int]], each: int
) -> Found:
    best: Found | None = None
    for x, other in pairs:
        for place, view in enumerate(watcher.views):
            first, second = seen[x][other][place], seen[other][x][place]
            event = worst_event(first, second, (each, each), exclusive=watcher.exclusive, ordered=view.ordered)
            if best is None or event.score > best[2].score:
                shares = tuple((event.happened(counts, each) + 0.5) / (each + 1) for counts in (first, second))
                best = (x, other), place, event, (shares[0], shares[1])
    if best is None:
        raise ConfigurationError("there are no two values to compare", not_done="nothing was audited")
    return best


def _measure(
    watcher: Watcher,
    scope: str,
    pair: tuple[int, int],
    place: int,
    event: Event,
    shares: tuple[float, float],
    records: int,
) -> Measured:
    """Draw anew for one event; the rarer side gets more draws, since the sum of both errors counts."""
    needs = [((1 - share) / share) ** (1 / 3) for share in shares]
    part = min(max(needs[0] / sum(needs), 0.1), 0.9)
    numbers = max(int(records * part), 1), max(records - int(records * part), 1)
    happened = list[int]()
    for truth, other, number in ((*pair, numbers[0]), (*reversed(pair), numbers[1])):
        counts = watcher.watch(truth, [other], number)[0][place]
        happened.append(event.happened(counts, number))
    words = watcher.views[place].describe(event.outcomes, *sorted(pair))
    if event.negated:
        words = f"not {words}"
    return Measured(scope, pair, words, (happened[0], happened[1]), numbers)


def _repeated(make: Callable[[], BlackBox], watcher: BoxWatcher, claim: Claim, streams: Streams) -> tuple[str, ...]:
    value = claim.compared[0]
    values = np.full(REPEATED_RECORDS, value, dtype=np.int64)
    box = make()
    first = drawn(box, values)
    pairs = {
        "two calls of one mechanism": (first, drawn(box, values)),
        "two mechanisms made alike": (first, drawn(make(), values)),
        **streams,
    }

    # Beside whole reports, what they say of the truth: coins may repeat while published hash functions do not.
    def seen(reports: NDArray[Any]) -> list[NDArray[Any]]:
        return [reports, *(look.see(reports, [value]).T for look in watcher.views)]

    return tuple(
        name
        for name, (one, other) in pairs.items()
        if any(share_coins(mine, theirs) for mine, theirs in zip(seen(one), seen(other), strict=True))
    )


def _log_ratio(first: float, second: float) -> float:
    if first <= 0:
        return -inf
    return log(first / second) if second > 0 else inf
