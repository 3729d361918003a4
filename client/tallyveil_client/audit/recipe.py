"""How to make the mechanism under audit, here and in other processes, and whether those share its coins.

Not here: what is measured of it (`tallyveil.audit`).
"""

from __future__ import annotations

import warnings
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tallyveil.audit import REPEATED_RECORDS, BlackBox, OneRecordTables
from tallyveil.mechanisms import Mechanism, create
from tallyveil.mechanisms.histogram_laplace import HistogramLaplace


@dataclass(frozen=True)
class Recipe:
    """The arguments of `create`, which a process of its own can be handed."""

    mechanism: str
    domain_size: int
    epsilon: float
    bins: int
    hash_seed: bytes

    def create(self) -> Mechanism:
        """The mechanism, with coins of its own."""
        return create(
            self.mechanism,
            domain_size=self.domain_size,
            epsilon=self.epsilon,
            bins=self.bins,
            hash_seed=self.hash_seed,
        )

    def make(self) -> BlackBox:
        """The same as a black box."""
        made = self.create()
        return OneRecordTables(made) if isinstance(made, HistogramLaplace) else made


def streams_of(recipe: Recipe, value: int) -> dict[str, tuple[NDArray[Any], NDArray[Any]]]:
    """Reports of one value by processes that should have coins of their own: a new one, and a forked one.

    Call it before anything starts a thread.
    """
    values = np.full(REPEATED_RECORDS, value, dtype=np.int64)
    box = recipe.make()
    return {  # in this order: what a fork copies is in use already
        "two processes": (np.asarray(box.perturb(values)), in_new_process(recipe, values)),
        "a process and its fork": in_fork(box, values),
    }


def in_new_process(recipe: Recipe, values: NDArray[np.int64]) -> NDArray[Any]:
    """The first reports of a mechanism made in a process that shares nothing with this one."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(_first_reports, recipe, values).result()


def in_fork(box: BlackBox, values: NDArray[np.int64]) -> tuple[NDArray[Any], NDArray[Any]]:
    """The next reports of this mechanism, and those of its copy in a forked child."""
    context = get_context("fork")
    receiver, sender = context.Pipe(duplex=False)

    def draw() -> None:
        sender.send_bytes(np.ascontiguousarray(box.perturb(values)).tobytes())

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # numpy's threads hold nothing that the child needs
        child = context.Process(target=draw)
        child.start()
    sender.close()
    own = np.asarray(box.perturb(values))
    theirs = np.frombuffer(receiver.recv_bytes(), dtype=own.dtype).reshape(own.shape)
    child.join()
    return own, theirs


def _first_reports(recipe: Recipe, values: NDArray[np.int64]) -> NDArray[Any]:
    return np.asarray(recipe.make().perturb(values))
