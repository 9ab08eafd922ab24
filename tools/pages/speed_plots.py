"""The plots of docs/performance.md: bars drawn from the page's own tables.

A plot contains no figures of its own. If a table contains ratios to rivals, the plot shows each
rival's speed as a share of flexwire's. The pictures are SVG with fixed coordinates, so the same
page produces the same bytes on every machine.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from html import escape
from itertools import dropwhile, takewhile
from typing import TYPE_CHECKING, Final

from tools.pages.files import DOCS, between, write_files

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

PAGE: Final = DOCS / "performance.md"
_WIDTH, _LABELS, _VALUES = 760, 250, 90
_BAR, _GAP, _TOP, _LEGEND = 12, 12, 44, 18
_CELLS: Final = re.compile(r"\s{2,}")
_NUMBER: Final = re.compile(r"-?\d[\d,]*(?:\.\d+)?")
_SHADES: Final = ("one", "two", "three", "four")
_STYLE: Final = (
    "text{font:12px sans-serif;fill:#1f2328}.head{font-weight:bold;font-size:14px}"
    ".one{fill:#0b6e4f}.two{fill:#e08e45}.three{fill:#5b8fd6}.four{fill:#9a9fa6}"
)
_HEADING: Final = "\n## "


@dataclass(frozen=True, slots=True)
class Group:
    """The bars next to one label: the name of each bar, and its figure."""

    label: str
    bars: tuple[tuple[str, float], ...]


@dataclass(frozen=True, slots=True)
class Plot:
    """One plot of the page.

    Attributes:
        name: the file is docs/images/speed-NAME.svg.
        heading: the section of the page whose first table the plot shows.
        title: what the bars are, with their unit.
        rows: the first cells of the rows to show, in order.
        bars: the columns to show, with the name of their bar.
        is_share: whether columns after the first contain flexwire's speed divided by the rival's,
            so that the bars are shares of flexwire's speed in percent.
    """

    name: str
    heading: str
    title: str
    rows: tuple[str, ...]
    bars: tuple[tuple[str, str], ...]
    is_share: bool = False

    @property
    def path(self) -> Path:
        """The path of the image file."""
        return DOCS / "images" / f"speed-{self.name}.svg"

    def groups(self, page: str) -> Iterator[Group]:
        """Yield the figures in the rows, from a page.

        Raises:
            ValueError: the page lacks the section, a row or a column.
        """
        table = _table(between(page + _HEADING, f"{_HEADING}{self.heading}\n", _HEADING))
        by_label = {row[0]: row for row in table[1:]}
        for label in self.rows:
            if label not in by_label:
                raise ValueError(f"expected a row {label!r} below {self.heading}")
            cells = dict(zip(table[0], by_label[label], strict=False))
            yield Group(label, tuple(self._bars(cells)))

    def _bars(self, cells: dict[str, str]) -> Iterator[tuple[str, float]]:
        for place, (column, name) in enumerate(self.bars):
            if column not in cells:
                raise ValueError(f"expected a column {column!r} below {self.heading}")
            number = _NUMBER.search(cells[column])
            # For something that a rival cannot do, the table contains a dash or an empty cell.
            if number is not None and cells[column] != "-":
                figure = float(number[0].replace(",", ""))
                if self.is_share:
                    figure = 100 / figure if place else 100.0
                yield name, figure


_RIVALS: Final = (("x kio", "kio"), ("x kafka-python", "kafka-python"), ("x aiokafka", "aiokafka"))
PLOTS: Final = (
    Plot(
        "objects",
        "Objects",
        "Messages a second, in percent of flexwire's speed",
        (
            "metadata_response_v5 decode",
            "metadata_response_v5 encode",
            "fetch_request_v11 decode",
            "produce_request_v9 decode",
            "api_versions_response_v3 decode",
        ),
        (("flexwire/s", "flexwire"), *_RIVALS),
        is_share=True,
    ),
    Plot(
        "records",
        "Records",
        "Records a second, in percent of flexwire's speed",
        (
            "record_batch_v2 10,000 records",
            "record_batch_v2 10,000 encode",
            "small_values 10,000 records",
            "batch_of_1 1 records",
            "batch_of_100 100 records",
        ),
        (("flexwire/s", "flexwire"), *_RIVALS),
        is_share=True,
    ),
    Plot(
        "columns",
        "Columns",
        "Time as a multiple of copying the same bytes: less is better",
        (
            "records, all columns (100 in a batch, 132 bytes each)",
            "with crc",
            "only offset and value",
            "records to batches, with crc",
        ),
        (("beside a copy", "flexwire"),),
    ),
    Plot(
        "captures",
        "Captures",
        "MB of capture for each CPU second",
        ("small 67 MB", "small 1,001 MB", "heavy 88 MB", "heavy 1,003 MB"),
        (("MB per CPU s", "flexwire analyze"), ("`tshark -T fields`", "tshark -T fields")),
    ),
    Plot(
        "logs",
        "Logs",
        "Million rows for each CPU second, by compression",
        ("`kafka-log`, million rows per CPU second",),
        (("none", "none"), ("lz4", "lz4"), ("zstd", "zstd"), ("gzip", "gzip")),
    ),
    Plot(
        "tap",
        "The tap",
        "CPU milliseconds for each MB produced: less is better",
        ("relay", "tap", "relay, TLS on both sides", "tap, TLS on both sides"),
        (("ms of CPU per produced MB", "CPU"),),
    ),
)


def files() -> dict[Path, str]:
    """Return the picture of each plot."""
    page = PAGE.read_text(encoding="utf-8")
    return {plot.path: picture(plot.title, [*plot.groups(page)]) for plot in PLOTS}


def picture(title: str, groups: Sequence[Group]) -> str:
    """Return groups of horizontal bars as SVG; all bars have the same scale, which begins at 0."""
    names = [*dict.fromkeys(name for group in groups for name, _ in group.bars)]
    most = max(figure for group in groups for _, figure in group.bars)
    scale = (_WIDTH - _LABELS - _VALUES) / most
    shades = {name: _SHADES[place % len(_SHADES)] for place, name in enumerate(names)}
    top = _TOP + (_LEGEND if len(names) > 1 else 0)
    drawn = [f'<text class="head" x="8" y="22">{escape(title)}</text>']
    if len(names) > 1:
        for place, name in enumerate(names):
            left, side = _LABELS + place * 125, _BAR - 2
            drawn.append(
                f'<rect class="{shades[name]}" x="{left}" y="{_TOP - 8}" width="{side}" '
                f'height="{side}"/>'
            )
            drawn.append(f'<text x="{left + 15}" y="{_TOP + 1}">{escape(name)}</text>')
    for group in groups:
        middle = top + len(group.bars) * _BAR / 2 + 4
        drawn.append(f'<text x="8" y="{middle:g}">{escape(_shortened(group.label))}</text>')
        for name, figure in group.bars:
            width = max(figure * scale, 1)
            right, height = _LABELS + width + 5, _BAR - 2
            drawn.append(
                f'<rect class="{shades[name]}" x="{_LABELS}" y="{top}" width="{width:.1f}" '
                f'height="{height}"/>'
            )
            drawn.append(f'<text x="{right:.1f}" y="{top + height - 1}">{_told(figure)}</text>')
            top += _BAR
        top += _GAP
    told = "; ".join(
        f"{group.label}: " + ", ".join(f"{name} {_told(figure)}" for name, figure in group.bars)
        for group in groups
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {top}" '
        f'width="{_WIDTH}" height="{top}" role="img"><title>{escape(title)}</title>'
        f"<desc>{escape(told)}</desc><style>{_STYLE}</style>\n"
        # The page may be dark although the reader's system is light, so the picture has its own
        # background.
        '<rect width="100%" height="100%" fill="#fff"/>\n' + "\n".join(drawn) + "\n</svg>\n"
    )


def _told(figure: float) -> str:
    """Return a figure with two significant digits, or with all digits before the point."""
    digits = 0 if figure >= 10 else 1 if figure >= 1 else 2  # noqa: PLR2004 - see the docstring
    return f"{figure:.{digits}f}"


def _shortened(label: str) -> str:
    return label.replace("`", "").partition(" (")[0].partition(", million")[0]


def _table(section: str) -> list[list[str]]:
    """Return the cells of the first table in a section: its header and its rows."""
    before, _, rest = section.partition("```\n")
    lines = dropwhile(lambda line: not line.startswith("|"), before.splitlines())
    marked = [*takewhile(lambda line: line.startswith("|"), lines)]
    if marked:
        rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in marked]
        return [rows[0], *rows[2:]]
    if not rest:
        raise ValueError("expected a table, got a section without one")
    head, *lines_of_rows = rest.partition("```\n")[0].splitlines()
    columns = _CELLS.split(head.strip())
    # The first cells of a row are its label; a label has at least one word.
    figures = len([name for name in columns if name.endswith("/s") or name.startswith("x ")])
    found = []
    for line in lines_of_rows:
        words = line.split()
        found.append([" ".join(words[:-figures]), *words[-figures:]])
    return [["", *columns[-figures:]], *found]


if __name__ == "__main__":
    write_files(files())
