"""The agent's file: every key, every fault named with its table."""

from __future__ import annotations

import contextlib
import re
from decimal import Decimal
from importlib.resources import files
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallyveil.errors import ConfigurationError
from tallyveil_client.agent.cell_text import NumberFormat
from tallyveil_client.agent.config import AgentConfig, CsvConfig, SourceConfig, load_config, missing_files
from tallyveil_client.agent.filter import Condition
from tallyveil_client.agent.policy_file import load_policy

DEPLOY = Path(__file__).parents[2] / "deploy"
BASE = """
[aggregator]
address = "localhost:8443"
ca = "ca.pem"
certificate = "agent.pem"
private_key = "keys/agent.key"
[authority]
public_key = "/etc/authority.pub"
[store]
path = "agent.sqlite"
[policy]
path = "policy.toml"
"""
SOURCE = """
[sources.households]
format = "csv"
path = "data.csv"
[sources.households.columns]
age = "Household Head Age"
"""


def load(folder: Path, text: str) -> AgentConfig:
    path = folder / "agent.toml"
    path.write_text(text, "utf-8")
    return load_config(path)


def refused(folder: Path, text: str, *words: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        load(folder, text)
    assert all(word in str(caught.value) for word in words), str(caught.value)


def test_the_sample_is_read_with_every_key(tmp_path: Path) -> None:
    config = load(tmp_path, (DEPLOY / "agent.toml").read_text("utf-8"))
    assert config.aggregator.address == "aggregator.example.org:7443"
    assert config.source("households") == SourceConfig(
        name="households",
        format="csv",
        path=Path("/srv/export/household.csv"),
        columns={
            "age": "Household Head Age",
            "sex": "Household Head Sex",
            "region": "Region",
            "total_household_income": "Total Household Income",
        },
        missing=("", "NA", "-9"),
        conditions=(Condition("total_household_income", ">=", Decimal(200000)),),
        recode={"age": {"80+": "80"}, "region": {"IX - Zasmboanga Peninsula": "IX - Zamboanga Peninsula"}},
    )
    assert config.source("register").table == "public.person"


def test_the_keys_the_sample_comments_out_are_keys(tmp_path: Path) -> None:
    text = (DEPLOY / "agent.toml").read_text("utf-8")
    for key in ("server_name", "decimal_mark", "thousands_mark"):
        assert f"# {key} = " in text
        text = text.replace(f"# {key} = ", f"{key} = ")
    config = load(tmp_path, text)
    assert config.aggregator.server_name == "aggregator"
    assert config.source("households").csv.numbers == NumberFormat(",", ".")


SAMPLES = files("tallyveil_client.agent").joinpath("samples")
OPTIONAL = re.compile(r"^# (?=\[|\w+ += |\"80)", re.MULTILINE)
KEY_LINE = re.compile(r"(?:# )?(\w+) += [^#]+ # \S.*")


def known_keys(folder: Path, name: str, text: str, heading: str) -> set[str]:
    """The keys that a table may hold, as the error about an unknown one lists them."""
    path = folder / name
    path.write_text(text.replace(f"{heading}\n", f"{heading}\nzzzzzzzz = 1\n"), "utf-8")
    with pytest.raises(ConfigurationError) as caught:
        load_config(path) if name == "agent.toml" else load_policy(path)
    return set(caught.value.next_step.removeprefix("known keys: ").split(", "))


@pytest.mark.parametrize("name", ["agent.toml", "policy.toml"])
def test_the_samples_of_init_have_every_key_with_a_comment(tmp_path: Path, name: str) -> None:
    sample = SAMPLES.joinpath(name).read_text("utf-8")
    commented = {found.group(1) for line in sample.splitlines() if (found := KEY_LINE.fullmatch(line))}
    if name == "policy.toml":
        one = re.sub(" +#.*", "", sample)
        known = {
            key for heading in ("[[accounts]]", "[[collections]]") for key in known_keys(tmp_path, name, one, heading)
        }
        assert known <= commented, known - commented
        return
    tables = ("[aggregator]", "[authority]", "[store]", "[policy]")
    known = {key for heading in tables for key in known_keys(tmp_path, name, BASE + SOURCE, heading)}
    for lines in (
        'format = "csv"\npath = "a"',
        'format = "parquet"\npath = "a"',
        'format = "sqlite"\npath = "a"\ntable = "t"',
        'format = "postgresql"\nuri_file = "a"\ntable = "t"',
    ):
        text = BASE + f'[sources.s]\n{lines}\n[sources.s.columns]\nage = "Age"\n'
        known |= known_keys(tmp_path, name, text, "[sources.s]")
    assert "[sources.households.columns]" in sample and "# [sources.households.recode.age]" in sample
    assert known - {"columns", "recode"} <= commented, known - commented
    bare = [line for line in sample.splitlines() if re.match(r"(# )?[\w\"+]+ += ", line) and "  #" not in line]
    assert bare == []


@pytest.mark.parametrize("without", ["table", "query"])
def test_the_samples_can_be_read_with_every_optional_line(tmp_path: Path, without: str) -> None:
    lines = OPTIONAL.sub("", SAMPLES.joinpath("agent.toml").read_text("utf-8")).splitlines()
    config = load(tmp_path, "\n".join(line for line in lines if not line.startswith(f"{without} ")))
    household, register = config.source("households"), config.source("register")
    assert household.conditions and household.recode and config.aggregator.server_name
    assert household.csv.numbers == NumberFormat(",", ".")
    assert (register.table is None, register.query is None) == (without == "table", without == "query")
    path = tmp_path / "policy.toml"
    path.write_text(OPTIONAL.sub("", SAMPLES.joinpath("policy.toml").read_text("utf-8")), "utf-8")
    assert load_policy(path).collections[0].allow_overlap


def test_a_file_that_is_missing_or_broken_is_answered_with_where_samples_are(tmp_path: Path) -> None:
    for read in (load_config, load_policy):
        with pytest.raises(ConfigurationError) as caught:
            read(tmp_path / "none.toml")
        assert "tallyveil agent init" in caught.value.next_step and "deploy" not in str(caught.value)


def test_paths_start_from_the_files_folder(tmp_path: Path) -> None:
    config = load(tmp_path, BASE + SOURCE)
    assert config.aggregator.private_key == tmp_path / "keys" / "agent.key"
    assert config.authority_key == Path("/etc/authority.pub")
    assert config.source("households").path == tmp_path / "data.csv"


def test_defaults_are_the_documented_ones(tmp_path: Path) -> None:
    config = load(tmp_path, BASE + SOURCE)
    assert (config.aggregator.timeout_s, config.aggregator.server_name) == (30, None)
    household = config.source("households")
    assert household.csv == CsvConfig("auto", ",", 1, NumberFormat(".", ""))
    assert (household.missing, household.conditions, household.on_invalid, household.recode) == (
        ("",),
        (),
        "refuse",
        {},
    )
    assert load(tmp_path, BASE).sources == {}


def test_files_that_are_not_there_are_listed_and_the_store_is_not(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").touch()
    config = load(tmp_path, BASE + SOURCE)
    assert [line.split(":")[0] for line in missing_files(config)] == [
        "[aggregator] certificate",
        "[aggregator] private_key",
        "[authority] public_key",
        "[policy] path",
        "[sources.households] path",
    ]


def test_a_missing_or_broken_file_is_said(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="does not exist"):
        load_config(tmp_path / "none.toml")
    with pytest.raises(ConfigurationError, match="cannot be read"):
        load_config(tmp_path)
    refused(tmp_path, BASE + "[store]\n", "is not TOML", "line")
    (tmp_path / "agent.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigurationError, match="not UTF-8"):
        load_config(tmp_path / "agent.toml")


def test_an_unknown_source_is_said_with_those_there_are(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="use one of: households"):
        load(tmp_path, BASE + SOURCE).source("household")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (('address = "localhost:8443"', 'adress = "localhost:8443"'), ("[aggregator]", "'address' is missing")),
        (("[aggregator]", "[aggregator]\ntimeout = 5"), ("[aggregator]", "'timeout'", "did you mean 'timeout_s'")),
        (("[aggregator]", "[agregator]"), ("'aggregator' is missing",)),
        (("[store]", "[extra]\n[store]"), ("'extra' is not a known key", "known keys: aggregator")),
        (("[aggregator]", "[aggregator]\ntimeout_s = 1.5"), ("'timeout_s' must be a whole number from 1 to 3600",)),
        (("[aggregator]", "[aggregator]\ntimeout_s = true"), ("'timeout_s'",)),
        (("[aggregator]", "[aggregator]\ntimeout_s = 0"), ("'timeout_s'",)),
        (('"localhost:8443"', '"localhost"'), ("'address' must be host:port",)),
        (('"localhost:8443"', '"localhost:99999"'), ("'address' must be host:port",)),
        (('"localhost:8443"', '"http://localhost:1"'), ("'address' must be host:port",)),
        (('"localhost:8443"', "8443"), ("'address' must be text",)),
        (('ca = "ca.pem"', 'ca = " "'), ("[aggregator]", "'ca' must be text that is not blank")),
        (("\n[aggregator]", "\nauthority = 5\n[aggregator]"), ("is not TOML",)),
        (("\n[aggregator]", "\nsources = 5\n[aggregator]"), ("'sources' must be a table",)),
    ],
)
def test_faults_of_the_first_tables_are_named(tmp_path: Path, change: tuple[str, str], words: tuple[str, ...]) -> None:
    refused(tmp_path, BASE.replace(*change), *words)


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ('format = "excel"\npath = "a"', ("[sources.s] key 'format' must be one of 'csv', 'parquet'",)),
        ('path = "a"', ("'format' is missing",)),
        ('format = "csv"', ("csv needs path",)),
        ('format = "csv"\npath = "a"\ntable = "t"', ("[sources.s] key 'table' is not a known key",)),
        ('format = "parquet"\npath = "a"\ndelimiter = ";"', ("'delimiter' is not a known key",)),
        ('format = "sqlite"\npath = "a"', ("either a table or a query",)),
        ('format = "sqlite"\npath = "a"\ntable = "t"\nquery = "select 1"', ("either a table or a query",)),
        ('format = "postgresql"\ntable = "t"', ("postgresql needs uri_file",)),
        ('format = "postgresql"\nuri = "postgresql://u:secret@h/d"\nuri_file = "a"\ntable = "t"', ("'uri' is not",)),
        ('format = "csv"\npath = "a"\nencoding = "latin-1"', ("'encoding' must be one of 'auto'",)),
        ('format = "csv"\npath = "a"\ndelimiter = ";;"', ("delimiter is one ASCII character",)),
        ('format = "csv"\npath = "a"\ndelimiter = ""', ("delimiter is one ASCII character",)),
        ('format = "csv"\npath = "a"\ndelimiter = "，"', ("delimiter is one ASCII character",)),
        ('format = "csv"\npath = "a"\nheader_row = 0', ("'header_row' must be a whole number from 1",)),
        ('format = "csv"\npath = "a"\nmissing = "NA"', ("'missing' must be a list",)),
        ('format = "csv"\npath = "a"\nmissing = [9]', ("'missing' must be a list of texts",)),
        ('format = "csv"\npath = "a"\non_invalid = "clip"', ("'on_invalid' must be one of 'refuse', 'reject'",)),
        ('format = "csv"\npath = "a"\nfilter = "age >"', ("at character 6",)),
        ('format = "csv"\npath = "a"\nfilter = "sex == 1"', ("'sex' is used in its filter or a recode",)),
        ('format = "csv"\npath = "a"\nrecode.sex = {a = "b"}', ("'sex' is used in its filter or a recode",)),
        ('format = "csv"\npath = "a"\nrecode.age = {a = 5}', ("[sources.s.recode.age] key 'a' must be text",)),
        ('format = "csv"\npath = "a"\nrecode.age = {NA = "5"}\nmissing = ["NA "]', ("also among its missing codes",)),
        ('format = "csv"\npath = "a"\nthousands_mark = "."', ("are the same",)),
        ('format = "csv"\npath = "a"\ncolumns."5x" = "a"', ("'5x' cannot be a logical column name",)),
    ],
)
def test_faults_of_a_source_are_named(tmp_path: Path, lines: str, words: tuple[str, ...]) -> None:
    refused(tmp_path, BASE + f'[sources.s]\n{lines}\ncolumns.age = "Age"\n', *words)


def test_a_source_needs_columns(tmp_path: Path) -> None:
    refused(tmp_path, BASE + '[sources.s]\nformat = "csv"\npath = "a"\n', "names no column")
    refused(
        tmp_path, BASE + '[sources.s]\nformat = "csv"\npath = "a"\ncolumns.age = 5\n', "[sources.s.columns]", "'age'"
    )


def test_no_fault_shows_the_value_of_a_key(tmp_path: Path) -> None:
    text = BASE.replace('"localhost:8443"', '"user:Zykaria@host"') + SOURCE
    with pytest.raises(ConfigurationError) as caught:
        load(tmp_path, text)
    assert "Zykaria" not in str(caught.value)


@given(st.text(max_size=200))
def test_any_text_is_read_or_raises_this_one_error(text: str) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "agent.toml"
        path.write_bytes((BASE + SOURCE + text).encode("utf-8", "surrogatepass"))
        with contextlib.suppress(ConfigurationError):
            load_config(path)
