"""An agent under audit: it runs whole rounds over made-up records, and its outbox is counted.

Not here: what is measured of the counts (`tallyveil.audit`). The department's own records are never opened, its ledger
is not written and nothing is sent: every run has a store of its own in a temporary folder, thrown away with it.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Generator, Sequence
from dataclasses import replace
from decimal import Decimal
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from tallyveil.audit.search import Counts
from tallyveil.audit.watch import View
from tallyveil.batch import ID_BYTES, SubmissionKey
from tallyveil.domain import Domain, Intervals
from tallyveil.errors import ConfigurationError, PolicyError
from tallyveil.mechanisms import Tally, for_survey
from tallyveil.mechanisms.payload import decode_tally
from tallyveil.randomness import Randomness, public_token
from tallyveil.survey import Survey
from tallyveil_client.agent.config import SourceConfig
from tallyveil_client.agent.department import Department
from tallyveil_client.agent.encode import Encoded
from tallyveil_client.agent.policy import Policy
from tallyveil_client.agent.run import Aids, run_round
from tallyveil_client.agent.scan import scan
from tallyveil_client.agent.selection import Approved
from tallyveil_client.agent.store import Store

NOTE = (
    "An agent sends counts: of reports that support several values, single values can be compared and not the worst "
    "patterns of two. For these, audit the mechanism itself as well."
)

CHUNK_RECORDS = 1 << 18
"""Records of one run, unless the survey's quota is smaller."""

REPEATED_RUNS = 8
REPEATED_RECORDS = 2_000
LEAST_VARIANCE = 10.0


class _Counted:
    """A count of what the agent sends."""

    ordered = False

    def describe(self, outcomes: Counts, first: int, second: int) -> str:
        listed = ", ".join(map(str, outcomes[:6].tolist())) + (" …" if outcomes.size > 6 else "")
        return f"counted in {{{listed}}}"


class AgentWatcher:
    """Draws reports by running the agent's own rounds.

    Args:
        department: Real; its policy, key and approvals are used, its sources and its store are not.
        item: The approved survey.
        advance: Called with the number of records of each run.
        coins: Of each run; None for secure ones, as the agent's own.

    Raises:
        ConfigurationError: The survey's mechanism perturbs no single record.
    """

    def __init__(
        self,
        department: Department,
        item: Approved,
        advance: Callable[[int], None] = lambda records: None,
        coins: Callable[[], Randomness | None] = lambda: None,
    ) -> None:
        self._department, self._item, self._advance, self._coins = department, item, advance, coins
        self._mechanism = for_survey(item.survey, item.epsilon)
        if self._mechanism.at_department:
            raise ConfigurationError(
                "a department's noisy histogram is one draw and not many: there is nothing to count in it",
                not_done="nothing was audited",
                next_step=f"audit the mechanism: tallyveil audit --mechanism {self._mechanism.name}",
            )
        self.exclusive = self._mechanism.perturb(np.zeros(1, dtype=np.int64)).ndim == 1

    @property
    def views(self) -> Sequence[View]:
        """One: the counts of a batch."""
        return (_Counted(),)

    def watch(self, truth: int, others: Sequence[int], records: int) -> list[list[Counts]]:
        """The same counts whatever the other value is."""
        chunk, counts = (
            min(CHUNK_RECORDS, self._item.survey.quota),
            np.zeros(self._mechanism.law.outputs, dtype=np.int64),
        )
        for start in range(0, records, chunk):
            counts += self._run(truth, min(chunk, records - start)).counts
        return [[counts] for _ in others]

    def repeated(self) -> tuple[str, ...]:
        """Whether several runs over the same records send the same counts: a fixed seed."""
        records = min(REPEATED_RECORDS, self._item.survey.quota)
        tallies = [self._run(0, records).counts for _ in range(REPEATED_RUNS)]
        variance = float((tallies[0] * (1 - tallies[0] / records)).max())
        alike = all(np.array_equal(tallies[0], counts) for counts in tallies[1:])
        return ("runs of the agent",) if alike and variance >= LEAST_VARIANCE else ()

    def _run(self, truth: int, records: int) -> Tally:
        """One whole round over so many records of one value; what it would send."""
        survey = self._item.survey
        limits = self._department.limits(survey, None)
        with TemporaryDirectory(prefix="tallyveil-audit-") as folder:
            source = _table(Path(folder), limits.source, survey, truth, records)
            here = replace(self._department.config, store=Path(folder) / "store", sources={limits.source: source})
            own = replace(limits, min_clear_cell=1, min_clear_cell_reason="made-up records")
            policy = Policy(self._department.policy.accounts, (own,))
            with Store(here.store) as store:
                approval = next(a for a in self._department.store.approvals() if a.survey_hash == survey.hash)
                store.approve(approval)
                department = replace(self._department, config=here, policy=policy, store=store)
                sent = list[Tally]()

                def deliver(key: SubmissionKey) -> None:
                    for outgoing in store.outgoing(key.submission_id):
                        batch = outgoing.batch
                        sent.append(decode_tally(self._mechanism.law, batch.records, batch.payload))
                        store.mark_batches([batch.batch_id])

                run_round(department, self._item, survey.rounds[0], None, self._aids(deliver))
        if len(sent) != 1 or sent[0].records != records:
            raise PolicyError(
                "the agent did not send one batch of these records", not_done="the audit was not finished"
            )
        self._advance(records)
        return sent[0]

    def _aids(self, deliver: Callable[[SubmissionKey], None]) -> Aids:
        opens = self._item.survey.rounds[0].opens

        def read(source: SourceConfig, item: Approved) -> Generator[Encoded]:
            yield from scan(source, item.survey)

        return Aids(
            lambda: opens,
            lambda: public_token(ID_BYTES),
            self._coins(),
            lambda: None,
            read,
            lambda key: False,
            deliver,
        )


def _table(folder: Path, name: str, survey: Survey, truth: int, records: int) -> SourceConfig:
    """A CSV file of equal records, as a source of the agent."""
    domains = {survey.attribute: survey.domain, **{item.name: item.domain for item in survey.dimensions}}
    cells = [_cell(domain, truth if column == survey.attribute else 0) for column, domain in domains.items()]
    lines = StringIO()
    csv.writer(lines, lineterminator="\n").writerows([list(domains), cells])
    header, row = lines.getvalue().split("\n")[:2]
    path = folder / "records.csv"
    path.write_text(f"{header}\n" + f"{row}\n" * records, encoding="utf-8")
    return SourceConfig(name, "csv", {column: column for column in domains}, path=path)


def _cell(domain: Domain, index: int) -> str:
    """A cell that is read as the domain's value of this index."""
    return f"{Decimal(domain.edges[index]):f}" if isinstance(domain, Intervals) else domain.labels[index]
