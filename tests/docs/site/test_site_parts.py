"""What the site is made with: tables of reports, pages of benchmarks, versions side by side."""

import importlib
import json
import re
import sys

import pytest

from ...oracle import ROOT, run

REPOSITORY = "https://example.org/repository"


@pytest.fixture
def extension(monkeypatch):
    """Import an extension of docs/_ext that needs no Sphinx."""
    monkeypatch.syspath_prepend(ROOT / "docs" / "_ext")
    return importlib.import_module


REPORT = """\
**Speed**

| case | threads | time |
| --- | ---: | ---: |
| small_1 | 1 | 4.0 (3.0-5.0) <= 5 ok |
| small_1 | 2 | 2.0 (1.0-3.0) <= 5 ok |
| large_1 | 2 | 9.0 (8.0-9.9) <= 5 NO |

**Memory**

nothing yet
"""


@pytest.fixture
def report(tmp_path):
    path = tmp_path / "table.md"
    path.write_text(REPORT, encoding="utf-8")
    return path


def test_some_columns_and_rows_of_a_report(extension, report):
    reports = extension("reports")
    table = reports.table_of(reports.paragraphs_of(report, "Speed"))
    found = reports.selected(
        *table, ["case", "time"], ["large_*", "small_*"], ("threads", "2"), True
    )
    assert found == (["case", "time"], [["large_1", "9.0"], ["small_1", "2.0"]])
    assert reports.markdown(*found)[2] == "| large_1 | 9.0 |"


def test_what_a_report_has_not_is_an_error(extension, report):
    reports = extension("reports")
    head, rows = reports.table_of(reports.paragraphs_of(report, "Speed"))
    with pytest.raises(ValueError, match="has no section 'Size'; it has"):
        reports.paragraphs_of(report, "Size")
    with pytest.raises(ValueError, match="no column 'size'; the table has"):
        reports.selected(head, rows, ["size"])
    with pytest.raises(ValueError, match=r"no row 'huge\*'; the table has"):
        reports.selected(head, rows, names=["huge*"])
    with pytest.raises(ValueError, match="no table"):
        reports.table_of(reports.paragraphs_of(report, "Memory"))


def test_each_benchmark_has_a_page_whose_links_are_those_of_the_site(extension):
    made = extension("benchmark_pages")
    for name in made.PAGES:
        page = made.page(ROOT, name, REPOSITORY)
        assert page.startswith("# ")
        assert "results/table.md)" not in page
        for path in re.findall(rf"\({REPOSITORY}/blob/main/([^)#]*)", page):
            assert (ROOT / path).exists()
    readmes = {f"bench/{path.parent.name}/README.md" for path in ROOT.glob("bench/*/README.md")}
    without = {"bench/answers/README.md", "bench/data/README.md"}  # a tool for changes, and data
    assert readmes - without <= set(made.PAGE_OF)


def test_speed_in_the_readme_is_that_of_the_results(extension):
    reports = extension("reports")
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


def test_the_readme_is_short():
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 120


@pytest.mark.parametrize(
    ("variable", "version", "start", "development"),
    [
        ("READTHEDOCS_VERSION", "0.2", "https://hdicore.readthedocs.io/en/", "latest"),
        ("HDICORE_DOCS_VERSION", "dev", "https://hdicore.github.io/hdicore/", "dev"),
    ],
)
def test_versions_of_a_host(variable, version, start, development, extension, monkeypatch):
    monkeypatch.delenv("READTHEDOCS_VERSION", raising=False)
    monkeypatch.setenv(variable, version)
    host = extension("site_versions").host()
    assert host.address == f"{start}{version}/"
    assert host.release == version
    assert host.switcher == {
        "json_url": f"{start}{development}/_static/switcher.json",
        "version_match": version,
    }
    entries = json.loads(json.dumps(host.entries(["0.2", "0.1"])))
    assert [entry["version"] for entry in entries] == [development, "0.2", "0.1"]
    assert [entry["version"] for entry in entries if entry.get("preferred")] == ["0.2"]
    assert all(entry["url"] == f"{start}{entry['version']}/" for entry in entries)


def test_a_local_build_has_no_versions(extension, monkeypatch):
    for variable in ("READTHEDOCS_VERSION", "HDICORE_DOCS_VERSION"):
        monkeypatch.delenv(variable, raising=False)
    assert extension("site_versions").host() is None


def publish(*arguments):
    return run(sys.executable, ROOT / "docs" / "publish.py", *arguments)


def test_versions_are_published_side_by_side(tmp_path):
    built, folder = tmp_path / "built", tmp_path / "site"
    built.mkdir()
    for version, newest in (("dev", "dev"), ("0.9", "0.9"), ("0.10", "0.10"), ("dev", "0.10")):
        (built / "index.html").write_text(f"site of {version}")
        publish(built, folder, version)
        assert (folder / version / "index.html").read_text() == f"site of {version}"
        assert f'href="{newest}/"' in (folder / "index.html").read_text()
    assert (folder / "0.9" / "index.html").read_text() == "site of 0.9"


def test_only_a_built_site_is_published(tmp_path):
    with pytest.raises(AssertionError, match=r"it has no index\.html"):
        publish(tmp_path, tmp_path / "site", "dev")
