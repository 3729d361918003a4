"""Ed25519 keys and signed documents: surveys and releases share one envelope.

Not here: certificates of the transport (they are the PKI's) and file reading (the edges do that).
A sealed document is canonical JSON ``{"body": …, "signature": {"key": fingerprint, "value": hex}}``;
the signature covers ``tallyveil/PURPOSE/1`` + newline + the body's canonical bytes, so that a signature made
for one purpose never serves another.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from hashlib import sha256

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
    load_pem_public_key,
)

from tallyveil import canonical
from tallyveil.canonical import Json
from tallyveil.errors import ConfigurationError, IntegrityError
from tallyveil.fields import Fields

_SIGNATURE = re.compile(r"[0-9a-f]{128}")
_FINGERPRINT = re.compile(r"ed25519:[0-9a-f]{64}")
_BEFORE_BODY = b'{"body":'
_BEFORE_SIGNATURE = b',"signature":'
_LONGEST_SIGNATURE = 1024
MAX_UNVERIFIED_BYTES = 4 * 1024 * 1024
"""What a stranger may have us read before anything is known of it."""


@dataclass(frozen=True)
class VerifyingKey:
    """The public half, as agents and consumers pin it."""

    key: Ed25519PublicKey

    @classmethod
    def from_pem(cls, pem: bytes) -> VerifyingKey:
        """Raises ConfigurationError where the bytes are no PEM of an Ed25519 public key."""
        try:
            key = load_pem_public_key(pem)
        except (ValueError, UnsupportedAlgorithm):
            raise ConfigurationError("the public key is not a PEM file of an Ed25519 key") from None
        if not isinstance(key, Ed25519PublicKey):
            raise ConfigurationError("the public key is not an Ed25519 key")
        return cls(key)

    def to_pem(self) -> bytes:
        return self.key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)

    @property
    def fingerprint(self) -> str:
        """``ed25519:`` and the SHA-256 of the 32 raw key bytes: what people compare."""
        return "ed25519:" + sha256(self.key.public_bytes(Encoding.Raw, PublicFormat.Raw)).hexdigest()


@dataclass(frozen=True, repr=False)
class SigningKey:
    """The private half; its repr shows the public fingerprint only."""

    key: Ed25519PrivateKey

    @classmethod
    def generate(cls) -> SigningKey:
        return cls(Ed25519PrivateKey.generate())

    @classmethod
    def from_pem(cls, pem: bytes) -> SigningKey:
        """Raises ConfigurationError where the bytes are no unencrypted PEM of an Ed25519 private key."""
        try:
            key = load_pem_private_key(pem, password=None)
        except (ValueError, TypeError, UnsupportedAlgorithm):
            raise ConfigurationError("the private key is not an unencrypted PEM file of an Ed25519 key") from None
        if not isinstance(key, Ed25519PrivateKey):
            raise ConfigurationError("the private key is not an Ed25519 key")
        return cls(key)

    def to_pem(self) -> bytes:
        return self.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())

    @property
    def public(self) -> VerifyingKey:
        return VerifyingKey(self.key.public_key())

    def __repr__(self) -> str:
        return f"SigningKey({self.public.fingerprint})"


def seal(purpose: str, body: Json, key: SigningKey) -> bytes:
    """The signed document's bytes."""
    value = key.key.sign(_message(purpose, canonical.encode(body))).hex()
    return canonical.encode({"body": body, "signature": {"key": key.public.fingerprint, "value": value}})


def unseal(purpose: str, data: bytes, trusted: VerifyingKey) -> object:
    """The body of a signed document, once canonical form and signature hold under the trusted key.

    The signature is checked over the bytes as they came, before anything of the body is read.

    Raises:
        IntegrityError: Any byte differs from what was signed, or another key signed it.
    """
    body, key, value = _parts(data)
    if key != trusted.fingerprint:
        raise IntegrityError(
            f"the {purpose} is signed by another key than the one you trust",
            next_step=f"compare fingerprints: trusted {trusted.fingerprint}, found {key}",
        )
    try:
        trusted.key.verify(bytes.fromhex(value), _message(purpose, body))
    except InvalidSignature:
        raise IntegrityError(
            f"the signature of the {purpose} does not hold",
            next_step="do not use it; fetch it again and tell whoever served it",
        ) from None
    return canonical.decode(body)


def signer_of(data: bytes) -> str:
    """The fingerprint a signed document names, unverified: for messages only."""
    return _parts(data)[1]


def unverified_body(data: bytes) -> object:
    """The body of a signed document whose signature nobody has checked: to show, never to act on."""
    if len(data) > MAX_UNVERIFIED_BYTES:
        raise IntegrityError(f"a document that nobody has verified is not read beyond {MAX_UNVERIFIED_BYTES} bytes")
    return canonical.decode(_parts(data)[0])


def _parts(data: bytes) -> tuple[bytes, str, str]:
    """The body's bytes as they are, the key's fingerprint and the signature; the body is not read."""
    place = data.rfind(_BEFORE_SIGNATURE)
    if place < 0 or not data.startswith(_BEFORE_BODY) or len(data) - place > _LONGEST_SIGNATURE:
        raise IntegrityError("the document is not a signed document")
    document = canonical.decode(_BEFORE_BODY + b"null" + data[place:])
    try:
        outer = Fields(document, "the signed document", ("body", "signature"))
        signature = Fields(outer.value("signature"), "the signature", ("key", "value"))
        key, value = signature.text("key"), signature.text("value")
    except ConfigurationError:
        raise IntegrityError("the document is not a signed document") from None
    if not _FINGERPRINT.fullmatch(key):
        raise IntegrityError("the document's key is not named by a fingerprint")
    if not _SIGNATURE.fullmatch(value):
        raise IntegrityError("the document's signature is not 128 lower-case hexadecimal digits")
    return data[len(_BEFORE_BODY) : place], key, value


def _message(purpose: str, body: bytes) -> bytes:
    return f"tallyveil/{purpose}/1\n".encode() + body
