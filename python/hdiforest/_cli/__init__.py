"""The command hdiforest: everything that serves only it."""

from __future__ import annotations

import sys
from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command, see `hdiforest._cli.main.main`; what cannot be imported is one line."""
    try:
        from hdiforest._cli.main import main as run
    except ImportError as error:
        print(f"hdiforest: error: {error}", file=sys.stderr)
        return 1
    return run(argv)
