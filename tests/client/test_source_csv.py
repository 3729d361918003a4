# pyright: standard
"""CSV files: encodings, names, quotation marks, ragged and blank lines."""

from __future__ import annotations

import csv
import io
import itertools
import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inputs import chain, read, reasons, source
from tallyveil.errors import ConfigurationError, InputError, TallyveilError
from tallyveil_client.agent.config import CsvConfig
from tallyveil_client.agent.sources import csv as csv_source
from tallyveil_client.agent.sources import open_source
from tallyveil_client.agent.sources.csv_quotes import QuoteCheck

CANARY = "Zykaria731992"


def write(folder: Path, content: str | bytes, name: str = "a.csv") -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def cells(path: Path, columns: list[str], options: CsvConfig | None = None) -> list[tuple[str | None, ...]]:
    """The cells of a file as text."""
    with open_source(source(path, csv=options or CsvConfig())) as opened:
        rows: list[tuple[str | None, ...]] = []
        for batch in opened.batches(columns):
            assert batch.schema.names == columns
            rows += zip(*(column.to_pylist() for column in batch.columns), strict=True)
        return rows


def refused(path: Path, match: str, options: CsvConfig | None = None) -> None:
    with pytest.raises(InputError, match=match) as caught:
        cells(path, ["age"], options)
    assert CANARY not in chain(caught.value)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "gb18030"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_every_encoding_and_line_end_is_recognised(tmp_path: Path, encoding: str, end: str) -> None:
    text = end.join(["年龄,地区", "43,河北省", "30,㐂𠮷", ""])
    path = write(tmp_path, text.encode(encoding))
    assert cells(path, ["年龄", "地区"]) == [("43", "河北省"), ("30", "㐂𠮷")]


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-16"])
def test_utf16_is_read_when_declared_and_recognised_by_its_mark_only(tmp_path: Path, encoding: str) -> None:
    path = write(tmp_path, "age\n43\n".encode(encoding))
    if encoding == "utf-16":
        assert cells(path, ["age"]) == [("43",)]
    else:
        refused(path, "looks like UTF-16")
    if encoding != "utf-16-be":
        assert cells(path, ["age"], CsvConfig(encoding="utf-16")) == [("43",)]


def test_utf32_is_refused(tmp_path: Path) -> None:
    refused(write(tmp_path, "age\n43\n".encode("utf-32")), "UTF-32")


def test_a_mark_is_no_part_of_a_declared_encodings_first_name(tmp_path: Path) -> None:
    assert cells(write(tmp_path, b"\xef\xbb\xbfage\n43\n"), ["age"], CsvConfig(encoding="utf-8")) == [("43",)]
    assert cells(write(tmp_path, "\ufeffage\n43\n".encode("gb18030")), ["age"]) == [("43",)]


def test_bytes_that_fit_no_encoding_are_refused_by_position(tmp_path: Path) -> None:
    path = write(tmp_path, b"age,name\n43,\xff\xff" + CANARY.encode() + b"\n")
    refused(path, r"neither UTF-8 \(byte 13 is not\) nor GB18030 \(byte 13 is not\)")
    refused(path, "byte 13 of the file is not utf-8", CsvConfig(encoding="utf-8"))


