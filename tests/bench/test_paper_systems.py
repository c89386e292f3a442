"""The systems of the paper's evaluation: each against a hand example or a known optimum."""

import importlib

import numpy as np
import pytest
from scipy.optimize import linprog
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import QuantileRegressor
from threadpoolctl import threadpool_limits

from hdiforest import HDIForestRegressor

from ..oracle import scripts_of

MODULES = (
    "interface",
    "padding",
    "quantile_lines",
    "linear",
    "forests",
    "boosting",
    "network",
    "quality_driven",
    "lube",
    "gaussian",
    "mean_variance",
    "dropout",
)


@pytest.fixture(scope="module")
def systems():
    """The modules of bench/paper/systems, on one thread as the evaluation runs them.

    Small networks and matrices are many times slower on two threads that wait for each other.
    """
    torch = pytest.importorskip("torch")
    n_threads = torch.get_num_threads()
    torch.set_num_threads(1)
    with scripts_of("paper", ""), threadpool_limits(1):
        yield {name: importlib.import_module(f"systems.{name}") for name in MODULES}
    torch.set_num_threads(n_threads)


def part_of(systems, X, y, *, groups=None, name="", quick=False):
    interface = systems["interface"]
    effort = interface.QUICK if quick else interface.FULL
    X = np.asarray(X, dtype=np.float32)
    return interface.Part(X, np.asarray(y, dtype=float), [], groups, 0, effort, name)


