"""The code of the site's pages runs, prints what they show, and links find their targets."""

import importlib
import re
import shlex

import pytest

from ..oracle import ROOT, SKLEARN

FENCE = re.compile(r"^```(python|text)\n(.*?)^```", re.M | re.S)
PAGES = (
    *("tour", "calibrate", "groups", "guarantees", "later_rows", "intervals", "distributions"),
    *("file_format", "survival"),
)
LIBRARIES = {"quantile-forest": "quantile_forest", "MAPIE": "mapie", "crepes": "crepes"}


# What names paths of the tree, and the folders that it takes them from.
NAMING = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")),
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "bench").rglob("README.md")),
]
BASES = [ROOT / name for name in (".", "src_cpp", "src_cpp/include", "hdicore", "python", "tests")]
FOLDERS = {path.name for base in BASES for path in base.iterdir() if path.is_dir()} - {"build"}


@pytest.mark.parametrize("page", NAMING, ids=lambda page: str(page.relative_to(ROOT)))
def test_paths_that_a_page_names_exist(page):
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    words = {word for code in re.findall(r"`([^`]+)`", text) for word in code.split()}
    paths = {word.partition("::")[0] for word in words if word.partition("/")[0] in FOLDERS}
    assert {path for path in paths if not any((base / path).exists() for base in BASES)} == set()


def text_of(page):
    return (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")


def run_blocks(text, names, capsys):
    """Run the blocks of Python in order; a block of text behind one is what it prints."""
    blocks = FENCE.findall(text)
    for kind, content in blocks:
        if kind == "python":
            capsys.readouterr()
            exec(content, names)
        elif SKLEARN >= (1, 9):  # an older one grows other trees
            assert capsys.readouterr().out == content
    return len(blocks)


@pytest.mark.parametrize("page", PAGES)
def test_code_of_a_page_runs_and_prints_what_is_shown(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert run_blocks(text_of(page), {}, capsys)


def test_the_first_code_of_the_page_on_deploying_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert run_blocks(text_of("deploy").partition("\n## ")[0], {}, capsys) == 1


@pytest.mark.skpro
@pytest.mark.parametrize(
    ("title", "libraries"), [("skpro", ["skpro"]), ("sktime", ["skpro", "sktime"])]
)
@pytest.mark.filterwarnings("ignore:The default of config:FutureWarning")  # of sktime, its own
def test_the_sections_on_skpro_and_sktime_run(title, libraries, capsys):
    for library in libraries:
        pytest.importorskip(library)
    first, *sections = re.split(r"^## ", text_of("other_libraries"), flags=re.M)
    (section,) = (text for text in sections if text.startswith(f"{title}\n"))
    names = {}
    run_blocks(first, names, capsys)
    assert run_blocks(section, names, capsys)


def test_the_page_on_tables_runs(tmp_path, monkeypatch, capsys):
    pytest.importorskip("pandas")
    pytest.importorskip("rich")
    pytest.importorskip("pyarrow")
    from hdiforest._cli.main import main

    monkeypatch.chdir(tmp_path)
    names = {}
    shown = []
    for kind, content in re.findall(
        r"^```(text|sh|python)\n(.*?)^```", text_of("tables"), re.M | re.S
    ):
        if kind == "python":
            exec(content, names)
        elif kind == "sh":
            for line in content.splitlines():
                assert main(shlex.split(line)[1:]) == 0
        else:
            shown.append((content, capsys.readouterr().out))
    (columns, of_fit), (coverages, of_check) = shown
    assert columns in of_fit
    if SKLEARN >= (1, 9):  # an older one grows other trees
        assert coverages == of_check
    assert (tmp_path / "report.html").exists()
    found = names["pd"].read_parquet("intervals.parquet")
    assert list(found.columns) == ["key", "prediction", "lower_0.9", "upper_0.9"]
    assert (names["lower"] <= names["upper"]).all()


def sections_of_calls():
    """Text before the libraries, and the text and the table of calls of each library."""
    first, *sections = re.split(r"^## ", text_of("other_libraries"), flags=re.M)
    tables = {}
    for section in sections:
        title, rows = section.partition("\n")[0], re.findall(r"^\|.*", section, re.M)
        if title != "Compared" and rows:
            calls = re.findall(r"^\| `(.+)` \| `(.+)` \|$", section, re.M)
            assert len(calls) == len(rows) - 2  # but for the head
            tables[title] = section, calls
    return first, tables


@pytest.mark.parametrize(
    "library",
    [*(pytest.param(name, marks=pytest.mark.peers) for name in LIBRARIES), "ranger", "grf"],
)
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
def test_calls_of_other_libraries_and_ours_run(library, capsys):
    if library in LIBRARIES:
        pytest.importorskip(LIBRARIES[library])
    first, tables = sections_of_calls()
    section, rows = tables[library]
    names = {}
    run_blocks(first, names, capsys)
    run_blocks(section, names, capsys)
    for theirs, ours in rows:
        if library in LIBRARIES:
            exec(theirs, names)
        exec(ours, names)


def test_speed_in_the_readme_is_that_of_the_results(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "docs" / "_ext")
    reports = importlib.import_module("reports")
    path = ROOT / "bench" / "speed" / "results" / "table.md"
    section = "How many times as long others take"
    head, rows = reports.table_of(reports.paragraphs_of(path, section))
    columns = ["case", "scikit-learn, mean / HDI", "ONNX Runtime, mean / HDI"]
    columns += [f"quantile-forest, {kind} / HDI" for kind in ("exact", "default")]
    _, medians = reports.selected(head, rows, columns, only=("threads", "2"), medians=True)
    measured = {case: figures for case, *figures in medians}
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    shown = re.findall(r"^\| (\d+),000 \| (\d+) \| (.*) \|$", readme, re.M)
    assert shown
    for thousands, leaf, figures in shown:
        assert figures.split(" | ") == measured[f"friedman_{thousands}k_leaf{leaf}"]
