"""What is said about protection is true wherever it is said: kinds, epsilon, and what is not protected.

Not here: whether the mechanisms keep to it (`test_weights`, `test_randomised_response`).
"""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest

from tallyveil import canonical
from tallyveil.epsilon import NANO, NanoEpsilon, epsilon_text, to_nano
from tallyveil.guarantee import KIND_LDP, KIND_WITHIN_BIN, KINDS, Guarantee
from tallyveil.mechanisms import create, for_survey
from tallyveil.mechanisms.block_response import BlockResponse
from tallyveil.mechanisms.brr import BinnedRandomisedResponse
from tallyveil.mechanisms.grr import GeneralisedRandomisedResponse
from tallyveil.survey import survey_from_json

VECTOR = Path(__file__).resolve().parents[1] / "vectors" / "core_survey.json"
EPSILONS = (0.01, 0.2, 1.0986122886681098, 2.0, 6.0, 16.0)
DESIGNS = (
    ("grr", 85, 1),
    ("grr", 2, 1),
    ("brr", 85, 1),
    ("brr", 85, 2),
    ("brr", 85, 16),
    ("brr", 85, 42),
    ("brr", 4, 2),
)
EVERY = [
    create(name, domain_size=size, bins=bins, epsilon=epsilon)
    for (name, size, bins), epsilon in product(DESIGNS, EPSILONS)
]


def claims(guarantee: Guarantee) -> list[str]:
    """Sentences and phrases that claim something; what is not protected claims nothing."""
    return [guarantee.kind, *re.split(r"(?<=[.;:])\s", guarantee.text)]


@pytest.mark.parametrize("mechanism", EVERY)
def test_ldp_is_never_said_of_disclosed_bins_without_within_a_bin(mechanism: BlockResponse) -> None:
    guarantee = mechanism.guarantee
    binned = mechanism.blocks.binning.bins > 1
    assert guarantee.kind == (KIND_WITHIN_BIN if binned else KIND_LDP)
    assert guarantee.kind in KINDS
    for claim in claims(guarantee):
        if "LDP" in claim and binned:
            assert "within a bin" in claim or "within bin" in claim
        if not binned:
            assert "within" not in claim or "within a factor" in claim
    if binned:
        assert "disclosed" in guarantee.kind
        assert "disclosed" in guarantee.text
        assert "domain" not in guarantee.text
        assert str(mechanism.domain_size) + " values" not in guarantee.text


@pytest.mark.parametrize("mechanism", EVERY)
def test_what_is_not_protected_is_always_named(mechanism: BlockResponse) -> None:
    phrases = mechanism.guarantee.not_protected
    membership = [phrase for phrase in phrases if "being in the table" in phrase]
    assert len(membership) == 1
    for word in ("department", "dimension cell", "zeros", "aggregator"):
        assert word in membership[0]
    bins = [phrase for phrase in phrases if "bin" in phrase]
    assert len(bins) == (mechanism.blocks.binning.bins > 1)
    assert all("in clear" in phrase and "no bound between" in phrase and "exact" in phrase for phrase in bins)


@pytest.mark.parametrize("mechanism", EVERY)
def test_both_epsilons_are_stated_and_the_realised_one_is_not_above(mechanism: BlockResponse) -> None:
    guarantee = mechanism.guarantee
    assert guarantee.epsilon == mechanism.epsilon
    assert guarantee.epsilon / NANO - 1e-5 <= guarantee.realised_epsilon <= guarantee.epsilon / NANO
    assert f"{epsilon_text(guarantee.epsilon)}-LDP" in guarantee.text


def test_the_realised_epsilon_is_that_of_the_channel() -> None:
    for mechanism in EVERY:
        channel, bin_of = mechanism.channel(), mechanism.binning.bin_of
        first = channel[bin_of == 0][:, bin_of == 0]
        assert first.max() / first.min() == pytest.approx(2.718281828459045**mechanism.guarantee.realised_epsilon)
        assert (channel[bin_of == 0][:, bin_of != 0] == 0).all()


def test_a_surveys_guarantee_is_its_mechanisms() -> None:
    survey = survey_from_json(canonical.decode(VECTOR.read_bytes()))
    assert for_survey(survey, survey.epsilons[0]).guarantee.kind == KIND_WITHIN_BIN
    plain = replace(survey, mechanism="grr", bins=1)
    assert for_survey(plain, NanoEpsilon(2 * NANO)).guarantee.kind == KIND_LDP
    one_bin = replace(survey, bins=1)
    assert for_survey(one_bin, to_nano(2)).guarantee == for_survey(plain, to_nano(2)).guarantee


def test_the_mechanisms_own_descriptions_say_the_same() -> None:
    binned, plain = BinnedRandomisedResponse.__doc__ or "", GeneralisedRandomisedResponse.__doc__ or ""
    for text in (binned, plain):
        assert "Privacy:" in text and "Accuracy:" in text and "Source:" in text
    assert "no bound between bins" in binned
    assert "Context-Aware Local Differential Privacy" in binned
