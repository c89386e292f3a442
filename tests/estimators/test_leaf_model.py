"""LeafModel: a scikit-learn regressor of any function from rows to leaf ids, in bounded memory."""

import pickle
import tracemalloc
from functools import partial

import numpy as np
import pytest
import scipy.sparse
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone, is_regressor
from sklearn.ensemble import RandomForestRegressor
from sklearn.exceptions import NotFittedError
from sklearn.metrics import r2_score
from sklearn.model_selection import cross_val_score

import hdicore
from hdiforest import LeafModel, from_index, from_leaves
from hdiforest.calibration import Base, Split

from ..model_files import arrays_of, rewritten, with_array, with_facts, with_value, without
from ..oracle import blocks_of

RNG = np.random.default_rng(2)
X = RNG.normal(size=(300, 3)).astype(np.float32)
Y = X[:, 0] + RNG.normal(size=300)
X_NEW = RNG.normal(size=(150, 3)).astype(np.float32)
FOREST = RandomForestRegressor(20, min_samples_leaf=4, random_state=0).fit(X, Y)
LEVELS = [0.5, 0.9]


class Recorder:
    """The forest's function, and how many rows each call had."""

    def __init__(self, function=FOREST.apply):
        self.function = function
        self.calls = []

    def __call__(self, rows):
        leaves = self.function(rows)
        self.calls.append(len(leaves))
        return leaves


@pytest.fixture
def small_blocks():
    """Blocks of 32 rows."""
    with blocks_of(32 * 20):
        yield


def answers(model, rows):
    targets = np.linspace(-1, 1, 150)
    return [
        model.predict(rows),
        model.predict_interval(rows),
        model.predict_interval(rows, LEVELS, kind="equal_tailed"),
        model.predict_quantiles(rows, LEVELS, interpolation="linear"),
        model.predict_cdf(rows, targets),
        model.predict_cdf(rows, np.column_stack([targets, -targets]), inclusive=False),
    ]


CONTAINERS = {
    "array": lambda rows: rows,
    "Fortran array": np.asfortranarray,
    "list": lambda rows: rows.tolist(),
    "pandas": lambda rows: pytest.importorskip("pandas").DataFrame(rows, index=rows[:, 0]),
    "polars": lambda rows: pytest.importorskip("polars").DataFrame(rows),
    "pyarrow.Table": lambda rows: pytest.importorskip("pyarrow").table(
        dict(zip("abc", rows.T, strict=True))
    ),
    "pyarrow.RecordBatch": lambda rows: pytest.importorskip("pyarrow").record_batch(
        dict(zip("abc", map(np.ascontiguousarray, rows.T), strict=True))
    ),
    "csr_array": scipy.sparse.csr_array,
    "csr_matrix": scipy.sparse.csr_matrix,
    "csc_array": scipy.sparse.csc_array,
}


def dense(rows):
    """What a library would make of its rows."""
    if scipy.sparse.issparse(rows):
        return rows.toarray()
    return np.asarray(rows, dtype=np.float32)


def apply_dense(rows):
    return FOREST.apply(np.ascontiguousarray(dense(rows)))


@pytest.mark.parametrize("container", CONTAINERS)
def test_rows_are_given_in_blocks_of_their_own_kind(container, small_blocks):
    many, y = np.resize(X, (1100, 3)), np.resize(Y, 1100)
    rows, new_rows = CONTAINERS[container](many), CONTAINERS[container](X_NEW)
    kinds = set()

    def apply(block):
        kinds.add(type(block))
        return apply_dense(block)

    recorder = Recorder(apply)
    model = from_leaves(recorder, rows, y)
    # Of the first block the number of trees is not known.
    assert recorder.calls == [1024, 32, 32, 12]
    recorder.calls.clear()
    found = answers(model, new_rows)
    assert recorder.calls == [32, 32, 32, 32, 22] * 6
    assert kinds == {type(rows)}
    whole = hdicore.LeafIndex.from_leaves(FOREST.apply(many), y)
    expected = answers(from_index(FOREST.apply, whole), X_NEW)
    for one, other in zip(found, expected, strict=True):
        assert_array_equal(one, other)


