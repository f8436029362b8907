"""Single views as pictures of their own: in a notebook, or in a file."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from trimtuner.errors import InputError, NoAnswer, nearest
from trimtuner.files import write_private
from trimtuner.state import StudyState
from trimtuner.views import every
from trimtuner.views.blocks import pictures_of
from trimtuner.views.document import asset

_PIXELS_PER_UNIT = 2.0
# By their names: to resvg sans-serif is Arial, and where that is missing there would be no letters at all.
_FAMILIES = (
    "Arial, Helvetica, 'Liberation Sans', 'DejaVu Sans', 'Noto Sans', 'Open Sans', Roboto, Ubuntu, Cantarell, "
    "'Segoe UI', sans-serif"
)
_VARIABLE = re.compile(r"var\((--[a-z0-9-]+)\)")


@dataclass(frozen=True)
class Figure:
    """A picture that a notebook shows and ``save`` writes."""

    name: str
    drawing: str  # SVG, to be styled

    @property
    def svg(self) -> str:
        """With its colours: a file that needs nothing else."""
        style = f"<style>{_plain_style()}</style><rect width='100%' height='100%' fill='#ffffff'/>"
        begin = self.drawing.index(">") + 1
        return self.drawing[:begin] + style + self.drawing[begin:]

    def _repr_svg_(self) -> str:
        return self.svg

    def save(self, path: str | Path) -> Path:
        """Write it as SVG or PNG, by the ending of the name."""
        path = Path(path)
        if path.suffix.lower() == ".svg":
            write_private(path, self.svg.encode())
        elif path.suffix.lower() == ".png":
            write_private(path, self.png())
        else:
            raise InputError(f"a picture is written as .svg or .png, not as {path.suffix or 'a name without ending'!r}")
        return path

    def png(self) -> bytes:
        """The picture in pixels, drawn by resvg."""
        try:
            import resvg_py
        except ModuleNotFoundError:
            raise InputError("a PNG needs resvg-py: pip install 'trimtuner[report]'; SVG needs nothing") from None
        return bytes(resvg_py.svg_to_bytes(svg_string=self.svg, zoom=_PIXELS_PER_UNIT))


def figures(subject: StudyState, name: str) -> list[Figure]:
    """The pictures of one view; an error says why there are none."""
    view = next((one for one in every.VIEWS if one.name == name), None)
    drawn = every.drawn_views()
    if view is None:
        raise InputError(f"there is no view {name!r}, only {', '.join(drawn)}{nearest(name, drawn)}")
    if not view.is_drawn:
        raise InputError(f"the view {name!r} is words, not a picture; pictures are {', '.join(drawn)}")
    found = [Figure(one.name, one.svg) for one in pictures_of(view.blocks(subject)) if one.name is not None]
    if not found:
        raise NoAnswer(f"no picture of {name!r}: {view.why_nothing(subject)}")
    return found


def _plain_style() -> str:
    """The page's style with its light colours written out: few programs but browsers know variables."""
    light = dict(re.findall(r"(--[a-z0-9-]+):\s*(#[0-9a-f]+)", asset("style.css").split("@media", 1)[0]))
    written = _VARIABLE.sub(lambda match: light.get(match[1], "#000000"), asset("chart.css"))
    return written.replace("svg.chart ", "").replace("system-ui, Arial, sans-serif", _FAMILIES)
