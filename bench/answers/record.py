"""Write what one version of the user layer answers, a file for each model; `run.py` starts this.

python bench/answers/record.py TREE FOLDER MODEL [MODEL ...]
"""

from __future__ import annotations

import sys
import tempfile
import warnings
from pathlib import Path

import hdicore
import hdiforest
from models import MODELS
from records import Answers


def check_packages(tree: Path) -> None:
    """Stop unless both packages are those of a tree."""
    for package in (hdicore, hdiforest):
        if not Path(str(package.__file__)).resolve().is_relative_to(tree.resolve()):
            sys.exit(f"{package.__name__} was expected in {tree}, but is {package.__file__}")


def main(tree: str, folder: str, *models: str) -> None:
    check_packages(Path(tree))
    warnings.simplefilter("ignore")  # rows of the fit are predicted, and calibration rows are few
    for name in models:
        answers = Answers()
        with tempfile.TemporaryDirectory() as scratch:
            MODELS[name](answers, Path(scratch))
        answers.write(Path(folder) / f"{name}.npz")
        print(f"{name}: {len(answers.arrays)} answers", file=sys.stderr)


if __name__ == "__main__":
    main(*sys.argv[1:])
