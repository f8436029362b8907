"""The callback in a real Trainer: when it reports, and that the training does not notice."""

import os

import pytest

from integrations.reported import reports_in
from trimtuner.errors import InputError

torch = pytest.importorskip("torch")
lightning = pytest.importorskip("lightning")
from trimtuner.integrations.lightning import ReportSnapshots  # noqa: E402  (needs what was just asked for)

pytestmark = [
    pytest.mark.filterwarnings("ignore:.isinstance.treespec, LeafSpec"),  # Lightning calls torch in an old way
    pytest.mark.filterwarnings("ignore:Found 1 module.s. in eval mode"),  # the frozen part, which is on purpose
    pytest.mark.filterwarnings("ignore:.*does not have many workers"),  # on machines with many cores
    pytest.mark.filterwarnings("ignore:The .srun. command is available"),  # on machines with Slurm
]

ROWS, BATCH = 96, 8


@pytest.fixture(autouse=True)
def machine_with_slurm(tmp_path, monkeypatch):
    """Of all machines the one on which Lightning warns most."""
    (tmp_path / "srun").touch(mode=0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)


class Line(lightning.LightningModule):
    """A line with dropout before it, so that random numbers matter; one part of it is frozen."""

    def __init__(self) -> None:
        super().__init__()
        self.drop, self.line = torch.nn.Dropout(0.5), torch.nn.Linear(2, 1)
        self.frozen = torch.nn.Dropout(0.5).eval()
        self.seen = 0

    def training_step(self, batch, _):
        assert self.drop.training
        assert not self.frozen.training
        self.seen += len(batch[0])
        return (self.line(self.drop(self.frozen(batch[0]))) - batch[1]).square().mean()

    def validation_step(self, batch, _):
        self.log("loss", (self.line(batch[0]) - batch[1]).square().mean())

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


def fit(callbacks: list[object], rows: int = ROWS, loader: object = None, **options: object) -> Line:
    torch.manual_seed(0)
    module, inputs = Line(), torch.randn(rows, 2)
    data = torch.utils.data.TensorDataset(inputs, inputs.sum(1, keepdim=True))
    trainer = lightning.Trainer(
        **{"max_epochs": 1, **options},
        callbacks=callbacks,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_model_summary=False,
        enable_progress_bar=False,
    )
    shuffled = torch.utils.data.DataLoader(data, batch_size=BATCH, shuffle=True)
    trainer.fit(module, shuffled if loader is None else loader, torch.utils.data.DataLoader(data, batch_size=BATCH))
    return module


def measured(module: Line) -> dict[str, torch.Tensor]:
    assert not module.drop.training
    assert not torch.is_grad_enabled()
    torch.rand(3)  # as a loader does that is gone through
    return {"rows": torch.tensor(module.seen)}


def test_each_share_is_reported_after_the_batch_that_reaches_it_and_the_fraction_at_the_end(capfd):
    fit([ReportSnapshots(measured, fraction=0.5, snapshots=[1 / 24, 0.25, 0.5])])
    # 96 rows are half of the data in 12 batches, so 1/24 is the first of them and a quarter the sixth.
    assert reports_in(capfd.readouterr().out) == [
        {"rows": 8, "fraction": 1 / 24},
        {"rows": 48, "fraction": 0.25},
        {"rows": 96, "fraction": 0.5},
    ]


def test_all_epochs_together_are_the_fraction(capfd):
    fit([ReportSnapshots(measured, snapshots=[0.25, 0.75])], max_epochs=2)
    assert [(one["rows"], one["fraction"]) for one in reports_in(capfd.readouterr().out)] == [
        (48, 0.25),
        (144, 0.75),
        (192, 1.0),
    ]


def test_the_training_does_not_notice_that_snapshots_are_taken():
    without = fit([])
    with_them = fit([ReportSnapshots(measured, snapshots=[0.1, 0.25, 0.5])])
    assert torch.equal(without.line.weight, with_them.line.weight)


def test_a_run_that_stops_early_reports_what_it_came_to(capfd):
    class Stop(lightning.Callback):
        def on_train_batch_end(self, trainer, *_):
            trainer.should_stop = trainer.global_step >= 6

    fit([ReportSnapshots(measured, snapshots=[0.25, 0.75]), Stop()])
    assert reports_in(capfd.readouterr().out) == [{"rows": 24, "fraction": 0.25}, {"rows": 48, "fraction": 1.0}]


def test_a_run_that_breaks_reports_no_end(capfd):
    class Break(lightning.Callback):
        def on_train_batch_end(self, *_):
            raise ArithmeticError

    with pytest.raises(ArithmeticError):
        fit([ReportSnapshots(measured), Break()])
    assert reports_in(capfd.readouterr().out) == []


def test_a_process_that_is_not_the_first_evaluates_and_says_nothing(capfd, monkeypatch):
    seen = []

    def evaluate(module: Line) -> dict[str, float]:
        seen.append(module.seen)
        return {"accuracy": 0.5}

    monkeypatch.setattr(lightning.Trainer, "is_global_zero", property(lambda _: False))
    fit([ReportSnapshots(evaluate, snapshots=[0.25])])
    assert seen == [24, 96]
    assert reports_in(capfd.readouterr().out) == []


def test_snapshots_of_a_run_without_a_known_length_are_refused(capfd):
    class Endless(torch.utils.data.IterableDataset):
        def __iter__(self):
            while True:
                yield torch.zeros(2), torch.zeros(1)

    endless = torch.utils.data.DataLoader(Endless(), batch_size=BATCH)
    for options in ({"max_steps": 3}, {"max_epochs": None, "max_steps": 3}, {"loader": endless}):
        with pytest.raises(InputError, match="how long the run is"):
            fit([ReportSnapshots(measured, snapshots=[0.5])], **options)
    fit([ReportSnapshots(measured)], max_steps=3)  # without snapshots it does not matter
    assert reports_in(capfd.readouterr().out) == [{"rows": 24, "fraction": 1.0}]
