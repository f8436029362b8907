"""Prints without an end, and reports in every line."""

from side import beat, run_on

line = '::metric {"accuracy": 0.5}\n' * 2000 + "x" * 100_000 + "\n"
for _ in range(200):
    print(line, flush=True)
    beat()
run_on()
