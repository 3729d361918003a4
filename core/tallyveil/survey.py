"""A survey: the signed, immutable definition of one collection, and its parts.

Not here: what its mechanism does (`tallyveil.mechanisms`) and whether a department takes part (the agent's policy).
Any change makes another version with another hash. Every field exists from this format on; a value this version
of the software cannot honour is refused when the survey is read, never ignored.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from itertools import pairwise, product
from math import prod
from typing import cast

from tallyveil import canonical
from tallyveil.binning import Binning
from tallyveil.domain import Categories, Domain, domain_from_json
from tallyveil.epsilon import NanoEpsilon, checked_nano
from tallyveil.errors import ConfigurationError, IntegrityError
from tallyveil.fields import Fields
from tallyveil.guarantee import ADD_OR_REMOVE, NEIGHBOURS, REPLACE_ONE
from tallyveil.moments import moment_text, parse_moment
from tallyveil.signing import MAX_UNVERIFIED_BYTES, SigningKey, VerifyingKey, seal, unseal, unverified_body

FORMAT = "tallyveil-survey/1"
PURPOSE = "survey"
MECHANISMS = (
    "grr",
    "brr",
    "brr-sealed",
    "ss",
    "sue",
    "oue",
    "olh",
    "hr",
    "rappor",
    "cms",
    "hcms",
    "histogram-laplace",
)
BINNED = ("brr", "brr-sealed")
"""Mechanisms that bin; of them `brr` alone discloses the bin."""

LEAST_BIN_VALUES = 2
"""A bin of one value shows that value: no survey may ask for it."""

MAX_CELLS = 4_096
MAX_ROWS = 2**18
"""Rows of all tables of a release: what a reader can be expected to compute again."""

MAX_COUNTS = 2**21
"""Counts of all batches' sums in a release, so that its file stays readable."""

MAX_ROUNDS = 1_000
SIGN_ANEW = "correct the survey and sign it anew"
"""What to do about a rule that a survey breaks, whoever reads it."""

_NAME = re.compile(r"[a-z][a-z0-9_-]{0,62}")


def most_counts(mechanism: str, domain_size: int) -> int:
    """How many counts a batch of the mechanism has, at most."""
    return {"hr": 4 * domain_size, "rappor": 520, "cms": 2**16, "hcms": 2**17}.get(mechanism, domain_size)


@dataclass(frozen=True)
class Dimension:
    """A non-sensitive attribute sent in clear, with the values it may take."""

    name: str
    domain: Categories


@dataclass(frozen=True)
class Round:
    """One collection window, by the server's time: open from `opens` up to, not including, `closes`."""

    number: int
    opens: datetime
    closes: datetime


@dataclass(frozen=True)
class Minimums:
    """Limits the survey itself sets.

    Args:
        departments: Complete submissions below which nothing is released.
        records_per_cell: Records below which a released cell is withheld; only 0 is supported yet.
        bin_values: Values in the smallest bin.
    """

    departments: int = 1
    records_per_cell: int = 0
    bin_values: int = 4


