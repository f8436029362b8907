"""Whatever is done to a job file, it gives a job, or an error whose every line begins with file and line."""

import json
import random
import re
from pathlib import Path

import pytest

from trimtuner.jobs.differing import description_of
from trimtuner.jobs.load import load_job
from trimtuner.jobs.starter import init_text
from trimtuner.jobs.validation import validate_text
from trimtuner.keys.faults import JobFileError

CLOUDY = """\
name: cloudy
goal: {maximize: accuracy}
constraints: ["cost <= 0.10 USD", "time <= 20min", "latency_ms <= 40"]
budget: {money: 25 USD, time: 12h, trials: 200}
data: {fractions: [1/60, 1/10, 1/4, 1], snapshots: true}
parameters:
  learning_rate: {values: [1e-3, 1e-4], scale: log}
  batch_size: {min: 16, max: 512, scale: log2, type: int}
  optimizer: {values: [sgd, adam]}
  momentum: {min: 0.0, max: 0.99, when: "optimizer == 'sgd'"}
  seed: {value: 3}
cloud:
  catalog: builtin
  vm_type: [t2.small, t2.medium]
  vm_count: {min: 1, max: 20, rule: "vm_count * vcpus in [8, 16]"}
  helpers: [t2.2xlarge]
run:
  command: [python, train.py, "--lr={learning_rate}", "--momentum={momentum}", "{{x}}", "--fraction={fraction}"]
  timeout: 30min
  memory: vm
  secrets: [WANDB_API_KEY]
  environment: {OMP_NUM_THREADS: 1}
  retries: {preempted: 3, oom: 1}
  metrics: {file: "m-{trial}.jsonl"}
engine: {type: local, parallel: 2}
search: {method: "nephele:horizon=1", seed: 0, stop: {little_improvement: 0.1}}
"""

LISTED = """\
name: listed
goal: {minimize: cost}
constraints:
  - accuracy >= 0.9
storage: record.db
configs:
  - &first {rate: 0.1, vm_type: a, price_per_hour: 1}
  - {rate: 0.2, vm_type: b, price_per_hour: 3}
  - {rate: true, vm_type: 'c', extra: -1, price_per_hour: 4e-1}
run:
  command:
    - train
    - "{rate}"
    - >-
      folded
      text
search:
  method: cherrypick
  options: {initial_budget: 3}
"""

WITH_MACHINES = """\
name: "own"
goal: {maximize: f1_score}
cloud:
  vms:
    big: &vm {vcpus: 4, memory_gib: 8, price_per_hour: 2, spot_price_per_hour: 0.5, gpus: 1}
    same: *vm
  vm_count: [1, 4]
  market: [on_demand, spot]
budget:
  money: 3
run:
  command: [./train, "{vm_count}", "{market}"]
  working_directory: .
"""

SEEDS = [CLOUDY, LISTED, WITH_MACHINES, init_text("first")]
TOKENS = [
    *(
        "",
        " ",
        "\t",
        "\n",
        "  ",
        "- ",
        ": ",
        ", ",
        "[",
        "]",
        "{",
        "}",
        "{}",
        "[]",
        "'",
        '"',
        "#",
        "&a ",
        "*a",
        "*first",
        "!!int ",
    ),
    *(
        "!!python/name:os.system ",
        "|",
        ">",
        "? ",
        "%",
        "@",
        "---\n",
        "...\n",
        "<<: ",
        "~",
        "null",
        "no",
        "true",
        "0",
        "-1",
    ),
    *(
        "1e-3",
        "1e999",
        "-.inf",
        ".nan",
        "0o10",
        "1_000",
        "9" * 25,
        "2001-01-01",
        "1/0",
        "1/60",
        "0.1",
        "1e300",
        "5e-324",
    ),
    *(
        "{rate}",
        "{{",
        "}}",
        "{fraction}",
        "\x00",
        "\x1b[31m",
        "\u2028",
        "\u202e",
        "\ud800",
        "\ufeff",
        "é",
        '"\\x00"',
        '"\\e[0m"',
    ),
    *(
        "USD",
        "min",
        "GiB",
        "vm",
        "spot",
        "t2.small",
        "when",
        "values",
        "name",
        "price_per_hour",
        "in",
        "not",
        "%YAML 1.1\n",
    ),
    *(
        "vm_count",
        "'a' * 9",
        "9999999999",
        "80000",
        "linear",
        "log",
        "nephele",
        "random",
        "aws",
        "x.csv",
        "../x",
        "/",
        "$(id)",
    ),
]
VALUES = [
    *(
        "~",
        "''",
        "{}",
        "[]",
        "[[]]",
        "{a: 1}",
        "[1, 1]",
        "true",
        "no",
        "0",
        "-1",
        "1",
        "3",
        "1.5",
        "1e-3",
        "1e300",
        "-1e300",
    ),
    *(
        "5e-324",
        ".inf",
        ".nan",
        "9223372036854775807",
        "9" * 25,
        "0x7fffffffffffffff",
        "0o7",
        "1/2",
        "0/1",
        "2/1",
        "'1'",
    ),
    *(
        '"\\0"',
        '"\\n"',
        '"\\e[1m"',
        '"\\u202e"',
        '"\\ud83d"',
        "'{'",
        "'{x}'",
        "'{rate}'",
        "'{trial}'",
        "a b",
        "-",
        "é",
        "x" * 300,
    ),
    *(
        "1 s",
        "1e308 d",
        "-1 s",
        "1 USD",
        "1e400 USD",
        "1 GiB",
        "999999999999999 TiB",
        "vm",
        "spot",
        "[spot]",
        "on_demand",
    ),
    *(
        "1 == 1",
        "vm_count",
        "vm_count > 0",
        "not 1",
        "1/0 > 1",
        "vm_count * 9e307 * 9 > 0",
        "'a' in 'b'",
        "(" * 99,
        "-" * 900 + "1 > 0",
    ),
    *(
        "linear",
        "log",
        "log2",
        "int",
        "float",
        "local",
        "ray",
        "stdout",
        "builtin",
        "t2.small",
        "nephele:horizon=2",
        "random",
    ),
    *(
        "hyperband:eta=0",
        "nephele:trees=1e3",
        "trimtuner-gp:filter=none",
        "cost <= 1e-300",
        "accuracy >= 0",
        "time < 1 d",
    ),
]


