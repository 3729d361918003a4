"""Subsets of a fixed size, drawn uniformly and exactly, many at a time.

Not here: which of them a report is (`ss`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tallyveil.randomness import Randomness

Members = NDArray[np.bool_]

SMALL = 0.2
"""Subsets of less than this share of the domain are drawn member by member."""


def draw_members(
    sizes: NDArray[np.int64], barred: NDArray[np.integer[Any]], domain_size: int, randomness: Randomness
) -> Members:
    """Independent uniform subsets of 0..K−1 without one value each, as rows of a table.

    Args:
        sizes: Members of each subset, from 0 to K−1, shape (count,).
        barred: The value that each subset leaves out, shape (count,).
        domain_size: K.
        randomness: Source of the words.

    Returns:
        True where a value is a member, shape (count, at least K); columns from K on are all False.

    Members are first drawn independently of each other, too few as a rule, each value alike; then members are added or
    removed, each uniformly among those that may be. No value is treated unlike another, so every subset of the size is
    equally likely, exactly, whatever chance the first draw had.
    """
    members = _scattered(sizes, domain_size, randomness)
    members[np.arange(sizes.size), barred] = False
    missing: NDArray[np.int64] = sizes - np.bitwise_count(members.view(np.uint64)).sum(axis=1, dtype=np.int64)
    _add_many(members, missing, barred, domain_size, randomness)
    waiting = np.flatnonzero(missing)
    while waiting.size:
        chosen = draw_uniform(domain_size, waiting.size, randomness)
        adds = missing[waiting] > 0
        fits = (members[waiting, chosen] != adds) & (chosen != barred[waiting])
        hit, value, added = waiting[fits], chosen[fits], adds[fits]
        members[hit, value] = added
        missing[hit] += 1 - 2 * added.astype(np.int64)
        waiting = waiting[missing[waiting] != 0]
    return members


def _add_many(
    members: Members,
    missing: NDArray[np.int64],
    barred: NDArray[np.integer[Any]],
    domain_size: int,
    randomness: Randomness,
) -> None:
    """Add members where some are missing: each row takes the first of its candidates that are new, as many as it lacks.

    Candidates are uniform, and drawn a few more than needed; a row whose candidates do not suffice goes on lacking.
    """
    lacking = np.maximum(missing, 0)
    rows = np.repeat(np.arange(missing.size), np.where(lacking > 0, lacking + lacking // 4 + 4, 0))
    chosen = draw_uniform(domain_size, rows.size, randomness)
    places = rows * members.shape[1] + chosen
    flat = members.reshape(-1)
    fits = ~flat[places] & (chosen != barred[rows])
    rows, places = rows[fits], places[fits]
    turn = np.arange(places.size, dtype=np.int32)
    first_turn = np.empty(flat.size, dtype=np.int32)
    first_turn[places[::-1]] = turn[::-1]  # of equal places the earliest is written last, and stays
    new = first_turn[places] == turn
    rows, places = rows[new], places[new]
    of_row = np.bincount(rows, minlength=missing.size)
    rank = np.arange(rows.size) - (np.cumsum(of_row) - of_row)[rows]
    taken = rank < lacking[rows]
    flat[places[taken]] = True
    missing -= np.bincount(rows[taken], minlength=missing.size)


def draw_uniform(below: int, count: int, randomness: Randomness) -> NDArray[np.int64]:
    """Uniform integers in 0..below−1, shape (count,), for up to 65,537 of them.

    The upper half of word·below is the number; words whose lower half lies below 2^32 mod below are drawn again, which
    leaves each number equally many of them.

    Source: Lemire: Fast Random Integer Generation in an Interval, ACM TOMACS 2019.
    """
    products = randomness.words(count, 32).astype(np.uint64) * np.uint64(below)
    surplus = np.uint32(2**32 % below)
    again = np.flatnonzero(products.astype(np.uint32) < surplus) if surplus else np.empty(0, dtype=np.int64)
    while again.size:
        products[again] = randomness.words(again.size, 32).astype(np.uint64) * np.uint64(below)
        again = again[products[again].astype(np.uint32) < surplus]
    return (products >> np.uint64(32)).astype(np.int64)


def draw_bytes(shape: tuple[int, int], randomness: Randomness) -> NDArray[np.uint8]:
    """Uniform bytes, cut from 32-bit words."""
    count = shape[0] * shape[1]
    return randomness.words(-(-count // 4), 32).view(np.uint8)[:count].reshape(shape)


def column_sums(table: NDArray[np.bool_]) -> NDArray[np.int64]:
    """How many rows are true in each column, shape (columns,): in bytes first, 128 rows at a time, which is quick."""
    rows, columns = table.shape
    blocks = rows // 128
    whole = table[: blocks * 128].view(np.uint8).reshape(blocks, 128, columns)
    sums: NDArray[np.int64] = table[blocks * 128 :].sum(axis=0, dtype=np.int64)
    sums += whole.sum(axis=1, dtype=np.uint8).sum(axis=0, dtype=np.int64)
    return sums


def _scattered(sizes: NDArray[np.int64], domain_size: int, randomness: Randomness) -> Members:
    """A first draw that treats all values alike and seldom has too many members.

    Small subsets: as many uniform values as wanted, of which some are the same. Large ones: each value a member with
    one chance for all, two standard deviations below the sizes' share of the domain.
    """
    columns = -(-domain_size // 8) * 8
    size = int(sizes.max()) if sizes.size else 0
    if size < domain_size * SMALL:
        members = np.zeros((sizes.size, columns), dtype=np.bool_)
        rows = np.repeat(np.arange(0, members.size, columns), sizes)
        members.reshape(-1)[rows + draw_uniform(domain_size, rows.size, randomness)] = True
        return members
    spread = (size * (domain_size - size) / domain_size) ** 0.5
    threshold = int((size - 2 * spread) / domain_size * 256)
    members = draw_bytes((sizes.size, columns), randomness) < np.uint8(min(max(threshold, 0), 255))
    members[:, domain_size:] = False
    return members
