"""Calibrated intervals of the engine: of rows as of ends, on any blocks, and what is refused."""

import copy
import pickle

import numpy as np
import pytest

from hdicore import (
    CalibratedScorer,
    LeafIndex,
    PostProcess,
    PredictiveDistribution,
    Scorer,
    intervals_of_outputs,
)

from ..oracle import as_forest

KINDS, LEVELS, Q_HAT = ["hdi", "averaged", "averaged"], [0.5, 0.5, 0.8], [0.3, -0.1, 2.0]
ENDS = np.array([[[0.0], [2.0]], [[1.0], [5.0]]])


@pytest.fixture(scope="module")
def made():
    """A scorer, numbers of its leaves, and rows to score."""
    from sklearn.ensemble import ExtraTreesRegressor

    rng = np.random.default_rng(5)
    X = rng.random((800, 3), dtype=np.float32)
    y = np.round(10 * X[:, 0] + rng.normal(size=len(X)), 1)
    forest = as_forest(ExtraTreesRegressor(20, min_samples_leaf=3, random_state=0).fit(X, y))
    index = LeafIndex(forest.leaves(X), y, n_leaves=forest.n_leaves)
    return Scorer(forest, index), rng.normal(size=int(forest.n_leaves.sum())), rng.random((70, 3))


def twin(ends, q_hat, low, high):
    """Widen, clip and nest one row (2, k) at a time; without a lattice."""
    found = []
    for lower, upper, q in zip(*ends, q_hat, strict=True):
        own = [lower - q, upper + q]
        if own[0] > own[1]:
            own = [sum(own) / 2] * 2
        own = [min(max(end, low), high) for end in own]
        if found:
            own = [min(own[0], found[-1][0]), max(own[1], found[-1][1])]
        found.append(own)
    return np.transpose(found)


@pytest.mark.parametrize("centred", [False, True])
@pytest.mark.parametrize("positions", [[0, 1, 2], [2, 0], [1]])
def test_rows_have_the_intervals_of_their_ends(made, centred, positions):
    scorer, numbers, X = made
    centres = numbers if centred else None
    shifts = np.linspace(-1, 1, len(X))
    postprocess = PostProcess(-2.0, 11.0)
    calibrated = CalibratedScorer(scorer, KINDS, LEVELS, Q_HAT, postprocess, centres)
    mean = np.empty(len(X))
    found = calibrated.intervals(X, positions, shifts=shifts, mean=mean)
    assert mean.tobytes() == scorer.mean(X).tobytes()
    ends = scorer.intervals(X, LEVELS, KINDS, centres=centres) + shifts[:, None, None]
    expected = postprocess.widen(ends, Q_HAT, nested=True)
    np.testing.assert_array_equal(found, expected[..., positions])
    by_hand = [twin(row, Q_HAT, -2.0, 11.0) for row in ends]
    np.testing.assert_allclose(expected, by_hand, atol=1e-12)
    of_rows = np.repeat([Q_HAT], len(X), axis=0)
    of_rows[::2] = 0.5
    found = calibrated.intervals(X, positions, shifts=shifts, q_hat=of_rows)
    expected = postprocess.widen(ends, of_rows, nested=True)
    np.testing.assert_array_equal(found, expected[..., positions])


def test_no_bit_depends_on_threads_blocks_or_the_other_rows(made, set_block_rows):
    scorer, numbers, X = made
    calibrated = CalibratedScorer(scorer, KINDS, LEVELS, Q_HAT, PostProcess(0.0, 9.0), numbers)
    expected = calibrated.intervals(X, [0, 1, 2], n_threads=1)
    for block, n_threads in ((1, 3), (7, 2), (64, 1), (64, 3)):
        set_block_rows(block)
        found = calibrated.intervals(X, [0, 1, 2], n_threads=n_threads)
        assert found.tobytes() == expected.tobytes()
    alone = [calibrated.intervals(X[[i]], [0, 1, 2])[0] for i in range(len(X))]
    assert np.array(alone).tobytes() == expected.tobytes()
    assert calibrated.intervals(X[:0], [1]).shape == (0, 2, 1)


