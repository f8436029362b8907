"""The keys of a study's machines: all of them follow from one secret in the driver's folder, so none need be kept.

The secret is made at first use and readable by its owner alone. A machine knows its own host key and no other.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import asyncssh
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from trimtuner.errors import InputError

_FILE = "machines.key"
_SECRET_BYTES = 32
_TYPE = b"ssh-ed25519"


@dataclass(frozen=True)
class KeyPair:
    """A private key and its public half, both as OpenSSH writes them."""

    private: str
    public: str

    def __repr__(self) -> str:
        return f"KeyPair({self.public!r})"

    def imported(self) -> asyncssh.SSHKey:
        """The private key, as asyncssh takes it."""
        return asyncssh.import_private_key(self.private)


class Keys:
    """Keys that are the same whenever they are asked for."""

    def __init__(self, folder: Path) -> None:
        self._secret = _read_or_make(folder / _FILE)

    def for_login(self, study: str) -> KeyPair:
        """What we show to the machines of a study."""
        return self._derive(f"login/{study}")

    def of_host(self, handle: str) -> KeyPair:
        """What the machines of an attempt show to us."""
        return self._derive(f"host/{handle}")

    def _derive(self, purpose: str) -> KeyPair:
        seed = hmac.digest(self._secret, purpose.encode(), hashlib.sha256)
        public = Ed25519PrivateKey.from_private_bytes(seed).public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
        return KeyPair(
            _private_text(seed, public), f"{_TYPE.decode()} {base64.b64encode(_public_blob(public)).decode()}"
        )


def read_login_key(path: Path) -> asyncssh.SSHKey:
    """The user's own private key; one with a passphrase cannot be used where nobody is there to type it."""
    try:
        return asyncssh.read_private_key(path)
    except (OSError, asyncssh.KeyImportError) as error:
        raise InputError(f"the key file {str(path)!r} cannot be used: {error}") from None


def _private_text(seed: bytes, public: bytes) -> str:
    """The key as in OpenSSH's PROTOCOL.key. Other writers put random numbers in: the same key must be the same text,
    because a launch that is repeated must be the same to the letter.
    """
    check = bytes(8)
    content = check + _string(_TYPE) + _string(public) + _string(seed + public) + _string(b"")
    content += bytes(range(1, 1 + -len(content) % 8))
    header = b"openssh-key-v1\0" + _string(b"none") + _string(b"none") + _string(b"") + (1).to_bytes(4, "big")
    text = base64.encodebytes(header + _string(_public_blob(public)) + _string(content)).decode()
    return f"-----BEGIN OPENSSH PRIVATE KEY-----\n{text}-----END OPENSSH PRIVATE KEY-----\n"


def _public_blob(public: bytes) -> bytes:
    return _string(_TYPE) + _string(public)


def _string(data: bytes) -> bytes:
    return len(data).to_bytes(4, "big") + data


def _read_or_make(path: Path) -> bytes:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not path.exists():
        draft = path.with_name(f".{path.name}.{os.urandom(8).hex()}")
        with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(os.urandom(_SECRET_BYTES))
            file.flush()
            os.fsync(file.fileno())
        with suppress(FileExistsError):  # who is first decides
            os.link(draft, path)
        draft.unlink()
    secret = path.read_bytes()
    if len(secret) != _SECRET_BYTES:
        raise InputError(f"{str(path)!r} does not hold the study's secret; remove it to have a new one made")
    return secret
