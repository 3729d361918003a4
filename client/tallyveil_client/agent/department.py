"""The department's side, opened: configuration, policy, the authority's pinned key and the store.

Not here: what is done with them. Nothing of this file needs the network or the records.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tallyveil.cli.files import read_file
from tallyveil.errors import TallyveilError
from tallyveil.signing import VerifyingKey
from tallyveil.survey import Survey, open_survey, read_unverified_survey
from tallyveil_client.agent.clear_cells import Counts, visible_counts
from tallyveil_client.agent.config import AgentConfig, SourceConfig, load_config
from tallyveil_client.agent.costs import Cost
from tallyveil_client.agent.fingerprint import fingerprint
from tallyveil_client.agent.ledger import SUBMISSION, Charge, charge_of, remaining
from tallyveil_client.agent.overlap import Shown
from tallyveil_client.agent.policy import Collection, Policy
from tallyveil_client.agent.policy_file import load_policy
from tallyveil_client.agent.selection import Approved, label_of
from tallyveil_client.agent.store import Approval, Earlier, Store


@dataclass(frozen=True)
class Department:
    """Everything an agent's command works with, besides records and aggregator."""

    config: AgentConfig
    policy: Policy
    authority: VerifyingKey
    store: Store

    def approved(self) -> tuple[Approved, ...]:
        """The approved surveys whose signature still holds under the pinned key."""
        found = list[Approved]()
        for approval in self.store.approvals():
            survey = self._verified(approval)
            if survey is not None:
                found.append(Approved(survey, approval.epsilon, approval.approved_at))
        return tuple(found)

    def unverified(self) -> tuple[str, ...]:
        """Hashes of approvals whose document no longer verifies: they count as not approved."""
        return tuple(item.survey_hash for item in self.store.approvals() if self._verified(item) is None)

    def limits(self, survey: Survey, source: str | None) -> Collection:
        """What the policy allows for this survey's attribute. Raises PolicyError where it allows nothing."""
        return self.policy.collection_for(survey, source)

    def source(self, limits: Collection) -> SourceConfig:
        """The source of a collection. Raises ConfigurationError where the configuration has none of that name."""
        return self.config.source(limits.source)

    def cost(self, item: Approved, limits: Collection) -> Cost:
        """What a round of this survey would take now."""
        account = self.policy.account(limits.account)
        spent = self.store.ledger().spent(account.name)
        charged = charge_of(item.epsilon * item.survey.charge_factor, account.max_rows_per_person)
        return Cost(account, charged, remaining(account.total_epsilon, spent))

    def shown_before(self) -> tuple[Shown, ...]:
        """The tables that were charged and stored so far."""
        return shown_before(self.store.earlier())

    def shown(self, survey: Survey, limits: Collection, clear_counts: Counts | None = None) -> Shown:
        """The table that a survey would show; `clear_counts` where its records were counted."""
        counts = None if clear_counts is None else visible_counts(survey, clear_counts)
        return Shown(survey, limits.account, fingerprint(self.source(limits), survey), counts)

    def _verified(self, approval: Approval) -> Survey | None:
        try:
            survey = open_survey(approval.document, self.authority)
        except TallyveilError:
            return None
        return survey if survey.hash == approval.survey_hash and approval.epsilon in survey.epsilons else None


@contextmanager
def open_department(path: Path) -> Generator[Department]:
    """Read configuration, policy and key, and open the store, which is made where it is missing.

    Raises:
        ConfigurationError: A file is missing or wrong.
        IntegrityError: The ledger was altered, or is an older copy of itself.
    """
    config = load_config(path)
    policy = load_policy(config.policy)
    authority = VerifyingKey.from_pem(read_file(config.authority_key, "the survey authority's public key"))
    with Store(config.store) as store:
        yield Department(config, policy, authority, store)


def shown_before(earlier: Iterable[Earlier]) -> tuple[Shown, ...]:
    """The tables of stored submissions."""
    return tuple(
        Shown(read_unverified_survey(item.document), item.account, item.selection, item.clear_counts)
        for item in earlier
    )


def charge_for(item: Approved, number: int, cost: Cost, submission_id: bytes, at: str) -> Charge:
    """The ledger's entry for one round."""
    return Charge(
        account=cost.account.name,
        kind=SUBMISSION,
        survey_hash=item.survey.hash,
        survey=label_of(item.survey),
        round=number,
        epsilon=item.epsilon,
        max_rows_per_person=cost.account.max_rows_per_person,
        factor=item.survey.charge_factor,
        charged=cost.charged,
        submission=submission_id.hex(),
        at=at,
    )
