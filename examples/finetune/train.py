"""Fine-tunes a small language model for real, on a CPU: one trial of the job beside this file.

The base model (pretrain.py) knows numbers in digits and in words, and sums in digits. It is taught sums in words, on a
share of the tokens: its weights are frozen, and adapters of low rank beside them are trained. The text is made here.
"""

from __future__ import annotations

import argparse
import math
from functools import partial

import torch
from model import BASE, LONGEST, Transformer, learn, loss_on, rows_of, sums_in_words, text_of

from trimtuner import report

TOKENS, TEST_TOKENS = 96_000, 6_400  # characters


def finetune(chosen: argparse.Namespace) -> dict[str, float]:
    """One pass over the share of the tokens: the loss on text that is never trained on, and how many tokens it took."""
    model = Transformer()
    model.load_state_dict(torch.load(BASE, weights_only=True))
    torch.manual_seed(chosen.seed)
    model.adapt(chosen.rank)
    text = text_of(sums_in_words, TOKENS, seed=2)[: round(TOKENS * chosen.fraction)]
    rows = rows_of(text, chosen.sequence_length)
    learn(model, rows[torch.randperm(len(rows))].split(chosen.batch_size), chosen.learning_rate)
    return {"loss": test_loss(model), "tokens": float(rows.numel())}


def test_loss(model: Transformer) -> float:
    """At the same length whatever was chosen; what has blown up is bad, and no number beyond 10 says more."""
    model.eval()
    with torch.no_grad():
        loss = float(loss_on(model, rows_of(text_of(sums_in_words, TEST_TOKENS, seed=1), LONGEST - 1)))
    return min(loss, 10.0) if math.isfinite(loss) else 10.0


def main() -> None:
    parser = argparse.ArgumentParser()
    option = partial(parser.add_argument, required=True)
    option("--rank", type=int)
    option("--learning-rate", type=float)
    option("--batch-size", type=int)
    option("--sequence-length", type=int)
    option("--fraction", type=float)
    option("--vm-type", choices=["cpu-1", "cpu-2"])  # a machine is how many cores the training may use
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    if not BASE.exists():
        parser.error(f"there is no {BASE}; make it with: python3 pretrain.py")
    torch.set_num_threads(int(chosen.vm_type.removeprefix("cpu-")))
    report(**finetune(chosen))


if __name__ == "__main__":
    main()
