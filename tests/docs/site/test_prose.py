"""Pages are easy to read, by the measures of docs/prose.py."""

import importlib
import sys

import pytest

from ...oracle import ROOT, run


@pytest.fixture
def prose(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "docs")
    return importlib.import_module("prose")


def test_pages_keep_the_limits():
    run(sys.executable, ROOT / "docs" / "prose.py")


def test_code_tables_and_targets_of_links_are_no_prose(prose, tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        "# A heading\n\n| a | table |\n|---|---|\n\n```python\ncode = 1\n```\n\n"
        "The first [sentence](of_a_link.md) has six words. So these of them are the others.\n"
    )
    sentences = prose.sentences_of(page)
    assert sentences == [
        "The first sentence has six words.",
        "So these of them are the others.",
    ]
    found = prose.measures(sentences)
    assert found == {
        "words": 13,
        "mean": 6.5,
        "p90": 7,
        "commas": 0,
        "inverted": 0.5,
        "pointing": 1,
    }
    (inverted, pointing) = prose.failures({"page.md": found}, {})
    assert inverted.startswith("page.md: inverted 0.5, more than 0.05")
    assert prose.failures({"page.md": found}, {"page.md": found}) == []
    assert pointing.startswith("page.md: pointing 1")
