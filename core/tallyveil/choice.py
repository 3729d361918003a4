"""A department's signed choice among a survey's values of epsilon: what p and q follow from, beside the survey.

Not here: certificates and how they are verified (TLS does). The signature is the certificate's own key's, so whoever
holds certificate and signature can show later which epsilon the department chose.
"""

from __future__ import annotations

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ec import ECDSA, EllipticCurvePrivateKey, EllipticCurvePublicKey
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from tallyveil.batch import SubmissionKey
from tallyveil.errors import ConfigurationError

MAX_SIGNATURE_BYTES = 256


def sign_choice(private_key_pem: bytes, key: SubmissionKey) -> bytes:
    """The signature of a department over survey, round, epsilon and submission.

    Args:
        private_key_pem: Of the department's certificate.
        key: What it opens.

    Raises:
        ConfigurationError: Not an unencrypted PEM of an elliptic-curve or Ed25519 key.
    """
    try:
        private = load_pem_private_key(private_key_pem, password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        private = None
    if isinstance(private, EllipticCurvePrivateKey):
        return private.sign(_message(key), ECDSA(SHA256()))
    if isinstance(private, Ed25519PrivateKey):
        return private.sign(_message(key))
    raise ConfigurationError(
        "the department's private key is not an unencrypted PEM file of an elliptic-curve or Ed25519 key",
        not_done="nothing was charged, stored or sent",
        next_step="have a certificate issued anew",
    )


def choice_holds(certificate_pem: bytes, key: SubmissionKey, signature: bytes) -> bool:
    """Whether the signature is that of the certificate's key over the choice."""
    try:
        public = x509.load_pem_x509_certificate(certificate_pem).public_key()
        if isinstance(public, EllipticCurvePublicKey):
            public.verify(signature, _message(key), ECDSA(SHA256()))
        elif isinstance(public, Ed25519PublicKey):
            public.verify(signature, _message(key))
        else:
            return False
    except (ValueError, UnsupportedAlgorithm, InvalidSignature):
        return False
    return True


def _message(key: SubmissionKey) -> bytes:
    numbers = b"".join(number.to_bytes(8, "big") for number in (key.round, key.epsilon))
    return b"tallyveil/epsilon-choice/1\n" + bytes.fromhex(key.survey_hash) + key.submission_id + numbers
