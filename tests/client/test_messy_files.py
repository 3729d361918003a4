"""Files as departments really write them: `vectors/messy/expected.json` says what must come of each."""

from __future__ import annotations

import json
from typing import Any

import pytest

from inputs import AGES, MESSY, read, reasons, source, survey
from tallyveil.domain import Categories, Integers
from tallyveil.errors import ConfigurationError, InputError
from tallyveil_client.agent.cell_text import NumberFormat
from tallyveil_client.agent.config import CsvConfig

EXPECTED: dict[str, dict[str, Any]] = json.loads((MESSY / "expected.json").read_text("utf-8"))
CHINESE = {"age": "年龄"}
GERMAN = CsvConfig(delimiter=";", numbers=NumberFormat(decimal_mark=",", thousands_mark="."))
TAB = CsvConfig(delimiter="\t")

# file: columns, other settings of the source, domain, rejected
AGES_OF: dict[str, tuple[dict[str, str], dict[str, Any], Integers, dict[str, int]]] = {
    "m01_utf8_bom_crlf.csv": (CHINESE, {}, AGES, {}),
    "m02_gb18030_4byte.csv": (CHINESE, {}, AGES, {}),
    "m03_utf8_chinese.csv": (CHINESE, {}, AGES, {}),
    "m05_utf16le_bom_tab.txt": (CHINESE, {"kind": "csv", "csv": TAB}, AGES, {}),
    "m06_semicolon_decimal_comma.csv": ({"age": "Alter"}, {"csv": GERMAN}, AGES, {}),
    "m08_fullwidth_and_unicode_digits.csv": (CHINESE, {}, AGES, {"not_a_number": 4}),
    "m09_top_coded.csv": (CHINESE, {}, Integers(0, 79), {"top_coded": 10}),
    "m11_out_of_domain.csv": ({"age": "age"}, {}, AGES, {"out_of_domain": 6, "not_a_number": 7, "not_whole": 1}),
    "m14_embedded_newlines.csv": ({"age": "age"}, {}, AGES, {}),
    "m17_title_and_total_rows.csv": (
        {"age": "年龄"},
        {"csv": CsvConfig(header_row=4)},
        AGES,
        {"out_of_domain": 1, "missing": 1},
    ),
    "m19_nul_bytes.csv": ({"age": "age"}, {}, AGES, {"unreadable": 1}),
    "m24_header_only.csv": ({"age": "age"}, {}, AGES, {}),
    "m25_one_record.csv": ({"age": "age"}, {}, AGES, {}),
}
HANDLED_BELOW = {
    "m07_thousands_and_currency.csv",
    "m13_duplicate_headers.csv",
    "m16_region_codes.csv",
    "m21_category_spelling.csv",
    "m23_empty.csv",
    "m27_apostrophes_and_formulas.csv",
    "m29_header_variants.csv",
}


def test_every_messy_file_has_its_case() -> None:
    assert AGES_OF.keys() | HANDLED_BELOW == EXPECTED.keys()


@pytest.mark.parametrize("name", AGES_OF)
def test_the_valid_ages_are_read_and_all_others_are_rejected_by_reason(name: str) -> None:
    columns, settings, domain, rejected = AGES_OF[name]
    summary, values, _ = read(source(MESSY / name, columns, **settings), survey(domain))
    assert [int(value) for value in values] == EXPECTED[name]["valid_ages"]
    assert summary.rejected == reasons(**rejected)
    # The total and source rows at the end of m17 are records to a reader: they are rejected, not counted as people.
    assert summary.read == EXPECTED[name]["records"] + (2 if name.startswith("m17") else 0)


def test_gb18030_is_read_the_same_when_it_is_declared() -> None:
    settings = source(MESSY / "m02_gb18030_4byte.csv", CHINESE, csv=CsvConfig(encoding="gb18030"))
    assert read(settings)[1] == ["43", "30", "67"]


def test_utf16_is_read_the_same_when_it_is_declared() -> None:
    tab = CsvConfig(encoding="utf-16", delimiter="\t")
    settings = source(MESSY / "m05_utf16le_bom_tab.txt", CHINESE, kind="csv", csv=tab)
    assert read(settings)[1] == ["43", "30", "67", "15", "98"]


def test_a_total_row_can_be_left_out_by_a_filter() -> None:
    settings = source(
        MESSY / "m17_title_and_total_rows.csv",
        {"age": "年龄", "serial": "序号"},
        csv=CsvConfig(header_row=4),
        where="serial != '合计' and serial < '9999'",
    )
    summary, values, _ = read(settings)
    assert (values, summary.filtered, summary.rejected.total()) == (["43", "30", "67"], 2, 0)


def test_the_first_line_of_a_file_with_titles_is_no_header() -> None:
    with pytest.raises(ConfigurationError, match="has no column '年龄'"):
        read(source(MESSY / "m17_title_and_total_rows.csv", CHINESE))


@pytest.mark.parametrize(
    ("mark", "accepted", "rejected"),
    [("", [], {"not_a_number": 7}), (",", ["1234567"], {"not_a_number": 6})],
)
def test_thousands_are_read_only_under_a_declared_mark(
    mark: str, accepted: list[str], rejected: dict[str, int]
) -> None:
    settings = source(
        MESSY / "m07_thousands_and_currency.csv",
        {"income": "income"},
        csv=CsvConfig(numbers=NumberFormat(thousands_mark=mark)),
    )
    domain = Integers(0, 1_234_567 * 2, 1_234_567)
    summary, values, _ = read(settings, survey(domain, attribute="income"))
    assert values == accepted
    assert summary.rejected == reasons(**rejected)


