"""From records to perturbed batches: sums agree, coins are fresh, checks come before anything is stored."""

from __future__ import annotations

import multiprocessing
from collections import Counter
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_world import SURVEY, make_round, token
from deterministic import Named
from tallyveil.batch import decode_counts, expected_digest
from tallyveil.errors import ConfigurationError, InputError, InternalError, PolicyError
from tallyveil.mechanisms import Mechanism, Tally, for_survey
from tallyveil_client.agent import collect as module
from tallyveil_client.agent.cells import Reason
from tallyveil_client.agent.collect import Collected, collect, made_up, require_admissible, seal
from tallyveil_client.agent.config import SourceConfig
from tallyveil_client.agent.encode import Encoded
from tallyveil_client.agent.policy import Collection

K = SURVEY.domain.size
LAW = for_survey(SURVEY, SURVEY.epsilons[0]).law
SOURCE = SourceConfig("people", "csv", {"age": "age"}, path=Path("people.csv"))
REJECTING = SourceConfig("people", "csv", {"age": "age"}, path=Path("people.csv"), on_invalid="reject")
LIMITS = Collection("people", "age", "people", SURVEY.epsilons[0])
KEY = make_round().key


def encoded(values: list[int], cells: list[int], filtered: int = 0, rejected: int = 0) -> Encoded:
    reasons = Counter({Reason.OUT_OF_DOMAIN: rejected} if rejected else {})
    first = {Reason.OUT_OF_DOMAIN: 7} if rejected else {}
    return Encoded(
        np.array(values, dtype=np.int64),
        np.array(cells, dtype=np.int64),
        len(values) + filtered + rejected,
        filtered,
        reasons,
        first,
    )


def mechanism(label: str | None = None) -> Mechanism:
    return for_survey(SURVEY, SURVEY.epsilons[0], Named(label) if label else None)


def even(times: int = 1) -> Encoded:
    """Every value in both cells, the same number of times."""
    return encoded([value for value in range(K) for _ in range(2 * times)], [0, 1] * (K * times))


records = st.lists(st.tuples(st.integers(0, K - 1), st.integers(0, 1)), max_size=60)


@given(st.lists(st.tuples(records, st.integers(0, 5), st.integers(0, 5)), max_size=5))
def test_every_record_is_accounted_for_and_perturbed_exactly_once(
    batches: list[tuple[list[tuple[int, int]], int, int]],
) -> None:
    collected = collect(
        [encoded([v for v, _ in rows], [c for _, c in rows], out, bad) for rows, out, bad in batches],
        SURVEY,
        mechanism(),
    )
    rows = [row for batch, _, _ in batches for row in batch]
    summary = collected.summary
    assert summary.accepted == len(rows)
    assert summary.read == len(rows) + sum(out + bad for _, out, bad in batches)
    assert collected.cell_counts == Counter(cell for _, cell in rows)
    assert collected.clear_counts == Counter((cell, int(SURVEY.binning.bin_of[value])) for value, cell in rows)
    assert {cell: tally.records for cell, tally in collected.tallies.items()} == dict(collected.cell_counts)
    for batch in seal(collected, LAW, KEY, lambda: token(object())):
        counts = decode_counts(batch.payload, K)
        assert batch.digest == expected_digest(KEY, batch) and counts.sum() == batch.records
        by_bin = np.add.reduceat(counts, SURVEY.binning.starts)  # brr never leaves a record's bin
        assert {b: n for b, n in enumerate(by_bin.tolist()) if n} == {
            b: n for (cell, b), n in collected.clear_counts.items() if cell == batch.cell
        }


def test_a_pass_that_only_counts_draws_nothing() -> None:
    counted, perturbed = collect([even()], SURVEY), collect([even()], SURVEY, mechanism())
    assert counted.tallies == {}
    assert counted.clear_counts == perturbed.clear_counts


def test_the_same_coins_give_the_same_batches_and_other_coins_others() -> None:
    def counts(label: str | None) -> list[bytes]:
        return [
            b.payload for b in seal(collect([even(), even()], SURVEY, mechanism(label)), LAW, KEY, lambda: token(0))
        ]

    assert counts("a") == counts("a")
    assert counts("a") != counts("b")
    assert counts(None) != counts(None)


