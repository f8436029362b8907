"""Makes the base model that is fine-tuned, once: python3 pretrain.py"""

import torch
from model import BASE, Transformer, learn, numerals, rows_of, text_of

STEPS, BATCH, LENGTH = 700, 32, 64


def main() -> None:
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = Transformer()
    rows = rows_of(text_of(numerals, 600_000, seed=0), LENGTH)
    learn(model, rows[torch.randint(len(rows), (STEPS, BATCH))], 0.003)
    torch.save(model.state_dict(), BASE)
    print(f"wrote {BASE}")


if __name__ == "__main__":
    main()
