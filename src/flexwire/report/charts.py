"""Draw facts as self-contained SVG pictures, in one size for laptops and one for phones.

The position of every label is computed here, so a picture does not depend on the fonts of the
machine that draws it. The colors in all pictures are keys of `INK`. The style sheet defines their
values for light and dark screens and for paper.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any, Final

from flexwire.extras import needed_by
from flexwire.facts import units
from flexwire.facts.facts import least_of, rebinned
from flexwire.report.matrix import api_label, client_name

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from flexwire.facts.facts import Facts, Latency, Timeline


BAR_LIMIT = 14
INK = {
    "request": "#000001",
    "response": "#000002",
    "text": "#000003",
    "muted": "#000004",
    "grid": "#000005",
    "accent": "#000006",
    "surface": "#000007",
    "third": "#000008",
    "fourth": "#000009",
}
PARTS = ("request", "response", "third", "fourth")
"""The colors of stacked parts, in order."""
# The maximum length of a label. Longer labels are slow to draw, because the engine measures a text
# repeatedly to determine how much of it fits.
LABEL_LIMIT = 90
_ROW_STEP = 27
_DOT = {"fill": INK["text"], "stroke": INK["surface"], "strokeWidth": 1.5, "size": 74}
_CONFIG: dict[str, Any] = {
    "background": None,
    "aria": False,
    "font": "sans-serif",
    "view": {"stroke": None},
    "axis": {
        "labelColor": INK["muted"],
        "titleColor": INK["muted"],
        "gridColor": INK["grid"],
        "domainColor": INK["grid"],
        "tickColor": INK["grid"],
        "labelFontSize": 12,
        "titleFontSize": 12,
        "titleFontWeight": "normal",
    },
    "text": {"color": INK["text"], "fontSize": 12.5},
}


@dataclass(frozen=True, slots=True)
class ChartSize:
    """The size of a picture: its width, and the position where labels end and the plot begins."""

    width: int
    labels: int
    buckets: int


WIDE = ChartSize(1060, 230, 130)
# On a wide screen, two of these pictures are shown side by side.
HALF = ChartSize(520, 150, 65)
NARROW = ChartSize(350, 128, 44)


@dataclass(frozen=True, slots=True)
class Chart:
    """A picture for wide and for narrow screens, with text for readers who cannot see it."""

    wide: str
    narrow: str
    summary: str


@dataclass(frozen=True, slots=True)
class Bar:
    """A named bar with one to four stacked parts and a label at its end."""

    label: str
    parts: tuple[float, ...]
    value: str


@dataclass(frozen=True, slots=True)
class TimeSlice:
    """The values of all parts in one slice of time."""

    start_ms: float
    end_ms: float
    parts: tuple[float, ...]


def timeline_chart(facts: Facts) -> Chart | None:
    """Return the chart of bytes over time, with requests below responses. None without traffic.

    If no sizes are known, as in request logs, the chart shows the number of frames over time.
    """
    buckets = facts.timeline.buckets
    if not buckets:
        return None
    if not has_sizes(facts):
        most = max(buckets, key=lambda bucket: bucket.frames)
        summary = (
            f"Frames over time in {units.plural(len(buckets), 'slice')} of "
            f"{units.span(facts.timeline.bucket_us)}; peak at {units.moment(most.time_us)} UTC: "
            f"{units.count(most.frames)}."
        )
        frames = {bucket.time_us: (bucket.frames,) for bucket in buckets}
        step = facts.timeline.bucket_us
        return draw(
            summary, "time", lambda size: time_spec(rebin(frames, step, size.buckets), size, "")
        )
    peak = max(buckets, key=lambda bucket: bucket.request_bytes + bucket.response_bytes)
    summary = (
        f"Bytes over time in {units.plural(len(buckets), 'slice')} of "
        f"{units.span(facts.timeline.bucket_us)}; peak at {units.moment(peak.time_us)} UTC: "
        f"{units.human_bytes(peak.request_bytes)} of requests and "
        f"{units.human_bytes(peak.response_bytes)} of responses."
    )
    return draw(
        summary, "time", lambda size: time_spec(_rebin(facts.timeline, size.buckets), size, "B")
    )


def has_sizes(facts: Facts) -> bool:
    """Return whether the size of at least one frame is known."""
    return any(bucket.request_bytes or bucket.response_bytes for bucket in facts.timeline.buckets)


def api_chart(facts: Facts) -> Chart | None:
    """Return the chart of bytes per API."""
    bars = [
        Bar(
            api_label(api.api_key, api.name),
            (api.request_bytes, api.response_bytes),
            units.human_bytes(api.request_bytes + api.response_bytes),
        )
        for api in facts.apis
    ]
    return bar_chart("Bytes per API", "api-bytes", bars, "API", units.human_bytes, HALF)


def api_message_chart(facts: Facts) -> Chart | None:
    """Return the chart of messages per API."""
    bars = [
        Bar(
            api_label(api.api_key, api.name),
            (api.requests, api.responses),
            units.count(api.requests + api.responses),
        )
        for api in facts.apis
    ]
    return bar_chart("Messages per API", "api-messages", bars, "API", units.count, HALF)


def client_chart(facts: Facts) -> Chart | None:
    """Return the chart of bytes per client."""
    bars = [
        Bar(
            client_name(entry.client),
            (entry.bytes_sent, entry.bytes_received),
            units.human_bytes(entry.bytes_sent + entry.bytes_received),
        )
        for entry in facts.clients
    ]
    return bar_chart("Bytes per client", "client-bytes", bars, "client", units.human_bytes)


def compression_chart(facts: Facts) -> Chart | None:
    """Return the chart of the bytes of record batches per compression type."""
    batches: defaultdict[str, int] = defaultdict(int)
    sizes: defaultdict[str, int] = defaultdict(int)
    for topic in facts.topics:
        for use in topic.compression:
            batches[use.codec] += use.batches
            sizes[use.codec] += use.bytes
    bars = [
        Bar(
            codec,
            (whole,),
            f"{units.human_bytes(whole)} in {units.plural(batches[codec], 'batch', 'batches')}",
        )
        for codec, whole in sizes.items()
    ]
    summary = "Size of record batches by compression type"
    return bar_chart(summary, "codec", bars, "type", units.human_bytes)


def bar_chart(
    summary: str,
    ident: str,
    bars: list[Bar],
    noun: str,
    write: Callable[[float], str],
    wide: ChartSize = WIDE,
) -> Chart | None:
    """Return horizontal bars, longest first. The last bar stands for all items beyond the limit."""
    bars = [bar for bar in bars if sum(bar.parts)]
    if not bars:
        return None
    order = sorted(bars, key=lambda bar: (-sum(bar.parts), bar.label))
    shown, rest = order[:BAR_LIMIT], order[BAR_LIMIT:]
    if rest:
        parts = tuple(sum(column) for column in zip(*(bar.parts for bar in rest), strict=True))
        label = units.plural(len(rest), f"more {noun}")
        shown.append(Bar(label, parts, write(sum(parts))))
    words = "; ".join(f"{bar.label} {bar.value}" for bar in shown)
    return draw(f"{summary}: {words}.", ident, lambda size: _bar_spec(shown, size), wide)


def latency_chart(facts: Facts) -> Chart | None:
    """Return the chart of latency distributions per API, on a log scale."""
    measured = [
        (api_label(api.api_key, api.name), api.latency)
        for api in facts.apis
        if api.latency is not None and api.latency.count and api.latency.max_ms > 0
    ]
    if not measured:
        return None
    waits = {api_label(api.api_key, api.name) for api in facts.apis if api.may_wait}
    measured.sort(key=lambda item: (item[0] in waits, -item[1].count, item[0]))
    shown, more = measured[:BAR_LIMIT], len(measured) - BAR_LIMIT
    words = "; ".join(f"{label} {_middle_and_end(item)}" for label, item in shown)
    rest = f"; {units.plural(more, 'more API')} in the table" if more > 0 else ""
    summary = f"Latencies per API, p50 and p99: {words}{rest}."
    return draw(summary, "latency", lambda size: _latency_spec(shown, size))


def _middle_and_end(latency: Latency) -> str:
    """Return the median and the p99, or the maximum instead if there are few latencies."""
    is_known = latency.count >= least_of(99)
    end = units.duration_ms(latency.p99_ms if is_known else latency.max_ms)
    return f"{units.duration_ms(latency.p50_ms)} and {end}{'' if is_known else ' at most'}"


def draw(
    summary: str,
    ident: str,
    spec: Callable[[ChartSize], dict[str, Any]],
    wide: ChartSize = WIDE,
) -> Chart:
    """Draw a chart spec in both sizes. ``ident`` must be unique on the page."""
    return Chart(
        _svg(spec(wide), f"{ident}-wide", wide),
        _svg(spec(NARROW), f"{ident}-narrow", NARROW),
        summary,
    )


def _svg(spec: dict[str, Any], ident: str, size: ChartSize) -> str:
    # This import is inside the function because it loads a JavaScript engine. Only a report with
    # pictures needs the engine.
    with needed_by("the report", "spark"):
        import vl_convert  # noqa: PLC0415  only for reports with pictures

    padding = {"left": 0, "right": 0, "top": 0, "bottom": 0} | spec.pop("padding", {})
    width = size.width - padding["left"] - padding["right"]
    frame = {"config": _CONFIG, "padding": padding, "autosize": {"type": "none"}, "width": width}
    whole = {**spec, **frame}
    svg = vl_convert.vegalite_to_svg(whole, vl_version="6.1", allowed_base_urls=[])
    # HTML requires no namespaces, and ids must be unique on the whole page.
    svg = re.sub(r' (?:xmlns(?::xlink)?|version|class|width|height)="[^"]*"', "", svg, count=5)
    svg = re.sub(r'\b(id="|url\(#)(clip|gradient)', rf"\g<1>{ident}-\2", svg)
    # For screen readers, a picture is a single image with alternative text, so its marks have no
    # roles.
    svg = re.sub(r' (?:role="graphics-[^"]*"|aria-roledescription="[^"]*")', "", svg)
    return re.sub(r"(\d+\.\d{2})\d+", r"\1", svg)


def _rows_axis(rows: int) -> dict[str, Any]:
    return {
        "field": "row",
        "type": "ordinal",
        "axis": None,
        "scale": {"domain": list(range(rows)), "paddingInner": 0.3, "paddingOuter": 0.1},
    }


def _labels(size: ChartSize, rows: Sequence[str]) -> dict[str, Any]:
    """Return the axis with the row names, right-aligned next to the plot."""
    # The reader's font may be one-eighth wider than the font that was measured here.
    limit = (size.labels - 10) * 7 // 8
    labels = [label[:LABEL_LIMIT] for label in rows]
    return {
        "data": {"values": [{"row": row, "label": label} for row, label in enumerate(labels)]},
        "mark": {"type": "text", "align": "right", "baseline": "middle", "limit": limit},
        "encoding": {"x": {"value": size.labels - 10}, "text": {"field": "label"}},
    }


def _bar_spec(bars: Sequence[Bar], size: ChartSize) -> dict[str, Any]:
    longest = max(sum(bar.parts) for bar in bars)
    # Room for the text at the end of the longest bar, with about 7 units per letter.
    room = 14 + 7 * max(len(bar.value) for bar in bars)
    drawn = PARTS[: max(len(bar.parts) for bar in bars)]
    parts = [
        {"row": row, "from": sum(bar.parts[:part]), "to": sum(bar.parts[: part + 1]), "part": ink}
        for row, bar in enumerate(bars)
        for part, ink in enumerate(drawn[: len(bar.parts)])
    ]
    ends = [{"row": row, "to": sum(bar.parts), "value": bar.value} for row, bar in enumerate(bars)]
    scale = {"domain": [0, longest], "range": [size.labels, size.width - room], "nice": False}
    place = {"type": "quantitative", "axis": None, "scale": scale}
    colours = {"domain": list(drawn), "range": [INK[ink] for ink in drawn]}
    return {
        "height": _ROW_STEP * len(bars),
        "encoding": {"y": _rows_axis(len(bars))},
        "layer": [
            {
                "data": {"values": parts},
                "mark": {"type": "bar"},
                "encoding": {
                    "x": {"field": "from", **place},
                    "x2": {"field": "to"},
                    "color": {"field": "part", "scale": colours, "legend": None},
                },
            },
            {
                "data": {"values": ends},
                "mark": {"type": "text", "align": "left", "baseline": "middle", "dx": 7},
                "encoding": {"x": {"field": "to", **place}, "text": {"field": "value"}},
            },
            _labels(size, [bar.label for bar in bars]),
        ],
    }


def _latency_spec(rows: Sequence[tuple[str, Latency]], size: ChartSize) -> dict[str, Any]:
    cells = []
    marks = []
    for row, (_, item) in enumerate(rows):
        most = max((bucket.count for bucket in item.histogram), default=0)
        cells += [
            {"row": row, "low": bucket.low_ms, "high": bucket.high_ms, "part": bucket.count / most}
            for bucket in item.histogram
            if bucket.count and bucket.low_ms > 0
        ]
        # A log scale has no zero, so a nanosecond is used instead.
        ends = {"low": max(item.min_ms, 1e-6), "high": max(item.max_ms, 1e-6)}
        percentiles = {"p50": item.p50_ms} | (
            {"p99": item.p99_ms} if item.count >= least_of(99) else {}
        )
        quantiles = {name: max(value, 1e-6) for name, value in percentiles.items()}
        marks.append({"row": row, **ends, **quantiles})
    of_many = [mark for mark in marks if "p99" in mark]
    low = min(entry["low"] for entry in cells + marks)
    high = max(entry["high"] for entry in cells + marks)
    scale = {
        "type": "log",
        "domain": [low, high if high > low else low * 10],
        "range": [size.labels, size.width - 20],
        "nice": False,
    }
    place = {"type": "quantitative", "scale": scale, "axis": _latency_axis()}
    left, right = {"field": "low", **place}, {"field": "high"}
    return {
        "padding": {"bottom": 28},
        "height": _ROW_STEP * len(rows) + 6,
        "encoding": {"y": _rows_axis(len(rows))},
        "layer": [
            {
                "data": {"values": marks},
                "mark": {"type": "rule", "color": INK["muted"], "strokeWidth": 1},
                "encoding": {"x": left, "x2": right},
            },
            {
                "data": {"values": cells},
                "mark": {"type": "bar", "color": INK["accent"]},
                "encoding": {
                    "x": left,
                    "x2": right,
                    # A single outlier remains visible, at a quarter of the color's intensity.
                    "fillOpacity": {
                        "field": "part",
                        "type": "quantitative",
                        "scale": {"type": "sqrt", "domain": [0, 1], "range": [0.2, 1]},
                        "legend": None,
                    },
                },
            },
            _quantile("p99", {"type": "tick", "thickness": 2, "size": 17}, of_many, place),
            _quantile("p50", {"type": "point", **_DOT}, marks, place),
            _labels(size, [label for label, _ in rows]),
        ],
    }


def _quantile(
    field: str, mark: dict[str, Any], rows: list[dict[str, Any]], place: dict[str, Any]
) -> dict[str, Any]:
    return {
        "data": {"values": rows},
        "mark": {"color": INK["text"], **mark, "opacity": 1},
        "encoding": {"x": {"field": field, **place}},
    }


def _latency_axis() -> dict[str, Any]:
    return {
        "values": [10**power for power in range(-6, 9)],
        "title": None,
        "labelOverlap": True,
        "labelFlush": False,
        "labelExpr": "datum.value < 1 ? format(datum.value * 1000, '~g') + ' \u00b5s' : "
        "datum.value < 1000 ? datum.value + ' ms' : format(datum.value / 1000, ',') + ' s'",
    }


def time_spec(slices: Sequence[TimeSlice], size: ChartSize, unit: str) -> dict[str, Any]:
    """Return the spec of parts stacked over time. ``unit`` follows the numbers on the axis."""
    inks = PARTS[: max(len(slice_.parts) for slice_ in slices)]
    parts = [
        {
            "from": slice_.start_ms,
            "to": slice_.end_ms,
            "low": sum(slice_.parts[:number]),
            "high": sum(slice_.parts[: number + 1]),
            "part": ink,
        }
        for slice_ in slices
        for number, ink in enumerate(inks)
    ]
    axis = {
        "title": None,
        "labelOverlap": True,
        "tickCount": size.width // 120,
        "grid": False,
        "format": _clock(slices[-1].end_ms - slices[0].start_ms),
    }
    values_axis = {
        "title": None,
        "tickCount": 4,
        "tickMinStep": 1,
        "domain": False,
        "ticks": False,
        "labelExpr": f"replace(format(datum.value, '~s'), /([kMGTP]?)$/, ' $1{unit}')",
    }
    colours = {"domain": list(inks), "range": [INK[ink] for ink in inks]}
    return {
        "padding": {"left": 58, "right": 22, "top": 10, "bottom": 24},
        "height": 170,
        "data": {"values": parts},
        "mark": {"type": "rect"},
        "encoding": {
            "x": {
                "field": "from",
                "type": "temporal",
                "scale": {"type": "utc", "nice": False},
                "axis": axis,
            },
            "x2": {"field": "to"},
            "y": {"field": "low", "type": "quantitative", "axis": values_axis},
            "y2": {"field": "high"},
            "color": {"field": "part", "type": "nominal", "scale": colours, "legend": None},
        },
    }


def _clock(milliseconds: float) -> str:
    """Return the format of times on an axis of this length.

    The format is only as precise as the ticks require it to be.
    """
    for limit, form in ((5_000, "%H:%M:%S.%L"), (600_000, "%H:%M:%S"), (86_400_000, "%H:%M")):
        if milliseconds <= limit:
            return form
    return "%b %d, %H:%M" if milliseconds <= 7 * 86_400_000 else "%b %d"


def _rebin(timeline: Timeline, limit: int) -> list[TimeSlice]:
    return rebin(
        {
            bucket.time_us: (bucket.request_bytes, bucket.response_bytes)
            for bucket in timeline.buckets
        },
        timeline.bucket_us,
        limit,
    )


def rebin(parts: Mapping[int, Sequence[float]], step_us: int, limit: int) -> list[TimeSlice]:
    """Merge adjacent slices of ``step_us``, keyed by start, until at most ``limit`` remain."""
    width, summed = rebinned(parts, step_us, limit)
    return [
        TimeSlice(start / 1000, (start + width) / 1000, (*sums,)) for start, sums in summed.items()
    ]


# A label contains everything that distinguishes rows, so it needs more room than an API name.
_WIDE: Final = ChartSize(1060, 400, 0)
_NARROW: Final = ChartSize(350, 0, 0)
_STEP, _TALL_STEP, _THICK, _THIN = 27, 42, 19, 15
_LETTER: Final = 7
"""The approximate width of a letter, because the reader's font is unknown."""