@pytest.mark.parametrize("encoding", ["utf-8", "gb18030"])
@pytest.mark.parametrize("place", [0, (1 << 20) - 1, 1 << 20, (2 << 20) - 2, 3 << 20])
def test_a_bad_byte_is_found_wherever_it_is(tmp_path: Path, encoding: str, place: int) -> None:
    head = b"age,name\n43,"
    body = "吉".encode(encoding)
    filling = (body + b"x\n43,") * (place // (len(body) + 5) + 1)
    filling = filling[: place // (len(body) + 5) * (len(body) + 5)]
    path = write(tmp_path, head + filling + b"\xff\n")
    refused(path, f"byte {len(head) + len(filling) + 1} of the file is not", CsvConfig(encoding=encoding))


def test_a_character_cut_off_at_the_end_is_refused(tmp_path: Path) -> None:
    refused(write(tmp_path, "age\n43\n吉".encode()[:-1]), "byte 8", CsvConfig(encoding="utf-8"))


def test_utf8_wins_over_gb18030_only_if_all_of_the_file_is_utf8(tmp_path: Path) -> None:
    ascii_rows = b"43,x\n" * 400_000
    assert cells(write(tmp_path, b"age,name\n" + ascii_rows + "30,吉".encode("gb18030")), ["name"])[-1] == ("吉",)


def test_names_may_be_quoted_span_lines_and_stand_below_titles(tmp_path: Path) -> None:
    content = '"A title\nof two lines",\n\n"age, in ""years""\n(whole)", sex \n43,M\n'
    options = CsvConfig(header_row=3)
    assert cells(write(tmp_path, content), ['age, in "years"\n(whole)', "sex"], options) == [("43", "M")]


@pytest.mark.parametrize("row", [2, 3, 100])
def test_a_header_row_that_is_not_there_is_said(tmp_path: Path, row: int) -> None:
    with pytest.raises(ConfigurationError, match=f"no column names in row {row}"):
        cells(write(tmp_path, "age\n\n"), ["age"], CsvConfig(header_row=row))


def test_names_longer_than_a_mebibyte_are_not_names(tmp_path: Path) -> None:
    path = write(tmp_path, 'age,"' + "x" * (3 << 20) + '"\n43,1\n')
    with pytest.raises(TallyveilError):
        cells(path, ["age"])


def test_columns_come_in_the_order_asked_for_and_others_are_not_read(tmp_path: Path) -> None:
    path = write(tmp_path, "a,b,a,c\n1,2,3,4\n")
    assert cells(path, ["c", "b"]) == [("4", "2")]
    with pytest.raises(ConfigurationError, match="2 columns named 'a'"):
        cells(path, ["a"])


@pytest.mark.parametrize("delimiter", ["\t", ";", "|"])
def test_other_delimiters_are_declared(tmp_path: Path, delimiter: str) -> None:
    path = write(tmp_path, f'age{delimiter}name\n43{delimiter}"a{delimiter}b"\n')
    assert cells(path, ["age", "name"], CsvConfig(delimiter=delimiter)) == [("43", f"a{delimiter}b")]


@pytest.mark.parametrize(("is_", "should"), [(",", ";"), (",", "\t"), (";", ","), (",", "|")])
def test_a_wrong_delimiter_is_said_with_the_right_one_and_no_name(tmp_path: Path, is_: str, should: str) -> None:
    path = write(tmp_path, f'a title\nage{should}"{CANARY}"{should}x\n43{should}1,5{should}1\n')
    with pytest.raises(ConfigurationError, match=r"holds 1 names between .* would hold 3") as caught:
        cells(path, ["age"], CsvConfig(delimiter=is_, header_row=2))
    assert f"write delimiter = {json.dumps(should)} in [sources.s]" in caught.value.next_step
    assert CANARY not in chain(caught.value)


def test_another_delimiter_is_suggested_only_where_it_would_help(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="has no column 'age' among the 2"):
        cells(write(tmp_path, "Age,income;year\n1,2\n"), ["age"])
    with pytest.raises(ConfigurationError, match=r"holds 2 names .* would hold 2"):  # 1,5 in a title, say
        cells(write(tmp_path, "age;income,thousands\n1;2\n"), ["age"])
    assert cells(write(tmp_path, "age;income,x\n1,2\n"), ["age;income"]) == [("1",)]


def test_very_many_names_are_names(tmp_path: Path) -> None:
    names = ",".join(f"column_{number}" for number in range(20_000))
    assert cells(write(tmp_path, f"age,{names}\n43{',1' * 20_000}\n"), ["age"]) == [("43",)]


@pytest.mark.parametrize(("row", "columns"), [(f"{CANARY}", 1), (f"44,{CANARY},3", 3)])
def test_a_ragged_record_is_refused_by_its_number(tmp_path: Path, row: str, columns: int) -> None:
    rows = ["age,name", '"4\n3",x', "", *["43,x"] * 300_000, row, "43,x"]
    refused(write(tmp_path, "\n".join(rows)), f"record 300002 has {columns} columns, not 2")


def test_nothing_is_read_as_missing_and_no_number_is_made_of_text(tmp_path: Path) -> None:
    path = write(tmp_path, 'age\nNA\nnull\n""\n007\n1e5\n')
    assert [cell for (cell,) in cells(path, ["age"])] == ["NA", "null", "", "007", "1e5"]


def test_a_blank_line_is_a_record_only_where_there_is_one_column(tmp_path: Path) -> None:
    summary, values, _ = read(source(write(tmp_path, "age\n43\n\n30\n")))
    assert (values, summary.rejected) == (["43", "30"], reasons(missing=1))
    summary, values, _ = read(source(write(tmp_path, "age,x\n43,1\n\n30,1\n\n")))
    assert (values, summary.rejected) == (["43", "30"], reasons())


def test_a_file_without_records_is_read_as_none(tmp_path: Path) -> None:
    for content in ("age", "age\n", "age,x\r\n\r\n", "\ufeffage\n"):
        assert cells(write(tmp_path, content), ["age"]) == []


@pytest.mark.parametrize("content", [b"", b"\xef\xbb\xbf", b"\xff\xfe"])
def test_an_empty_file_is_refused(tmp_path: Path, content: bytes) -> None:
    refused(write(tmp_path, content), "is empty")


def test_a_file_that_is_not_there_is_a_matter_of_configuration(tmp_path: Path) -> None:
    for path in (tmp_path / "none.csv", tmp_path):
        with pytest.raises(ConfigurationError, match="is not a file"):
            read(source(path, kind="csv"))


def test_a_quotation_mark_that_is_never_closed_does_not_swallow_records(tmp_path: Path) -> None:
    for tail in ("", "\n"):
        refused(write(tmp_path, f'age,name\n43,x\n30,"{CANARY}\n67,x{tail}'), "opens a field on line 3 is never closed")
        refused(write(tmp_path, f'age\n43\n"30\n67{tail}'), "opens a field on line 3 is never closed")


def test_text_after_a_closing_quotation_mark_is_refused_by_its_line(tmp_path: Path) -> None:
    refused(write(tmp_path, f'age,name\n43,"x"{CANARY}\n30,x\n'), "on line 2 a quoted field goes on")
    refused(write(tmp_path, f'age,name\n43,"x\n30,{CANARY}\n67,"x\n'), "on line 4 a quoted field goes on")


def test_a_quotation_mark_inside_an_unquoted_field_is_a_character(tmp_path: Path) -> None:
    path = write(tmp_path, 'age,name\n43,5" pipe\n30,"a ""b"""\n67,6"\n')
    assert cells(path, ["age", "name"]) == [("43", '5" pipe'), ("30", 'a "b"'), ("67", '6"')]


def test_a_record_longer_than_a_block_is_refused(tmp_path: Path) -> None:
    refused(write(tmp_path, 'age,name\n43,"' + CANARY * 1_000_000 + '"\n'), "longer than 1 MiB")


def test_a_file_is_not_read_far_ahead_of_its_use_and_may_be_left_early(tmp_path: Path) -> None:
    path = write(tmp_path, b"age,name\n" + b"43,abcdefghijkl\n" * (8 << 20))
    with open_source(source(path)) as opened:
        batches = opened.batches(["age"])
        for _ in range(20):
            next(batches)
        fraction = opened.fraction_read
        assert fraction is not None
        assert 0 < fraction < 0.8


FIELDS = st.text(st.sampled_from('ab,"\n\r;'), max_size=5)
TABLES = st.lists(st.tuples(FIELDS, FIELDS), max_size=8)


def parsed(text: str, name: str = "x") -> list[list[str]] | None:
    try:
        return list(csv.reader(io.StringIO(text, newline=""), strict=True))
    except csv.Error:
        return None


@given(table=TABLES, pieces=st.lists(st.integers(0, 40), max_size=6))
def test_quotation_marks_as_the_csv_module_writes_them_always_fit(
    table: list[tuple[str, str]], pieces: list[int]
) -> None:
    text = io.StringIO(newline="")
    csv.writer(text).writerows(table)
    feed(text.getvalue(), pieces)


@settings(max_examples=500)
@given(text=st.text(st.sampled_from('a,"\n'), max_size=12), pieces=st.lists(st.integers(0, 12), max_size=6))
def test_any_text_fits_or_is_refused_as_the_strict_csv_module_does(text: str, pieces: list[int]) -> None:
    try:
        feed(text, pieces)
    except InputError:
        assert parsed(text) is None
    else:
        assert parsed(text) is not None


def feed(text: str, pieces: list[int]) -> None:
    """Give a text to a check in pieces that end at these positions."""
    check = QuoteCheck("s", ",", 0)
    ends = sorted({min(end, len(text)) for end in pieces} | {0, len(text)})
    for start, end in itertools.pairwise(ends):
        check.feed(text[start:end].encode())
    check.finish()


@settings(max_examples=40, deadline=None)
@given(table=st.lists(st.tuples(FIELDS, FIELDS), min_size=1, max_size=30))
def test_records_survive_any_block_size(tmp_path_factory: pytest.TempPathFactory, table: list[tuple[str, str]]) -> None:
    path = tmp_path_factory.mktemp("csv") / "a.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, quoting=csv.QUOTE_ALL).writerows([("p", "q"), *table])
    with pytest.MonkeyPatch.context() as patch:
        for size in (64, 100, 1000):
            patch.setattr(csv_source, "_BLOCK_BYTES", size)
            assert cells(path, ["p", "q"]) == table
