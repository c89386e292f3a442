"""Where the results of the paper's evaluation lie, and how they are read and added to.

The evaluation has one file for each data set. Each of the two smaller questions has one file, and a
name in it is that of a data set.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
from json_lines import Key, add, path_of, read

_FOLDER = Path(__file__).parent / "results"
RESULTS = _FOLDER / "evaluation"
QUICK_RESULTS = _FOLDER / "quick"
NOMINAL = _FOLDER / "nominal.jsonl"
IN_HINDSIGHT = _FOLDER / "in_hindsight.jsonl"

__all__ = ["IN_HINDSIGHT", "NOMINAL", "QUICK_RESULTS", "RESULTS", "Key", "add", "path_of", "read"]
