"""Which tests a process is given at once, when several run them."""

from __future__ import annotations

from functools import cached_property

from xdist.scheduler import LoadGroupScheduling

# Of a file: few, so that its fixtures are set up seldom; enough, so that no process ends long after the others.
PIECES = 8


class InPieces(LoadGroupScheduling):
    """Groups as they are marked; of all other tests each file in pieces, where the usual way sends each by itself."""

    def _split_scope(self, nodeid: str) -> str:
        return self._pieces.get(nodeid) or super()._split_scope(nodeid)

    @cached_property
    def _pieces(self) -> dict[str, str]:
        files: dict[str, list[str]] = {}
        for nodeid in self.collection or ():
            if super()._split_scope(nodeid) == nodeid:  # it is in no group
                files.setdefault(nodeid.partition("::")[0], []).append(nodeid)
        return {
            nodeid: f"{file}, {PIECES * place // len(nodeids)}"
            for file, nodeids in files.items()
            for place, nodeid in enumerate(nodeids)
        }
