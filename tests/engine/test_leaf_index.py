"""LeafIndex: exact shares in every mode, whatever the order of work, and a gate against damage."""

import pickle
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import hdicore
from hdicore import LeafIndex

from .. import reference
from ..oracle import damaged, one_leaf_index

KINDS = tuple(hdicore.kinds())


def random_rows(rng, n=30, n_trees=4, n_leaves=5, n_targets=12):
    leaves = rng.integers(0, n_leaves, (n, n_trees)).astype(np.int32)
    return leaves, rng.integers(-n_targets, n_targets, n) / 4


def units_of(index, leaves):
    """Rows of whole units, (n, n_atoms), from the weights that the index reports."""
    indptr, indices, data = index.weights(leaves)
    dense = np.zeros((len(leaves), len(index.atoms())))
    dense[np.repeat(np.arange(len(leaves)), np.diff(indptr)), indices] = data
    totals = np.sum(np.asarray(leaves) >= 0, axis=1, keepdims=True) * 2.0**index.shift
    return np.rint(dense * totals).astype(np.int64)


def known(index, leaves):
    """Leaves, with -1 for those in which no training row lies."""
    arrays = index.arrays()
    if "seen" not in arrays:
        return leaves
    bits = np.unpackbits(arrays["seen"].view(np.uint8), bitorder="little")
    exists = bits[arrays["leaf_offsets"][:-1] + np.maximum(leaves, 0)]
    return np.where(exists, leaves, -1)


def leaf_sums(index):
    """Sum of the units of every leaf that holds rows."""
    arrays = index.arrays()
    if "units" not in arrays and index.n_outputs > 1:
        return []  # neither stored nor reported
    if "units" not in arrays:  # then what the index reports for each leaf alone
        every_leaf = np.repeat(np.arange(index.n_trees), index.n_leaves)
        queries = np.full((len(every_leaf), index.n_trees), -1)
        numbers = [np.arange(n) for n in index.n_leaves]
        queries[np.arange(len(every_leaf)), every_leaf] = np.concatenate(numbers)
        sums = units_of(index, known(index, queries)).sum(axis=1)
        return sums[sums > 0].tolist()
    sums = []
    for block in range(len(arrays["tree_begin"]) - 1):
        output, tree = divmod(block, index.n_trees)
        first = arrays["leaf_offsets"][tree] + tree
        first += output * (arrays["leaf_offsets"][-1] + index.n_trees)
        begins = arrays["leaf_begin"][first : first + index.n_leaves[tree] + 1].astype(np.int64)
        begins += arrays["tree_begin"][block]
        for begin, end in pairwise(begins.tolist()):
            if end > begin:
                sums.append(int(np.sum(arrays["units"][begin:end], dtype=np.uint64)))
    return sums


def assert_same_arrays(a, b, but=frozenset()):
    assert a.shift == b.shift
    assert a.arrays().keys() - but == b.arrays().keys() - but
    for name in a.arrays().keys() - but:
        np.testing.assert_array_equal(a.arrays()[name], b.arrays()[name], err_msg=name)


def assert_like_reference(index, leaves, y, query, **options):
    """All that the index answers for one query row agrees with the reference."""
    out = options.get("leave_out")
    atoms = reference.merge(leaves, y, query, **options)
    rows = {"leave_out": None if out is None else [out], "n_threads": 1}
    query = np.asarray(query)[None]
    if not len(atoms.values):
        assert np.all(np.isnan(index.intervals(query, [0.5, 1], **rows)))
        assert np.isnan(index.mean(query, **rows)[0])
        return
    for kind in KINDS:
        found = index.intervals(query, [0.05, 0.5, 0.8, 0.9, 1], kind, **rows)[0]
        expected = [reference.interval(atoms, c, kind) for c in (0.05, 0.5, 0.8, 0.9, 1)]
        np.testing.assert_array_equal(found.T, expected, err_msg=kind)
    assert index.mean(query, **rows)[0] == reference.mean(leaves, y, query[0], **options)
    points = [*atoms.values, -99.0, 0.1]
    for inclusive in (True, False):
        found = index.cdf(query, [points], inclusive=inclusive, **rows)[0]
        expected = [reference.cdf(atoms, y, inclusive) for y in points]
        np.testing.assert_array_equal(found, expected)
    for interpolation in ("linear", "nearest", "closest_observation", "hazen"):
        found = index.quantiles(query, [0, 0.3, 0.5, 1], interpolation, **rows)[0]
        expected = [reference.quantile(atoms, q, interpolation) for q in (0, 0.3, 0.5, 1)]
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)
    _, indices, data = index.weights(query, leave_out=rows["leave_out"])
    np.testing.assert_array_equal(index.atoms()[indices], atoms.values)
    np.testing.assert_array_equal(data, np.array(atoms.masses, dtype=float) / atoms.total)