@pytest.mark.parametrize(
    "rows",
    [
        (X, X),
        {"a": X[:, 0], "b": X[:, 1]},
        "rows.csv",
        scipy.sparse.coo_matrix(X),
        scipy.sparse.dia_array(np.diag(np.ones(300))),
        object(),
        iter(X),
    ],
)
def test_what_has_no_slices_of_rows_is_passed_whole(rows, small_blocks):
    given = []

    def apply(block):
        given.append(block)
        return FOREST.apply(X)

    model = from_leaves(apply, rows, Y)
    expected = from_leaves(FOREST.apply, X, Y).predict_cdf(X, Y)
    assert_array_equal(model.predict_cdf(rows, Y), expected)
    assert len(given) == 2
    assert all(block is rows for block in given)


def test_blocks_hold_a_bounded_number_of_ids():
    """Of at most 64 MB as int64."""
    one = Recorder(lambda rows: np.zeros((len(rows), 10), np.int32))
    rows = np.zeros((2**20, 1))
    from_leaves(one, rows[:5], np.arange(5.0)).predict(rows)
    assert 2**24 <= 8 * 10 * max(one.calls) <= 2**26
    # At least one row, however many the trees are.
    many = Recorder(lambda rows: np.zeros((len(rows), 20), np.int8))
    model = from_leaves(many, X[:5], Y[:5])
    with blocks_of(3):
        model.predict(X[:2])
    assert many.calls == [5, 1, 1]


def test_int32_leaves_are_not_copied():
    ids = np.zeros((1000, 4000), dtype=np.int32)
    rows, y = np.zeros((len(ids), 1)), np.arange(float(len(ids)))
    tracemalloc.start()
    from_leaves(lambda _: ids, rows, y).predict(rows)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < ids.nbytes / 2


@pytest.mark.parametrize("wrong", [np.nan, 1.5, 2.0**40])
@pytest.mark.parametrize("rows", [X[:5], X])
def test_ids_that_are_no_whole_numbers(wrong, rows, small_blocks):
    def apply(given):
        leaves = FOREST.apply(given).astype(float)
        leaves[-1, -1] = wrong
        return leaves

    with pytest.raises(ValueError, match="leaves must hold whole numbers"):
        from_leaves(apply, rows, Y[: len(rows)])


def test_functions_that_return_too_few_rows_or_other_trees(small_blocks):
    many, y = np.resize(X, (1100, 3)), np.resize(Y, 1100)
    with pytest.raises(ValueError, match=r"of shape \(1024, 20\), got \(1023, 20\)"):
        from_leaves(lambda rows: FOREST.apply(rows)[1:], many, y)
    with pytest.raises(ValueError, match=r"apply must return .* 20\), got \(32, 19\)"):
        from_leaves(lambda rows: FOREST.apply(rows)[:, : 20 - (len(rows) < 1000)], many, y)
    with pytest.raises(ValueError, match=r"apply must return .* got \(\)"):
        from_leaves(lambda rows: 7, many, y)
    with pytest.raises(ValueError, match=r"apply must be a function .*, got Tree"):
        from_leaves(FOREST.estimators_[0].tree_, X, Y)


def test_points_of_other_rows(small_blocks):
    model = from_leaves(FOREST.apply, X, Y)
    for y in (np.zeros(149), np.zeros(151), [0.0]):
        with pytest.raises(ValueError, match="y must have 150 rows, as many as X"):
            model.predict_cdf(X_NEW, y)


def test_several_outputs(small_blocks):
    both = np.column_stack([Y, -Y])
    model = from_leaves(FOREST.apply, X, both)
    assert model.n_outputs_ == 2
    assert model.predict_interval(X_NEW, LEVELS).shape == (150, 2, 2, 2)
    assert_array_equal(model.predict(X_NEW)[:, 0], from_leaves(FOREST.apply, X, Y).predict(X_NEW))
    assert model.score(X, both) > 0.3


