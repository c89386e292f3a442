"""Each example of the gallery runs without a warning and ends in one picture."""

import runpy

import pytest

from .oracle import ROOT

pytestmark = pytest.mark.examples

EXAMPLES = sorted((ROOT / "examples" / "gallery").glob("*.py"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_ends_in_a_picture(path, monkeypatch):
    assert path.name.startswith("plot_")  # which sphinx-gallery runs
    matplotlib = pytest.importorskip("matplotlib")
    pytest.importorskip("pandas")
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    shown = []
    monkeypatch.setattr(plt, "show", lambda: shown.append(plt.get_fignums()))
    plt.close("all")
    try:
        runpy.run_path(str(path))
        assert [len(figures) for figures in shown] == [1]
        plt.gcf().canvas.draw()
        assert all(axes.has_data() for axes in plt.gcf().axes)
    finally:
        plt.close("all")