@example(843590, "all", "whole", True, 2)  # a position that is no whole number
@settings(deadline=None, max_examples=80)
@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from(["all", "inbag", "oob", "huge counts"]),
    st.sampled_from([None, "whole", "real", "some zero", "uneven"]),
    st.booleans(),
    st.sampled_from([None, 1, 2, 5]),
)
def test_every_answer_equals_the_reference(seed, mode, weighting, pooled, max_samples_leaf):
    rng = np.random.default_rng(seed)
    leaves, y = random_rows(rng, int(rng.integers(1, 25)), int(rng.integers(1, 6)))
    n = len(y)
    counts = None
    if mode != "all":
        high = {"inbag": 4, "oob": 2, "huge counts": 2**22}[mode]
        counts = rng.integers(0, high, leaves.shape)
    weights = None
    if weighting:
        weights = {
            "whole": rng.integers(1, 5, n).astype(float),
            "real": rng.random(n) + 0.1,
            "some zero": rng.random(n) * (rng.random(n) < 0.5),
            "uneven": 10.0 ** rng.integers(-18, 19, n),
        }[weighting]
        weights[0] = max(weights[0], 0.5)
    options = {
        "counts": counts,
        "sample_weight": weights,
        "pooled": pooled,
        "max_samples_leaf": max_samples_leaf,
        "seed": seed,
    }
    index = LeafIndex(leaves, y, **options, n_threads=1)
    assert index.pooled == pooled
    if pooled:
        assert max(leaf_sums(index), default=0) <= 2**index.shift
    else:
        assert set(leaf_sums(index)) <= {2**index.shift}
    assert_same_arrays(LeafIndex.from_arrays(index.arrays(), scalar_output=True), index)
    query = rng.integers(-1, leaves.max(axis=0) + 1)
    assert_like_reference(index, leaves, y, query, **options)


def test_threads_and_the_order_of_rows_change_no_array():
    rng = np.random.default_rng(4)
    leaves, y = random_rows(rng, 400, 25, n_leaves=12, n_targets=50)
    y = np.stack([y, rng.normal(size=400)], axis=1)
    counts = rng.integers(0, 3, leaves.shape)
    weights = rng.random(400)
    options = {"counts": counts, "sample_weight": weights}
    index = LeafIndex(leaves, y, **options, n_threads=1)
    for n_threads in (2, 8, 0):
        assert_same_arrays(LeafIndex(leaves, y, **options, n_threads=n_threads), index)
    rows = rng.permutation(400)
    assert_same_arrays(
        LeafIndex(leaves[rows], y[rows], counts=counts[rows], sample_weight=weights[rows]), index
    )