@pytest.fixture(scope="module")
def outputs(made):
    """Calibrated scorers of three outputs, of which the last has other trees."""
    scorer, numbers, _ = made
    pruned, _ = scorer.forest.prune(np.full(int(scorer.forest.n_leaves.sum()), 3), 20)
    rows = np.random.default_rng(1).random((500, 3), dtype=np.float32)
    index = LeafIndex(pruned.leaves(rows), rows[:, 0], n_leaves=pruned.n_leaves)
    options = KINDS, LEVELS, Q_HAT, PostProcess(-2.0, 11.0)
    return [
        CalibratedScorer(scorer, *options),
        CalibratedScorer(scorer, *options, numbers),
        CalibratedScorer(Scorer(pruned, index), *options),
    ]


@pytest.mark.parametrize("positions", [[0, 1, 2], [2, 0], 1])
@pytest.mark.parametrize("n_threads", [1, 3])
def test_outputs_have_the_intervals_of_their_scorers(made, outputs, positions, n_threads):
    X, options = made[2], {"n_threads": n_threads}
    q_hat, shifts = np.full((len(X), 3), 0.5), np.linspace(-1, 1, len(X))
    for of_rows in (None, [None, q_hat, None]):
        for added in (None, [shifts, None, 2 * shifts]):
            found = intervals_of_outputs(
                outputs, X, positions, q_hat=of_rows, shifts=added, **options
            )
            for o, scorer in enumerate(outputs):
                given = {
                    "q_hat": None if of_rows is None else of_rows[o],
                    "shifts": None if added is None else added[o],
                }
                expected = scorer.intervals(X, positions, **given, **options)
                assert found[:, o].tobytes() == expected.tobytes()
    assert intervals_of_outputs(outputs, X[:0], [1]).shape == (0, 3, 2, 1)


def test_many_rows_of_outputs_are_taken_in_parts(outputs):
    X = np.random.default_rng(2).random((70_000, 3))
    q_hat, shifts = np.random.default_rng(3).random((len(X), 3)), X[:, 0] - X[:, 1]
    given = {"q_hat": [q_hat] * 3, "shifts": [shifts] * 3}
    found = intervals_of_outputs(outputs, X, [1], **given)
    for o, scorer in enumerate(outputs):
        expected = scorer.intervals(X, [1], q_hat=q_hat, shifts=shifts)
        assert found[:, o].tobytes() == expected.tobytes()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"scorers": []}, "scorers must be one or more"),
        ({"positions": [3]}, "positions must be from 0 to 2, got 3"),
        ({"q_hat": [None]}, "q_hat must be one for each of 3 scorers, got 1"),
        ({"shifts": [None, None, [1.0]]}, r"shifts must have shape \(70,\)"),
        ({"X": [[np.inf] * 3]}, "X"),
        ({"X": np.zeros((0, 2))}, "X has 2 features"),
        ({"scorers": "of other coverages"}, "scorers must be of the same coverages"),
    ],
)
def test_refused_queries_of_outputs(made, outputs, options, message):
    given = {"scorers": outputs, "X": made[2], "positions": 0} | options
    if given["scorers"] == "of other coverages":
        other = CalibratedScorer(made[0], ["hdi"], [0.5], [0.1], PostProcess(0.0, 9.0))
        given["scorers"] = [*outputs, other]
    with pytest.raises(ValueError, match=message):
        intervals_of_outputs(**given)


def test_means_are_written_where_nothing_is_read(made):
    scorer, numbers, X = made
    calibrated = CalibratedScorer(scorer, KINDS, LEVELS, Q_HAT, PostProcess(0.0, 9.0), numbers)
    wide, q_hat, shifts = np.ones((len(X), 3)), np.ones((len(X), 3)), np.ones(len(X))
    for options, mean in [
        ({"shifts": shifts}, shifts),
        ({"q_hat": q_hat}, q_hat.reshape(-1)[: len(X)]),
        ({}, numbers[: len(X)]),
    ]:
        with pytest.raises(ValueError, match="mean must not share memory with"):
            calibrated.intervals(X, [0], mean=mean, **options)
    with pytest.raises(ValueError, match="mean must not share memory with X"):
        calibrated.intervals(wide, [0], mean=wide.reshape(-1)[: len(X)])
    with pytest.raises(ValueError, match="mean must not share memory with centres"):
        scorer.intervals(X, 0.5, centres=numbers, mean=numbers[: len(X)])