def test_forked_workers_draw_other_coins() -> None:
    shared = mechanism()
    shared.perturb(np.zeros(10, dtype=np.int64))  # the parent's stream is under way

    def work(pipe: Connection) -> None:
        pipe.send([tally.counts.tolist() for tally in collect([even(5)], SURVEY, shared).tallies.values()])

    results = list[object]()
    for _ in range(2):
        mine, theirs = multiprocessing.Pipe()
        worker = multiprocessing.get_context("fork").Process(target=work, args=(theirs,))
        worker.start()
        results.append(mine.recv())
        worker.join(30)
    results.append([tally.counts.tolist() for tally in collect([even(5)], SURVEY, shared).tallies.values()])
    assert results[0] != results[1] != results[2] != results[0]


def test_an_empty_cell_sends_nothing() -> None:
    collected = collect([encoded([1, 2, 3], [1, 1, 1])], SURVEY, mechanism())
    assert [batch.cell for batch in seal(collected, LAW, KEY, lambda: token(1))] == [1]


def test_each_batch_gets_an_identifier_and_a_nonce_of_its_own() -> None:
    drawn = iter(range(10))
    batches = seal(collect([even()], SURVEY, mechanism()), LAW, KEY, lambda: token(next(drawn)))
    assert len({item for batch in batches for item in (batch.batch_id, batch.nonce)}) == 4


def test_made_up_reports_are_as_many_as_the_records_and_never_of_them() -> None:
    lopsided = collect([encoded([0] * 1000, [0] * 1000)], SURVEY)
    tally = made_up(SURVEY, mechanism("made up"), lopsided.cell_counts)[0]
    assert tally.records == 1000
    assert tally.counts.max() < 100  # the records all have one value


def test_good_records_are_admissible() -> None:
    require_admissible(collect([even(20)], SURVEY), SOURCE, SURVEY, LIMITS)


def test_rejected_records_stop_the_run_unless_the_source_leaves_them_out() -> None:
    collected = collect([even(20), encoded([], [], rejected=3)], SURVEY)
    with pytest.raises(InputError, match="out-of-domain: 3") as caught:
        require_admissible(collected, SOURCE, SURVEY, LIMITS)
    assert "nothing was charged" in caught.value.not_done
    require_admissible(collected, REJECTING, SURVEY, LIMITS)


def test_a_source_without_a_usable_record_stops_the_run() -> None:
    with pytest.raises(InputError, match=r"of 5 records none was accepted \(5 left out by the filter, 0 rejected\)"):
        require_admissible(collect([encoded([], [], filtered=5)], SURVEY), SOURCE, SURVEY, LIMITS)
    with pytest.raises(InputError, match="of 0 records"):
        require_admissible(collect([], SURVEY), SOURCE, SURVEY, LIMITS)


def test_more_records_than_the_quota_stop_the_run() -> None:
    collected = collect([even()] * 700, SURVEY)
    with pytest.raises(InputError, match="quota is 100000"):
        require_admissible(collected, SOURCE, SURVEY, LIMITS)


def test_a_clear_cell_that_is_too_small_stops_the_run() -> None:
    collected = collect([even(20), encoded([0] * 5, [0] * 5)], SURVEY)
    require_admissible(collected, SOURCE, SURVEY, LIMITS)
    small = collect([encoded([0] * 9, [1] * 9), encoded([K - 1] * 50, [0] * 50)], SURVEY)
    with pytest.raises(PolicyError, match="min_clear_cell of 10"):
        require_admissible(small, SOURCE, SURVEY, LIMITS)


def test_sums_that_do_not_agree_are_our_fault() -> None:
    collected = collect([even(20)], SURVEY, mechanism())
    collected.summary.read += 1
    with pytest.raises(InternalError, match="do not add up"):
        require_admissible(collected, SOURCE, SURVEY, LIMITS)
    collected.tallies[0] = Tally.of([1] * K)
    with pytest.raises(InternalError, match="do not add up"):
        seal(collected, LAW, KEY, lambda: token(0))


def test_a_table_that_would_not_fit_into_memory_stops_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_COUNTS", K)
    collect([encoded([1], [1])], SURVEY, mechanism())
    with pytest.raises(ConfigurationError, match="too large"):
        collect([even()], SURVEY, mechanism())


def test_what_was_collected_shows_nothing_of_itself() -> None:
    assert "12345" not in repr(Collected(clear_counts=Counter({(0, 0): 12345})))
