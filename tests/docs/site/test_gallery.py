"""Each example of the gallery runs without a warning and ends in one picture."""

import ast
import runpy
from importlib.util import find_spec

import pytest

from ...oracle import ROOT

EXAMPLES = sorted((ROOT / "examples" / "gallery").rglob("*.py"))
PACKAGES = ("matplotlib", "pandas", "pyarrow", "safetensors")  # some are imported by others alone


def missing_packages(path):
    """Packages that an example needs and that are not installed."""
    names = set(PACKAGES)
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add(node.module.partition(".")[0])
    return sorted(name for name in names if find_spec(name) is None)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
@pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")  # of matplotlib, by shap
def test_an_example_ends_in_a_picture(path, monkeypatch):
    assert path.name.startswith("plot_")  # which sphinx-gallery runs
    if missing := missing_packages(path):
        pytest.skip(f"needs {', '.join(missing)}")
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    shown = []
    monkeypatch.setattr(plt, "show", lambda: shown.append(plt.gcf()))
    plt.close("all")
    try:
        runpy.run_path(str(path))
        assert [figure.number for figure in shown] == plt.get_fignums() != []
        for figure in shown:
            figure.canvas.draw()
            assert all(axes.has_data() for axes in figure.axes)
    finally:
        plt.close("all")