def test_large_leaves_switch_to_the_wide_shift():
    leaves, y = np.zeros((4, 1), dtype=int), np.array([3.0, 1.0, 2.0, 2.0])
    below = LeafIndex(leaves, y, counts=[[2**26 - 3], [1], [1], [0]])
    above = LeafIndex(leaves, y, counts=[[2**26 - 2], [1], [1], [0]])
    assert (below.shift, above.shift) == (31, 40)
    assert below.arrays()["units"].dtype == np.uint32
    assert above.arrays()["units"].dtype == np.uint64
    assert leaf_sums(above) == [2**40]
    np.testing.assert_array_equal(above.arrays()["units"][:2], 2**40 // 2**26)
    again = pickle.loads(pickle.dumps(above))
    assert_same_arrays(again, above)
    for index in (above, again):
        assert index.intervals([[0]], 1.0).tolist() == [[1.0, 3.0]]
        assert index.intervals([[0]], 0.9).tolist() == [[3.0, 3.0]]


def shortest_by_running_sums(values, units, enough):
    """The definition for targets without ties in width, in O(n log n)."""
    upto = np.append(0, np.cumsum(units))
    last = np.searchsorted(upto, upto[:-1] + enough) - 1
    starts = np.flatnonzero(last < len(values))
    best = starts[np.argmin(values[last[starts]] - values[starts])]
    return values[best], values[last[best]]


@pytest.mark.parametrize(
    ("n", "sizes"),
    [
        (3500, (0.5, 0.2, 0.1, 0.1, 0.1)),
        (6000, (0.5, 0.5)),
        (9000, (0.9, 0.05, 0.05)),
        (90_000, (0.5, 0.4, 0.1)),
        (140_000, (1.0,)),
        # Most rows of the query have so few atoms that these are sorted.
        (150_000, (0.01, *[0.99 / 20_000] * 20_000)),
    ],
)
def test_answers_of_leaves_of_many_sizes(n, sizes):
    rng = np.random.default_rng(n)
    leaves = rng.choice(len(sizes), size=(n, 4), p=sizes).astype(np.int32)
    y = rng.gamma(2, size=n)
    index = LeafIndex(leaves, y)
    query = rng.integers(0, len(sizes), (4, 4)).astype(np.int32)
    query[1, 2] = 0
    levels = [0.1, 0.5, 0.9, 0.99]
    found = index.intervals(query, levels)
    quantiles, mean = index.quantiles(query, levels), index.mean(query)
    points = np.sort(rng.choice(y, size=(4, 3)), axis=1)
    cdf, (indptr, indices, weights) = index.cdf(query, points), index.weights(query)
    again = LeafIndex.from_arrays(index.arrays(), True)
    assert ("units" in index.arrays()) == (n == 140_000)  # rows weigh alike, or a leaf is too large
    np.testing.assert_array_equal(again.intervals(query, levels), found)
    for row, own in enumerate(query):
        units = np.zeros(n, dtype=np.int64)
        for tree, leaf in enumerate(own):
            members = np.sort(y[leaves[:, tree] == leaf])
            upto = np.arange(len(members) + 1) * 2**31 // len(members)
            units[np.searchsorted(index.atoms(), members)] += np.diff(upto)
        held = np.flatnonzero(units)
        for k, level in enumerate(levels):
            enough = 4 * (int(np.floor(level * 2**31 + 0.5)) - 2)
            expected = shortest_by_running_sums(index.atoms()[held], units[held], enough)
            np.testing.assert_array_equal(found[row, :, k], expected)
            at = np.searchsorted(np.cumsum(units), enough)
            assert quantiles[row, k] == index.atoms()[at]
        shares = units / (4 * 2**31)
        here = slice(*indptr[row : row + 2])
        np.testing.assert_array_equal(indices[here], held)
        np.testing.assert_array_equal(weights[here], shares[held])
        np.testing.assert_allclose(mean[row], shares @ index.atoms(), rtol=1e-12)
        expected = [shares[index.atoms() <= point].sum() for point in points[row]]
        np.testing.assert_allclose(cdf[row], expected, rtol=1e-12)


def test_the_wide_shift_depends_on_the_number_of_trees():
    for n_trees, expected in ((64, 40), (63, 31)):
        leaves = np.zeros((1, n_trees), dtype=int)
        assert LeafIndex(leaves, [1.0], counts=np.full_like(leaves, 2**20)).shift == expected


@pytest.mark.parametrize("n_trees", [1, 3])
def test_whole_sample_weights_are_repeated_rows(n_trees):
    rng = np.random.default_rng(7)
    for _ in range(30):
        leaves, y = random_rows(rng, 20, n_trees)
        weights = rng.integers(1, 6, 20)
        counts = rng.integers(0, 3, leaves.shape)
        repeated = [np.repeat(array, weights, axis=0) for array in (leaves, y, counts)]
        assert_same_arrays(
            LeafIndex(leaves, y, sample_weight=weights, counts=counts),
            LeafIndex(*repeated[:2], counts=repeated[2]),
            but={"copies"},  # there are fewer rows
        )


def test_signed_zeros_are_one_atom_whichever_comes_first():
    for y in ([0.0, -0.0, 1.0], [-0.0, 0.0, 1.0]):
        index = one_leaf_index(y)
        assert index.atoms().tolist() == [0.0, 1.0]
        assert not np.signbit(index.atoms()[0])


def test_outputs_are_independent():
    rng = np.random.default_rng(9)
    leaves, _ = random_rows(rng, 50)
    y = np.stack([rng.integers(0, 4, 50), rng.normal(size=50), np.full(50, 7.0)], axis=1)
    index = LeafIndex(leaves, y)
    assert (index.n_outputs, index.scalar_output) == (3, False)
    query = leaves[:10]
    together = index.intervals(query, [0.5, 0.9])
    assert together.shape == (10, 3, 2, 2)
    assert index.mean(query).shape == (10, 3)
    assert index.quantiles(query, 0.5).shape == (10, 3)
    assert index.cdf(query, np.zeros((10, 3, 4))).shape == (10, 3, 4)
    for output in range(3):
        alone = LeafIndex(leaves, y[:, output])
        np.testing.assert_array_equal(together[:, output], alone.intervals(query, [0.5, 0.9]))
        np.testing.assert_array_equal(index.mean(query)[:, output], alone.mean(query))
        np.testing.assert_array_equal(index.atoms(output), alone.atoms())
    with pytest.raises(ValueError, match="one output"):
        index.weights(query)
    with pytest.raises(ValueError, match="output must be a whole number"):
        index.atoms(3)


def test_one_column_of_y_keeps_its_axis():
    index = LeafIndex([[0], [0]], [[1.0], [2.0]])
    assert index.mean([[0]]).shape == (1, 1)
    assert LeafIndex([[0], [0]], [1.0, 2.0]).mean([[0]]).shape == (1,)


@pytest.mark.parametrize("weighted", [False, True])
def test_leaving_a_row_out_equals_the_reference(weighted):
    rng = np.random.default_rng(10)
    for _ in range(30):
        leaves, y = random_rows(rng, 15, 4, n_leaves=4, n_targets=3)
        weights = rng.random(15) if weighted else None
        index = LeafIndex(leaves, y, sample_weight=weights, keep_row_weights=True, n_threads=1)
        row = int(rng.integers(15))
        query = np.where(rng.random(4) < 0.8, leaves[row], -1)
        assert_like_reference(index, leaves, y, query, sample_weight=weights, leave_out=row)


def test_a_leaf_of_the_left_out_row_alone_does_not_contribute():
    index = LeafIndex([[0, 0], [1, 0]], [1.0, 5.0], keep_row_weights=True)
    assert index.intervals([[0, 0]], 1.0, leave_out=[0]).tolist() == [[5.0, 5.0]]
    alone = LeafIndex([[0], [1]], [1.0, 5.0], keep_row_weights=True)
    assert np.all(np.isnan(alone.intervals([[0]], leave_out=[0])))


def test_leave_out_needs_row_weights_and_rows_that_exist():
    plain = LeafIndex([[0], [0]], [1.0, 2.0])
    with pytest.raises(ValueError, match="keep_row_weights"):
        plain.mean([[0]], leave_out=[0])
    kept = LeafIndex([[0], [0]], [1.0, 2.0], keep_row_weights=True)
    with pytest.raises(ValueError, match=r"leave_out\[0\] names training row 2 of 2"):
        kept.mean([[0]], leave_out=[2])
    with pytest.raises(ValueError, match="leave_out must name one training row for each"):
        kept.mean([[0]], leave_out=[0, 1])
    with pytest.raises(ValueError, match="leave_out must hold whole numbers"):
        kept.mean([[0]], leave_out=[-1])
    with pytest.raises(ValueError, match="keep_row_weights"):
        pickle.loads(pickle.dumps(kept)).mean([[0]], leave_out=[0])


def test_leaf_ids_of_any_number_type_and_layout_are_accepted():
    rng = np.random.default_rng(12)
    leaves, y = random_rows(rng)
    index = LeafIndex(leaves, y)
    expected = index.intervals(leaves)
    types = (np.int8, np.uint8, np.int64, np.uint64, np.float32, np.float64, np.longlong)
    variants = [leaves.astype(dtype) for dtype in types]
    variants += [np.asfortranarray(leaves), np.repeat(leaves, 2, axis=1)[:, ::2], leaves.tolist()]
    for variant in variants:
        assert_same_arrays(LeafIndex(variant, y), index)
        np.testing.assert_array_equal(index.intervals(variant), expected)
    other = LeafIndex(leaves, y.astype(np.float32), counts=np.ones_like(leaves, dtype=float))
    assert_same_arrays(other, index)


def test_a_row_to_which_no_tree_contributes_is_nan():
    index = LeafIndex([[0, 1], [0, 1]], [1.0, 2.0], n_leaves=[3, 2])
    empty = [[-1, -1], [2, 0], [-1, 0]]
    assert np.all(np.isnan(index.intervals(empty, [0.5, 1.0])))
    assert np.all(np.isnan(index.intervals(empty, 0.5, "lower")))
    assert np.all(np.isnan(index.mean(empty)))
    assert np.all(np.isnan(index.quantiles(empty, 0.5)))
    assert np.all(np.isnan(index.cdf(empty, [0.0, 0.0, 0.0])))
    assert np.all(np.isnan(index.draws(empty, [0.0, 0.5, 0.9])))
    assert index.weights(empty)[0].tolist() == [0, 0, 0, 0]
    assert index.intervals([[-1, 1]], 1.0).tolist() == [[1.0, 2.0]]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"leaves": [[-1], [0]]}, r"leaves\[0, 0\] must not be negative"),
        ({"leaves": [[0.5], [0]]}, "leaves must hold whole numbers"),
        ({"leaves": [[2**31 - 1], [0]]}, "small numbers"),
        ({"leaves": [0, 1]}, "leaves must have 2 dimensions"),
        ({"leaves": [["a"], ["b"]]}, "leaves must be an array of numbers"),
        ({"leaves": np.zeros((2, 0))}, "number of trees"),
        ({"leaves": np.zeros((0, 1)), "y": []}, "at least one training row"),
        ({"leaves": [[0], [0], [0]]}, "y must have a row for each row of leaves"),
        ({"y": [0.0, -np.inf]}, r"y\[1\] is not finite"),
        ({"y": np.zeros((2, 0))}, "at least one output"),
        ({"y": np.zeros((2, 1, 1))}, "y must have 1 or 2 dimensions"),
        ({"y": ["a", "b"]}, "y must be an array of numbers"),
        ({"counts": [[-1], [0]]}, r"counts\[0, 0\] must not be negative"),
        ({"counts": [[1], [0.5]]}, "counts must hold whole numbers"),
        ({"counts": [1, 1]}, "counts must have shape"),
        ({"sample_weight": [1.0]}, "sample_weight must have shape"),
        ({"sample_weight": [1.0, -1.0]}, r"sample_weight\[1\]"),
        ({"sample_weight": [np.nan, 1.0]}, r"sample_weight\[0\]"),
        ({"sample_weight": [0.0, 0.0]}, "must not all be zero"),
        ({"n_leaves": [1]}, "leaves names leaf 1 of tree 0, which has 1"),
        ({"n_leaves": [2, 2]}, "n_leaves must have shape"),
        ({"n_leaves": [2**40]}, "small numbers"),
        ({"n_threads": -1}, "n_threads"),
    ],
)
def test_hostile_training_rows_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        LeafIndex(**({"leaves": [[0], [1]], "y": [1.0, 2.0]} | arguments))


