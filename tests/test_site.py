"""The documentation site builds without a warning, and has a page for all that is public."""

import html
import importlib
import os
import re
import shutil
import sys

import pytest

from .oracle import ROOT, run

pytestmark = [pytest.mark.docs, pytest.mark.build, pytest.mark.slow]

WRITTEN = ("_build", "command", "gallery", "generated")  # folders that a build makes
PACKAGES = (
    *("hdicore", "hdiforest", "hdiforest.batch", "hdiforest.dask"),
    *("hdiforest.metrics", "hdiforest.quantile_forest"),
)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The site of a copy of docs/, without the gallery's pictures and without network."""
    for name in ("sphinx", "myst_parser", "numpydoc", "sphinx_gallery", "sphinx_design"):
        pytest.importorskip(name, reason="needs the extra [docs]")
    folder = tmp_path_factory.mktemp("site")
    shutil.copytree(ROOT / "docs", folder / "docs", ignore=shutil.ignore_patterns(*WRITTEN))
    for name in ("CHANGELOG.md", "bench", "examples"):
        os.symlink(ROOT / name, folder / name)
    found = os.pathsep.join([str(ROOT), str(ROOT / "python")])
    environment = os.environ | {"HDICORE_DOCS_OFFLINE": "1", "PYTHONPATH": found}
    options = ["-q", "-W", "--keep-going", "-b", "html", "-D", "plot_gallery=0"]
    source, built = folder / "docs", folder / "html"
    run(sys.executable, "-m", "sphinx", *options, source, built, env=environment)
    return built


@pytest.mark.parametrize("package", PACKAGES)
def test_all_public_names_have_a_page(site, package):
    for name in importlib.import_module(package).__all__:
        if name != "__version__":
            assert (site / "api" / "generated" / f"{package}.{name}.html").exists(), name


def test_the_regressor_for_skpro_has_a_page(site):
    page = site / "api" / "generated" / "hdiforest.skpro.HDIForestProba.html"
    text = re.sub(r"<[^>]*>|\s", "", page.read_text(encoding="utf-8"))
    assert "HDIForestProba(estimator=None,calibrate=None)" in text


def test_each_subcommand_has_a_page_with_its_arguments(site):
    from hdiforest.command.arguments import command_parser

    choices = command_parser()._subparsers._group_actions[0].choices
    for name, parser in choices.items():
        page = (site / "command" / f"{name}.html").read_text(encoding="utf-8")
        for action in parser._actions:
            assert all(option in page for option in action.option_strings if "h" not in option[:3])


def test_methods_of_the_compiled_module_have_the_signatures_of_the_stub(site):
    page = (site / "api" / "generated" / "hdicore.LeafIndex.html").read_text(encoding="utf-8")
    text = html.unescape(re.sub(r"<[^>]*>|\s", "", page))
    assert "intervals(leaves,coverage=0.9,kind='hdi',*,mean=None" in text
