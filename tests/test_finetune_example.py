"""The example that fine-tunes: its text and adapters are what they say, and a trial of it really learns."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from trimtuner.jobs.load import load_job

EXAMPLE = Path(__file__).parents[1] / "examples" / "finetune"


@pytest.fixture
def model(monkeypatch):
    pytest.importorskip("torch")  # when it is used: every process that collects would wait for it otherwise
    monkeypatch.syspath_prepend(str(EXAMPLE))
    monkeypatch.delitem(sys.modules, "model", raising=False)
    import model

    yield model
    sys.modules.pop("model", None)


def test_numbers_are_written_in_words(model):
    assert [model.in_words(number) for number in (0, 13, 20, 42, 100, 198)] == [
        *("zero", "thirteen", "twenty", "forty two", "one hundred", "one hundred and ninety eight")
    ]
    assert model.sums_in_words(40, 7) == "forty plus seven is forty seven."


def test_adapters_change_nothing_at_first_and_are_all_that_is_trained(model):
    import torch

    torch.manual_seed(0)
    made = model.Transformer()
    text = model.rows_of(model.text_of(model.sums_in_words, 400, seed=3), 32)
    before = model.loss_on(made, text)
    made.adapt(4)
    assert float(model.loss_on(made, text).detach()) == pytest.approx(float(before.detach()), rel=1e-5)
    trained = {name for name, one in made.named_parameters() if one.requires_grad}
    assert {name.rsplit(".", 1)[1] for name in trained} == {"down", "up"}
    assert len(trained) == 2 * (4 * model.LAYERS + 1)


def test_its_job_asks_for_the_least_loss_at_every_cost():
    job = load_job(EXAMPLE / "job.yaml")
    assert (job.goal.metric, job.goal.direction, job.goal.against) == ("loss", "minimize", "cost")
    assert set(job.space.names) == {"rank", "learning_rate", "batch_size", "sequence_length", "vm_type", "vm_count"}


@pytest.mark.slow
def test_more_tokens_make_the_loss_smaller(tmp_path):
    pytest.importorskip("torch")
    for file in EXAMPLE.glob("*.py"):
        shutil.copy(file, tmp_path)
    subprocess.run([sys.executable, "pretrain.py"], cwd=tmp_path, check=True)
    words = ["--rank=8", "--learning-rate=0.01", "--batch-size=16", "--sequence-length=64", "--vm-type=cpu-1"]
    losses = []
    for fraction in ("0.0625", "1"):
        command = [sys.executable, "train.py", *words, f"--fraction={fraction}"]
        done = subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True)
        told = json.loads(done.stdout.partition("::metric ")[2])
        assert told["tokens"] == pytest.approx(96_000 * float(fraction), rel=0.02)
        losses.append(told["loss"])
    assert losses[1] < losses[0]
