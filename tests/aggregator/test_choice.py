"""A department's signed choice of epsilon holds under its own certificate, for that choice alone.

Not here: what the aggregator does with it (`test_collection_service`).
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from aggregator_world import HEALTH, Pki, make_key
from tallyveil.choice import choice_holds, sign_choice
from tallyveil.epsilon import NanoEpsilon
from tallyveil.errors import ConfigurationError
from tallyveil.identity import Identity, Role

KEY = make_key()


def test_a_choice_holds_under_its_own_certificate_and_for_nothing_else(pki: Pki) -> None:
    certificate, private_key = pki.client(HEALTH)
    stranger, _ = pki.client(Identity(Role.DEPARTMENT, "stranger"))
    signature = sign_choice(private_key, KEY)
    assert choice_holds(certificate, KEY, signature)
    assert not choice_holds(stranger, KEY, signature)
    for other in (
        replace(KEY, epsilon=NanoEpsilon(KEY.epsilon + 1)),
        replace(KEY, round=KEY.round + 1),
        replace(KEY, survey_hash="00" * 32),
        replace(KEY, submission_id=bytes(16)),
    ):
        assert not choice_holds(certificate, other, signature)
    for wrong in (b"", b"\x00" * 64, signature[:-1], signature + b"\x00"):
        assert not choice_holds(certificate, KEY, wrong)
    assert not choice_holds(b"", KEY, signature) and not choice_holds(b"garbage", KEY, signature)


def test_only_keys_that_can_sign_so_are_taken() -> None:
    as_pem = (Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    assert len(sign_choice(Ed25519PrivateKey.generate().private_bytes(*as_pem), KEY)) == 64
    for pem in (b"", b"garbage", generate_private_key(65537, 2048).private_bytes(*as_pem)):
        with pytest.raises(ConfigurationError, match="elliptic-curve"):
            sign_choice(pem, KEY)