@pytest.mark.parametrize(
    ("leaves", "message"),
    [
        ([[2]], r"leaves\[0, 0\] must be a leaf of tree 0, below 2, or -1, got 2"),
        ([[0], [0], [-2]], r"leaves\[2, 0\]"),
        ([[0, 0]], r"leaves must have shape \(1, 1\)"),
        ([0], "leaves must have 2 dimensions"),
        ([[0.5]], "whole numbers"),
    ],
)
def test_hostile_leaves_to_score_are_refused(leaves, message):
    with pytest.raises(ValueError, match=message):
        LeafIndex([[0], [1]], [1.0, 2.0]).intervals(leaves)


@pytest.mark.parametrize("counted", [False, True])
def test_leaf_ids_of_other_libraries_need_not_follow_each_other(counted):
    rng = np.random.default_rng(21)
    leaves, y = random_rows(rng)
    counts = rng.integers(0, 2, leaves.shape) if counted else None
    ids = leaves * 70 + rng.integers(0, 1000, leaves.shape[1])
    index = LeafIndex.from_leaves(ids, y, counts=counts)
    expected = LeafIndex(leaves, y, counts=counts).intervals(leaves, [0.3, 0.9])
    for again in (index, pickle.loads(pickle.dumps(index))):
        np.testing.assert_array_equal(again.intervals(ids, [0.3, 0.9]), expected)
        ids[5, 2] += 1
        with pytest.raises(ValueError, match=r"leaves\[5, 2\] .* tree 2, in which a training row"):
            again.intervals(ids)
        ids[5, 2] -= 1


