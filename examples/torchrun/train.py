"""Reads handwritten digits with DistributedDataParallel, one process on every machine, as torchrun starts them."""

import argparse
import json
import os
from pathlib import Path

import torch
import torch.distributed as dist
from sklearn.datasets import load_digits
from torch import nn
from torch.nn.parallel import DistributedDataParallel

EPOCHS = 6


def read_digits(fraction: float) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    pictures, digits = (torch.tensor(part) for part in load_digits(return_X_y=True))
    pictures, order = pictures.float() / 16, torch.randperm(len(digits), generator=torch.Generator().manual_seed(0))
    test, train = order[:500], order[500:]
    train = train[: round(len(train) * fraction)]
    return pictures[train], digits[train], pictures[test], digits[test]


def rows_of(epoch: int, count: int, batch: int) -> list[torch.Tensor]:
    """Batches of this process: every process shuffles alike and takes every so many-th row, equally many each."""
    order = torch.randperm(count, generator=torch.Generator().manual_seed(epoch))
    own = order[dist.get_rank() :: dist.get_world_size()][: count // dist.get_world_size()]
    return list(own.split(batch))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--units", type=int, required=True)
    parser.add_argument("--rate", type=float, required=True)
    parser.add_argument("--batch", type=int, required=True, help="of one process")
    parser.add_argument("--fraction", type=float, required=True)
    parser.add_argument("--checkpoint", type=Path, required=True)
    chosen = parser.parse_args()

    dist.init_process_group("gloo")  # finds the others by what torchrun has set
    torch.manual_seed(0)
    pictures, digits, test_pictures, test_digits = read_digits(chosen.fraction)
    model = nn.Sequential(nn.Linear(64, chosen.units), nn.ReLU(), nn.Linear(chosen.units, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=chosen.rate, momentum=0.9)
    kept, done = chosen.checkpoint / "epoch.pt", 0
    if kept.exists():  # of an attempt whose machines were taken away; the same on every machine
        state = torch.load(kept, weights_only=True)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        done = state["done"]
        print(f"going on after {done} epochs")
    parallel = DistributedDataParallel(model)

    for epoch in range(done, EPOCHS):
        for rows in rows_of(epoch, len(digits), chosen.batch):
            optimizer.zero_grad()
            nn.functional.cross_entropy(parallel(pictures[rows]), digits[rows]).backward()  # averages the gradients
            optimizer.step()
        if dist.get_rank() == 0:
            state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "done": epoch + 1}
            torch.save(state, kept.with_suffix(".draft"))
            os.replace(kept.with_suffix(".draft"), kept)  # whole or not at all

    if dist.get_rank() == 0:
        with torch.no_grad():
            accuracy = (model(test_pictures).argmax(dim=1) == test_digits).float().mean().item()
        print("::metric " + json.dumps({"accuracy": accuracy}), flush=True)
    dist.barrier()  # nobody leaves while another still needs it
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
