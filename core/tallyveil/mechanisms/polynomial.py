"""Random quadratic polynomials over a prime field as hash functions, and how they fall into buckets.

Not here: who draws them and why (`olh`). The values of one random polynomial at any three places are uniform and
independent, so all probabilities of up to three values follow from the buckets' sizes alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from tallyveil.mechanisms.subset import draw_uniform
from tallyveil.mechanisms.weights import Weights
from tallyveil.randomness import Randomness

FERMAT = 65_537
"""The field: the smallest prime above every index of a domain."""


@dataclass(frozen=True)
class Buckets:
    """The field cut into ranges whose sizes differ by at most 1.

    Args:
        number: g.
        field: A prime, at least the domain's size and at least g.
    """

    number: int
    field: int = FERMAT

    @property
    def starts(self) -> NDArray[np.uint32]:
        """First element of each bucket, shape (g,)."""
        return np.array([-(-item * self.field // self.number) for item in range(self.number)], dtype=np.uint32)

    @property
    def sizes(self) -> NDArray[np.uint32]:
        """Elements of each bucket, shape (g,)."""
        return np.diff(self.starts, append=np.uint32(self.field)).astype(np.uint32)

    def moment(self, power: int) -> Fraction:
        """Σ (size/field)^power over the buckets: that so many values share a bucket."""
        size, larger = divmod(self.field, self.number)
        smaller = self.number - larger
        return larger * Fraction(size + 1, self.field) ** power + smaller * Fraction(size, self.field) ** power

    def shown(self, keep: Fraction, lie: Fraction, others: int) -> Fraction:
        """Probability that `others` values all lie in the shown bucket, none of them the truth.

        The shown bucket z is the truth's with probability keep, else uniform: P(z) = lie + (keep − lie)·size/field.
        """
        return lie * self.moment(others) + (keep - lie) * self.moment(others + 1)

    def shown_with_truth(self, keep: Fraction) -> Fraction:
        """Probability that the truth's bucket is shown and one other value is in it."""
        return keep * self.moment(2)


def draw_polynomials(count: int, field: int, randomness: Randomness) -> NDArray[np.uint32]:
    """Coefficients (square, linear, constant) of uniform random polynomials, shape (count, 3)."""
    return draw_uniform(field, 3 * count, randomness).astype(np.uint32).reshape(count, 3)


def evaluate(polynomials: NDArray[np.uint32], values: NDArray[np.uint32], field: int) -> NDArray[np.uint32]:
    """Each polynomial at each value, shape of the two broadcast: polynomials (…, 3), values (…)."""
    square, linear, constant = (polynomials[..., place].astype(np.uint64) for place in range(3))
    places = values.astype(np.uint64)
    inner = _remainder(square * places + linear, field)
    result: NDArray[np.uint32] = _remainder(inner * places + constant, field).astype(np.uint32)
    return result


def count_hits(
    polynomials: NDArray[np.uint32], lows: NDArray[np.uint32], sizes: NDArray[np.uint32], domain_size: int, field: int
) -> NDArray[np.int64]:
    """How many polynomials map each value into their bucket, shape (K,): buckets are ranges low..low + size − 1.

    Successive values of a quadratic follow from two additions each, so no multiplication is needed: with
    d = h(v + 1) − h(v), h(v + 1) = h(v) + d and d grows by twice the square's coefficient. All kept in the field, and
    h − low at that: a value is in the bucket where this is below the size.
    """
    prime = np.uint32(field)
    place = _reduced(polynomials[:, 2] + (prime - lows), prime)
    step = _reduced(polynomials[:, 0] + polynomials[:, 1], prime)
    growth = _reduced(polynomials[:, 0] * np.uint32(2), prime)
    hits = np.empty(domain_size, dtype=np.int64)
    scratch, inside = np.empty_like(place), np.empty(place.size, dtype=np.bool_)
    for value in range(domain_size):
        np.less(place, sizes, out=inside)
        hits[value] = np.count_nonzero(inside)
        for summed, more in ((place, step), (step, growth)):
            np.add(summed, more, out=summed)
            np.subtract(summed, prime, out=scratch)
            np.minimum(summed, scratch, out=summed)  # as `_reduced`
    return hits


def least_variance_buckets(domain_size: int, weights: dict[int, Weights]) -> int:
    """The number of buckets, of those given, with the least total variance per record, values equally frequent."""

    def total(number: int) -> Fraction:
        buckets, item = Buckets(number), weights[number]
        p, q = item.p, buckets.shown(item.p, item.q, 1)
        return (p * (1 - p) + (domain_size - 1) * q * (1 - q)) / (p - q) ** 2

    return min(sorted(weights), key=total)


def _reduced(below_twice: NDArray[np.uint32], prime: np.uint32) -> NDArray[np.uint32]:
    """Remainders of numbers below twice the prime: a difference that would be negative wraps round, and is large."""
    result: NDArray[np.uint32] = np.minimum(below_twice, below_twice - prime)
    return result


def _remainder(numbers: NDArray[np.uint64], field: int) -> NDArray[np.uint64]:
    result: NDArray[np.uint64] = numbers % np.uint64(field)
    return result
