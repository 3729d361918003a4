"""The agent's configuration file: aggregator, authority, store, policy, and the sources of records.

Not here: what a policy says (`policy`) and how a source is read (`sources`). Secrets are files named by path. Files
that enrolment makes later may be missing when the configuration is read: `missing_files` says which are.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tallyveil.errors import ConfigurationError
from tallyveil_client.agent.cell_text import NumberFormat, clean
from tallyveil_client.agent.filter import Condition, filter_columns, parse_filter
from tallyveil_client.agent.toml import Table, read_toml

FORMATS = ("csv", "parquet", "sqlite", "postgresql")
ENCODINGS = ("auto", "utf-8", "gb18030", "utf-16")
ON_INVALID = ("refuse", "reject")

_NAME = re.compile(r"[^\W\d][\w-]{0,62}")
_ADDRESS = re.compile(r"(?:[A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\]):([0-9]{1,5})")


@dataclass(frozen=True)
class AggregatorConfig:
    """How to reach the aggregator.

    Args:
        address: ``host:port``.
        ca: The certificate authority's certificate, PEM.
        certificate: This agent's certificate, PEM.
        private_key: Its key, PEM.
        timeout_s: For one call, seconds.
        server_name: The name in the server's certificate, where it is not the host.
    """

    address: str
    ca: Path
    certificate: Path
    private_key: Path
    timeout_s: int = 30
    server_name: str | None = None


@dataclass(frozen=True)
class CsvConfig:
    """How a CSV file is written.

    Args:
        encoding: One of `ENCODINGS`; ``"auto"``: by byte order mark, else UTF-8 if all of it is, else GB18030.
        delimiter: One ASCII character.
        header_row: Which row holds the column names, from 1; those above are skipped.
        numbers: Its decimal and thousands marks.
    """

    encoding: str = "auto"
    delimiter: str = ","
    header_row: int = 1
    numbers: NumberFormat = field(default_factory=NumberFormat)

    def __post_init__(self) -> None:
        _require(self.encoding in ENCODINGS, f"the encoding of a CSV file is one of {', '.join(ENCODINGS)}")
        _require(self.header_row >= 1, "header_row counts from 1")
        _require(
            len(self.delimiter) == 1 and self.delimiter.isascii() and self.delimiter not in '"\r\n\0',
            "the delimiter is one ASCII character other than a quotation mark or a line end",
        )


@dataclass(frozen=True)
class SourceConfig:
    """One source of records.

    Args:
        name: What policy and commands call it.
        format: One of `FORMATS`.
        columns: Logical name (attribute, dimension, filter column) -> column in the source.
        path: The file, for csv, parquet and sqlite.
        uri_file: A file that holds the connection URI, for postgresql.
        table: For sqlite and postgresql, or else `query`.
        query: One SELECT.
        csv: For csv.
        missing: Texts that stand for a missing value; an empty cell always does.
        conditions: The filter; records must meet all.
        on_invalid: ``"refuse"``: one rejected record stops the run; ``"reject"``: they are left out and counted.
        recode: Logical name -> cell text -> text to read in its place.
    """

    name: str
    format: str
    columns: Mapping[str, str]
    path: Path | None = None
    uri_file: Path | None = None
    table: str | None = None
    query: str | None = None
    csv: CsvConfig = field(default_factory=CsvConfig)
    missing: tuple[str, ...] = ("",)
    conditions: tuple[Condition, ...] = ()
    on_invalid: str = "refuse"
    recode: Mapping[str, Mapping[str, str]] = field(default_factory=dict[str, Mapping[str, str]])

    def __post_init__(self) -> None:
        database = self.format in ("sqlite", "postgresql")
        _require(self.format in FORMATS, f"source '{self.name}': format must be one of {', '.join(FORMATS)}")
        _require(
            (self.uri_file if self.format == "postgresql" else self.path) is not None,
            f"source '{self.name}': {self.format} needs {'uri_file' if self.format == 'postgresql' else 'path'}",
        )
        _require(
            (self.table is None) != (self.query is None) if database else self.table is self.query is None,
            f"source '{self.name}': {self.format} takes "
            + ("either a table or a query" if database else "neither table nor query"),
        )
        _require(bool(self.columns), f"source '{self.name}': [sources.{self.name}.columns] names no column")
        for name in self.columns:
            _require(bool(_NAME.fullmatch(name)), f"source '{self.name}': '{name}' cannot be a logical column name")
        for name in (*filter_columns(self.conditions), *self.recode):
            _require(
                name in self.columns,
                f"source '{self.name}': '{name}' is used in its filter or a recode, and is not among its columns",
            )
        missing = {clean(text) for text in self.missing}
        for name, cells in self.recode.items():
            _require(
                missing.isdisjoint(map(clean, cells)),
                f"source '{self.name}': a cell text recoded for '{name}' is also among its missing codes",
            )


@dataclass(frozen=True)
class AgentConfig:
    """Everything in the agent's file; paths are absolute or relative to where the agent runs, as the file's was."""

    aggregator: AggregatorConfig
    authority_key: Path
    store: Path
    policy: Path
    sources: Mapping[str, SourceConfig]

    def source(self, name: str) -> SourceConfig:
        """The source of that name.

        Raises:
            ConfigurationError: There is none.
        """
        if name not in self.sources:
            known = ", ".join(sorted(self.sources))
            raise ConfigurationError(
                f"the configuration has no source '{name}'", next_step=f"use one of: {known}, or add [sources.{name}]"
            )
        return self.sources[name]


def load_config(path: Path) -> AgentConfig:
    """Read the agent's file.

    Raises:
        ConfigurationError: It is missing, not TOML, or holds an unknown key or a wrong value.
    """
    root = read_toml(path, "agent configuration")
    aggregator = root.table("aggregator")
    authority, store, policy = root.table("authority"), root.table("store"), root.table("policy")
    sources = root.table("sources", required=False)
    config = AgentConfig(
        aggregator=_aggregator(aggregator),
        authority_key=authority.path("public_key"),
        store=store.path("path"),
        policy=policy.path("path"),
        sources={name: _source(name, sources.table(name)) for name in sources.names()},
    )
    for table in (root, aggregator, authority, store, policy):
        table.finish()
    return config


def missing_files(config: AgentConfig) -> tuple[str, ...]:
    """The files the configuration names that do not exist, each as ``[table] key: path``; the store is made later."""
    aggregator = config.aggregator
    named = {
        "[aggregator] ca": aggregator.ca,
        "[aggregator] certificate": aggregator.certificate,
        "[aggregator] private_key": aggregator.private_key,
        "[authority] public_key": config.authority_key,
        "[policy] path": config.policy,
    }
    for source in config.sources.values():
        key, path = ("uri_file", source.uri_file) if source.uri_file else ("path", source.path)
        if path is not None:
            named[f"[sources.{source.name}] {key}"] = path
    return tuple(f"{key}: {path}" for key, path in named.items() if not path.is_file())


def _aggregator(table: Table) -> AggregatorConfig:
    address = table.text("address")
    port = _ADDRESS.fullmatch(address)
    if port is None or not 1 <= int(port.group(1)) <= 65535:
        raise table.fault("address", "must be host:port")
    return AggregatorConfig(
        address=address,
        ca=table.path("ca"),
        certificate=table.path("certificate"),
        private_key=table.path("private_key"),
        timeout_s=table.integer("timeout_s", 30, low=1, high=3600),
        server_name=table.optional_text("server_name"),
    )


def _source(name: str, table: Table) -> SourceConfig:
    if not _NAME.fullmatch(name):
        raise table.fault(name, "cannot be a source's name: letters, digits, '_' and '-', a letter first")
    kind = table.choice("format", FORMATS)
    recode = table.table("recode", required=False)
    source = SourceConfig(
        name=name,
        format=kind,
        columns=table.texts_by_name("columns"),
        path=table.optional_path("path") if kind != "postgresql" else None,
        uri_file=table.optional_path("uri_file") if kind == "postgresql" else None,
        table=table.optional_text("table") if kind in ("sqlite", "postgresql") else None,
        query=table.optional_text("query") if kind in ("sqlite", "postgresql") else None,
        missing=table.texts("missing", ("",)),
        conditions=_conditions(table),
        on_invalid=table.choice("on_invalid", ON_INVALID, "refuse"),
        recode={column: recode.texts_by_name(column) for column in recode.names()},
        csv=_csv(table) if kind == "csv" else CsvConfig(),
    )
    table.finish()
    return source


def _csv(table: Table) -> CsvConfig:
    return CsvConfig(
        encoding=table.choice("encoding", ENCODINGS, "auto"),
        delimiter=table.raw_text("delimiter", ","),
        header_row=table.integer("header_row", 1, low=1, high=10_000),
        numbers=NumberFormat(table.raw_text("decimal_mark", "."), table.raw_text("thousands_mark", "")),
    )


def _conditions(table: Table) -> tuple[Condition, ...]:
    text = table.optional_text("filter")
    return parse_filter(text) if text is not None else ()


def _require(condition: bool, rule: str) -> None:
    if not condition:
        raise ConfigurationError(
            rule, not_done="nothing was read, charged or sent", next_step="correct the agent's configuration"
        )
