"""What AWS says no with, sorted by what to do next.

Refused         no such machines now: wait a little, ask again, give up after a while
EngineTrouble   nothing that waiting cures: renew credentials, fix the input, mend the network; then all goes on
"""

from __future__ import annotations

from botocore.exceptions import BotoCoreError, ClientError, HTTPClientError
from botocore.exceptions import ConnectionError as NoConnection

from trimtuner.engines.protocol import EngineTrouble

_CREDENTIALS = frozenset(
    {
        "ExpiredToken",
        "ExpiredTokenException",
        "RequestExpired",
        "AuthFailure",
        "InvalidClientTokenId",
        "UnrecognizedClientException",
        "SignatureDoesNotMatch",
        "MissingAuthenticationToken",
    }
)
_CAPACITY = frozenset(
    {
        "InsufficientInstanceCapacity",
        "InsufficientCapacity",
        "InsufficientHostCapacity",
        "InsufficientFreeAddressesInSubnet",
        "MaxSpotInstanceCountExceeded",
        "SpotMaxPriceTooLow",
    }
)
_PASSING = frozenset(
    {"RequestLimitExceeded", "Throttling", "ThrottlingException", "InternalError", "InternalFailure", "Unavailable"}
)
# A launch under this token was made before, with other settings; what it rented will be seen.
_SEEN_BEFORE = "IdempotentParameterMismatch"
_NOT_YET_KNOWN = "InvalidInstanceID"  # for a few seconds after its launch, EC2 may not know a machine
_MOST_WORDS = 300  # characters; a refused permission comes with a page of code


class Refused(Exception):  # noqa: N818  (named by what the caller learns)
    """No such machines are to be had at the moment; the text is in AWS's words."""


class Passing(EngineTrouble):
    """Trouble that usually goes away by itself: a busy service, a network that fails for a moment."""


class Credentials(EngineTrouble):
    """AWS does not know us, or no longer."""


def explain(error: ClientError | BotoCoreError) -> Refused | EngineTrouble:
    """The error in our terms."""
    if isinstance(error, HTTPClientError | NoConnection):
        return Passing(f"AWS cannot be reached ({_shortened(str(error))}); what runs goes on, and is looked at again")
    if not isinstance(error, ClientError):
        return Credentials(f"AWS cannot be asked ({_shortened(str(error))}); put the credentials right")
    code, words = code_of(error), f"{code_of(error)}: {_shortened(error.response['Error'].get('Message', ''))}"
    if code in _CAPACITY or (code.endswith("LimitExceeded") and code not in _PASSING):
        return Refused(words)
    if code in _CREDENTIALS:
        return Credentials(f"AWS refuses our credentials ({words}); renew them, and all goes on by itself")
    status = int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
    if code in _PASSING or code == _SEEN_BEFORE or code.startswith(_NOT_YET_KNOWN) or status >= 500:
        return Passing(f"AWS does not answer as it should ({words}); it is asked again")
    return EngineTrouble(f"AWS refuses: {words}; 'trimtuner doctor JOB' says what is missing")


def code_of(error: ClientError) -> str:
    """AWS's own word for it."""
    return str(error.response.get("Error", {}).get("Code", ""))


def _shortened(text: str) -> str:
    """Without what nobody can read."""
    first = text.partition("Encoded authorization failure message")[0]
    return " ".join(first.split())[:_MOST_WORDS].rstrip(" .:;")