def test_it_is_a_regressor():
    model = from_leaves(FOREST.apply, X, Y, n_jobs=2)
    assert is_regressor(model)
    assert model.score(X_NEW, X_NEW[:, 0]) == r2_score(X_NEW[:, 0], model.predict(X_NEW))
    assert model.get_params() == {"apply": FOREST.apply, "n_leaves": None, "n_jobs": 2}
    assert "LeafModel" in model._repr_html_()


def test_repr():
    model = from_leaves(FOREST.apply, X, Y)
    text = repr(LeafModel(FOREST.apply))
    assert text.startswith("LeafModel(apply=<bound method")
    assert repr(model) == f"{text}: 20 trees, 300 training rows, 1 output"
    index = hdicore.LeafIndex.from_leaves(FOREST.apply(X[:1])[:, :1], Y[:1, None] * [1, 2])
    assert repr(from_index(len, index)).endswith("): 1 tree, 2 outputs")


def test_clones_share_the_function_and_fit_again():
    recorder = Recorder()
    model = from_leaves(recorder, X, Y, n_leaves=[1000] * 20)
    copied = clone(model)
    assert copied.apply is recorder
    assert not hasattr(copied, "index_")
    assert_array_equal(copied.fit(X, Y).predict(X_NEW), model.predict(X_NEW))
    assert cross_val_score(model, X, Y, cv=3).shape == (3,)


def test_clones_keep_requests_for_metadata():
    import sklearn

    with sklearn.config_context(enable_metadata_routing=True):
        model = LeafModel(FOREST.apply).set_fit_request(sample_weight=True)
        requests = clone(model).get_metadata_routing().fit.requests
    assert requests == {"sample_weight": True, "event": None}


def test_unfitted_and_uninitialised_models():
    for model in (LeafModel(FOREST.apply), LeafModel.__new__(LeafModel)):
        for ask in (
            lambda model: model.predict(X),
            lambda model: model.predict_interval(X),
            lambda model: model.predict_quantiles(X, 0.5),
            lambda model: model.predict_cdf(X, Y),
            lambda model: model.score(X, Y),
            lambda model: model.save("nowhere"),
        ):
            with pytest.raises(NotFittedError, match="This LeafModel instance is not fitted yet"):
                ask(model)


@pytest.mark.parametrize("apply", [FOREST.apply, partial(FOREST.apply), apply_dense])
@pytest.mark.parametrize("protocol", [0, pickle.HIGHEST_PROTOCOL])
def test_pickle(apply, protocol):
    model = from_leaves(apply, X, Y)
    loaded = pickle.loads(pickle.dumps(model, protocol=protocol))
    assert_array_equal(loaded.predict_interval(X_NEW), model.predict_interval(X_NEW))
    assert loaded.n_training_rows_ == 300


@pytest.mark.parametrize("n_leaves", [None, [1000] * 20])
@pytest.mark.parametrize("y", [Y, np.column_stack([Y, -Y])])
def test_files(n_leaves, y, tmp_path):
    pytest.importorskip("safetensors")
    model = from_leaves(FOREST.apply, X, y, n_leaves=n_leaves)
    model.save(tmp_path / "index")
    loaded = LeafModel.load(tmp_path / "index", FOREST.apply, n_jobs=2)
    assert_array_equal(loaded.predict_interval(X_NEW), model.predict_interval(X_NEW))
    assert loaded.n_training_rows_ == 300
    assert loaded.n_jobs == 2
    again = pickle.loads(pickle.dumps(loaded))
    assert_array_equal(again.predict_interval(X_NEW), model.predict_interval(X_NEW))


