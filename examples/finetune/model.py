"""A small language model of characters, the text that it learns, and low-rank adapters (LoRA, arXiv:2106.09685)."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from pathlib import Path

import torch
from torch import Tensor, nn

LETTERS = "\n abcdefghijklmnopqrstuvwxyz0123456789+=-."
WIDTH, HEADS, LAYERS, LONGEST = 64, 4, 2, 128
BASE = Path(__file__).with_name("base.pt")
_ONES = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen"
)
WORDS = f"{_ONES} eighteen nineteen".split()
TENS = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]


def in_words(number: int) -> str:
    if number < 20:
        return WORDS[number]
    if number < 100:
        ten, one = divmod(number, 10)
        return TENS[ten - 2] + ("" if one == 0 else f" {WORDS[one]}")
    hundred, rest = divmod(number, 100)
    return f"{WORDS[hundred]} hundred" + ("" if rest == 0 else f" and {in_words(rest)}")


def text_of(write: Callable[[int, int], str], tokens: int, seed: int) -> Tensor:
    """Lines about pairs of numbers, as the places of their characters."""
    chance, lines, length = random.Random(seed), [], 0  # noqa: S311  (text, not secrets)
    while length < tokens:
        a, b = chance.randrange(100), chance.randrange(100)
        lines.append(write(a, b))
        length += len(lines[-1]) + 1
    return torch.tensor([LETTERS.index(letter) for letter in "\n".join(lines)[:tokens]])


def numerals(a: int, b: int) -> str:
    """What the base model knows: numbers in digits and in words, and sums in digits."""
    return f"{a}+{b}={a + b}. {b} is {in_words(b)}."


def sums_in_words(a: int, b: int) -> str:
    """What it is to learn."""
    return f"{in_words(a)} plus {in_words(b)} is {in_words(a + b)}."


class Adapted(nn.Module):
    """A frozen linear map with a trained one of low rank beside it."""

    def __init__(self, frozen: nn.Linear, rank: int) -> None:
        super().__init__()
        self.frozen = frozen
        self.down = nn.Parameter(torch.randn(rank, frozen.in_features) / math.sqrt(frozen.in_features))
        self.up = nn.Parameter(torch.zeros(frozen.out_features, rank))  # at first it changes nothing
        self.scale = 16.0 / rank

    def forward(self, x: Tensor) -> Tensor:
        return self.frozen(x) + self.scale * (x @ self.down.T @ self.up.T)


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.before_attention, self.before_mixing = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.queries, self.joined = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.widened, self.narrowed = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        rows, length, _ = x.shape
        parts = self.queries(self.before_attention(x)).view(rows, length, 3, HEADS, WIDTH // HEADS)
        query, key, value = parts.permute(2, 0, 3, 1, 4)
        attended = nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.joined(attended.transpose(1, 2).reshape(rows, length, WIDTH))
        return x + self.narrowed(nn.functional.gelu(self.widened(self.before_mixing(x))))


class Transformer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.letters, self.places = nn.Embedding(len(LETTERS), WIDTH), nn.Embedding(LONGEST, WIDTH)
        self.blocks = nn.Sequential(*(Block() for _ in range(LAYERS)))
        self.end, self.out = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, len(LETTERS))

    def forward(self, letters: Tensor) -> Tensor:
        at = torch.arange(letters.shape[1])
        return self.out(self.end(self.blocks(self.letters(letters) + self.places(at))))

    def adapt(self, rank: int) -> None:
        """Freeze all there is, and put adapters beside the maps of every block and of the end."""
        self.requires_grad_(False)
        for block in self.blocks:
            for name in ("queries", "joined", "widened", "narrowed"):
                setattr(block, name, Adapted(getattr(block, name), rank))
        self.out = Adapted(self.out, rank)


def loss_on(model: Transformer, text: Tensor) -> Tensor:
    """Mean cross-entropy of the next character, in nats."""
    return nn.functional.cross_entropy(model(text[:, :-1]).flatten(0, 1), text[:, 1:].flatten())


def rows_of(text: Tensor, length: int) -> Tensor:
    """The text cut into rows of so many characters and the one that follows."""
    return text[: len(text) // (length + 1) * (length + 1)].view(-1, length + 1)


def learn(model: Transformer, batches: Sequence[Tensor], rate: float) -> None:
    """Once over the batches; only what is not frozen changes."""
    optimizer = torch.optim.AdamW([one for one in model.parameters() if one.requires_grad], lr=rate, weight_decay=0.0)
    warm = max(len(batches) // 10, 1)
    for step, batch in enumerate(batches):
        for group in optimizer.param_groups:  # up in the first tenth, then down to nothing
            group["lr"] = rate * min((step + 1) / warm, (len(batches) - step) / (len(batches) - warm + 1))
        optimizer.zero_grad()
        loss_on(model, batch).backward()
        optimizer.step()
