"""Verify a release without Tallyveil's code: python tests/verify_release.py release.json release.pub (exit 0 or 1)."""

import json
import sys

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.hashes import SHA256, Hash
from cryptography.hazmat.primitives.serialization import load_pem_public_key


def canonical(document: object) -> bytes:
    return json.dumps(document, ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()


def verify(data: bytes, pem: bytes) -> None:
    """Raises where form, key, signature or a bin's sum is not as it must be."""
    key, document, digest = load_pem_public_key(pem), json.loads(data), Hash(SHA256())
    assert isinstance(key, Ed25519PublicKey), "the key is no Ed25519 key"
    digest.update(key.public_bytes_raw())
    body, value = document["body"], bytes.fromhex(document["signature"]["value"])
    signature = {"key": "ed25519:" + digest.finalize().hex(), "value": value.hex()}
    assert canonical({"body": body, "signature": signature}) == data, "another key, or not in canonical form"
    key.verify(value, b"tallyveil/release/1\n" + canonical(body))
    for table in body["tables"]:
        for total in table["bins"]:
            estimates = [float(row["estimate"]) for row in table["rows"] if row["bin"] == total["bin"]]
            assert abs(sum(estimates) - total["records"]) <= 1e-6, "a bin's estimates do not sum to its records"


if __name__ == "__main__":
    with open(sys.argv[1], "rb") as release, open(sys.argv[2], "rb") as public:
        verify(release.read(), public.read())
    print("verified")
