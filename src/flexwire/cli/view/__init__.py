"""`flexwire view`: show a capture in the terminal, with its connections, frames and fields.

`frames` reads the capture and keeps a limited number of frames; `screen` shows them. `typed_filter`
parses the filter that a user types. Fields are explained as in `flexwire explain --frame-number`,
so credentials are withheld.

Laws of this package:

- **Memory is limited.** At most `MOST_FRAMES` rows and `HELD_BYTES` of payloads are kept. All other
  payloads are read again. `tests/cli/view/test_frames.py`
- **Text from a capture is never markup, and never controls the terminal.**
  `tests/cli/view/test_screen.py`
"""

from __future__ import annotations

import sys
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from flexwire.cli.tap import filter_options, to_filter

if TYPE_CHECKING:
    from collections.abc import Callable


def _filtered(command: Callable[..., None]) -> Callable[..., None]:
    options = reversed(filter_options("Show", " Can be given multiple times."))
    return reduce(lambda wrapped, option: option(wrapped), options, command)


@click.command()
@click.argument("capture", type=click.Path(path_type=Path))
@_filtered
@click.option(
    "--skip",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="Skip this many of the frames that the other options select.",
)
def view(*, capture: Path, skip: int, **parameters: Any) -> None:
    """Show a CAPTURE in the terminal: connections, frames, and fields with their bytes.

    Press Enter on a connection to see its frames. Choose a frame to see its fields. Press Tab for
    the next pane, 'a' to show all connections again, 'n' or 'p' for the next or previous
    2,000 frames, 'f' to change the filter, and 'q' to quit. Credentials are withheld.

    The command keeps at most 20,000 frames. The last line shows how many more frames there are. Use
    --skip to see those frames.
    """
    from flexwire.cli.options import InputError
    from flexwire.extras import require

    only = to_filter(parameters)
    require("flexwire view", "view", "textual")
    if not capture.is_file():
        raise InputError(f"{capture}: there is no such file")
    if not (sys.stdin and sys.stdin.isatty() and sys.stdout.isatty()):
        raise InputError("flexwire view needs a terminal; without one, use decode, explain or who")
    from flexwire.cli.view.frames import ViewedCapture
    from flexwire.cli.view.screen import CaptureScreen

    CaptureScreen(ViewedCapture(capture, only, skip)).run()
