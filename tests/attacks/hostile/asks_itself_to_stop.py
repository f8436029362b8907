"""Says that somebody asked for its end, so that it would not be its own."""

import os

from side import run_on

open(os.path.join(os.environ["TRIMTUNER_FOLDER"], "stop"), "w").close()
run_on()
