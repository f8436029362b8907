"""One pass over MNIST with PyTorch: a perceptron or a small convolutional network.

A run on all of the data passes every smaller share on its way, so it reports the accuracy at each of them: snapshots
that cost nothing. Needs torch, numpy, and the files that get_data.py fetches.
"""

import argparse
import json
from pathlib import Path

import numpy as np
import torch
from torch import nn

DATA = Path(__file__).parent / "data"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--network", choices=["mlp", "cnn"], required=True)
    parser.add_argument("--width", type=int, required=True)
    parser.add_argument("--learning-rate", type=float, required=True)
    parser.add_argument("--batch-size", type=int, required=True)
    parser.add_argument("--fraction", type=float, required=True)
    parser.add_argument("--snapshots", default="", help="smaller shares to report on the way, such as 0.1,0.5")
    chosen = parser.parse_args()
    torch.manual_seed(0)
    pictures, digits = read("train")
    order = torch.randperm(len(pictures))[: round(len(pictures) * chosen.fraction)]
    model = network(chosen.network, chosen.width)
    optimizer = torch.optim.Adam(model.parameters(), lr=chosen.learning_rate)
    to_report = sorted(float(share) for share in chosen.snapshots.split(",") if share)
    for start in range(0, len(order), chosen.batch_size):
        batch = order[start : start + chosen.batch_size]
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(pictures[batch]), digits[batch]).backward()
        optimizer.step()
        while to_report and start + len(batch) >= to_report[0] * len(pictures):
            report(model, to_report.pop(0))
    report(model, chosen.fraction)


def network(kind: str, width: int) -> nn.Module:
    if kind == "mlp":
        return nn.Sequential(nn.Flatten(), nn.Linear(784, width), nn.ReLU(), nn.Linear(width, 10))
    channels = max(width // 16, 2)
    return nn.Sequential(
        *(nn.Conv2d(1, channels, 3), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(channels, 2 * channels, 3), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Flatten(), nn.Linear(50 * channels, 10)),
    )


def read(part: str) -> tuple[torch.Tensor, torch.Tensor]:
    pictures = np.fromfile(DATA / f"{part}-images-idx3-ubyte", np.uint8)[16:].reshape(-1, 1, 28, 28)
    digits = np.fromfile(DATA / f"{part}-labels-idx1-ubyte", np.uint8)[8:]
    return torch.from_numpy(pictures).float() / 255, torch.from_numpy(digits).long()


@torch.no_grad()
def report(model: nn.Module, fraction: float) -> None:
    pictures, digits = read("t10k")
    accuracy = (model(pictures).argmax(dim=1) == digits).float().mean().item()
    print("::metric " + json.dumps({"accuracy": accuracy, "fraction": fraction}), flush=True)


if __name__ == "__main__":
    main()
