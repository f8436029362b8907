"""A small training with Lightning, in a module of its own: whoever imports it imports torch, which takes seconds."""

import lightning
import torch

from trimtuner.integrations.lightning import ReportSnapshots

__all__ = ["ReportSnapshots", "fit", "lightning", "measured", "torch"]

ROWS, BATCH = 96, 8


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
