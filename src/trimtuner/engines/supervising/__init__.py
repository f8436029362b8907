"""What stays beside a command on the machine that runs it, whichever engine put it there.

``starting`` begins an attempt in a folder; ``supervisor`` is the process that it leaves behind; ``attempt`` tells from
the folder how it goes; ``mirror`` hands on what is new in it, and keeps that on the driver's side. They talk
by the files of the folder (``files``) and by signals. All but ``environment`` need only the standard library and
Python 3.9: a trial of a second should not wait for numpy, and a rented machine has whatever Python its image has.
"""
