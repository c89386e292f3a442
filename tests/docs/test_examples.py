"""What the README and the docstrings show runs, and gives what they say."""

import doctest
import importlib
import re
import sys

import numpy as np
import pytest

from ..oracle import ROOT, SKLEARN

README = (ROOT / "README.md").read_text(encoding="utf-8")
PACKAGE = ROOT / "python" / "hdiforest"
# The modules whose docstrings hold examples.
MODULES = [
    "hdicore._core",
    *("hdicore.batch", "hdicore.monotonic", "hdicore.regions"),
    *sorted(
        ".".join(("hdiforest", *path.relative_to(PACKAGE).with_suffix("").parts))
        for path in PACKAGE.rglob("*.py")
        if ">>> " in path.read_text(encoding="utf-8")
    ),
]
# Libraries without which the examples of a module do not run.
NEEDED = {
    "hdiforest.adapters.boosters": ("catboost", "lightgbm", "xgboost"),
    "hdiforest.adapters.dask": ("dask.array",),
    "hdiforest.adapters.skpro": ("skpro",),
}


def test_readme_code_runs_and_prints_what_is_shown(capsys):
    first, second = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    (shown,) = re.findall(r"```text\n(.*?)```", README, re.DOTALL)
    names = {"posterior_draws": np.random.default_rng(0).normal(size=1000)}
    exec(first, names)
    printed = capsys.readouterr().out
    if SKLEARN >= (1, 9):  # an older one grows other trees
        assert printed == shown
    forest, X_train, X_new = (names[name] for name in ("forest", "X_train", "X_new"))
    names |= {"train_leaves": forest.apply(X_train), "new_leaves": forest.apply(X_new)}
    exec(second, names)
    assert names["bounds"].shape == (len(X_new), 2, 2)


def test_the_home_page_shows_the_same_first_code():
    first, *_ = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    page = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    assert re.findall(r"```python\n(.*?)```", page, re.DOTALL)[0] == first


def test_readme_has_two_commands_that_set_up():
    commands = re.findall(r"^python3 -m venv .*$", README, re.MULTILINE)
    runs = [command.rpartition("/")[2] for command in commands]
    assert runs == ["hdiforest demo", "pytest -n auto --dist loadfile"]


@pytest.fixture
def agg(monkeypatch):
    """Pictures are drawn without a screen, and closed at the end."""
    monkeypatch.setenv("MPLBACKEND", "Agg")
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.skpro) if name.endswith(".skpro") else name
        for name in MODULES
    ],
)
@pytest.mark.usefixtures("agg")
def test_docstrings(name):
    if name.startswith("hdiforest.displays"):
        pytest.importorskip("matplotlib")
    for library in NEEDED.get(name, ()):
        pytest.importorskip(library)
    found = doctest.testmod(importlib.import_module(name))
    assert found.attempted > 0
    assert found.failed == 0


@pytest.mark.peers
def test_the_page_on_forests_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pytest.importorskip("lightgbm")
    pytest.importorskip("xgboost")
    pd = pytest.importorskip("pandas")
    page = (ROOT / "docs" / "forests.md").read_text(encoding="utf-8")
    rows = np.random.default_rng(0).normal(size=(300, 3))
    table = pd.DataFrame(rows, columns=["a", "b", "y"])
    names = {"features": ["a", "b"], "train": table, "new": table[:5]}
    for code in re.findall(r"```python\n(.*?)```", page, re.DOTALL):
        exec(code, names)
    assert names["intervals"].shape == (5, 5)
    assert np.isfinite(names["around"].predict_interval(names["new"][["a", "b"]])).all()
    assert names["loaded"].n_training_rows_ == 300


@pytest.mark.usefixtures("agg")
def test_the_page_on_plots_runs(tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    monkeypatch.chdir(tmp_path)
    page = (ROOT / "docs" / "plots.md").read_text(encoding="utf-8")
    names = {}
    for code in re.findall(r"```python\n(.*?)```", page, re.DOTALL):
        exec(code, names)
    assert names["search"].best_score_ < 0
    assert (tmp_path / "intervals.png").stat().st_size > 10_000
