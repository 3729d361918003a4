# pyright: standard
"""The gRPC servicers: messages in and out, and nothing else.

Not here: what is answered (`collection`, `surveys`, `statistics`).
"""

from __future__ import annotations

from collections.abc import Iterator

import grpc

from tallyveil.cli.logs import Log
from tallyveil.moments import moment_text
from tallyveil.wire.v1 import (
    collection_pb2,
    collection_pb2_grpc,
    statistics_pb2,
    statistics_pb2_grpc,
    survey_pb2,
    survey_pb2_grpc,
)
from tallyveil_aggregator.service.collection import Collection
from tallyveil_aggregator.service.identity import caller_of, certificate_of
from tallyveil_aggregator.service.places import Places
from tallyveil_aggregator.service.refusals import answering
from tallyveil_aggregator.service.statistics import Statistics
from tallyveil_aggregator.service.streams import Streams
from tallyveil_aggregator.service.surveys import Surveys

PART_BYTES = 256 * 1024

_LOG = Log("aggregator.service")


class CollectionServicer(collection_pb2_grpc.CollectionServiceServicer):
    """Uploads of departments."""

    def __init__(self, collection: Collection, streams: Streams) -> None:
        self._collection = collection
        self._streams = streams

    def Submit(
        self, request_iterator: Iterator[collection_pb2.SubmitRequest], context: grpc.ServicerContext
    ) -> Iterator[collection_pb2.SubmitResponse]:
        """One department's stream."""
        with answering(context, _LOG):
            upload = self._collection.begin(caller_of(context), certificate_of(context))
            heard = self._streams.enter(upload.department, context)
            for message in request_iterator:
                heard()
                yield upload.answer(message)
                heard()


class SurveyServicer(survey_pb2_grpc.SurveyServiceServicer):
    """Signed surveys."""

    def __init__(self, surveys: Surveys) -> None:
        self._surveys = surveys

    def ListSurveys(
        self, request: survey_pb2.ListSurveysRequest, context: grpc.ServicerContext
    ) -> survey_pb2.ListSurveysResponse:
        """Surveys known here, newest first."""
        with answering(context, _LOG):
            summaries = [
                survey_pb2.SurveySummary(
                    survey_hash=bytes.fromhex(survey.hash),
                    name=survey.name,
                    version=survey.version,
                    title=survey.title,
                    expires=moment_text(survey.expires),
                )
                for survey in self._surveys.list(caller_of(context))
            ]
            return survey_pb2.ListSurveysResponse(surveys=summaries)
        raise AssertionError("answering ends the call")

    def GetSurvey(
        self, request: survey_pb2.GetSurveyRequest, context: grpc.ServicerContext
    ) -> survey_pb2.GetSurveyResponse:
        """One signed survey by its hash."""
        with answering(context, _LOG):
            document = self._surveys.get(caller_of(context), request.survey_hash)
            return survey_pb2.GetSurveyResponse(document=document)
        raise AssertionError("answering ends the call")


class StatisticsServicer(statistics_pb2_grpc.StatisticsServiceServicer):
    """Signed releases."""

    def __init__(self, statistics: Statistics, places: Places) -> None:
        self._statistics = statistics
        self._places = places

    def ListReleases(
        self, request: statistics_pb2.ListReleasesRequest, context: grpc.ServicerContext
    ) -> statistics_pb2.ListReleasesResponse:
        """Releases published here, newest first."""
        with answering(context, _LOG):
            summaries = [
                statistics_pb2.ReleaseSummary(
                    survey_name=release.survey_name,
                    survey_version=release.survey_version,
                    survey_hash=bytes.fromhex(release.survey_hash),
                    round=release.round,
                    revision=release.revision,
                    release_hash=bytes.fromhex(release.hash),
                    released_at=release.released_at,
                )
                for release in self._statistics.list(caller_of(context))
            ]
            return statistics_pb2.ListReleasesResponse(releases=summaries)
        raise AssertionError("answering ends the call")

    def GetRelease(
        self, request: statistics_pb2.GetReleaseRequest, context: grpc.ServicerContext
    ) -> Iterator[statistics_pb2.GetReleaseResponse]:
        """One signed release, in parts."""
        with answering(context, _LOG):
            self._places.take(context)
            document = self._statistics.get(
                caller_of(context), request.survey_name, request.survey_version, request.round, request.revision
            )
            for start in range(0, len(document), PART_BYTES):
                yield statistics_pb2.GetReleaseResponse(part=document[start : start + PART_BYTES])
