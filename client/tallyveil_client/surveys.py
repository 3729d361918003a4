"""Surveys as an aggregator hands them on: signed files that nothing here trusts.

Not here: the verification of a survey (`tallyveil.survey.open_survey`) and its approval (the agent).
"""

from __future__ import annotations

from dataclasses import dataclass

from tallyveil.errors import ConfigurationError, PeerError
from tallyveil.wire.v1 import survey_pb2 as pb
from tallyveil.wire.v1.survey_pb2_grpc import SurveyServiceStub
from tallyveil_client.transport import Channel, Endpoint, calling


@dataclass(frozen=True)
class SurveySummary:
    """What the aggregator says about a survey: unverified, to choose by.

    Args:
        hash: 64 hexadecimal digits.
        name: Its name.
        version: Its version.
        title: For people.
        expires: RFC 3339, UTC.
    """

    hash: str
    name: str
    version: int
    title: str
    expires: str


def fetch_survey(channel: Channel, survey_hash: str, endpoint: Endpoint) -> bytes:
    """The signed file of one survey, unverified.

    Args:
        channel: As `transport.connect` made it.
        survey_hash: 64 lower-case hexadecimal digits.
        endpoint: Whom the channel leads to; for the timeout and for messages.

    Raises:
        ConfigurationError: `survey_hash` is no hash.
        TallyveilError: The call failed, as `transport.translate` says.
    """
    if len(survey_hash) != 64 or not set(survey_hash) <= set("0123456789abcdef"):
        raise ConfigurationError(
            "a survey's hash is 64 lower-case hexadecimal digits",
            not_done="nothing was fetched",
            next_step="copy it from the survey authority's own announcement",
        )
    with calling(endpoint, "fetching the survey"):
        request = pb.GetSurveyRequest(survey_hash=bytes.fromhex(survey_hash))
        response = SurveyServiceStub(channel).GetSurvey(request, timeout=endpoint.timeout_s)
    return response.document


def list_surveys(channel: Channel, endpoint: Endpoint) -> list[SurveySummary]:
    """The surveys the aggregator says it knows, newest first; unverified.

    Raises:
        PeerError: A summary has not the agreed form.
        TallyveilError: The call failed, as `transport.translate` says.
    """
    with calling(endpoint, "listing the surveys"):
        response = SurveyServiceStub(channel).ListSurveys(pb.ListSurveysRequest(), timeout=endpoint.timeout_s)
    return [_summary(message) for message in response.surveys]


def _summary(message: pb.SurveySummary) -> SurveySummary:
    if len(message.survey_hash) != 32:
        raise PeerError("the list of surveys holds a hash that is none", not_done="the list was not used")
    return SurveySummary(message.survey_hash.hex(), message.name, message.version, message.title, message.expires)