def test_a_leaf_whose_rows_do_not_count_is_empty_and_not_unknown():
    index = LeafIndex.from_leaves([[0], [7], [7]], [1.0, 2.0, 3.0], counts=[[0], [1], [1]])
    assert np.isnan(index.intervals([[0]])).all()
    assert index.intervals([[7]], 1.0).tolist() == [[2.0, 3.0]]
    with pytest.raises(ValueError, match="tree 0, in which"):
        index.intervals([[6]])
    with pytest.raises(ValueError, match="tree 0, in which"):
        index.intervals([[8]])


@pytest.fixture(scope="module", params=["alike", "weighted", "wide", "two outputs", "seen"])
def small_index(request):
    rng = np.random.default_rng(13)
    leaves, y = random_rows(rng, 20, 3, n_leaves=4)
    if request.param == "two outputs":
        y = np.stack([y, rng.normal(size=20)], axis=1)
    counts = rng.integers(0, 2**25, leaves.shape) if request.param == "wide" else None
    weights = rng.random(20) if request.param == "weighted" else None
    if request.param == "seen":
        return LeafIndex.from_leaves(leaves * 30, y)
    return LeafIndex(leaves, y, counts=counts, sample_weight=weights)


def test_arrays_make_the_same_index_without_a_copy(small_index):
    arrays = small_index.arrays()
    scalar_output = small_index.scalar_output
    again = LeafIndex.from_arrays(arrays, scalar_output, copy=False)
    assert_same_arrays(again, small_index)
    for name, array in again.arrays().items():
        assert np.shares_memory(array, arrays[name])
        assert not array.flags.writeable
    copied = LeafIndex.from_arrays(arrays, scalar_output)
    assert_same_arrays(copied, small_index)
    assert not any(np.shares_memory(a, arrays[name]) for name, a in copied.arrays().items())
    stored = sum(array.nbytes for array in arrays.values())
    # Units that follow from the size of a leaf are tabulated.
    assert stored <= again.nbytes <= stored + 4 * 20**2
    assert again.n_entries == len(arrays["ranks"])
    unpickled = pickle.loads(pickle.dumps(small_index))
    assert_same_arrays(unpickled, small_index)
    assert unpickled.scalar_output == scalar_output


