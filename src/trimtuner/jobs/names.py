"""Names of studies: apart from all readers, so that ``init`` need not wait for them."""

from __future__ import annotations

import re

from trimtuner.errors import InputError
from trimtuner.keys.fields import shortened

STUDY_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


def check_name(name: str) -> str:
    """The name of a study, if it is one that is safe wherever a name is shown or stored."""
    if not STUDY_NAME.fullmatch(name):
        raise InputError(
            f"{shortened(name)} is no name for a study; use the letters a to z, digits and . _ -, at most 64, the "
            "first no sign"
        )
    return name