def test_a_name_that_two_columns_have_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="2 columns named '年龄'"):
        read(source(MESSY / "m13_duplicate_headers.csv", CHINESE))


def test_a_column_beside_ambiguous_ones_is_read() -> None:
    config = source(MESSY / "m13_duplicate_headers.csv", {"age": "收入"})
    assert read(config, survey(Integers(52000, 61000, 9000)))[1] == ["52000", "61000"]


def test_codes_keep_their_leading_zeros_and_are_never_padded_or_merged() -> None:
    codes = Categories(("0102801000", "1300000000"))
    settings = source(MESSY / "m16_region_codes.csv", {"region": "region"})
    summary, values, _ = read(settings, survey(codes, attribute="region"))
    # a, d, f (full-width) and g; b, c and e are other texts.
    assert values == ["0102801000", "0102801000", "0102801000", "1300000000"]
    assert summary.rejected == reasons(not_in_codebook=3)


def test_categories_match_after_trimming_and_otherwise_only_by_a_declared_recode() -> None:
    regions = Categories(("ARMM", "NCR", "IX - Zamboanga Peninsula"))
    definition = survey(regions, attribute="region")
    path = MESSY / "m21_category_spelling.csv"
    summary, values, _ = read(source(path, {"region": "region"}), definition)
    assert values == ["ARMM", "ARMM", "NCR", "IX - Zamboanga Peninsula"]
    assert summary.rejected == reasons(not_in_codebook=3)
    recode = {"region": {"IX - Zasmboanga Peninsula": "IX - Zamboanga Peninsula"}}
    summary, values, _ = read(source(path, {"region": "region"}, recode=recode), definition)
    assert values.count("IX - Zamboanga Peninsula") == 2


def test_top_codes_are_read_only_by_a_declared_recode() -> None:
    settings = source(MESSY / "m09_top_coded.csv", CHINESE, recode={"age": {"80+": "79", "≥80": "79"}})
    summary, values, _ = read(settings, survey(Integers(0, 79)))
    assert values == ["79", "79", "0", "79"]
    assert summary.rejected == reasons(top_coded=8)


def test_an_empty_file_is_an_error() -> None:
    with pytest.raises(InputError, match="is empty"):
        read(source(MESSY / "m23_empty.csv"))


def test_formulas_and_apostrophes_are_not_evaluated() -> None:
    summary, values, _ = read(source(MESSY / "m27_apostrophes_and_formulas.csv"))
    assert values == ["43", "43"]
    assert summary.rejected == reasons(not_a_number=3)


@pytest.mark.parametrize("name", ["年龄", "AGE", "Age\n(years)", "年 龄", "年龄（岁）"])
def test_names_match_exactly_after_trimming(name: str) -> None:
    assert read(source(MESSY / "m29_header_variants.csv", {"age": name}))[1] == ["43"]


@pytest.mark.parametrize("name", ["age", "Age", "年龄(岁)", "年  龄"])
def test_an_unknown_name_is_refused_without_the_names_there_are(name: str) -> None:
    with pytest.raises(ConfigurationError, match=r"has no column .* among the [0-9]+ that") as caught:
        read(source(MESSY / "m29_header_variants.csv", {"age": name}))
    assert not any(repr(seen) in str(caught.value) for seen in ["年龄", "AGE", "Age\n(years)", "年 龄", "年龄（岁）"])


def test_sqlite_columns_that_hold_anything_are_read_cell_by_cell() -> None:
    path = MESSY / "s01_flexible_types.sqlite"
    summary, values, _ = read(source(path, table="person"), survey())
    assert values == ["43", "30", "67"]
    assert summary.rejected == reasons(
        not_a_number=1, missing=1, not_whole=1, unreadable=1, top_coded=1, out_of_domain=2
    )


def test_an_sqlite_table_with_an_odd_name_is_quoted() -> None:
    settings = source(MESSY / "s01_flexible_types.sqlite", CHINESE, table="Odd Name; drop table person")
    assert read(settings)[0].read == 1
    assert read(source(MESSY / "s01_flexible_types.sqlite", table="person"))[0].read == 10


@pytest.mark.parametrize(
    ("name", "accepted", "rejected"),
    [
        ("p01_int8_null.parquet", ["43", "67"], {"missing": 1}),
        ("p03_dictionary_string.parquet", ["43"], {"top_coded": 1, "not_a_number": 1}),
        ("p04_decimal.parquet", ["43"], {"not_whole": 1}),
        ("p07_empty.parquet", [], {}),
    ],
)
def test_parquet_types_mean_the_same_as_text(name: str, accepted: list[str], rejected: dict[str, int]) -> None:
    summary, values, _ = read(source(MESSY / name))
    assert (values, summary.rejected) == (accepted, reasons(**rejected))


def test_a_nested_parquet_column_is_refused_by_name() -> None:
    with pytest.raises(InputError, match="column 'person' is nested"):
        read(source(MESSY / "p06_nested.parquet", {"age": "person"}))
