"""Texts in the cells of a CSV: a spreadsheet runs none of them, and reading gives back exactly what was written."""

from __future__ import annotations

import re

# Some spreadsheets divide at these whatever quotes say, so what follows one may come to begin a cell of its own.
_DIVIDERS = re.compile(r"([;\t\r\n])")
# Apostrophes count as blanks in both: one that is put in front, or taken away, does not change what matches. So do
# quotes, which vanish where a spreadsheet divides otherwise than they were meant.
_FORMULA = re.compile(r"[\"'\s]*[=+\-@＝＋－＠]")  # noqa: RUF001  (Japanese spreadsheets take these for the same)
_BEGINS_UNSEEN = re.compile(r"'*[\t\r]")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)


def cell_of_text(text: str) -> str:
    """The text with an apostrophe in front of whatever a spreadsheet would run; a plain number stays as it is."""
    if _NUMBER.fullmatch(text):
        return text
    pieces = _DIVIDERS.split(text)
    cell = "".join(f"'{piece}" if _FORMULA.match(piece) else piece for piece in pieces)
    return f"'{cell}" if _BEGINS_UNSEEN.match(cell) else cell


def text_of_cell(cell: str) -> str:
    """The text again; an apostrophe that ``cell_of_text`` would not have put there is part of it."""
    text = cell[1:] if cell.startswith("'") and _BEGINS_UNSEEN.match(cell) else cell
    return "".join(
        piece[1:] if piece.startswith("'") and _FORMULA.match(piece) else piece for piece in _DIVIDERS.split(text)
    )
