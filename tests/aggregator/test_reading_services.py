# pyright: standard
"""Surveys and releases over real gRPC: signed files for whoever the aggregator knows."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from dataclasses import replace

import grpc
import pytest
from cryptography import x509
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.x509.oid import ExtendedKeyUsageOID

from aggregator_calls import channel_of, channel_with, reason_of, running
from aggregator_world import CONSUMER, DAY, EDUCATION, HEALTH, NOW, OPERATOR, SURVEY, Pki, World, make_upload, put
from tallyveil.identity import Identity, Role
from tallyveil.refusal import Refusal
from tallyveil.release import check_chain, open_release
from tallyveil.survey import open_survey
from tallyveil.wire.v1 import statistics_pb2, survey_pb2
from tallyveil.wire.v1.statistics_pb2_grpc import StatisticsServiceStub
from tallyveil.wire.v1.survey_pb2_grpc import SurveyServiceStub
from tallyveil_aggregator.enrolment.authority import certificate_to_pem, generate_key, key_to_pem
from tallyveil_aggregator.intake import DepartmentState
from tallyveil_aggregator.publication import publish
from tallyveil_aggregator.service import servicers
from tallyveil_aggregator.service.server import AggregatorServer

SECOND = replace(SURVEY, version=2, minimums=replace(SURVEY.minimums, departments=1))
LISTS = (
    lambda channel: SurveyServiceStub(channel).ListSurveys(survey_pb2.ListSurveysRequest(), timeout=20),
    lambda channel: StatisticsServiceStub(channel).ListReleases(statistics_pb2.ListReleasesRequest(), timeout=20),
)


@pytest.fixture
def server(world: World, pki: Pki) -> Generator[AggregatorServer]:
    """The aggregator with two versions of a survey; of the second, two rounds are released."""
    world.set_up(surveys=(SURVEY, SECOND))
    with world.store() as store:
        for number in (1, 2):
            put(store, "health", make_upload(survey=SECOND, round_number=number))
            publish(store, SECOND, number, pki.releases, lambda: NOW + 3 * DAY)
    with running(world) as started:
        yield started


@pytest.mark.parametrize("caller", [HEALTH, EDUCATION, CONSUMER, OPERATOR])
def test_every_role_may_read(server: AggregatorServer, pki: Pki, caller: Identity) -> None:
    with channel_of(pki, server.port, caller) as channel:
        for read in LISTS:
            read(channel)


def test_a_listed_survey_is_fetched_by_its_hash_and_verifies(server: AggregatorServer, pki: Pki) -> None:
    with channel_of(pki, server.port, HEALTH) as channel:
        stub = SurveyServiceStub(channel)
        listed = stub.ListSurveys(survey_pb2.ListSurveysRequest()).surveys
        assert [(item.name, item.version, item.title) for item in listed] == [("ages", 2, "Ages"), ("ages", 1, "Ages")]
        for summary, survey in zip(listed, (SECOND, SURVEY), strict=True):
            document = stub.GetSurvey(survey_pb2.GetSurveyRequest(survey_hash=summary.survey_hash)).document
            assert open_survey(document, pki.surveys.public) == survey


@pytest.mark.parametrize(
    ("survey_hash", "code"),
    [(bytes(32), Refusal.UNKNOWN_SURVEY), (b"", Refusal.MALFORMED), (bytes(33), Refusal.MALFORMED)],
    ids=["unknown", "empty", "too long"],
)
def test_a_survey_that_is_not_there_is_refused(
    server: AggregatorServer, pki: Pki, survey_hash: bytes, code: Refusal
) -> None:
    with channel_of(pki, server.port, HEALTH) as channel, pytest.raises(grpc.RpcError) as caught:
        SurveyServiceStub(channel).GetSurvey(survey_pb2.GetSurveyRequest(survey_hash=survey_hash))
    assert reason_of(caught.value) == code


def document_of(answers: Iterable[statistics_pb2.GetReleaseResponse]) -> bytes:
    return b"".join(answer.part for answer in answers)


def test_releases_are_listed_newest_first_and_fetched_whole(server: AggregatorServer, pki: Pki) -> None:
    with channel_of(pki, server.port, CONSUMER) as channel:
        stub = StatisticsServiceStub(channel)
        listed = stub.ListReleases(statistics_pb2.ListReleasesRequest()).releases
        assert [(item.survey_version, item.round, item.revision) for item in listed] == [(2, 2, 1), (2, 1, 1)]
        fetched = []
        for summary in reversed(listed):
            request = statistics_pb2.GetReleaseRequest(survey_name="ages", survey_version=2, round=summary.round)
            fetched.append(open_release(document_of(stub.GetRelease(request)), pki.releases.public))
            assert fetched[-1].hash == summary.release_hash.hex()
            assert fetched[-1].release.survey.hash == summary.survey_hash.hex()
        check_chain(fetched)
        newest = document_of(stub.GetRelease(statistics_pb2.GetReleaseRequest(survey_name="ages")))
        assert newest == fetched[-1].document


def test_a_release_that_is_not_there_is_not_found(server: AggregatorServer, pki: Pki) -> None:
    requests = [
        statistics_pb2.GetReleaseRequest(survey_name="other"),
        statistics_pb2.GetReleaseRequest(survey_name="ages", survey_version=1),
        statistics_pb2.GetReleaseRequest(survey_name="ages", round=3),
        statistics_pb2.GetReleaseRequest(survey_name="ages", round=1, revision=2),
        statistics_pb2.GetReleaseRequest(),
    ]
    with channel_of(pki, server.port, CONSUMER) as channel:
        for request in requests:
            with pytest.raises(grpc.RpcError) as caught:
                list(StatisticsServiceStub(channel).GetRelease(request))
            assert reason_of(caught.value) == "NOT_FOUND"


def test_a_release_larger_than_a_message_comes_in_parts(
    server: AggregatorServer, pki: Pki, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(servicers, "PART_BYTES", 1_000)
    with channel_of(pki, server.port, CONSUMER) as channel:
        answers = list(StatisticsServiceStub(channel).GetRelease(statistics_pb2.GetReleaseRequest(survey_name="ages")))
    assert len(answers) > 1
    assert all(len(answer.part) <= 1_000 for answer in answers)
    open_release(document_of(answers), pki.releases.public)


def test_departments_that_are_unknown_or_blocked_read_nothing(server: AggregatorServer, world: World, pki: Pki) -> None:
    with world.store() as store, store.writing() as transaction:
        transaction.departments.set_state("health", DepartmentState.BLOCKED)
    stranger = Identity(Role.DEPARTMENT, "stranger")
    for caller, code in ((HEALTH, Refusal.DEPARTMENT_BLOCKED), (stranger, Refusal.UNKNOWN_DEPARTMENT)):
        with channel_of(pki, server.port, caller) as channel:
            for read in LISTS:
                with pytest.raises(grpc.RpcError) as caught:
                    read(channel)
                assert reason_of(caught.value) == code


def issue(pki: Pki, *names: x509.GeneralName) -> tuple[bytes, bytes]:
    """A client certificate of the CA with any alternative names."""
    key, root = generate_key(), pki.authority.certificate
    builder = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([]))
        .issuer_name(root.subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(NOW - DAY / 24)
        .not_valid_after(NOW + DAY)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False)
    )
    if names:
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=True)
    return certificate_to_pem(builder.sign(pki.authority.key, SHA256())), key_to_pem(key)


URI = x509.UniformResourceIdentifier


@pytest.mark.parametrize(
    "names",
    [
        (),
        (x509.DNSName("tallyveil:department:health"),),
        (x509.RFC822Name("tallyveil:consumer:x@example.org"),),
        (URI("tallyveil:department:health"), URI("tallyveil:consumer:newsroom")),
        (URI("TALLYVEIL:department:health"),),
        (URI("tallyveil:admin:root"),),
        (URI("tallyveil:department:"),),
        (URI("tallyveil:department:a/b"),),
    ],
)
def test_a_certificate_that_names_nobody_or_two_reads_nothing(
    server: AggregatorServer, pki: Pki, names: tuple[x509.GeneralName, ...]
) -> None:
    with channel_with(pki, server.port, *issue(pki, *names)) as channel:
        for read in LISTS:
            with pytest.raises(grpc.RpcError) as caught:
                read(channel)
            assert reason_of(caught.value) == "UNAUTHENTICATED"


def test_one_identity_beside_other_names_is_that_identity(server: AggregatorServer, pki: Pki) -> None:
    pair = issue(pki, URI("https://example.org"), URI("tallyveil:consumer:x"), x509.DNSName("tallyveil.example.org"))
    with channel_with(pki, server.port, *pair) as channel:
        for read in LISTS:
            read(channel)
