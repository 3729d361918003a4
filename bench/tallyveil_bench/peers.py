"""Other libraries' mechanisms, where they are installed: records a second through their own interfaces.

Not here: our own (`mechanisms`). A peer that is missing, or fails, is named with the reason and is not fatal.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from importlib import import_module
from io import StringIO
from typing import Any

import numpy as np

from tallyveil_bench.timing import seconds_of

Perturb = Callable[[Sequence[int]], Any]
Aggregate = Callable[[Any], object]
Maker = Callable[[int, float], tuple[Perturb, Aggregate]]

PILOT_RECORDS = 200
PHASE_S = 0.4
"""A peer is given as many records as it takes about so long to perturb or to count."""


@dataclass(frozen=True)
class PeerSpeed:
    """One peer's figures; None where it could not be run, for the reason given."""

    mechanism: str
    library: str
    domain_size: int
    records: int
    perturb_per_s: float | None
    perturb_and_tally_per_s: float | None
    reason: str


def measure_peers(cases: Iterable[tuple[str, int]], epsilon: float) -> list[PeerSpeed]:
    """Every peer of each (mechanism, K)."""
    return [
        _measure(mechanism, library, maker, domain_size, epsilon)
        for mechanism, domain_size in cases
        for library, maker in _PEERS.get(mechanism, {}).items()
    ]


def _measure(mechanism: str, library: str, maker: Maker, domain_size: int, epsilon: float) -> PeerSpeed:
    try:
        with warnings.catch_warnings(), redirect_stdout(StringIO()):
            warnings.simplefilter("ignore")
            perturb, aggregate = maker(domain_size, epsilon)
            aggregate(perturb(_values(10, domain_size)))  # compiles what is compiled when first called
            pilot = _values(PILOT_RECORDS, domain_size)
            reports: list[Any] = []
            slowest = max(
                seconds_of(lambda: reports.append(perturb(pilot))), seconds_of(lambda: aggregate(reports[0])), 1e-6
            )
            records = max(int(PILOT_RECORDS * PHASE_S / slowest), PILOT_RECORDS)
            values = _values(records, domain_size)
            drawn: list[Any] = []
            first = seconds_of(lambda: drawn.append(perturb(values)))
            second = seconds_of(lambda: aggregate(drawn[0]))
    except ModuleNotFoundError as error:
        return PeerSpeed(mechanism, library, domain_size, 0, None, None, f"not installed ({error.name})")
    except Exception as error:  # whatever a peer does wrong is its own affair
        return PeerSpeed(mechanism, library, domain_size, 0, None, None, f"failed: {type(error).__name__}")
    return PeerSpeed(mechanism, library, domain_size, records, records / first, records / (first + second), "")


def _values(records: int, domain_size: int) -> list[int]:
    spread: list[int] = (np.arange(records) * 7919 % domain_size).tolist()
    return spread


def _same(value: int) -> int:
    return value


def _pure_ldp(client: str, server: str, **options: object) -> Maker:
    def make(domain_size: int, epsilon: float) -> tuple[Perturb, Aggregate]:
        oracles = import_module("pure_ldp.frequency_oracles")
        given: dict[str, object] = {"index_mapper": _same, **options}
        taker = getattr(oracles, server)(epsilon, domain_size, **given)
        hashes = (taker.get_hash_funcs(),) if hasattr(taker, "get_hash_funcs") else ()
        maker = getattr(oracles, client)(epsilon, domain_size, *hashes, **given)

        def aggregate(reports: Any) -> object:
            taker.reset()
            if hasattr(taker, "hash_counts"):
                taker.hash_counts[:] = 0
            taker.aggregate_all(reports)
            return taker.estimate_all(range(domain_size), suppress_warnings=True)

        return lambda values: [maker.privatise(value) for value in values], aggregate

    return make


def _multi_freq(module: str, prefix: str, takes_size: bool, *last: object) -> Maker:
    def make(domain_size: int, epsilon: float) -> tuple[Perturb, Aggregate]:
        found = import_module(f"multi_freq_ldpy.pure_frequency_oracles.{module}")
        client, aggregator = getattr(found, f"{prefix}_Client"), getattr(found, f"{prefix}_Aggregator_MI")
        size = (domain_size,) if takes_size else ()
        return (
            lambda values: [client(value, domain_size, epsilon, *last) for value in values],
            lambda reports: aggregator(reports, *size, epsilon, *last),
        )

    return make


def _toolbox(module: str, name: str, *options: object) -> Maker:
    def make(domain_size: int, epsilon: float) -> tuple[Perturb, Aggregate]:
        found = import_module(f"ldp_toolbox.protocols.frequency.{module}")
        protocol = getattr(found, name)(domain_size, epsilon, *options)
        return lambda values: [protocol.obfuscate(value) for value in values], protocol.estimate

    return make


_PEERS: dict[str, dict[str, Maker]] = {
    "grr": {
        "pure-ldp": _pure_ldp("DEClient", "DEServer"),
        "multi-freq-ldpy": _multi_freq("GRR", "GRR", True),
        "ldp-toolbox": _toolbox("grr", "GeneralizedRandomizedResponse"),
    },
    "sue": {
        "pure-ldp": _pure_ldp("UEClient", "UEServer"),
        "multi-freq-ldpy": _multi_freq("UE", "UE", False, False),
        "ldp-toolbox": _toolbox("ue", "UnaryEncoding", False),
    },
    "oue": {
        "pure-ldp": _pure_ldp("UEClient", "UEServer", use_oue=True),
        "multi-freq-ldpy": _multi_freq("UE", "UE", False, True),
        "ldp-toolbox": _toolbox("ue", "UnaryEncoding", True),
    },
    "olh": {
        "pure-ldp": _pure_ldp("LHClient", "LHServer", use_olh=True),
        "multi-freq-ldpy": _multi_freq("LH", "LH", True),
        "ldp-toolbox": _toolbox("lh", "LocalHashing", True),
    },
    "ss": {"multi-freq-ldpy": _multi_freq("SS", "SS", True)},
    "hr": {"pure-ldp": _pure_ldp("HadamardResponseClient", "HadamardResponseServer")},
}
"""For each mechanism the libraries that have it."""
