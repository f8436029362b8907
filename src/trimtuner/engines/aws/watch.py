"""What EC2 shows of all attempts of an engine, looked up for all of them at once."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

from trimtuner.engines.aws import naming
from trimtuner.engines.aws.background import in_thread
from trimtuner.engines.aws.ec2 import Ec2, Instance
from trimtuner.engines.aws.naming import AttemptName
from trimtuner.engines.aws.pace import Pace

_MOST_VALUES = 200  # of one filter, as EC2 takes it


class Watch:
    """Looks when somebody asks, but not more often than the pace: whoever asks meanwhile shares the next look."""

    def __init__(self, ec2: Ec2, pace: Pace) -> None:
        self._ec2, self._pace = ec2, pace
        self._wanted: set[AttemptName] = set()
        self._next: asyncio.Task[list[Instance]] | None = None
        self._last = 0.0

    async def instances(self, name: AttemptName) -> list[Instance]:
        """The machines of the attempt, as they are after this was asked."""
        self._wanted.add(name)
        if self._next is None:
            self._next = asyncio.create_task(self._look_in_time())
            # Whoever asked may be gone by then; a failure that nobody waits for is nobody's.
            self._next.add_done_callback(lambda task: task.cancelled() or task.exception())
        found = await asyncio.shield(self._next)
        return [one for one in found if name.tags.items() <= one.tags.items()]

    async def _look_in_time(self) -> list[Instance]:
        await asyncio.sleep(self._last + self._pace.look - time.monotonic())
        wanted, self._wanted = self._wanted, set()
        self._next, self._last = None, time.monotonic()
        return await in_thread(self._look, sorted({one.study for one in wanted}), sorted({one.trial for one in wanted}))

    def _look(self, studies: Sequence[str], trials: Sequence[int]) -> list[Instance]:
        """By trial too: AWS goes on to show what was terminated for an hour, and a study may have had hundreds."""
        found: list[Instance] = []
        for begin in range(0, len(trials), _MOST_VALUES):
            some = [str(trial) for trial in trials[begin : begin + _MOST_VALUES]]
            found += self._ec2.instances({naming.STUDY: studies, naming.TRIAL: some})
        return found
