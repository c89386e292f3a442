"""Regions of the forest's own distributions: as tables, on lattices, of several targets."""

import re

import numpy as np
import pytest

from hdicore.regions import Regions
from hdiforest import from_leaves
from hdiforest.regions import predict_region

from .two_modes import NEW, RNG, X, Y, fitted, model

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")
pa = pytest.importorskip("pyarrow")


def test_regions_of_atoms_are_those_of_the_engine():
    found = predict_region(model(), NEW, 0.8, max_pieces=3, gap=0.2, bandwidth=0)
    assert isinstance(found, Regions)
    unit = model().scorer_.index.atoms().std()
    offsets, ends, bounds = model().scorer_.regions(NEW, 0.8, 3, 0.2 * unit)
    np.testing.assert_array_equal(found.offsets, offsets)
    np.testing.assert_array_equal(found.bound, bounds)
    assert (found.bound <= found.length + 0.2 * unit * (found.n_pieces - 1) + 1e-9).all()
    np.testing.assert_array_equal(np.stack([found.lower, found.upper], axis=1), ends)


def test_two_modes_are_two_pieces_and_shorter():
    found = predict_region(model(), NEW, 0.9)
    assert (found.n_pieces == 2).mean() > 0.95
    interval = model().predict_interval(NEW, 0.9, kind="hdi")
    assert found.length.mean() < 0.6 * np.diff(interval).mean()
    one = predict_region(model(), NEW, 0.9, max_pieces=1)
    assert (one.n_pieces == 1).all()


def test_tables_hold_lists():
    rows = NEW[:3]
    expected = predict_region(model(), rows)
    frame = predict_region(model(), pd.DataFrame(rows, index=[7, 8, 9]), output="pandas")
    assert list(frame.index) == [7, 8, 9]
    for cell, own in zip(frame["region"], expected, strict=True):
        np.testing.assert_array_equal(cell, own)
    for table in (
        predict_region(model(), rows, output="pyarrow"),
        predict_region(model(), rows, output="polars"),
    ):
        assert isinstance(table, pa.Table | pl.DataFrame)
        column = table["region"]
        lists = column.to_pylist() if isinstance(table, pa.Table) else column.to_list()
        assert [len(each) for each in lists] == expected.n_pieces.tolist()
        assert lists[0][0] == {"lower": expected.lower[0], "upper": expected.upper[0]}


def test_on_a_lattice_pieces_are_points():
    y = RNG.choice([0, 1, 8, 9], len(X), p=[0.3, 0.2, 0.3, 0.2])
    of_numbers = fitted(y)
    found = predict_region(of_numbers, NEW, 0.9)
    # Without counting, four single points would cost nothing.
    assert (found.n_pieces == 2).mean() > 0.9
    assert set(np.unique([found.lower, found.upper])) <= {0, 1, 8, 9}
    with pytest.warns(UserWarning, match="targets lie on a lattice of step 1: bandwidth is not"):
        predict_region(of_numbers, NEW, bandwidth=0.2)


def test_several_targets_have_regions_each():
    both = fitted(np.stack([Y, 10 * Y], axis=1))
    first, second = predict_region(both, NEW[:50])
    np.testing.assert_allclose(second.lower, 10 * first.lower)
    table = predict_region(both, NEW[:50], output="pandas")
    assert list(table) == ["y0_region", "y1_region"]


def test_models_of_leaves_have_regions():
    of_leaves = from_leaves(model().estimator_.apply, X[:900], Y[:900])
    found = predict_region(of_leaves, NEW.astype(np.float32), 0.8)
    assert (found.n_pieces == 2).mean() > 0.9


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"coverage": 1.0}, "coverage must be above 0 and below 1, got 1"),
        ({"coverage": [0.5]}, "coverage must be one number"),
        ({"max_pieces": 0}, "max_pieces must be a whole number from 1 on, got 0"),
        ({"max_pieces": 50}, "max_pieces must be at most 8, got 50"),
        ({"gap": -1}, "gap must be a number from 0 on and finite, got -1"),
        ({"gap": [1, 2]}, "gap must be a number from 0 on and finite, got [1, 2]"),
        ({"bandwidth": np.inf}, "bandwidth must be a number from 0 on and finite, got inf"),
        ({"bandwidth": "wide"}, "bandwidth must hold numbers"),
        ({"output": "list"}, "output must be"),
    ],
)
def test_bad_input_is_refused(options, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        predict_region(model(), NEW[:2], **options)
