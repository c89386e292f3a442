"""Use the built consumers, whose paths are the arguments, and compare with the Python package."""

import ctypes
import re
import sys
import tempfile
from importlib.machinery import ExtensionFileLoader
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path

import numpy as np
from scipy import LowLevelCallable
from scipy.ndimage import generic_filter
from sklearn.ensemble import RandomForestRegressor

import hdicore
from hdiforest import HDIForestRegressor
from hdiforest.calibration import CVPlus

rng = np.random.default_rng(0)
one = np.ones(1)
leaves = rng.integers(0, 4, (50, 6), dtype=np.int32)


def load(path):
    name = Path(path).name.partition(".")[0]
    spec = spec_from_file_location(name, path, loader=ExtensionFileLoader(name, path))
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def refused(call, *arguments):
    """What a call that must be refused says."""
    try:
        call(*arguments)
    except (AttributeError, ImportError, TypeError, ValueError) as error:
        return str(error)


def same(found, expected):
    np.testing.assert_array_equal(found, expected, strict=True)


def an_older_table_is_refused(path):
    new, pointer = ctypes.pythonapi.PyCapsule_New, ctypes.c_void_p
    new.restype, new.argtypes = ctypes.py_object, [pointer, ctypes.c_char_p, pointer]
    version_and_size, name = (ctypes.c_uint32 * 2)(1, 8), b"hdicore._core.c_api"
    table = hdicore._core.c_api
    hdicore._core.c_api = new(ctypes.addressof(version_and_size), name, None)
    assert re.search("hdicore is older than|hdicore has version 1 of", refused(load, path))
    hdicore._core.c_api = table


def use_consumer(module):
    samples(module)
    refusals(module)
    indices(module)
    models(module)
    calibrated_models(module)
    callbacks(module)


def samples(module):
    levels, ends, found = np.array([0.1, 0.5, 0.9]), np.empty((2, 3)), np.empty(3)
    for _ in range(200):
        values, weights = rng.integers(0, 20, 30) / 4, rng.random(30)
        for given in (weights, None):
            module.hdi(values, given, levels, ends)
            same(ends, hdicore.weighted_hdi(values, given, levels))
        module.quantiles(values, None, levels, 2, found)
        np.testing.assert_allclose(found, np.quantile(values, levels), atol=1e-10)
        module.quantiles(values, weights, levels, 0, found)
        order = np.argsort(values)
        reached = np.searchsorted(np.cumsum(weights[order]), weights.sum() * levels)
        same(found, values[order][reached])


def refusals(module):
    end = np.empty((2, 1))
    for bad in (0.0, -1.0, 1.5, np.nan):
        assert "coverages must lie in (0, 1]" in refused(module.hdi, one, None, one * bad, end)
    for bad in (np.nan, np.inf):
        assert "values must be finite" in refused(module.hdi, one * bad, None, one, end)
        assert "weights must be finite" in refused(module.hdi, one, one * bad, one, end)
    for bad in (-1, 0):
        assert "weights must" in refused(module.hdi, one, one * bad, one, end)
    assert "interpolation must be one of" in refused(module.quantiles, one, None, one, 99, one)
    assert module.refused() == 5


def indices(module):
    y, query = rng.random((50, 2)), leaves[::-1].copy()
    levels, points = np.array([0.2, 0.8]), rng.random((50, 2, 3))
    expected = hdicore.LeafIndex.from_leaves(leaves, y)
    first = module.Index.of(expected)
    shared = first.share()
    del first
    for index in (shared, module.Index.build(leaves, y)):
        assert index.shape() == (6, 2)
        mean, ends = np.empty((50, 2)), np.empty((50, 2, 2, 2))
        quantiles, cdf = np.empty((50, 2, 2)), np.empty((50, 2, 3))
        index.mean(query, mean)
        same(mean, expected.mean(query))
        for number, kind in enumerate(("hdi", "equal_tailed", "lower", "upper")):
            index.intervals(query, levels, number, ends)
            same(ends, expected.intervals(query, levels, kind))
        index.quantiles(query, levels, 2, quantiles)
        same(quantiles, expected.quantiles(query, levels, "linear"))
        index.cdf(query, points, cdf)
        same(cdf, expected.cdf(query, points))
        assert "tree 0, in which" in refused(index.mean, query + 9, mean)
        assert "kind must be one of" in refused(index.intervals, query, levels, 4, ends)
        assert "levels must lie in [0, 1]" in refused(
            index.quantiles, query, levels + 1, 2, quantiles
        )
        assert "points must not hold NaN" in refused(index.cdf, query, points * np.nan, cdf)
        at_prices(index, expected, query)
        regions(index, expected, query)
    assert "leaves[0, 0] must not be" in refused(module.Index.build, leaves - 5, y)
    for other in (3, "none", hdicore.Forest):
        wanted = f"leaf_index must be a hdicore.LeafIndex, got {type(other).__name__}"
        assert refused(module.Index.of, other) == wanted


def at_prices(index, expected, query):
    prices, ends, units = np.array([0.3, 1.0]), np.empty((50, 2, 2, 2)), np.empty((50, 2, 2), int)
    index.priced_intervals(query, prices, 0.1, ends, units)
    wanted = expected.priced_intervals(query, prices, 0.1)
    same(ends, wanted[0])
    same(units, wanted[1])
    assert "prices must be above 0" in refused(
        index.priced_intervals, query, -prices, 0.1, ends, units
    )