def test_what_is_given_may_change_afterwards(made):
    scorer, _, X = made
    q_hat, targets = np.array([0.5]), np.array([0.0, 0.1, 9.0])
    postprocess = PostProcess(0.0, 9.0, True, (0.0, 0.1, 1e-6), targets)
    calibrated = CalibratedScorer(scorer, ["hdi"], [0.8], q_hat, postprocess)
    expected = calibrated.intervals(X, [0])
    q_hat[:], targets[:] = np.nan, np.nan
    for again in (calibrated, pickle.loads(pickle.dumps(calibrated))):
        assert again.intervals(X, [0]).tobytes() == expected.tobytes()


def test_targets_at_one_place_are_both_inside():
    most = 0.1 + 0.2  # beside 0.3
    postprocess = PostProcess(0.1, most, True, (0.0, 0.1, 1e-6), [0.1, 0.2, 0.3, most])
    found = postprocess.widen([[[0.1], [most]]], [0.0])
    np.testing.assert_array_equal(found, [[[0.1], [most]]])


def test_averaged_ends_of_huge_targets_are_finite():
    index = LeafIndex(np.zeros((3, 1), dtype=np.int32), [1.5e308, 1.6e308, 1.7e308])
    assert np.isfinite(index.intervals([[0]], 0.5, "averaged")).all()


def test_copies_answer_alike(made):
    scorer, numbers, X = made
    postprocess = PostProcess(0.0, 9.0, True, (0.0, 0.1, 1e-6), [0.0, 0.1, 9.0])
    calibrated = CalibratedScorer(scorer, KINDS, LEVELS, Q_HAT, postprocess, numbers)
    distribution = PredictiveDistribution([0.2, 0.5, 0.9], [0.1, 0.4, 1.2], postprocess)
    base = np.sort(np.random.default_rng(0).uniform(0, 9, (5, 19)), axis=1)
    for copied in (copy.deepcopy, lambda each: pickle.loads(pickle.dumps(each))):
        again = copied(calibrated).intervals(X, [0, 2])
        assert again.tobytes() == calibrated.intervals(X, [0, 2]).tobytes()
        assert (copied(postprocess).scores(ENDS, [3.0, 4.0]) == [[1.0], [-1.0]]).all()
        again = copied(distribution).cdf(base, base[:, :3])
        assert again.tobytes() == distribution.cdf(base, base[:, :3]).tobytes()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: PostProcess(1.0, 0.0), "low <= high"),
        (lambda: PostProcess(0.0, np.inf), "finite"),
        (lambda: PostProcess(0.0, 1.0, lattice=[0.0, 1.0]), r"lattice must have shape \(3,\)"),
        (lambda: PostProcess(0.0, 1.0, lattice=[0.0, -1.0, 0.0]), "positive step"),
        (lambda: PostProcess(0.0, 1.0, targets=[0.0]), "none without a lattice"),
        (lambda: PostProcess(0.0, 1.0).scores(ENDS[..., 0], [1.0]), r"y must have shape \(2,\)"),
        (lambda: PostProcess(0.0, 1.0).scores(ENDS[:, 0], [1.0, 2.0]), r"\(n, 2\) or \(n, 2, m\)"),
        (lambda: PostProcess(0.0, 1.0).widen(ENDS, [1.0, 2.0]), r"q_hat must have shape \(1,\)"),
        (lambda: PostProcess(0.0, 1.0).widen(ENDS, [[1.0]]), r"q_hat must have shape \(2, 1\)"),
        (lambda: PostProcess(0.0, 1.0).widen(ENDS, ["a"]), "q_hat must be an array of numbers"),
    ],
)
def test_refused_post_processing(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kinds": ["hdi"] * 2}, "one for each of 3 coverages, got 2"),
        ({"kinds": ["hdi", "hdi", "narrow"]}, "kind must be 'hdi'"),
        ({"levels": [0.5, 0.8, 1.2]}, "levels must be above 0 and at most 1, got 1.2"),
        ({"q_hat": [0.0]}, r"q_hat must have shape \(3,\)"),
        ({"q_hat": [0.0, np.nan, 1.0]}, "q_hat must be above -inf, got nan"),
        ({"centres": [1.0]}, "centres must have shape"),
    ],
)
def test_refused_calibrations(made, options, message):
    arguments = {"kinds": KINDS, "levels": LEVELS, "q_hat": Q_HAT, "centres": None} | options
    with pytest.raises(ValueError, match=message):
        CalibratedScorer(made[0], postprocess=PostProcess(0.0, 1.0), **arguments)


