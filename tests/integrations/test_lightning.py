"""The callback in a real Trainer: when it reports, and that the training does not notice."""

import os
from importlib import import_module
from types import ModuleType

import pytest

from integrations.reported import reports_in
from trimtuner.errors import InputError

pytestmark = [
    pytest.mark.xdist_group("lightning"),  # one slow import for all of them
    pytest.mark.filterwarnings("ignore:.isinstance.treespec, LeafSpec"),  # Lightning calls torch in an old way
    pytest.mark.filterwarnings("ignore:Found 1 module.s. in eval mode"),  # the frozen part, which is on purpose
    pytest.mark.filterwarnings("ignore:.*does not have many workers"),  # on machines with many cores
    pytest.mark.filterwarnings("ignore:The .srun. command is available"),  # on machines with Slurm
]


@pytest.fixture(autouse=True)
def machine_with_slurm(tmp_path, monkeypatch):
    """Of all machines the one on which Lightning warns most."""
    (tmp_path / "srun").touch(mode=0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)


@pytest.fixture(scope="module")
def lab() -> ModuleType:
    for name in ("torch", "lightning"):
        pytest.importorskip(name)
    return import_module("integrations.lightning_line")


def test_each_share_is_reported_after_the_batch_that_reaches_it_and_the_fraction_at_the_end(lab, capfd):
    lab.fit([lab.ReportSnapshots(lab.measured, fraction=0.5, snapshots=[1 / 24, 0.25, 0.5])])
    # 96 rows are half of the data in 12 batches, so 1/24 is the first of them and a quarter the sixth.
    assert reports_in(capfd.readouterr().out) == [
        {"rows": 8, "fraction": 1 / 24},
        {"rows": 48, "fraction": 0.25},
        {"rows": 96, "fraction": 0.5},
    ]


def test_all_epochs_together_are_the_fraction(lab, capfd):
    lab.fit([lab.ReportSnapshots(lab.measured, snapshots=[0.25, 0.75])], max_epochs=2)
    assert [(one["rows"], one["fraction"]) for one in reports_in(capfd.readouterr().out)] == [
        (48, 0.25),
        (144, 0.75),
        (192, 1.0),
    ]


def test_the_training_does_not_notice_that_snapshots_are_taken(lab):
    without = lab.fit([])
    with_them = lab.fit([lab.ReportSnapshots(lab.measured, snapshots=[0.1, 0.25, 0.5])])
    assert lab.torch.equal(without.line.weight, with_them.line.weight)


def test_a_run_that_stops_early_reports_what_it_came_to(lab, capfd):
    class Stop(lab.lightning.Callback):
        def on_train_batch_end(self, trainer, *_):
            trainer.should_stop = trainer.global_step >= 6

    lab.fit([lab.ReportSnapshots(lab.measured, snapshots=[0.25, 0.75]), Stop()])
    assert reports_in(capfd.readouterr().out) == [{"rows": 24, "fraction": 0.25}, {"rows": 48, "fraction": 1.0}]


def test_a_run_that_breaks_reports_no_end(lab, capfd):
    class Break(lab.lightning.Callback):
        def on_train_batch_end(self, *_):
            raise ArithmeticError

    with pytest.raises(ArithmeticError):
        lab.fit([lab.ReportSnapshots(lab.measured), Break()])
    assert reports_in(capfd.readouterr().out) == []


def test_a_process_that_is_not_the_first_evaluates_and_says_nothing(lab, capfd, monkeypatch):
    seen = []

    def evaluate(module) -> dict[str, float]:
        seen.append(module.seen)
        return {"accuracy": 0.5}

    monkeypatch.setattr(lab.lightning.Trainer, "is_global_zero", property(lambda _: False))
    lab.fit([lab.ReportSnapshots(evaluate, snapshots=[0.25])])
    assert seen == [24, 96]
    assert reports_in(capfd.readouterr().out) == []


def test_snapshots_of_a_run_without_a_known_length_are_refused(lab, capfd):
    class Endless(lab.torch.utils.data.IterableDataset):
        def __iter__(self):
            while True:
                yield lab.torch.zeros(2), lab.torch.zeros(1)

    endless = lab.torch.utils.data.DataLoader(Endless(), batch_size=lab.BATCH)
    for options in ({"max_steps": 3}, {"max_epochs": None, "max_steps": 3}, {"loader": endless}):
        with pytest.raises(InputError, match="how long the run is"):
            lab.fit([lab.ReportSnapshots(lab.measured, snapshots=[0.5])], **options)
    lab.fit([lab.ReportSnapshots(lab.measured)], max_steps=3)  # without snapshots it does not matter
    assert reports_in(capfd.readouterr().out) == [{"rows": 24, "fraction": 1.0}]