@dataclass(frozen=True)
class Survey:
    """One collection; see the module's text.

    Args:
        name: Short stable identifier, lower-case.
        version: 1, 2, …; with `name` it names one document.
        title: What people read.
        purpose: Why it is collected, in a sentence or two.
        attribute: Logical name of the sensitive attribute.
        domain: The values the attribute may take.
        bins: The paper's fxs; 1 for mechanisms that do not bin. `binning` says which bins reports disclose.
        mechanism: One of `MECHANISMS`.
        epsilons: Permitted values, rising; a department chooses one of them.
        epsilon_floor: None may go below it.
        dimensions: Attributes sent in clear; empty for none.
        rounds: Numbered 1, 2, … in order, windows not overlapping.
        minimums: See `Minimums`.
        quota: Records one department may submit in one round.
        expires: After this moment the survey is not used.
        neighbours: One of `tallyveil.guarantee.NEIGHBOURS`; other than replace-one for histogram-laplace only.
    """

    name: str
    version: int
    title: str
    purpose: str
    attribute: str
    domain: Domain
    bins: int
    mechanism: str
    epsilons: tuple[NanoEpsilon, ...]
    epsilon_floor: NanoEpsilon
    dimensions: tuple[Dimension, ...]
    rounds: tuple[Round, ...]
    minimums: Minimums
    quota: int
    expires: datetime
    neighbours: str = REPLACE_ONE

    def __post_init__(self) -> None:
        names = [self.name, self.attribute, *(dimension.name for dimension in self.dimensions)]
        for name in names:
            _require(bool(_NAME.fullmatch(name)), "names are lower-case letters, digits, '_' and '-', at most 63")
        _require(len(set(names[1:])) == len(names[1:]), "the attribute and the dimensions have different names")
        _require(1 <= self.version < 2**31, "a survey's version is 1 or more")
        _require(
            0 < len(self.title) <= 200 and self.title.isprintable(),
            "a title has 1 to 200 printable characters",
        )
        _require(
            0 < len(self.purpose) <= 2000 and self.purpose.isprintable(),
            "a purpose has 1 to 2000 printable characters",
        )
        self._check_mechanism()
        self._check_rounds()
        rows = self.domain.size * (self.cell_count + 1)
        _require(rows <= MAX_ROWS, f"a release would have {rows} rows, and at most {MAX_ROWS} are published")
        counts = most_counts(self.mechanism, self.domain.size) * self.cell_count * len(self.epsilons)
        _require(counts <= MAX_COUNTS, f"a release would hold {counts} counts, and at most {MAX_COUNTS} are published")
        _require(self.cell_count <= MAX_CELLS, f"the dimensions' product is at most {MAX_CELLS} cells")
        _require(1 <= self.quota < 2**53, "a quota is a positive number of records")
        _require(self.minimums.departments >= 1, "at least one department must be required")
        _require(
            self.minimums.records_per_cell == 0,
            "records_per_cell other than 0 asks for suppression, which this version does not support",
        )

    def _check_mechanism(self) -> None:
        _require(
            self.mechanism in MECHANISMS,
            f"this version collects with {' or '.join(MECHANISMS)}; the survey asks for another mechanism",
        )
        _require(self.mechanism in BINNED or self.bins == 1, f"{self.mechanism} does not bin: bins must be 1")
        _require(
            1 <= self.bins <= self.domain.size,
            f"bins is between 1 and the domain's {self.domain.size} values",
        )
        _require(self.neighbours in NEIGHBOURS, f"neighbours are {' or '.join(NEIGHBOURS)}")
        _require(
            self.mechanism == "histogram-laplace" or self.neighbours == REPLACE_ONE,
            f"{self.mechanism} perturbs each record that is there: its neighbours are {REPLACE_ONE}",
        )
        _require(
            self.mechanism != "brr-sealed" or 2 <= self.bins <= self.domain.size // 2,
            f"brr-sealed has from 2 to {self.domain.size // 2} bins in this domain, at least two values in each",
        )
        _require(
            self.minimums.bin_values >= LEAST_BIN_VALUES,
            f"min bin_values is at least {LEAST_BIN_VALUES}: a bin of one value would show it",
        )
        _require(
            self.binning.smallest >= self.minimums.bin_values or self.mechanism != "brr",
            f"{self.binning.describe()} leave a bin of {self.binning.smallest}, "
            f"below the survey's own minimum of {self.minimums.bin_values}",
        )
        _require(0 < len(self.epsilons) <= 16, "a survey permits from 1 to 16 values of epsilon")
        for nano in (*self.epsilons, self.epsilon_floor):
            checked_nano(nano)
        _require(
            all(a < b for a, b in pairwise(self.epsilons)),
            "the permitted values of epsilon rise strictly",
        )
        _require(self.epsilon_floor <= self.epsilons[0], "no permitted epsilon may lie below the floor")

    def _check_rounds(self) -> None:
        _require(0 < len(self.rounds) <= MAX_ROUNDS, f"a survey has from 1 to {MAX_ROUNDS} rounds")
        _require(
            [item.number for item in self.rounds] == list(range(1, len(self.rounds) + 1)),
            "rounds are numbered 1, 2, … in order",
        )
        moments = [self.expires, *(moment for item in self.rounds for moment in (item.opens, item.closes))]
        _require(
            all(parse_moment(moment_text(moment)) == moment for moment in moments),
            "moments are whole seconds and name their time zone",
        )
        _require(all(item.opens < item.closes for item in self.rounds), "a round opens before it closes")
        _require(
            all(a.closes <= b.opens for a, b in pairwise(self.rounds)),
            "a round opens no earlier than the one before it closes",
        )
        _require(self.rounds[-1].closes <= self.expires, "a survey expires no earlier than its last round closes")

    @cached_property
    def binning(self) -> Binning:
        """The bins that reports disclose: one bin where they disclose none."""
        return Binning(self.domain.size, self.bins if self.mechanism == "brr" else 1)

    @property
    def charge_factor(self) -> int:
        """How often its epsilon counts on an account, where neighbours are replace-one: replacing is two steps."""
        return 2 if self.neighbours == ADD_OR_REMOVE else 1

    @property
    def cell_count(self) -> int:
        """Cells of the product of the dimensions; 1 without dimensions."""
        return prod(dimension.domain.size for dimension in self.dimensions)

    @cached_property
    def cells(self) -> tuple[tuple[str, ...], ...]:
        """The dimension values of each cell, the last dimension varying fastest: index = cell number."""
        return tuple(product(*(dimension.domain.values for dimension in self.dimensions)))

    @cached_property
    def hash(self) -> str:
        """SHA-256 of the canonical body, as 64 lower-case hexadecimal digits."""
        return canonical.digest(PURPOSE, canonical.encode(self.to_json()))

    def round(self, number: int) -> Round | None:
        """The round of that number, or None."""
        return self.rounds[number - 1] if 1 <= number <= len(self.rounds) else None

    def to_json(self) -> canonical.Json:
        """The body that is signed; `survey_from_json` reads it back."""
        return {
            "format": FORMAT,
            "name": self.name,
            "version": self.version,
            "title": self.title,
            "purpose": self.purpose,
            "attribute": self.attribute,
            "domain": self.domain.to_json(),
            "bins": self.bins,
            "mechanism": self.mechanism,
            "neighbours": self.neighbours,
            "epsilons_nano": list(self.epsilons),
            "epsilon_floor_nano": self.epsilon_floor,
            "dimensions": [{"name": item.name, "values": list(item.domain.values)} for item in self.dimensions],
            "rounds": [
                {"number": item.number, "opens": moment_text(item.opens), "closes": moment_text(item.closes)}
                for item in self.rounds
            ],
            "minimums": {
                "departments": self.minimums.departments,
                "records_per_cell": self.minimums.records_per_cell,
                "bin_values": self.minimums.bin_values,
            },
            "quota_records": self.quota,
            "expires": moment_text(self.expires),
        }