def mutated(generator: random.Random) -> bytes:
    """A right job file with one to four bytes, tokens or lines of it changed."""
    content = generator.choice(SEEDS)
    for _ in range(generator.choice((1, 1, 2, 4))):
        content = generator.choice((with_token, with_value, with_value, with_line, without_span, with_borrowed_line))(
            content, generator
        )
    encoded = content.encode("utf-8", "surrogatepass")
    if generator.random() < 0.2:
        position = generator.randrange(len(encoded) + 1)
        encoded = encoded[:position] + bytes([generator.randrange(256)]) + encoded[position + generator.randrange(2) :]
    return encoded


def with_token(text: str, generator: random.Random) -> str:
    words = list(re.finditer(r"[\w.+/-]+|[^\w\s]", text))
    token = generator.choice(TOKENS)
    if not words or generator.random() < 0.3:
        position = generator.randrange(len(text) + 1)
        return text[:position] + token + text[position:]
    word = generator.choice(words)
    return text[: word.start()] + token + text[word.end() :]


def with_value(text: str, generator: random.Random) -> str:
    """Still YAML, as a rule: another value after a key or in a list."""
    places = list(
        re.finditer(r"(?<=: )[^,{}\[\]\n]+|(?<=, )[^:,{}\[\]\n]+(?=[,\]])|(?<=\[)[^:,{}\[\]\n]+(?=[,\]])", text)
    )
    if not places:
        return text
    place = generator.choice(places)
    return text[: place.start()] + generator.choice(VALUES) + text[place.end() :]


def with_line(text: str, generator: random.Random) -> str:
    lines = text.split("\n")
    position = generator.randrange(len(lines))
    change = generator.randrange(4)
    if change == 0:
        del lines[position]
    elif change == 1:
        lines.insert(position, lines[generator.randrange(len(lines))])
    elif change == 2:
        lines[position] = " " * generator.randrange(5) + lines[position].lstrip()
    else:
        other = generator.randrange(len(lines))
        lines[position], lines[other] = lines[other], lines[position]
    return "\n".join(lines)


def without_span(text: str, generator: random.Random) -> str:
    position = generator.randrange(len(text) + 1)
    return text[:position] + text[position + generator.randrange(1, 30) :]


def with_borrowed_line(text: str, generator: random.Random) -> str:
    lines = text.split("\n")
    borrowed = generator.choice(generator.choice(SEEDS).split("\n"))
    lines.insert(generator.randrange(len(lines) + 1), borrowed)
    return "\n".join(lines)


def assert_job_or_told_faults(path: Path, content: bytes) -> bool:
    path.write_bytes(content)
    last_line = content.count(b"\n") + 1
    try:
        job = load_job(path)
    except JobFileError as error:
        for line in str(error).split("\n"):
            match = re.match(rf"{re.escape(str(path))}:([0-9]+): \S", line)
            assert match is not None, (line, content)
            assert 1 <= int(match[1]) <= last_line, (line, content)
            assert line.isprintable(), (line, content)
        return False
    assert json.loads(json.dumps(description_of(job).plain)) == description_of(job).plain
    assert validate_text(job, {}).startswith(f"{job.name}: ")
    return True


def fuzz(folder: Path, count: int, seed: int) -> None:
    path = folder / "job.yaml"
    read = 0
    for number in range(count):
        generator = random.Random(f"{seed}-{number}")  # noqa: S311  (chance to try things, not to keep secrets)
        read += assert_job_or_told_faults(path, mutated(generator))
    assert 0 < read < count  # both ends of the claim were tried


def test_a_changed_job_file_gives_a_job_or_told_faults(tmp_path):
    fuzz(tmp_path, 300, seed=0)


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_ten_thousand_changed_job_files_give_a_job_or_told_faults(tmp_path):
    fuzz(tmp_path, 10_000, seed=1)


@pytest.mark.parametrize("number", range(len(SEEDS)))
def test_what_the_changes_begin_with_is_right(tmp_path, number):
    assert assert_job_or_told_faults(tmp_path / "job.yaml", SEEDS[number].encode())


@pytest.mark.parametrize("number", range(len(SEEDS)))
def test_a_job_file_cut_anywhere_gives_a_job_or_told_faults(tmp_path, number):
    content = SEEDS[number].encode()
    for end in range(0, len(content), 23):
        assert_job_or_told_faults(tmp_path / "job.yaml", content[:end])
