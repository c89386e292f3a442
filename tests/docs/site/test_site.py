"""The documentation site builds without a warning, and has a page for all that is public."""

import os
import re
import shutil
import sys
from html.parser import HTMLParser
from urllib.parse import unquote, urlsplit

import pytest

from ...oracle import ROOT, run
from .public_names import PACKAGES, exported

WRITTEN = ("_build", "command", "gallery", "generated")  # folders that a build makes


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The site of a copy of docs/, without the gallery's pictures and without network."""
    for name in ("sphinx", "myst_parser", "numpydoc", "sphinx_gallery", "sphinx_sitemap"):
        pytest.importorskip(name, reason="needs the group docs")
    folder = tmp_path_factory.mktemp("site")
    shutil.copytree(ROOT / "docs", folder / "docs", ignore=shutil.ignore_patterns(*WRITTEN))
    for name in ("CHANGELOG.md", "bench", "examples"):
        os.symlink(ROOT / name, folder / name)
    environment = os.environ | {"HDICORE_DOCS_OFFLINE": "1", "HDICORE_DOCS_VERSION": "dev"}
    options = ["-q", "-W", "--keep-going", "-b", "html", "-D", "plot_gallery=0"]
    source, built = folder / "docs", folder / "html"
    run(sys.executable, "-P", "-m", "sphinx", *options, source, built, env=environment)
    return built


@pytest.mark.parametrize("package", PACKAGES)
def test_all_public_names_have_a_page(site, package):
    for name in exported(package):
        assert (site / "api" / "generated" / f"{package}.{name}.html").exists(), name


def test_each_subcommand_has_a_page_with_its_arguments(site):
    from hdiforest._cli.arguments import command_parser

    choices = command_parser()._subparsers._group_actions[0].choices
    for name, parser in choices.items():
        page = (site / "command" / f"{name}.html").read_text(encoding="utf-8")
        for action in parser._actions:
            assert all(option in page for option in action.option_strings if "h" not in option[:3])


class Links(HTMLParser):
    """The targets and the anchors of a page."""

    def __init__(self, path):
        super().__init__()
        self.targets, self.anchors = set(), set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        self.anchors |= {found[key] for key in ("id", "name") if found.get(key)}
        self.targets |= {found[key] for key in ("href", "src") if found.get(key)}


@pytest.fixture(scope="module")
def pages(site):
    templates = site / "_static"
    found = (path for path in site.rglob("*.html") if templates not in path.parents)
    return {path: Links(path) for path in found}


def test_links_between_pages_find_their_targets_and_anchors(site, pages):
    broken = []
    for path, page in pages.items():
        for target in page.targets:
            address = urlsplit(target)
            if address.scheme or address.netloc:
                continue
            found = (path.parent / unquote(address.path)).resolve() if address.path else path
            anchor = unquote(address.fragment)
            is_missing = anchor and found in pages and anchor not in pages[found].anchors
            if not found.exists() or is_missing:
                broken.append(f"{path.relative_to(site)}: {target}")
    assert not broken


def test_links_to_the_repository_name_its_files(pages):
    start = "https://github.com/hdicore/hdicore/blob/main/"
    targets = set().union(*(page.targets for page in pages.values()))
    named = {target.removeprefix(start) for target in targets if target.startswith(start)}
    assert named
    assert [name for name in named if not (ROOT / name.partition("#")[0]).exists()] == []


def test_a_published_site_tells_others_what_its_pages_are(site):
    page = (site / "index.html").read_text(encoding="utf-8")
    start = "https://hdicore.github.io/hdicore/dev/"
    assert re.search(r'<meta [^>]*name="description"', page)
    (picture,) = re.findall(rf'property="og:image" content="{start}([^"]*)"', page)
    assert (site / picture).exists()
    pages = re.findall(rf"<loc>{start}([^<]*)</loc>", (site / "sitemap.xml").read_text())
    assert {"index.html", "tour.html", "glossary.html"} <= set(pages)
    assert all((site / name).exists() for name in pages)
    assert (site / "404.html").exists()
    assert "404.html" not in pages


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