def regions(index, expected, query):
    n_pieces, ends, bounds = np.empty((50, 2), int), np.empty((50, 2, 3, 2)), np.empty((50, 2))
    for grid in (None, (0.0, 1.0, 20, 0.05)):
        index.regions(query, 0.7, 3, 0.01, grid, n_pieces, ends, bounds)
        offsets, pieces, least = expected.regions(query, 0.7, 3, 0.01, grid=grid)
        same(n_pieces.ravel(), np.diff(offsets))
        same(ends[~np.isnan(ends)].reshape(-1, 2), pieces)
        same(bounds, least)
    for bad, why in (((0.7, 9, 0.0, None), "max_pieces"), ((0.7, 2, 0.0, (1, 0, 5, 0)), "grid")):
        assert f"{why} must" in refused(index.regions, query, *bad, n_pieces, ends, bounds)


def models(module):
    """Needs safetensors, to write a file."""
    if find_spec("safetensors") is None:
        return
    X, y = rng.random((200, 3)), rng.random(200)
    floats = X.astype(np.float32)
    fitted = HDIForestRegressor(calibration=False).fit(X, y)
    fitted.calibrate(rng.random((50, 3)), rng.random(50), coverage=[0.5, 0.8])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model")
        fitted.save(path)
        for opening in (0, 1):
            model = module.Model(bytes(path), opening)
            assert model.shape() == (3, 1, fitted.scorer_.forest.n_trees)
            assert model.feature_name(0) is None
            assert model.coverages() == [0.5, 0.8]
            ends, mean, levels = np.empty((200, 1, 2, 2)), np.empty((200, 1)), np.array([0.5, 0.8])
            model.intervals(floats, levels, -1, ends)
            same(ends[:, 0], fitted.predict_interval(floats, levels))
            model.mean(X, mean)
            same(mean[:, 0], fitted.scorer_.mean(X))
            found = np.empty((200, model.shape()[2]), np.int32)
            model.leaves(X, found)
            same(found, fitted.scorer_.forest.leaves(X))
            index = model.index()
            assert "must be calibrated ones" in refused(
                model.intervals, floats, levels / 2, -2, ends
            )
            del model
            index.mean(found, mean)
            same(mean[:, 0], fitted.scorer_.mean(X))
        with open(path, "r+b") as file:
            file.write(b"0" * 20)
        assert "no model file, or is damaged" in refused(module.Model, bytes(path), 0)


def calibrated_models(module):
    """Of each kind that needs more than rows, or several forests; needs safetensors."""
    if find_spec("safetensors") is None:
        return
    levels, labels = np.array([0.5, 0.8]), rng.integers(0, 3, 200) / 2
    X, noise = rng.random((200, 3)), rng.normal(size=200)
    new, new_labels = rng.random((70, 3)), rng.integers(0, 4, 70) / 2

    def calibrated(y, **options):
        forest = RandomForestRegressor(80, min_samples_leaf=5, random_state=0)
        model = HDIForestRegressor(forest, calibration=False).fit(X, y)
        return model.calibrate(coverage=levels, **options)

    targets = np.column_stack([noise, X[:, 0] + noise / 9])
    models = {
        "folds": calibrated(noise, method=CVPlus(3)),
        "two by groups": calibrated(targets, by=labels),
        "mean": calibrated(30 * X[:, 0] + noise, mean="boosting"),
    }
    with tempfile.TemporaryDirectory() as folder:
        for name, fitted in models.items():
            path, by = Path(folder, name), new_labels if "groups" in name else None
            fitted.save(path)
            model, others = module.Model(bytes(path), 1), None
            centred = fitted._fitted.calibrated.centred
            if centred is not None and centred.share > 0:
                others = np.ascontiguousarray(centred.mean.predict(new, 1)[:, np.newaxis])
            n_outputs = model.shape()[1]
            ends, means = np.empty((70, n_outputs, 2, 2)), np.empty((70, n_outputs))
            model.predict(new, by, others, levels, -1, ends, means)
            wanted = fitted.predict_interval(new, levels, by=by)
            same(ends, np.reshape(wanted, ends.shape))
            same(means, np.reshape(fitted.scorer_.mean(new), means.shape))
            if by is not None:
                assert "by must be the groups" in refused(
                    model.predict, new, None, None, levels, -1, ends, means
                )
            if others is not None:
                assert "other_means must be the means" in refused(
                    model.predict, new, None, None, levels, -1, ends, means
                )


def callbacks(module):
    image = rng.random(40)
    half = LowLevelCallable.from_cython(module, "shortest_half")
    found = generic_filter(image, half, size=7, mode="wrap")
    windows = image[(np.arange(40)[:, None] + np.arange(-3, 4)) % 40]
    same(found, np.diff(hdicore.weighted_hdi(windows, None, 0.5))[:, 0])
    image[20] = np.nan
    found[17:24] = np.nan
    same(generic_filter(image, half, size=7, mode="wrap"), found)


def use_extension(module):
    values, index = rng.random(100), hdicore.LeafIndex.from_leaves(leaves, rng.random(50))
    assert module.hdi(values.tobytes(), 0.7) == tuple(hdicore.weighted_hdi(values, None, 0.7))
    assert "at least one value" in refused(module.hdi, b"", 0.7)
    assert module.mean(index, leaves[3].tobytes()) == index.mean(leaves[3:4])[0]
    assert "tree 0, in which" in refused(module.mean, index, (leaves[3] + 9).tobytes())
    assert "__hdicore_index__" in refused(module.mean, 5, b"")


if __name__ == "__main__":
    for path in sys.argv[1:]:
        an_older_table_is_refused(path)
        module = load(path)
        globals()[f"use_{module.__name__}"](module)
    print(hdicore.__file__)
