"""Where the results of calibration lie, and how they are read and added to: a file a data set."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
from json_lines import Key, add, path_of, read

RESULTS = Path(__file__).parent / "results"

__all__ = ["RESULTS", "Key", "add", "path_of", "read"]