_KEYS = (
    "format",
    "name",
    "version",
    "title",
    "purpose",
    "attribute",
    "domain",
    "bins",
    "mechanism",
    "neighbours",
    "epsilons_nano",
    "epsilon_floor_nano",
    "dimensions",
    "rounds",
    "minimums",
    "quota_records",
    "expires",
)


def survey_from_json(body: object) -> Survey:
    """Read a survey's body.

    Raises:
        ConfigurationError: A key is missing, unknown or ill-typed, or a value breaks a survey's rules.
    """
    fields = Fields(body, "the survey", _KEYS)
    if fields.text("format") != FORMAT:
        raise ConfigurationError(
            f"the survey's format is not {FORMAT}", next_step="update this software, or the survey"
        )
    minimums = Fields(
        fields.value("minimums"), "the survey's minimums", ("departments", "records_per_cell", "bin_values")
    )
    return Survey(
        name=fields.text("name"),
        version=fields.integer("version"),
        title=fields.text("title"),
        purpose=fields.text("purpose"),
        attribute=fields.text("attribute"),
        domain=domain_from_json(fields.value("domain")),
        bins=fields.integer("bins"),
        mechanism=fields.text("mechanism"),
        neighbours=fields.text("neighbours"),
        epsilons=tuple(checked_nano(nano) for nano in fields.integers("epsilons_nano")),
        epsilon_floor=checked_nano(fields.integer("epsilon_floor_nano")),
        dimensions=tuple(_dimension(item) for item in fields.items("dimensions")),
        rounds=tuple(_round(item) for item in fields.items("rounds")),
        minimums=Minimums(
            minimums.integer("departments"), minimums.integer("records_per_cell"), minimums.integer("bin_values")
        ),
        quota=fields.integer("quota_records"),
        expires=parse_moment(fields.text("expires")),
    )