def uniform_noise(n, seed=0):
    """Two features that say nothing, and a target that is uniform on [-1, 1]."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, 2)), rng.uniform(-1, 1, n)


def pinball(error, quantile):
    return np.maximum(quantile * error, (quantile - 1) * error).sum()


# Linear systems


@pytest.mark.parametrize("quantile", [0.003, 0.05, 0.5, 0.9])
@pytest.mark.parametrize("shape", [(60, 1), (200, 7), (120, 60)])
def test_lines_have_the_pinball_loss_of_scikit_learn(systems, shape, quantile):
    lines = systems["quantile_lines"]
    rng = np.random.default_rng(shape[0])
    X = rng.normal(size=shape)
    y = X[:, 0] + rng.gamma(2, size=shape[0]) * (1 + np.abs(X[:, 0]))
    y = np.round(y, 1)  # ties
    found = lines.read_lines(lines.fit_lines(X, y, np.array([quantile])), X)[:, 0]
    peer = QuantileRegressor(quantile=quantile, alpha=0, solver="highs").fit(X, y).predict(X)
    expected = pinball(y - peer, quantile)
    assert pinball(y - found, quantile) == pytest.approx(expected, rel=1e-6, abs=1e-8)


def test_lines_of_dependent_constant_and_too_many_features(systems):
    lines = systems["quantile_lines"]
    rng = np.random.default_rng(0)
    x = rng.normal(size=40)
    X = np.column_stack([x, 2 * x, np.ones(40)])
    y = 3 * x + rng.normal(size=40)
    for quantile in (0.1, 0.9):
        alone, together = (
            pinball(
                y - lines.read_lines(lines.fit_lines(Z, y, np.array([quantile])), Z)[:, 0], quantile
            )
            for Z in (x[:, None], X)
        )
        assert together == pytest.approx(alone, rel=1e-6)
    wide = rng.normal(size=(20, 30))
    exact = lines.read_lines(lines.fit_lines(wide, y[:20], np.array([0.5])), wide)[:, 0]
    assert np.allclose(exact, y[:20], atol=1e-6)
    same = lines.read_lines(lines.fit_lines(X, np.ones(40), np.array([0.9])), X)
    assert np.allclose(same, 1)


def test_lines_of_targets_that_are_half_zeros(systems):
    """Few rows decide the far quantiles of burnt areas: weights span twenty magnitudes."""
    tasks = importlib.import_module("tasks")
    lines = systems["quantile_lines"]
    task = tasks.load("forest_fires")
    rows, _ = list(tasks.splits(task, 3))[-1]
    part = part_of(systems, task.X[rows], task.y[rows])
    part = part._replace(seed=2, categorical=task.categorical)
    for learned, _ in part.folds():
        inner = part.take(learned)
        prepare = importlib.import_module("systems.design").standardised(inner)
        X = prepare.fit_transform(inner.X.astype(np.float64))
        y = (inner.y - inner.y.mean()) / inner.y.std()
        found = lines.read_lines(lines.fit_lines(X, y, np.array([0.98])), X)[:, 0]
        peer = QuantileRegressor(quantile=0.98, alpha=0, solver="highs").fit(X, y).predict(X)
        assert pinball(y - found, 0.98) == pytest.approx(pinball(y - peer, 0.98), rel=1e-6)


def test_ridge_is_part_of_the_minimum(systems):
    lines = systems["quantile_lines"]
    rng = np.random.default_rng(0)
    X = np.column_stack([np.ones(80), rng.normal(size=(80, 3))])
    y = X @ [1, 2, 0, -1] + rng.normal(size=80)

    def objective(b):
        return pinball(y - X @ b, 0.8) + 5 * (b[1:] ** 2).sum()

    found = lines.interior_point(X, y, 0.8, 10.0)
    # Convex: what no small step improves is the minimum.
    steps = 1e-3 * rng.normal(size=(500, 4))
    assert all(objective(found) <= objective(found + step) + 1e-9 for step in steps)
    assert np.linalg.norm(found[1:]) < np.linalg.norm(lines.interior_point(X, y, 0.8)[1:])


def test_padded_band_solves_the_linear_program_of_intpred(systems):
    """Hinges of margin s plus a price of width: the quantile band, moved out by s."""
    lines = systems["quantile_lines"]
    rng = np.random.default_rng(1)
    n, margin, price = 60, 0.3, 0.1
    x = rng.uniform(0, 1, n)
    y = x + (1 + x) * rng.normal(size=n)
    A = np.column_stack([np.ones(n), x])
    zero, eye = np.zeros((n, 2)), np.eye(n)
    # Variables: lower line, upper line, hinges.
    rows = np.block([[A, zero, -eye], [zero, -A, -eye]])
    limits = np.concatenate([y - margin, -y - margin])
    cost = np.concatenate([-price * A.sum(0), price * A.sum(0), np.ones(n)])
    bounds = [(None, None)] * 4 + [(0, None)] * n
    least = linprog(cost, rows, limits, bounds=bounds).fun
    ends = lines.read_lines(
        lines.fit_lines(x[:, None], y, np.array([price, 1 - price])), x[:, None]
    )
    lower, upper = ends[:, 0] - margin, ends[:, 1] + margin
    hinges = np.maximum(0, np.maximum(margin + lower - y, margin + y - upper))
    assert hinges.sum() + price * (upper - lower).sum() == pytest.approx(least, rel=1e-6)


def test_columns_that_differ_by_rounding_alone_are_one(systems):
    """Else their difference would get a coefficient, which no new row has to respect."""
    lines = systems["quantile_lines"]
    rng = np.random.default_rng(0)
    x = rng.uniform(size=300).astype(np.float32)
    other = (np.float32(1) - x).astype(np.float32) * np.float32(1.1)
    X = np.column_stack([x, other]).astype(np.float64)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    y = x + rng.normal(size=300)
    fitted = lines.fit_lines(X, y, np.array([0.95]))
    new = np.array([[1.0, -0.9]])  # not on the line of the others
    assert np.abs(lines.read_lines(fitted, new)).max() < 10


def test_linear_systems_find_the_band_of_uniform_noise(systems):
    X, y = uniform_noise(600)
    tuned = systems["linear"].tune(part_of(systems, X, y))
    for candidate in (tuned["QR"][0], tuned["IntPred"][0]):
        fitted = candidate.fit(np.array([0.9]))
        assert np.allclose(fitted.intervals(X[:50])[..., 0], [-0.9, 0.9], atol=0.12)


# Forests


def test_forests_are_read_out_of_bag_and_agree_with_the_package(systems):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 3)).astype(np.float32)
    y = X[:, 0] + rng.exponential(size=150)
    forests = systems["forests"]
    part = part_of(systems, X, y, quick=True)
    tuned = forests.tune(part)
    levels = systems["interface"].LEVELS
    reach = systems["interface"].Levelled
    for i, settings in enumerate(forests.GRID):
        forest = RandomForestRegressor(part.effort.n_trees, random_state=0, **settings).fit(X, y)
        model = HDIForestRegressor.from_forest(forest, X, y)
        for system, kind in (("HDI-Forest", "hdi"), ("QRF", "equal_tailed")):
            candidate = tuned[system][i]
            unseen = model.oob_.interval(levels, kind=kind)
            expected = reach(settings, part.y, levels, unseen, None).reach(0.8)
            assert candidate.reach(0.8) == expected
            again = candidate.fit(levels).intervals(X[:9])
            assert np.array_equal(again, model.predict_interval(X[:9], levels, kind=kind))
            for padded in tuned[system + ", padded"]:
                if padded.settings == {**settings, "level": 0.7}:
                    base = unseen[..., list(levels).index(0.7)]
                    width = systems["padding"].padded_width(base, part.y, 0.8)
                    assert padded.reach(0.8).mpiw == pytest.approx(width)


def test_forests_of_grouped_rows_do_not_see_a_row_s_own_group(systems):
    """A target that its group alone decides cannot be predicted for another group."""
    groups = np.repeat(np.arange(12), 20)
    X = groups[:, None] + np.zeros((240, 2))
    y = (groups * 7 % 12).astype(float)
    part = part_of(systems, X, y, groups=groups, quick=True)
    of_others = systems["forests"].tune(part)["HDI-Forest"][0].reach(1.0)
    assert of_others.picp < 1
    of_all = systems["forests"].tune(part._replace(groups=None))["HDI-Forest"][0].reach(1.0)
    assert of_all.picp == 1
    assert of_all.mpiw == 0


# Padding


def test_pads_by_hand(systems):
    padding = systems["padding"]
    base = np.array([[0.0, 1.0]] * 4)
    y = np.array([0.5, 1.5, -0.25, 0.9])
    candidate = padding.Padded({}, y, base, lambda: (lambda X: X, 0.0))
    # Scores -0.5, 0.5, 0.25, -0.1: half of the rows are inside once the pad is -0.1.
    assert candidate.reach(0.5) == (0.5, 0.5, pytest.approx(0.8))
    assert candidate.reach(1.0) == (1.0, 1.0, 2.0)
    model = candidate.fit(np.array([0.75])).intervals
    assert np.allclose(model(np.array([[2.0, 3.0]]))[0, :, 0], [1.75, 3.25])
    # An interval narrower than the pad takes away shrinks to its middle, not beyond.
    assert np.allclose(padding.pad(np.array([[0.0, 0.4]]), np.full(3, -1.0), np.array([0.5])), 0.2)
    assert padding.padded_width(base, y, 1.0) == pytest.approx(2)


def test_pads_cover_what_was_asked_for_on_a_lattice(systems):
    rng = np.random.default_rng(0)
    y = rng.integers(3, 9, 400).astype(float)
    base = np.column_stack([y - rng.integers(-1, 2, 400), y + rng.integers(-1, 2, 400)])
    candidate = systems["padding"].Padded({}, y, np.sort(base, axis=1), None)
    for target in (0.7, 0.9, 0.95):
        reached = candidate.reach(target)
        assert reached.level == target
        assert reached.picp >= target


# Boosting


@pytest.mark.parametrize("n", [300, 12_000])
def test_boosting_without_information_finds_the_quantiles(systems, n):
    boosting = systems["boosting"]
    _, y = uniform_noise(n)
    part = part_of(systems, np.zeros((n, 2)), y)
    assert boosting._is_small(part) == (n == 300)
    settings = (boosting._EXACT if n == 300 else boosting._HISTOGRAMS)[0]
    band = boosting.Band(
        part, settings._replace(subsample=1.0 if n == 300 else None), 40, [0.5, 0.9]
    )
    lower, upper = band(part.X[:1])[0]
    assert [(y < end).mean() for end in lower] == pytest.approx([0.25, 0.05], abs=0.005)
    assert [(y < end).mean() for end in upper] == pytest.approx([0.75, 0.95], abs=0.005)


def test_boosting_reads_each_number_of_rounds(systems):
    boosting = systems["boosting"]
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    part = part_of(systems, X, X[:, 0] + 0.1 * rng.normal(size=200))
    settings, level = boosting.Settings(2, 5, 1.0), np.array([0.8])
    staged = boosting.Band(part, settings, 30, level).after(np.array([10, 30]), part.X)
    for i, rounds in enumerate((10, 30)):
        alone = boosting.Band(part, settings, rounds, level)(part.X)
        assert np.allclose(staged[..., i], alone[..., 0])


# Networks


def test_training_is_adam(systems):
    import torch

    network = systems["network"]
    torch.manual_seed(0)
    X, y = torch.randn(60, 3), torch.randn(60)
    nets = network.new_nets(2, 3, 5, (1.0, -1.0), 0.3)
    goal = systems["mean_variance"].likelihood_loss
    rows = torch.arange(60).repeat(2, 1)
    rate, decay, l2 = 0.02, 0.9, 0.01
    # One batch an epoch: the order of the rows does not matter.
    schedule = network.Schedule(rate, decay, l2)
    found = network.train(nets, X, y, rows, goal, schedule, [3, 7])
    weights = [value.clone().requires_grad_(True) for value in nets]
    optimiser = torch.optim.Adam(
        [
            {"params": [weights[0], weights[2]], "weight_decay": l2},
            {"params": [weights[1], weights[3]]},
        ],
        lr=rate,
    )
    falling = torch.optim.lr_scheduler.LambdaLR(optimiser, lambda step: decay ** (step / 50))
    for _ in range(7):
        optimiser.zero_grad()
        goal(network.Nets(*weights)(X), y.repeat(2, 1)).sum().backward()
        optimiser.step()
        falling.step()
    for value, expected in zip(found[1], weights, strict=True):
        assert torch.allclose(value, expected, atol=1e-5)
    assert not torch.allclose(found[0].hidden, found[1].hidden)


def test_nets_do_not_disturb_each_other(systems):
    import torch

    network = systems["network"]
    torch.manual_seed(0)
    X, y = torch.randn(40, 2), torch.randn(40)
    goal = systems["dropout"].squared_loss
    nets = network.new_nets(3, 2, 4, (0.0,), 0.3)
    rates = torch.tensor([0.01, 0.05, 0.0])
    rows = torch.stack([torch.arange(20), torch.arange(20, 40), torch.arange(10, 30)])
    together = network.train(nets, X, y, rows, goal, network.Schedule(rates), [5])[0]
    for i in range(3):
        at = torch.tensor([i])
        schedule = network.Schedule(rates[at])
        alone = network.train(nets.take(at), X, y, rows[at], goal, schedule, [5])[0]
        for value, expected in zip(together.take(at), alone, strict=True):
            assert torch.allclose(value, expected, atol=1e-6)
    assert torch.equal(together.hidden[2], nets.hidden[2])


def test_rows_of_folds_are_equal_in_number_and_drawn_at_random(systems):
    parts = [np.arange(100), np.arange(100, 160)]
    rows = systems["network"].repeated_rows(parts, 2, 0).numpy()
    assert rows.shape == (4, 60)
    assert np.array_equal(rows[0], rows[1])
    assert rows[0].max() >= 90  # not the first ones
    assert np.array_equal(np.sort(rows[2]), parts[1])


def test_equal_steps_for_folds(systems):
    network = systems["network"]
    assert network.epochs_of_equal_steps(100, 500, 400) == 125
    assert network.epochs_of_equal_steps(100, 50, 40) == 100


def test_quality_driven_loss_by_hand(systems):
    import torch

    quality = systems["quality_driven"]
    # Upper, lower: two of four targets are inside, far from the ends.
    outputs = torch.tensor([[[2.0, 0.0], [2.0, 0.0], [2.0, 1.0], [3.0, -1.0]]])
    y = torch.tensor([[1.0, 5.0, -4.0, 1.0]])
    width = (2.0 + 4.0) / 2.001
    lack = 0.95 - 0.5
    found = quality.loss(outputs, y, torch.tensor(15.0))
    assert found.item() == pytest.approx(width + 15 * 2 * lack**2, rel=1e-5)


def test_quality_driven_ensemble_by_hand(systems):
    upper, lower = np.array([[1.0], [3.0]]), np.array([[0.0], [0.0]])
    # Mean 2, standard deviation sqrt(2), two members.
    expected = [0, 2 + 1.96 * np.sqrt(2) / np.sqrt(2)]
    assert np.allclose(systems["quality_driven"].combine(upper, lower)[0], expected)


@pytest.mark.parametrize("module", ["quality_driven", "lube"])
def test_networks_of_ends_find_the_shortest_interval_of_uniform_noise(systems, module):
    """95 % of a uniform target on [-1, 1] need a width of 1.9."""
    X, y = uniform_noise(600)
    tuned = systems[module].tune(part_of(systems, X, y, name="boston"))
    (candidate,) = next(iter(tuned.values()))
    interval = candidate.fit(np.array([0.95])).intervals(uniform_noise(400, 1)[0])[..., 0]
    assert 1.8 < np.diff(interval, axis=1).mean() < 2.15
    outside = uniform_noise(400, 1)[1]
    inside = (interval[:, 0] <= outside) & (outside <= interval[:, 1])
    assert 0.9 < inside.mean() < 0.99


def test_failed_members_are_trained_again_and_the_better_attempt_kept(systems, monkeypatch):
    import torch

    quality, network = systems["quality_driven"], systems["network"]
    attempts = []

    def train(nets, X, y, rows, *_):
        """Two nets: the first is good from the second attempt on, the second never finite."""
        attempts.append(len(rows))
        ends = torch.tensor([9e3, -9e3] if len(attempts) == 1 else [3.0, -3.0])
        value = ends.expand(len(rows), 1, 2).clone()
        value[-1] = torch.nan
        zero = [torch.zeros_like(weights) for weights in nets]
        return [network.Nets(*zero[:3], value)]

    monkeypatch.setattr(quality, "train", train)
    X, y = uniform_noise(200)
    data = network.Data(part_of(systems, X, y))
    rows = torch.arange(200).repeat(2, 1)
    nets = quality._train(data, rows, 300, quality.PUBLISHED["boston"])
    assert attempts == [2, 2, 1, 1]
    assert nets.output_bias[0].flatten().tolist() == [3.0, -3.0]


def test_lube_loss_by_hand(systems):
    import torch

    outputs = torch.tensor([[[0.0, 2.0], [4.0, 0.0]]])  # lower, upper, in either order
    y = torch.tensor([[1.0, 5.0]])
    found = systems["lube"].loss(outputs, y, torch.tensor([4.0]))
    expected = 3.0 / 4.0 * (1 + np.exp(50 * (0.95 - 0.5)))
    assert found.item() == pytest.approx(expected, rel=1e-5)
    covered = systems["lube"].loss(outputs, torch.tensor([[1.0, 3.0]]), torch.tensor([4.0]))
    assert covered.item() == pytest.approx(1.5)  # the paper's factor is 2, not 1, when covered


def test_annealing_never_returns_worse_than_it_was_given(systems):
    import torch

    lube = systems["lube"]
    torch.manual_seed(0)
    X, y = torch.randn(3, 50, 2), torch.randn(3, 50)
    nets = systems["network"].new_nets(3, 2, 4, (-1.0, 1.0), 0.5)
    spread = y.amax(dim=1) - y.amin(dim=1)
    before = lube.loss(nets(X), y, spread)
    after = lube.loss(lube.anneal(nets, X, y, 300)(X), y, spread)
    assert (after <= before).all()
    assert (after < before).any()


def test_gaussian_losses_by_hand(systems):
    import torch

    # softplus of log(e^4 - 1) is 4, of 0 it is log 2.
    outputs = torch.tensor([[[1.0, np.log(np.expm1(4.0))], [0.0, 0.0]]], dtype=torch.float32)
    y = torch.tensor([[3.0, 1.0]])
    expected = ((np.log(4) + 4 / 4) + (np.log(np.log(2)) + 1 / np.log(2))) / 2 / 2
    found = systems["mean_variance"].likelihood_loss(outputs, y).item()
    assert found == pytest.approx(expected, rel=1e-5)
    assert systems["dropout"].squared_loss(outputs, y).item() == pytest.approx((4 + 1) / 4)
    normal = systems["gaussian"].Normal(np.array([1.0]), np.array([4.0]))
    assert np.allclose(normal.intervals(np.array([0.9]))[0, :, 0], 1 + 2 * 1.644854 * np.r_[-1, 1])


def test_normal_networks_find_mean_and_spread(systems):
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, 800)
    y = 2 * x + rng.normal(size=800) * np.where(x > 0, 1.0, 0.2)
    part = part_of(systems, x[:, None], y)
    X = np.array([[-0.5], [0.5]], dtype=np.float32)
    for module, spreads in (("mean_variance", (0.2, 1.0)), ("dropout", (0.7, 0.7))):
        (candidates,) = systems[module].FAMILY.tune(part).values()
        interval = candidates[0].fit(np.array([0.6827])).intervals(X)[..., 0]
        assert np.allclose(interval.mean(axis=1), [-1, 1], atol=0.15)
        assert np.allclose(np.diff(interval, axis=1)[:, 0] / 2, spreads, rtol=0.3)


@pytest.mark.parametrize(
    "module",
    ["forests", "linear", "boosting", "quality_driven", "lube", "mean_variance", "dropout"],
)
def test_every_system_answers_for_all_levels(systems, module):
    """On rows with a constant and a missing feature, for levels up to 1."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 4)).astype(np.float32)
    X[:, 1] = 1
    X[::5, 2] = np.nan
    part = part_of(systems, X, rng.exponential(size=120), quick=True)
    levels = systems["interface"].LEVELS
    family = systems[module].FAMILY
    tuned = family.tune(part)
    assert tuple(tuned) == family.systems
    for candidates in tuned.values():
        for candidate in (candidates[0], candidates[-1]):
            reached = candidate.reach(0.9)
            assert reached.picp <= 1
            assert reached.mpiw >= 0
            fitted = candidate.fit(levels)
            intervals = fitted.intervals(X[:7])
            assert intervals.shape == (7, 2, len(levels))
            assert np.isfinite(intervals).all()
            assert (intervals[:, 0] <= intervals[:, 1]).all()
            assert fitted.seconds >= 0
