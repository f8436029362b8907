"""Reports seventy thousand metrics, none twice."""

from side import run_on

for line in range(1000):
    print("::metric {" + ", ".join(f'"name-{line}-{number}": 1' for number in range(70)) + "}")
run_on()
