"""Single cells: what is a value, what is not and why."""

from __future__ import annotations

import unicodedata
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallyveil.domain import Categories, Domain, Integers, Intervals
from tallyveil.errors import ConfigurationError
from tallyveil_client.agent.cell_text import UNREADABLE, NumberFormat, clean, named_by, number_text
from tallyveil_client.agent.cells import CellRules, Reason, code_of, domain_reader, reason_of
from tallyveil_client.agent.filter import Condition, ConditionReader

AGES = Integers(15, 99)
STEPS = Integers(-10, 20, 5)
INCOMES = Intervals(("-0.5", "0", "1000.05", "5000"))
SEXES = Categories(("Female", "Male", "01", "1"))
DOMAINS: list[Domain] = [AGES, STEPS, INCOMES, SEXES]


def outcome(domain: Domain, text: str | None, rules: CellRules | None = None) -> str | Reason:
    code = domain_reader(domain, rules or CellRules()).read(text)
    return domain.labels[code] if code >= 0 else reason_of(code)


@pytest.mark.parametrize(
    "text",
    [
        "43",
        "+43",
        "043",
        "43.0",
        "43.000",
        " 43 ",
        "\t43\r\n",
        "４３",
        "4３",
        "\u300043\u3000",
        "43\u200b",
        "\ufeff43",
        "\xa043",
        "\u202d43\u202c",
        "４３．０",
        "𝟒𝟑",
        "0" * 5000 + "43",
    ],
)
def test_a_whole_number_is_read_however_it_is_written(text: str) -> None:
    assert outcome(AGES, text) == "43"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (None, Reason.MISSING),
        ("", Reason.MISSING),
        (" \u200b ", Reason.MISSING),
        ("14", Reason.OUT_OF_DOMAIN),
        ("100", Reason.OUT_OF_DOMAIN),
        ("-43", Reason.OUT_OF_DOMAIN),
        ("9" * 5000, Reason.OUT_OF_DOMAIN),
        (str(2**63), Reason.OUT_OF_DOMAIN),
        ("43.5", Reason.NOT_WHOLE),
        ("43.0000001", Reason.NOT_WHOLE),
        ("43\0", Reason.UNREADABLE),
        (UNREADABLE, Reason.UNREADABLE),
        *[
            (text, Reason.NOT_A_NUMBER)
            for text in [
                "1_000",
                "1,000",
                "4e1",
                "4E1",
                "0x2B",
                "inf",
                "-inf",
                "NaN",
                "43.",
                ".5",
                "+",
                "-",
                "4-3",
                "4.3.0",
            ]
        ],
        *[(text, Reason.NOT_A_NUMBER) for text in ["4 3", "٤٣", "四十三", "43岁", "true", "True", "--43", "'43"]],
        *[(text, Reason.NOT_A_NUMBER) for text in ["4³", "4₃", "④3", "㊸", "⒋", "½", "1⁄2", "−43", "=42+1", "\ud800"]],
        *[
            (text, Reason.TOP_CODED)
            for text in ["80+", "80 +", "≥80", ">= 80", "<1", "80岁以上", "85歲以上", "80及以上"]
        ],
        *[(text, Reason.TOP_CODED) for text in ["90 and over", "90 years or older", "90 i més", "100s", "未满1岁"]],
        *[(text, Reason.TOP_CODED) for text in ["under 5", "Over 90", "８０＋", "80岁以下"]],
    ],
)
def test_anything_else_is_rejected_with_its_reason(text: str | None, reason: Reason) -> None:
    assert outcome(AGES, text) is reason


@pytest.mark.parametrize(
    ("text", "expected"),
    [("-10", "-10"), ("-0", "0"), ("5.0", "5"), ("3", Reason.OFF_GRID), ("25", Reason.OUT_OF_DOMAIN)],
)
def test_a_grid_has_its_own_reason(text: str, expected: str | Reason) -> None:
    assert outcome(STEPS, text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("-0.5", "[-0.5, 0)"),
        ("-0.50000000000000000000001", Reason.OUT_OF_DOMAIN),
        ("-0.0", "[0, 1000.05)"),
        ("1000.0499999999999999999999999999999999", "[0, 1000.05)"),
        ("1000.05", "[1000.05, 5000)"),
        ("5000", Reason.OUT_OF_DOMAIN),
        ("1e3", Reason.NOT_A_NUMBER),
        ("> 5000", Reason.TOP_CODED),
    ],
)
def test_intervals_are_exact_decimals(text: str, expected: str | Reason) -> None:
    assert outcome(INCOMES, text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Male", "Male"),
        (" Male\u200b", "Male"),
        ("Ｍale", "Male"),
        ("01", "01"),
        ("1", "1"),
        *[(text, Reason.NOT_IN_CODEBOOK) for text in ["male", "Mal e", "1.0", "001", "+1", "80+"]],
    ],
)
def test_categories_match_exactly_after_cleaning(text: str, expected: str | Reason) -> None:
    assert outcome(SEXES, text) == expected


def test_categories_that_cleaning_makes_equal_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="NFKC"):
        domain_reader(Categories(("m²", "m2")), CellRules())


def test_missing_codes_of_a_number_are_numbers_and_of_a_category_are_texts() -> None:
    rules = CellRules(missing=("99", "NA", "1"))
    assert outcome(AGES, "99.0", rules) is Reason.MISSING
    assert outcome(AGES, "NA", rules) is Reason.MISSING
    assert outcome(SEXES, "1", rules) is Reason.MISSING
    assert outcome(SEXES, "01", rules) == "01"


