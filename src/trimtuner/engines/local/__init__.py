"""Commands on this machine (Linux), each under a small minder, so that the driver may be killed at any instant.

``engine`` is what the driver calls; ``minder`` is the process that it leaves behind for every attempt. They talk by the
files of the attempt's folder (``files``) and by signals. What the minder imports is of the standard library only,
because a trial of a second should not wait for numpy.
"""