def test_damaged_and_foreign_files(tmp_path):
    safetensors = pytest.importorskip("safetensors.numpy")
    from hdiforest import HDIForestRegressor

    def refuses(message, kind=ValueError, name="index"):
        with pytest.raises(kind, match=message):
            LeafModel.load(tmp_path / name, FOREST.apply)

    refuses("there is no file", FileNotFoundError)
    from_leaves(FOREST.apply, X, Y).save(tmp_path / "index")
    with pytest.raises(ValueError, match="is not a model file: it holds other tensors"):
        HDIForestRegressor.load(tmp_path / "index")
    data = (tmp_path / "index").read_bytes()
    (tmp_path / "index").write_bytes(data[:-3])
    refuses("is not a file of LeafModel.save, or is damaged")
    (tmp_path / "index").write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    refuses("is damaged: its checksum does not match its contents|the checksum of")
    safetensors.save_file({"ranks": np.zeros(3)}, tmp_path / "index")
    refuses("is not a file of LeafModel.save: it holds other tensors")
    HDIForestRegressor.from_forest(FOREST, X, Y).save(tmp_path / "model")
    refuses("is not a file of LeafModel.save: it holds other tensors", name="model")
    from_leaves(FOREST.apply, X, Y).save(tmp_path / "own")
    numbers = np.array([1, 3])
    for tensors, message in (
        ({"numbers": np.array([2, 3])}, "numbers must be 0 or 1, and a number of rows, got 2, 3"),
        ({"numbers": np.array([1, -2])}, "numbers must be 0 or 1"),
        ({"numbers": np.array([1])}, "numbers must be int64 of shape"),
        ({}, "the tensor numbers is missing"),
        ({"numbers": numbers}, "index: arrays must contain 'leaf_offsets'"),
    ):
        arrays = arrays_of(tmp_path / "own")
        only = [with_array(name, array) for name, array in tensors.items()]
        only.append(with_array("index.ranks", np.zeros(3, np.uint16)))
        rewritten(tmp_path / "own", without(*arrays), *only, to=tmp_path / "index")
        refuses(message)


def test_an_index_of_ones_own():
    counts = np.ones((300, 20), dtype=np.int32)
    index = hdicore.LeafIndex.from_leaves(FOREST.apply(X), Y, counts=counts)
    model = from_index(FOREST.apply, index)
    assert model.n_training_rows_ is None
    assert_allclose(model.predict(X_NEW), from_leaves(FOREST.apply, X, Y).predict(X_NEW))


def leaf_model():
    return from_leaves(FOREST.apply, X, Y)


Y_NEW = X_NEW[:, 0] + RNG.normal(size=150)
X_LATER = RNG.normal(size=(2000, 3)).astype(np.float32)
Y_LATER = X_LATER[:, 0] + RNG.normal(size=2000)


def test_calibrated_intervals_are_widened_ones():
    model = leaf_model()
    raw = model.predict_interval(X_LATER, 0.8, kind="equal_tailed").tolist()
    assert model.calibrate(X_NEW, Y_NEW, coverage=(0.5, 0.9)) is model
    found = model.predict_interval(X_LATER, [0.9, 0.5])
    levels = model.calibration_.levels
    assert levels[0].q_hat < 0 < levels[1].q_hat
    for j, level in enumerate(reversed(levels)):
        widened = [(low - level.q_hat, high + level.q_hat) for low, high in raw]
        crossed = [(a, b) if a <= b else ((a + b) / 2,) * 2 for a, b in widened]
        expected = np.clip(crossed, Y.min(), Y.max())
        assert_allclose(found[..., j], expected, rtol=1e-12, atol=1e-12)
    assert_array_equal(model.predict_interval(X_LATER), found[..., 0])
    inside = (found[:, 0] <= Y_LATER[:, None]) & (Y_LATER[:, None] <= found[:, 1])
    assert_allclose(inside.mean(axis=0), [0.9, 0.5], atol=0.08)
    assert "exchangeable with the 150" in model.calibration_.guarantee
    assert_array_equal(
        model.predict_interval(X_LATER, kind="hdi"), leaf_model().predict_interval(X_LATER)
    )