def test_a_recode_replaces_the_text_before_the_domain_is_asked() -> None:
    rules = CellRules(recode={"80+": "80", "120": "99", "0": "7"})
    assert outcome(AGES, " ８０＋ ", rules) == "80"
    assert outcome(AGES, "120.0", rules) == "99"
    assert outcome(AGES, "0", rules) is Reason.OUT_OF_DOMAIN


@pytest.mark.parametrize(
    "rules", [CellRules(missing=("43",), recode={"43.0": "50"}), CellRules(recode={"43": "50", "４３": "51"})]
)
def test_one_cell_text_cannot_mean_two_things(rules: CellRules) -> None:
    with pytest.raises(ConfigurationError, match="recoded"):
        domain_reader(AGES, rules)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("1.234,0", "1234"), ("1234", "1234"), ("67,0", "67"), ("1.23,0", None), ("1,234.0", None), ("12.345.678", None)],
)
def test_declared_marks_are_read_strictly(text: str, expected: str | None) -> None:
    rules = CellRules(numbers=NumberFormat(decimal_mark=",", thousands_mark="."))
    result = outcome(Integers(0, 2000), text, rules)
    assert result == expected if expected else isinstance(result, Reason)


@pytest.mark.parametrize(("decimal", "thousands"), [(",", ","), ("x", ""), (".", "x")])
def test_marks_that_contradict_are_refused(decimal: str, thousands: str) -> None:
    with pytest.raises(ConfigurationError):
        NumberFormat(decimal, thousands)


@pytest.mark.parametrize("domain", DOMAINS, ids=lambda domain: domain.kind)
@given(text=st.text())
def test_a_reader_never_raises_and_never_invents(domain: Domain, text: str) -> None:
    code = domain_reader(domain, CellRules()).read(text)
    assert code < domain.size
    if code >= 0 and isinstance(domain, Categories):
        assert clean(text) == domain.values[code]
    elif code >= 0:
        assert domain.index(Decimal(clean(text)) if domain is INCOMES else int(Decimal(clean(text)))) == code


@given(text=st.from_regex(r"[+-]?[0-9]{1,4}(\.[0-9]{1,3})?", fullmatch=True), form=st.sampled_from(["NFC", "wide"]))
def test_width_and_space_change_nothing(text: str, form: str) -> None:
    wide = "".join(chr(ord(char) + 0xFEE0) for char in text) if form == "wide" else unicodedata.normalize("NFC", text)
    assert all(outcome(domain, f"\u3000{wide} ") == outcome(domain, text) for domain in (AGES, STEPS, INCOMES))


@given(st.integers(-(2**63), 2**63 - 1) | st.integers(-30, 120))
def test_a_typed_whole_number_is_the_same_in_every_type(value: int) -> None:
    texts = {number_text(value), number_text(Decimal(value)), number_text(Decimal(f"{value}.00"))}
    if abs(value) < 2**53:
        texts.add(number_text(float(value)))
    assert texts == {str(value)}


@given(st.floats())
def test_a_typed_float_is_the_shortest_decimal_that_names_it(value: float) -> None:
    text = number_text(value)
    if np.isfinite(value):
        assert Decimal(text) == named_by(value)
        assert "e" not in text.lower()
    else:
        assert all(reason_of(domain_reader(domain, CellRules()).read(text)) for domain in (AGES, INCOMES))


CONDITIONS = [
    Condition("x", sign, Decimal(literal))
    for sign in ("==", "!=", "<", "<=", ">", ">=")
    for literal in ("0", "43", "43.5", "-0.1", "0.1", "0.30000000000000000001", "1e25", "9223372036854775807")
]
NUMERIC_READERS = [
    *[domain_reader(domain, CellRules(("99", "-0.1"), {"120": "43"})) for domain in (AGES, STEPS, INCOMES)],
    domain_reader(Intervals(("0.1", "0.2", "0.30000000000000000001", "0.4")), CellRules()),
    domain_reader(Integers(-(2**62), 2**62, 2**62), CellRules()),
    *[ConditionReader(condition, CellRules(("99", "-0.1"), {"120": "43"})) for condition in CONDITIONS],
]
WHOLE = st.integers(-(2**63), 2**63 - 1) | st.integers(-12, 130)
FLOATS = (
    st.floats(allow_nan=False, allow_infinity=False)
    | st.integers(-200, 1300).map(lambda tenths: tenths / 10)
    | WHOLE.map(float)
)


@given(st.lists(WHOLE, min_size=1))
def test_whole_numbers_read_together_are_read_as_one_by_one(values: list[int]) -> None:
    for reader in NUMERIC_READERS:
        codes = reader.read_integers(np.array(values, dtype=np.int64))
        if codes is not None:
            assert codes.tolist() == [reader.read(str(value)) for value in values]


@given(st.lists(FLOATS, min_size=1))
def test_floats_read_together_are_read_as_one_by_one(values: list[float]) -> None:
    for reader in NUMERIC_READERS:
        codes = reader.read_floats(np.array(values))
        if codes is not None:
            assert codes.tolist() == [reader.read(number_text(value)) for value in values]


def test_a_reason_and_its_code_stand_for_each_other() -> None:
    assert [reason_of(code_of(reason)) for reason in Reason] == list(Reason)
    assert all(code_of(reason) < 0 for reason in Reason)
