"""Plots of docs/performance.md, drawn from the tables on that page, so that they say the same."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import vl_convert

if TYPE_CHECKING:
    from collections.abc import Iterable

# Of the plot without its labels; all of it is to be read on a phone.
WIDTH = 300


@dataclass(frozen=True)
class Plot:
    """A picture, the heading it stands below, and what it shows in words."""

    name: str
    heading: str
    words: str
    svg: str


def plots(page: str) -> list[Plot]:
    """The plots of the page; a table that is not there, or is laid out otherwise, is an error."""
    return [
        Plot(
            "messages",
            "Objects",
            "Times kio, for each message; right of the line flexwire is ahead",
            _ratios(_preformatted(page, "case     "), "x kio"),
        ),
        Plot(
            "batches",
            "Records",
            "Times aiokafka, for each kind of batch; right of the line flexwire is ahead",
            _ratios(_preformatted(page, "case             records "), "x aiokafka"),
        ),
        Plot(
            "columns",
            "Columns",
            "Million records a second to columns, by how many records a batch has",
            _turned_bars(_table(page, "| records in a batch |"), "million records a second"),
        ),
        Plot(
            "captures",
            "Captures",
            "CPU seconds that captures of small and of heavy messages take, by their size",
            _captures(_table(page, "| capture | CPU s |")),
        ),
        Plot(
            "logs",
            "Logs",
            "Million rows per CPU second that kafka-log gives, by compression",
            _turned_bars(_table(page, "| | none | lz4 |"), "million rows per CPU second"),
        ),
        Plot(
            "tap",
            "The tap",
            "Milliseconds of CPU that a megabyte takes, beside a plain relay",
            _bars(
                {
                    row[""]: row["ms of CPU per MB produced"]
                    for row in _table(page, "| | ms of CPU per MB produced |")
                },
                "ms of CPU per MB",
            ),
        ),
    ]


def illustrated(page: str, drawn: Iterable[Plot], folder: str) -> str:
    """``page`` with each plot at the end of the section that its heading opens."""
    for plot in drawn:
        title = re.compile(rf"^#+ {re.escape(plot.heading)}\n", re.MULTILINE)
        (heading,) = title.finditer(page)
        following = re.compile(r"^#+ ", re.MULTILINE).search(page, heading.end())
        end = following.start() if following else len(page)
        image = f"```{{image}} {folder}/{plot.name}.svg\n:alt: {plot.words}\n:class: plot\n```\n"
        page = f"{page[:end].rstrip()}\n\n{plot.words}:\n\n{image}\n{page[end:]}"
    return page


def _preformatted(page: str, begins: str) -> list[dict[str, str]]:
    """The rows of a fenced table of fixed columns whose header begins so.

    The first cells of a row, up to its first figure, say which "case" it is.
    """
    header, *lines = page[page.index(begins) :].partition("\n```")[0].splitlines()
    names = [one for one in re.split(r"\s{2,}", header.strip()) if one not in {"case", "records"}]
    found = []
    for line in lines:
        cells = re.split(r"\s{2,}", line.strip())
        figures = cells[-len(names) :]
        case = " ".join(cells[: -len(names)])
        found.append({"case": case} | dict(zip(names, figures, strict=True)))
    return found


def _table(page: str, begins: str) -> list[dict[str, str]]:
    """The rows of a Markdown table whose header begins so."""
    lines = page[page.index(begins) :].partition("\n\n")[0].splitlines()
    header, _, *rows = ([cell.strip() for cell in line.strip("|").split("|")] for line in lines)
    return [dict(zip(header, row, strict=True)) for row in rows]


def _ratios(rows: list[dict[str, str]], column: str) -> str:
    values = [
        {"case": row["case"], "ratio": float(row[column])} for row in rows if row[column] != "-"
    ]
    axis = {"title": column.replace("x ", "times "), "values": [0.5, 1, 2, 5, 10, 20, 50]}
    scale = {"type": "log", "domain": [0.4, 60]}
    y = {"field": "case", "type": "nominal", "sort": None, "title": None}
    dots = {
        "mark": {"type": "circle", "size": 80, "color": "#0b5fff"},
        "encoding": {
            "x": {"field": "ratio", "type": "quantitative", "scale": scale, "axis": axis},
            "y": y,
        },
    }
    line = {
        "mark": {"type": "rule", "color": "#555", "strokeDash": [4, 3]},
        "encoding": {"x": {"datum": 1, "type": "quantitative", "scale": scale}},
    }
    return _drawn({"data": {"values": values}, "layer": [line, dots], "height": {"step": 18}})


def _turned_bars(rows: list[dict[str, str]], unit: str) -> str:
    """Return bars of a table's first row, whose columns are the cases."""
    (_, *cells) = rows[0].items()
    return _bars(dict(cells), unit)


def _bars(cells: dict[str, str], unit: str) -> str:
    """Return a bar for each cell that begins with a figure."""
    figures = {case: re.match(r"[\d.]+", cell) for case, cell in cells.items()}
    values = [{"case": case, unit: float(found[0])} for case, found in figures.items() if found]
    encoding = {
        "x": {"field": unit, "type": "quantitative"},
        "y": {"field": "case", "type": "nominal", "sort": None, "title": None},
    }
    mark = {"type": "bar", "color": "#0b5fff"}
    return _drawn(
        {"data": {"values": values}, "mark": mark, "encoding": encoding, "height": {"step": 22}}
    )


def _captures(rows: list[dict[str, str]]) -> str:
    plain = re.compile(r"(small|heavy) ([\d,]+) MB")
    values = [
        {
            "kind": match[1],
            "MB": float(match[2].replace(",", "")),
            "CPU seconds": float(row["CPU s"]),
        }
        for row in rows
        if (match := plain.fullmatch(row["capture"]))
    ]
    marks = {"type": "line", "point": True}
    encoding = {
        "x": {"field": "MB", "type": "quantitative"},
        "y": {"field": "CPU seconds", "type": "quantitative"},
        "color": {"field": "kind", "scale": {"range": ["#0b5fff", "#c2410c"]}},
    }
    return _drawn({"data": {"values": values}, "mark": marks, "encoding": encoding, "height": 260})


def _drawn(spec: dict[str, Any]) -> str:
    axis = {"labelFontSize": 11, "labelLimit": 300}
    # Room for labels that a reader's font makes wider than the one that they were measured in.
    padding = {"left": 40, "right": 5, "top": 5, "bottom": 5}
    config = {"background": "white", "font": "sans-serif", "axis": axis, "padding": padding}
    svg: str = vl_convert.vegalite_to_svg({**spec, "width": WIDTH, "config": config})
    return svg