def test_hundreds_of_damaged_arrays_are_refused_or_score_safely(small_index):
    rng = np.random.default_rng(14)
    scalar = small_index.scalar_output
    refused = 0
    for _ in range(400):
        arrays = damaged(rng, small_index.arrays())
        try:
            index = LeafIndex.from_arrays(arrays, scalar_output=scalar)
        except ValueError:
            refused += 1
            continue
        assert set(leaf_sums(index)) <= {2**index.shift}
        query = known(index, rng.integers(-1, index.n_leaves, (6, index.n_trees)))
        intervals = index.intervals(query, [0.5, 1.0], n_threads=1)
        lower, upper = np.moveaxis(intervals, -2, 0)
        assert np.all((lower <= upper) | np.isnan(lower))
        index.mean(query, n_threads=1)
    assert 280 < refused < 400


def test_missing_or_mistyped_arrays_are_refused(small_index):
    for name, array in small_index.arrays().items():
        arrays = dict(small_index.arrays())
        with pytest.raises(ValueError, match=f"{name} must have dtype"):
            LeafIndex.from_arrays(arrays | {name: array.astype(np.float32)}, scalar_output=False)
        if name in ("units", "copies", "seen"):  # they may be missing
            continue
        del arrays[name]
        with pytest.raises(ValueError, match=f"must contain '{name}'"):
            LeafIndex.from_arrays(arrays, scalar_output=False)


