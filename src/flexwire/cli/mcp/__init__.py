"""`flexwire mcp`: offer the read-only commands as tools in the Model Context Protocol.

A program such as an assistant sends the requests, and hostile input may mislead this program. The
server therefore only reads files below one directory, and opens no connections. The tools call the
same functions as the commands. A result is the JSON of a command (docs/json.md), which is truncated
if it is long. `root` opens files, `tools` defines the tools, `arguments` defines the arguments of
the tools, `analyses` reads stored analyses, `bounds` truncates and escapes answers, and `server`
implements the protocol.

Laws of this package:

- **No path leads out of the root:** not with "..", not as an absolute path, not through a symbolic
  link, and on Linux not through a link that appears while a file is being opened.
  `tests/cli/mcp/test_root.py`
- **Every result is limited, and states what it leaves out.** `tests/cli/mcp/test_bounds.py`
- **Credentials are withheld, even in bytes that the client sends.** `tests/cli/mcp/test_tools.py`
- **Nothing is written, and Spark does not start.** `tests/cli/mcp/test_server.py`
"""

from __future__ import annotations

from pathlib import Path

import click


@click.command()
@click.argument("root", type=click.Path(exists=True, file_okay=False, path_type=Path))
def mcp(*, root: Path) -> None:
    """Let an AI assistant use the read-only commands through the Model Context Protocol.

    The assistant's program starts this command and communicates with it through standard input and
    output. The assistant can list captures and analyses below ROOT, list the frames of a capture,
    explain and decode bytes and frames, show messages, and read the audit and the answers that an
    analysis stored. docs/mcp.md describes the tools.

    The command only reads, and it reads only files below ROOT. Credentials are withheld. The
    command ends when its standard input ends.
    """
    from flexwire.cli.mcp.root import ServedRoot
    from flexwire.cli.options import standard_input
    from flexwire.extras import require

    require("flexwire mcp", "mcp", "mcp", "numpy", "pyarrow")
    from flexwire.cli.mcp.server import serve

    standard_input()
    serve(ServedRoot(root))
