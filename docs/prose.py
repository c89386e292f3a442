"""Measures how easily the pages read, and says which exceed a limit.

    python docs/prose.py [PAGE ...] [--worst N] [--keep]

Code, tables, headings and targets of links are left out. A page fails where a measure exceeds both
its limit and the figure that prose.json has kept; all pages together must stay below a number of
words. The exit code is 1 if anything fails.
"""

import argparse
import json
import re
import statistics
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
KEPT = ROOT / "docs" / "prose.json"
WRITTEN = {"_build", "command", "gallery", "generated"}  # folders that a build makes
LIMITS = {"mean": 15.0, "p90": 25.0, "commas": 1.2, "inverted": 0.05, "pointing": 0.08}
MOST_WORDS = 16_000

LEFT_OUT = [
    (r"\A---\n.*?\n---\n", re.S),
    (r"```.*?```", re.S),
    (r"\$\$.*?\$\$", re.S),
    (r":{3,}.*", 0),
    (r"^\s{4,}.*$|^\|.*$|^#+.*$|^[:;].*$", re.M),
]
INVERTED = re.compile(
    r"^(Of|Those|That of|In which|Which|What|Where|Who|So|With|For|From|By|Neither|Nor|Not|On"
    r"|Without)\b"
)
POINTING = re.compile(r"\b(those|that of|of which|whose|others?|this|these)\b", re.I)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the measures of pages and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("pages", nargs="*", type=Path, help="all, if none is named")
    parser.add_argument("--worst", type=int, default=0, help="sentences to print")
    parser.add_argument("--keep", action="store_true", help="write prose.json")
    given = parser.parse_args(arguments)
    texts = {name_of(page): sentences_of(page) for page in given.pages or all_pages()}
    found = {name: measures(texts[name]) for name in sorted(texts) if len(texts[name]) > 3}
    for name, figures in found.items():
        print(f"{name:32}", *(f"{key} {value:g}" for key, value in figures.items()))
    words = int(sum(figures["words"] for figures in found.values()))
    print(f"{'all':32} words {words}")
    ranked = sorted((-badness(s), name, s) for name in found for s in texts[name])
    for _, name, sentence in ranked[: given.worst]:
        print(f"  {name}: {sentence}")
    if given.keep:
        KEPT.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
        return 0
    failed = failures(found, json.loads(KEPT.read_text(encoding="utf-8")))
    if not given.pages and words > MOST_WORDS:
        failed.append(f"all pages have {words} words, more than {MOST_WORDS}")
    print(*failed, sep="\n", end="\n" if failed else "")
    return 1 if failed else 0


def all_pages() -> list[Path]:
    """Return the pages that are written by hand."""
    docs = ROOT / "docs"
    found = (page for page in docs.rglob("*.md") if not WRITTEN & {*page.relative_to(docs).parts})
    return [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *found]


def name_of(page: Path) -> str:
    """Return the path of a page from the root of the checkout."""
    return page.resolve().relative_to(ROOT).as_posix()


def prose_of(text: str) -> str:
    """Return the text of a page without all that is no prose."""
    for pattern, flags in LEFT_OUT:
        text = re.sub(pattern, "", text, flags=flags)
    text = re.sub(r"`([^`]*)`", lambda code: "x" if len(code[1]) > 25 else code[1], text)
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)
    return re.sub(r"[*_]{1,2}", "", text)


def sentences_of(page: Path) -> list[str]:
    """Return the sentences of a page's paragraphs and lists."""
    text = prose_of(page.read_text(encoding="utf-8"))
    found = []
    for paragraph in re.split(r"\n\s*\n|\n\s*[*\-\d]+[.)]?\s", text):
        line = " ".join(paragraph.split())
        if len(line.split()) >= 6:
            parts = re.split(r"(?<=[.!?])\s+(?=[A-Z`(])", line)
            found += [part for part in parts if len(part.split()) > 2]
    return found


def measures(sentences: list[str]) -> dict[str, float]:
    """Return the measures of a page by their names."""
    lengths = sorted(len(sentence.split()) for sentence in sentences)
    found = {
        "mean": statistics.mean(lengths),
        "p90": lengths[int(0.9 * len(lengths))],
        "commas": statistics.mean(len(re.findall("[,;:]", s)) for s in sentences),
        "inverted": statistics.mean(bool(INVERTED.match(s)) for s in sentences),
        "pointing": statistics.mean(len(POINTING.findall(s)) for s in sentences),
    }
    return {"words": sum(lengths), **{name: round(value, 2) for name, value in found.items()}}


def badness(sentence: str) -> float:
    """Return a number that is large for long, nested and inverted sentences."""
    return (
        len(sentence.split()) / 14
        + len(re.findall("[,;:]", sentence)) / 1.5
        + 1.5 * bool(INVERTED.match(sentence))
        + len(POINTING.findall(sentence))
    )


def failures(found: dict[str, dict[str, float]], kept: dict[str, dict[str, float]]) -> list[str]:
    """Return a sentence for each measure that exceeds its limit and what was kept."""
    return [
        f"{name}: {key} {figures[key]:g}, more than {most:g}"
        for name, figures in found.items()
        for key, limit in LIMITS.items()
        if figures[key] > (most := max(limit, kept.get(name, {}).get(key, 0.0)))
    ]


if __name__ == "__main__":
    raise SystemExit(main())