def test_several_outputs_cannot_be_called_one():
    index = LeafIndex([[0], [0]], [[1.0, 2.0], [3.0, 4.0]])
    with pytest.raises(ValueError, match="scalar_output"):
        LeafIndex.from_arrays(index.arrays(), scalar_output=True)


def test_arrays_that_do_not_hold_together_are_refused():
    whole = LeafIndex([[0, 0], [1, 0]], [1.0, 2.0], sample_weight=[0.5, 0.5]).arrays()
    changes = {
        "atoms": np.array([2.0, 1.0]),
        "ranks": np.array([0, 1, 1, 0], dtype=np.uint32),
        "units": whole["units"] // 2,
        "leaf_offsets": np.array([0, 3, 2]),
        "tree_begin": np.array([0, 3, 2]),
        "atom_offsets": np.array([0, 1, 1, 2]),
        "leaf_begin": whole["leaf_begin"][:-1],
    }
    for name, array in changes.items():
        with pytest.raises(ValueError, match=r"damaged|must"):
            LeafIndex.from_arrays(whole | {name: array}, scalar_output=True)
    units = np.array([2**32 - 1, 2**31, 2**31, 2**31 + 1], dtype=np.uint32)
    with pytest.raises(ValueError, match="damaged"):
        LeafIndex.from_arrays(whole | {"units": units}, scalar_output=True)


def test_an_index_keeps_the_arrays_it_was_given_alive():
    arrays = {name: array.copy() for name, array in one_leaf_index([1.0, 2.0]).arrays().items()}
    index = LeafIndex.from_arrays(arrays, scalar_output=True)
    del arrays
    junk = [np.full(64, 0xFFFFFFFF) for _ in range(100)]
    assert index.intervals([[0]], 1.0).tolist() == [[1.0, 2.0]]
    assert len(junk) == 100


def test_results_may_overwrite_what_names_the_rows():
    """Rows to leave out are copied: filling `out` cannot turn them into others."""
    n = 2000
    leaves = np.zeros((n, 1), dtype=np.int32)
    index = LeafIndex(leaves, np.arange(n), keep_row_weights=True)
    rows = np.arange(n, dtype=np.uint32)
    expected = index.intervals(leaves, leave_out=rows)
    out = np.zeros((n, 2))
    overlapping = out.reshape(-1).view(np.uint32)[:n]
    overlapping[:] = rows
    index.intervals(leaves, leave_out=overlapping, out=out, n_threads=1)
    np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize("name", ["ranks", "leaf_begin", "units"])
def test_later_writes_to_given_arrays_change_nothing(name):
    leaves = [[0], [0], [1]]
    arrays = LeafIndex(leaves, [1.0, 2.0, 4.0], sample_weight=[0.5] * 3).arrays()
    writeable = arrays[name].copy()
    view = writeable.view()
    view.flags.writeable = False
    memory = bytearray(writeable.tobytes())
    foreign = np.frombuffer(memoryview(memory).toreadonly(), writeable.dtype)
    indices = [
        LeafIndex.from_arrays(arrays | {name: array}, True) for array in (writeable, view, foreign)
    ]
    writeable[:] = 2**15
    memory[:] = b"\xff" * len(memory)
    for index in indices:
        assert index.mean(leaves).tolist() == [1.5, 1.5, 4.0]


def test_weights_however_unequal_leave_no_leaf_empty():
    index = LeafIndex([[0], [0], [1]], [1.0, 3.0, 7.0], sample_weight=[1e-30, 1e-30, 1.0])
    assert index.mean([[0], [1]]).tolist() == [2.0, 7.0]