def test_other_objects_are_no_parts(made):
    with pytest.raises(TypeError, match="postprocess must be a PostProcess, got tuple"):
        CalibratedScorer(made[0], KINDS, LEVELS, Q_HAT, (0.0, 1.0))
    with pytest.raises(TypeError, match="scorers must be a CalibratedScorer, got Scorer"):
        intervals_of_outputs([made[0]], made[2], 0)
    with pytest.raises(TypeError, match="scorer must be a Scorer, got NoneType"):
        CalibratedScorer(None, KINDS, LEVELS, Q_HAT, PostProcess(0.0, 1.0))
    with pytest.raises(TypeError, match="__init__ was not called"):
        CalibratedScorer.__new__(CalibratedScorer).intervals(made[2], [0])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"positions": [3]}, "positions must be from 0 to 2, got 3"),
        ({"positions": []}, "positions must be one or more"),
        ({"positions": [[0]]}, r"positions must have shape \(\) or \(p,\), got \(1, 1\)"),
        ({"q_hat": [[1.0]]}, r"q_hat must have shape \(70, 3\)"),
        ({"shifts": [1.0]}, r"shifts must have shape \(70,\)"),
        ({"mean": np.empty(3)}, r"mean must have shape \(70,\)"),
        ({"n_threads": -1}, "n_threads must be a whole number"),
    ],
)
def test_refused_queries(made, options, message):
    calibrated = CalibratedScorer(made[0], KINDS, LEVELS, Q_HAT, PostProcess(0.0, 9.0))
    with pytest.raises(ValueError, match=message):
        calibrated.intervals(made[2], **({"positions": [0]} | options))


def test_distributions_refuse_what_does_not_fit():
    distribution = PredictiveDistribution([0.5], [0.4], PostProcess(0.0, 1.0))
    base = np.zeros((2, 19))
    with pytest.raises(ValueError, match="levels must be from 0 to 1, got 2"):
        distribution.base_levels([2.0])
    with pytest.raises(ValueError, match=r"base must have shape \(2, 1\)"):
        distribution.quantiles(base, [0.5])
    with pytest.raises(ValueError, match="outwards must be 1 or -1, got 0"):
        distribution.quantiles(base[:, :1], [0.5], outwards=0)
    with pytest.raises(ValueError, match=r"base must have shape \(2, 19\)"):
        distribution.cdf(base[:, :3], [0.0, 1.0])
    with pytest.raises(ValueError, match=r"y must have shape \(n,\) or \(n, k\), got \(3,\)"):
        distribution.cdf(base, [0.0, 1.0, 2.0])
    with pytest.raises(ValueError, match="y must not hold NaN"):
        distribution.cdf(base, [0.0, np.nan])
    with pytest.raises(ValueError, match=r"uniforms must lie in \[0, 1\]"):
        distribution.draws(base, [0.5, np.nan])
    with pytest.raises(TypeError, match="postprocess must be a PostProcess"):
        PredictiveDistribution.scores(base, [0.0, 1.0], None)
