"""The ledger's arithmetic and its chain."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_world import make_round
from tallyveil import canonical
from tallyveil.epsilon import NANO, to_nano
from tallyveil.errors import ConfigurationError, IntegrityError, PolicyError
from tallyveil_client.agent.ledger import (
    Charge,
    Entry,
    Ledger,
    charge_of,
    remaining,
    share_of,
    start_of,
    verify_chain,
    verify_reach,
)

START = start_of("a store")


def charges(count: int, epsilon: float = 0.1) -> list[Charge]:
    return [make_round(number=number, epsilon=to_nano(epsilon)).charge for number in range(1, count + 1)]


def chain_of(*entries: Charge, total: int = 1000 * NANO) -> list[Entry]:
    chain = list[Entry]()
    for charge in entries:
        chain.append(verify_chain(START, chain).next_entry(charge, total))
    return chain


def spend(ledger: Ledger, charge: Charge, total: int) -> Ledger:
    entry = ledger.next_entry(charge, total)
    return Ledger((*ledger.charges, charge), replace(ledger.head, seq=entry.seq, hash=entry.hash))


@pytest.mark.parametrize(("epsilon", "times"), [(0.1, 10), (1 / 11, 11), (1 / 3, 3), (0.7, 1)])
def test_the_parts_of_one_are_all_accepted_and_the_next_is_refused(epsilon: float, times: int) -> None:
    ledger = verify_chain(START, [])
    *parts, one_more = charges(times + 1, epsilon)
    for charge in parts:
        ledger = spend(ledger, charge, NANO)
    with pytest.raises(PolicyError, match=r"account 'people' has 0[\d.]* of 1 left, and this would charge"):
        ledger.next_entry(one_more, NANO)


@given(st.integers(1, 10**12), st.integers(1, 10_000))
def test_shares_round_down_and_never_exceed_the_whole(total: int, parts: int) -> None:
    share = share_of(total, parts)
    assert share * parts <= total < (share + 1) * parts


@given(st.fractions(min_value=Fraction(1, 1000), max_value=16 * NANO), st.integers(1, 1000))
def test_charges_round_up(epsilon: Fraction, rows: int) -> None:
    charged = charge_of(epsilon, rows)
    assert charged - 1 < epsilon * rows <= charged


def test_a_person_of_m_rows_costs_m_times_epsilon() -> None:
    assert charge_of(to_nano(0.3), 7) == 2_100_000_000


@pytest.mark.parametrize(("epsilon", "rows"), [(0, 1), (-1, 1), (NANO, 0)])
def test_a_charge_of_nothing_is_refused(epsilon: int, rows: int) -> None:
    with pytest.raises(ConfigurationError):
        charge_of(epsilon, rows)


def test_nothing_is_left_where_the_policy_was_lowered_below_what_was_spent() -> None:
    assert remaining(NANO, 2 * NANO) == 0


def test_accounts_are_counted_apart() -> None:
    ledger = verify_chain(START, chain_of(make_round(account="a").charge, make_round(account="b", number=2).charge))
    assert (ledger.spent("a"), ledger.spent("b"), ledger.spent("c")) == (2 * NANO, 2 * NANO, 0)


def test_a_chain_gives_back_its_charges() -> None:
    expected = charges(5)
    assert list(verify_chain(START, chain_of(*expected)).charges) == expected


@given(st.data())
def test_any_changed_bit_of_an_entry_is_noticed(data: st.DataObject) -> None:
    chain = chain_of(*charges(4))
    place = data.draw(st.integers(0, 3))
    entry = chain[place]
    field = data.draw(st.sampled_from(["seq", "previous", "content", "hash"]))
    old = getattr(entry, field)
    if field == "seq":
        changed: object = old ^ 1 << data.draw(st.integers(0, 30))
    else:
        raw = bytearray(old if field == "content" else old.encode())
        raw[data.draw(st.integers(0, len(raw) - 1))] ^= 1 << data.draw(st.integers(0, 6))
        changed = bytes(raw) if field == "content" else raw.decode("latin-1")
    chain[place] = replace(entry, **{field: changed})  # type: ignore[arg-type]
    with pytest.raises(IntegrityError):
        verify_chain(START, chain)


@pytest.mark.parametrize("order", [(1, 2, 3), (0, 2, 3), (1, 0, 2, 3), (0, 1, 2, 3, 3), (0, 0, 2, 3)])
def test_a_missing_moved_or_repeated_entry_is_noticed(order: tuple[int, ...]) -> None:
    chain = chain_of(*charges(4))
    with pytest.raises(IntegrityError):
        verify_chain(START, [chain[place] for place in order])


def test_entries_of_another_store_do_not_fit() -> None:
    with pytest.raises(IntegrityError):
        verify_chain(start_of("another store"), chain_of(*charges(1)))


def test_an_older_copy_is_noticed_and_a_longer_one_is_not_taken_for_older() -> None:
    chain = chain_of(*charges(3))
    seen = verify_chain(START, chain).head
    verify_reach(START, chain_of(*charges(5)), seen)
    verify_reach(START, chain, START)
    with pytest.raises(IntegrityError, match="older copy"):
        verify_reach(START, chain[:2], seen)


def test_another_history_of_the_same_length_is_noticed() -> None:
    seen = verify_chain(START, chain_of(*charges(3))).head
    with pytest.raises(IntegrityError, match="entry 3"):
        verify_reach(START, chain_of(*charges(3, 0.2)), seen)


@pytest.mark.parametrize("change", [{"charged": -5}, {"charged": 1}, {"kind": "gift"}, {"max_rows_per_person": 0}])
def test_a_charge_that_is_not_what_it_costs_cannot_be_made(change: dict[str, object]) -> None:
    with pytest.raises(ConfigurationError):
        replace(charges(1)[0], **change)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "content",
    [b"", b"{}", b"[1]", b'{"account":"people"}', b'{"a": 1}', b"\xff", b'{"charged_nano":-1}'],
)
def test_an_entry_of_another_form_is_not_read_though_its_hash_is_right(content: bytes) -> None:
    material = f"1\n{START.hash}\n".encode() + content
    entry = Entry(1, START.hash, content, canonical.digest("ledger-entry", material))
    with pytest.raises(IntegrityError, match="not one this version can read"):
        verify_chain(START, [entry])