def bars(summary: str, rows: Sequence[Bar]) -> Chart:
    """Draw bars in order, with labels beside them (wide screens) or above them (narrow screens)."""
    return Chart(_bars_svg(rows, _WIDE), _bars_svg(rows, _NARROW), summary)


def _bars_svg(rows: Sequence[Bar], size: ChartSize) -> str:
    longest = max(sum(row.parts) for row in rows)
    room = 14 + _LETTER * max(len(row.value) for row in rows)
    scale = (size.width - size.labels - room) / longest
    step = _STEP if size.labels else _TALL_STEP
    drawn = [_row(row, number * step, scale, size) for number, row in enumerate(rows)]
    return f'<svg viewBox="0 0 {size.width} {step * len(rows)}">{"".join(drawn)}</svg>'


def _row(bar: Bar, top: float, scale: float, size: ChartSize) -> str:
    if size.labels:
        label = _text(bar.label, size.labels - 10, top + 17, size.labels - 10, "end")
        high, thick = top + 4, _THICK
    else:
        label = _text(bar.label, 0, top + 15, size.width)
        high, thick = top + 21, _THIN
    at, parts = float(size.labels), []
    for part, ink in zip(bar.parts, PARTS, strict=False):
        width = part * scale
        place = f'x="{at:.1f}" y="{high}" width="{width:.1f}" height="{thick}"'
        parts.append(f'<rect {place} fill="{INK[ink]}"/>')
        at += width
    value = _text(bar.value, at + 7, high + thick - 4.5, size.width)
    return f"{label}{''.join(parts)}{value}"


def _text(text: str, x: float, y: float, room: float, anchor: str = "start") -> str:
    letters = int(room / _LETTER)
    shown = text if len(text) <= letters else f"{text[: letters - 1]}\u2026"
    place = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"'
    return f'<text {place} font-size="12.5" fill="{INK["text"]}">{escape(shown)}</text>'