def test_another_base_and_confidence():
    model = leaf_model().calibrate(
        X_NEW, Y_NEW, coverage=0.9, base=("hdi", 0.6), method=Split(0.95)
    )
    assert model.calibration_.bases == (Base("raw", "hdi", 0.6),)
    plain = leaf_model().calibrate(X_NEW, Y_NEW, coverage=0.9, base=("hdi", 0.6))
    assert model.calibration_.levels[0].q_hat >= plain.calibration_.levels[0].q_hat


def test_pads_are_stored_and_forgotten(tmp_path):
    model = leaf_model().calibrate(X_NEW, Y_NEW, coverage=(0.5, 0.9))
    found = model.predict_interval(X_LATER)
    model.save(tmp_path / "m")
    for copied in (
        LeafModel.load(tmp_path / "m", FOREST.apply),
        pickle.loads(pickle.dumps(model)),
    ):
        assert_array_equal(copied.predict_interval(X_LATER), found)
        assert copied.calibration_ == model.calibration_
    assert not hasattr(model.fit(X, Y), "calibration_")
    assert not hasattr(clone(model), "calibration_")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (without("calibration.numbers"), "the tensor calibration.numbers is missing"),
        (with_value("calibration.numbers", 1, 0), "does not fit an index"),
        (with_value("calibration.numbers", 2, 1), "does not fit an index"),
        (with_facts("calibration.facts", lambda facts: facts.update(n=0)), "n must be a whole num"),
        (with_array("calibration.more", np.zeros(3)), "the tensor 'calibration.more', which"),
    ],
)
def test_stored_pads_are_checked(tmp_path, change, message):
    model = leaf_model().calibrate(X_NEW, Y_NEW, coverage=0.9)
    model.save(tmp_path / "m")
    rewritten(tmp_path / "m", change)
    with pytest.raises(ValueError, match=message):
        LeafModel.load(tmp_path / "m", FOREST.apply)


def test_refused_calibrations():
    wrong = [
        ((X_NEW, Y_NEW[1:]), {}, r"y must have shape \(150,\), got \(149,\)"),
        ((X_NEW, np.full(150, np.nan)), {}, "y must be finite"),
        ((X_NEW, Y_NEW), {"coverage": 90}, "coverage must be above 0 and below 1, got 90"),
        (
            (X_NEW, Y_NEW),
            {"base": ("median", 0.5)},
            "kind must be 'hdi'.*'equal_tailed'.* got 'median'",
        ),
        ((X_NEW, Y_NEW), {"base": ("averaged", 0.5)}, "'equal_tailed'.* got 'averaged'"),
        ((X_NEW, Y_NEW), {"base": 0.8}, "base must be a kind and a level, got 0.8"),
        ((X_NEW, Y_NEW), {"base": ("hdi", 80)}, "level must be above 0 and below 1"),
        ((X_NEW, None), {}, "X and y must be given with method='split'"),
        ((X_NEW, Y_NEW), {"method": "oob"}, "method must be 'split' for a LeafModel, got 'oob'"),
        (
            (X_NEW, Y_NEW),
            {"method": Split(objective="width")},
            "objective must be 'balanced' for a LeafModel, whose base is given, got 'width'",
        ),
    ]
    for arguments, options, message in wrong:
        with pytest.raises(ValueError, match=message):
            leaf_model().calibrate(*arguments, **options)
    with pytest.raises(AttributeError, match="call calibrate first"):
        leaf_model().predict_interval(X_NEW, kind="calibrated")
    with pytest.raises(NotFittedError):
        LeafModel(FOREST.apply).calibrate(X_NEW, Y_NEW)
    two = from_leaves(FOREST.apply, X, np.c_[Y, Y])
    with pytest.raises(ValueError, match="one target, got 2"):
        two.calibrate(X_NEW, Y_NEW)
