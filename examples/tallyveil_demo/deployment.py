"""Setting the whole system up in one folder and running one round through it, by the commands operators use.

Not here: how a command is run (`processes`), the data (`offices`) and what comes out (`outcome`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

from tallyveil.guarantee import KIND_AT_DEPARTMENT, KIND_LDP, KIND_WITHIN_BIN
from tallyveil.moments import moment_text
from tallyveil_demo.offices import AGE_COLUMN, HIGH, LOW, Office
from tallyveil_demo.processes import Answer, run_tallyveil, run_together

SURVEY = "high-income-heads"
SIGNED_SURVEY = f"{SURVEY}-v1.survey"
EPSILON, BINS = 2, 16
CONSUMER = "newsroom"
WINDOW = timedelta(hours=2)

AGGREGATOR_TOML = """\
[server]
listen = "127.0.0.1:0"
certificate = "pki/server.pem"
private_key = "pki/server.key"
client_ca = "pki/ca.pem"

[store]
path = "aggregator.sqlite"

[authority]
public_key = "pki/authority.pub"

[release]
private_key = "pki/release.key"
"""

AGENT_TOML = """\
[aggregator]
address = "127.0.0.1:{port}"
ca = "credentials/ca.pem"
certificate = "credentials/certificate.pem"
private_key = "credentials/private.key"

[authority]
public_key = "credentials/authority.pub"

[store]
path = "agent.sqlite"

[policy]
path = "policy.toml"

[sources.heads]
format = "csv"
path = "heads.csv"

[sources.heads.columns]
age = "{age_column}"
"""

POLICY_TOML = f"""\
[[accounts]]
name = "heads"
person = "head of a household"
max_rows_per_person = 1
total_epsilon = 4.0

[[collections]]
source = "heads"
attribute = "age"
account = "heads"
guarantees = ["{KIND_LDP}", "{KIND_WITHIN_BIN}", "{KIND_AT_DEPARTMENT}"]
max_epsilon = {EPSILON}.0
min_clear_cell = 1
min_clear_cell_reason = "a demonstration: this table of counts is public"
"""


@dataclass(frozen=True)
class Deployment:
    """The demo's folder, the offices in it, and the survey's mechanism."""

    folder: Path
    offices: Sequence[Office]
    mechanism: str = "brr"
    bins: int = BINS

    @property
    def release_file(self) -> Path:
        return self.folder / "release.json"

    @property
    def release_key(self) -> Path:
        return self.folder / "release.pub"

    @property
    def server_command(self) -> tuple[str, ...]:
        """The arguments of the aggregator's server."""
        return ("aggregator", "serve", "--config", "aggregator.toml")

    def set_up(self) -> None:
        """Certificates and keys, the signed survey, the aggregator's store."""
        run, names = self._run, [office.name for office in self.offices]
        run("pki", "init", "pki")
        opens = datetime.now(UTC) - timedelta(minutes=1)
        draft = (
            *("survey", "new", "--name", SURVEY, "--output", f"{SURVEY}-v1.json"),
            *("--title", "Heads of high-income households by age"),
            *("--purpose", "How old those are who head a household with a high income."),
            *("--attribute", "age", "--domain", f"{LOW}..{HIGH}"),
            *("--mechanism", self.mechanism, "--bins", str(self.bins)),
            *("--epsilon", str(EPSILON), "--min-departments", str(len(names))),
            *("--opens", moment_text(opens), "--closes", moment_text(opens + WINDOW)),
        )
        independent = (
            ("pki", "server", "pki", "--name", "localhost", "--name", "127.0.0.1"),
            ("pki", "department", "pki", *names),
            ("pki", "consumer", "pki", CONSUMER),
            draft,
        )
        run_together([partial(run_tallyveil, arguments, self.folder) for arguments in independent], lambda: None)
        run("survey", "sign", f"{SURVEY}-v1.json", "--key", "pki/authority.key", "--output", SIGNED_SURVEY)
        (self.folder / "aggregator.toml").write_text(AGGREGATOR_TOML)
        run("aggregator", "init", "--config", "aggregator.toml")
        run("aggregator", "surveys", "add", SIGNED_SURVEY, "--config", "aggregator.toml")
        run("aggregator", "departments", "add", *names, "--config", "aggregator.toml")

    def equip_offices(self, port: int) -> None:
        """Each office's own folder: its table, its credentials, its configuration and policy."""
        for office in self.offices:
            home = self.home(office)
            home.mkdir(parents=True)
            office.write_csv(home / "heads.csv")
            (self.folder / "pki" / "departments" / office.name).rename(home / "credentials")
            (home / "agent.toml").write_text(AGENT_TOML.format(port=port, age_column=AGE_COLUMN))
            (home / "policy.toml").write_text(POLICY_TOML)

    def approve(self, on_done: Callable[[], None]) -> None:
        """Every office's operator verifies and approves the survey."""
        self._everywhere(("agent", "approve", f"../../{SIGNED_SURVEY}", "--yes"), on_done)

    def preview(self, office: Office) -> Answer:
        """What would leave an office, shown with made-up values."""
        return run_tallyveil(("agent", "preview"), self.home(office))

    def collect(self, on_done: Callable[[], None]) -> list[Answer]:
        """Every office's agent reads, checks, perturbs, charges, stores and sends."""
        return self._everywhere(("agent", "run"), on_done)

    def publish(self, port: int) -> None:
        """Close the round early, release it, and fetch the release as a consumer who verifies it."""
        self._run("aggregator", "rounds", "close", SURVEY, "1", "--config", "aggregator.toml")
        self._run("aggregator", "release", SURVEY, "1", "--config", "aggregator.toml")
        credentials = self.folder / "pki" / "consumers" / CONSUMER
        self.release_key.write_bytes((credentials / "release.pub").read_bytes())
        self._run(
            *("stats", "get", SURVEY, "--server", f"127.0.0.1:{port}", "--credentials", str(credentials)),
            *("--key", str(self.release_key), "--output", str(self.release_file)),
        )

    def home(self, office: Office) -> Path:
        """The office's folder."""
        return self.folder / "offices" / office.name

    def _run(self, *arguments: str) -> Answer:
        return run_tallyveil(arguments, self.folder)

    def _everywhere(self, arguments: tuple[str, ...], on_done: Callable[[], None]) -> list[Answer]:
        jobs = [partial(run_tallyveil, arguments, self.home(office)) for office in self.offices]
        return run_together(jobs, on_done)
