"""Writes pages of the benchmarks from their own files, before pages are read.

A benchmark's README.md is one page, the report that it writes another. Nothing is copied by hand.
"""

import os
import re
from pathlib import Path

from reports import paragraphs_of

FOLDER = "benchmarks"
# Pages by their name: the file, a title if it has none, and pictures at the end.
PAGES = {
    "speed": ("bench/speed/README.md", None, ()),
    "speed_tables": (
        "bench/speed/results/table.md",
        "Speed and memory: all figures",
        ("bench/speed/results/ratios.png",),
    ),
    "scale": ("bench/scale/README.md", None, ()),
    "instructions": ("bench/instructions/README.md", None, ()),
    "backend": ("bench/backend/README.md", None, ()),
    "backend_tables": ("bench/backend/results/table.md", "Behind other libraries: figures", ()),
    "cython_loop": (
        "bench/backend/results/cython_loop.md",
        "quantile-forest's loop in Cython: figures",
        (),
    ),
    "calibration": ("bench/calibration/README.md", None, ()),
    "calibration_tables": (
        "bench/calibration/results/evaluation/report/tables.md",
        "Calibrated intervals: all figures",
        tuple(
            f"bench/calibration/results/evaluation/report/{name}.png"
            for name in ("coverage", "widths", "by_width")
        ),
    ),
    "paper": ("bench/paper/README.md", None, ()),
    "paper_tables": (
        "bench/paper/results/evaluation/report/tables.md",
        "The paper again: all figures",
        tuple(f"bench/paper/results/evaluation/report/figure_{number}.png" for number in (1, 2)),
    ),
}
PAGE_OF = {source: f"{FOLDER}/{name}.md" for name, (source, *_) in PAGES.items()}
LINK = re.compile(r"(?<!!)\]\((?![a-z]+:|#)([^)#]+)(#[^)]*)?\)")
BOLD_TITLE = re.compile(r"^\*\*([^*]+)\*\*$", re.M)


def page(root, name, repository):
    """Return the Markdown text of one page.

    Parameters
    ----------
    root : Path
        Folder that holds docs/ and bench/.
    name : str
        A key of `PAGES`.
    repository : str
        Address of the repository, for links to files that are no pages.
    """
    source, title, pictures = PAGES[name]
    text = LINK.sub(
        lambda found: _relinked(found, Path(source).parent, repository),
        paragraphs_of(root / source),
    )
    if title is not None:
        text = f"# {title}\n\n" + BOLD_TITLE.sub(r"## \1", text)
    shown = [f"![{Path(path).stem.replace('_', ' ')}](../../{path})" for path in pictures]
    return "\n\n".join([text.rstrip(), *shown]) + "\n"


def _relinked(found, folder, repository):
    """Return a link of a file in a folder as one of a page in docs/benchmarks."""
    target = os.path.normpath(folder / found[1])
    if target in PAGE_OF:
        target = os.path.relpath(PAGE_OF[target], FOLDER)
    elif target.startswith("docs/"):
        target = os.path.relpath(target.removeprefix("docs/"), FOLDER)
    else:
        target = f"{repository}/blob/main/{target}"
    return f"]({target}{found[2] or ''})"


def _write(app):
    root = Path(app.srcdir).parent
    folder = Path(app.srcdir) / FOLDER
    folder.mkdir(exist_ok=True)
    for name in PAGES:
        text = page(root, name, app.config.repository_url)
        path = folder / f"{name}.md"
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def setup(app):
    """Register with Sphinx."""
    app.connect("builder-inited", _write)
    return {"parallel_read_safe": True}