def sign_survey(survey: Survey, key: SigningKey) -> bytes:
    """The signed survey file."""
    return seal(PURPOSE, survey.to_json(), key)


def open_survey(data: bytes, authority: VerifyingKey) -> Survey:
    """The survey of a signed file, verified against the pinned authority.

    Raises:
        IntegrityError: The signature does not hold, the file was altered, or it is a draft or no survey at all.
        ConfigurationError: Signed, yet not a survey this version can honour.
    """
    try:
        body = unseal(PURPOSE, data, authority)
    except IntegrityError:
        require_survey(data)
        if claimed_format(data) == (FORMAT, False):
            raise IntegrityError(
                "this is a draft: it is not signed",
                not_done="the survey was not used",
                next_step="run tallyveil survey sign, and use the NAME-vVERSION.survey that it writes",
            ) from None
        raise
    return survey_from_json(body)


def read_unverified_survey(data: bytes) -> Survey:
    """The survey of a signed file whose signature nobody has checked: to show, never to act on."""
    return survey_from_json(unverified_body(data))


def claimed_format(data: bytes) -> tuple[str, bool]:
    """What a file that nobody has verified says it is, and whether it bears a signature: for messages only.

    Returns:
        Its format, such as ``tallyveil-survey/1``, or nothing where it names none.
    """
    try:
        document: object = json.loads(data) if len(data) <= MAX_UNVERIFIED_BYTES else None
    except (ValueError, RecursionError):
        document = None
    outer = cast(canonical.Json, document) if isinstance(document, dict) else {}
    signed = "signature" in outer
    body = outer.get("body") if signed else outer
    claimed = cast(canonical.Json, body).get("format") if isinstance(body, dict) else None
    return claimed if isinstance(claimed, str) else "", signed


def require_survey(data: bytes) -> None:
    """Refuse a file that says it is something else.

    Raises:
        IntegrityError: It is a release.
    """
    if claimed_format(data)[0].startswith("tallyveil-release/"):
        raise IntegrityError(
            "this is a release, not a survey",
            not_done="no survey was read",
            next_step="name a survey's file, NAME-vVERSION.survey; tallyveil stats verify checks releases",
        )


def _dimension(item: object) -> Dimension:
    fields = Fields(item, "a dimension of the survey", ("name", "values"))
    return Dimension(fields.text("name"), Categories(fields.texts("values")))


def _round(item: object) -> Round:
    fields = Fields(item, "a round of the survey", ("number", "opens", "closes"))
    return Round(fields.integer("number"), parse_moment(fields.text("opens")), parse_moment(fields.text("closes")))


def _require(condition: bool, rule: str) -> None:
    if not condition:
        raise ConfigurationError(rule, not_done="the survey was not made or used", next_step=SIGN_ANEW)
