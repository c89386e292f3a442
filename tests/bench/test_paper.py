"""The paper's evaluation: what is predicted, how it is tuned and compared, a small run of it."""

import importlib
import subprocess
import sys

import numpy as np
import pytest

from ..oracle import ROOT, scripts_of

MODULES = (
    "comparing",
    "figures",
    "frames",
    "in_hindsight",
    "matching",
    "protocol",
    "published",
    "store",
    "tables",
    "tasks",
    "words",
)


@pytest.fixture(scope="module")
def paper():
    """The modules of bench/paper, which find each other as scripts do."""
    pytest.importorskip("torch")
    with scripts_of("paper", ""):
        yield {name: importlib.import_module(name) for name in MODULES}


def test_every_task_has_its_rows_and_features(paper):
    tasks = paper["tasks"]
    shapes = {name: tasks.load(name).X.shape for name in tasks.NAMES}
    assert shapes["boston"] == (506, 13)
    assert shapes["parkinsons"] == (5875, 21)
    assert shapes["parkinsons_new_subjects"] == (5875, 19)
    assert shapes["wine"] == (1599, 11)
    assert shapes["wine_unique"] == (1359, 11)
    assert shapes["communities"] == (1994, 122)
    forest_fires = tasks.load("forest_fires")
    assert [forest_fires.features[i] for i in forest_fires.categorical] == ["month", "day"]


def test_the_whole_of_online_news_is_read_from_uci_s_file(paper, tmp_path):
    """As UCI has it: blanks before names, and columns that are no features."""
    datasets = importlib.import_module("datasets")
    part = datasets.load("online_news")
    columns = ["url", *(f" {name}" for name in ("timedelta", *part.features, "shares"))]
    path = tmp_path / "OnlineNewsPopularity.csv"
    rows = [
        ",".join(["http://x", "731.0", *(str(float(v)) for v in x), str(int(y))])
        for x, y in zip(part.X[:5], part.y[:5], strict=True)
    ]
    path.write_text("\n".join([",".join(columns), *rows]) + "\n")
    whole = datasets.load_whole_news(path)
    assert whole.features == part.features
    assert np.array_equal(whole.X, part.X[:5])
    assert np.array_equal(whole.y, part.y[:5])
    path.write_text("a,b\n1,2\n")
    with pytest.raises(ValueError, match="has no column 'LDA_00'"):
        datasets.load_whole_news(path)


@pytest.mark.parametrize("name", ["boston", "parkinsons_new_subjects"])
def test_splits_are_disjoint_and_do_not_depend_on_their_number(paper, name):
    tasks = paper["tasks"]
    task = tasks.load(name)
    two, three = list(tasks.splits(task, 2)), list(tasks.splits(task, 3))
    for (train, test), again in zip(two, three, strict=False):
        assert np.array_equal(train, again[0])
        assert np.array_equal(test, again[1])
        assert np.array_equal(np.sort(np.concatenate([train, test])), np.arange(len(task.y)))
        assert abs(len(test) / len(task.y) - 0.2) < 0.05
        if task.groups is not None:
            assert not set(task.groups[train]) & set(task.groups[test])
    assert not np.array_equal(two[0][1], two[1][1])


def test_larger_data_get_fewer_splits(paper):
    tasks = paper["tasks"]
    assert tasks.n_splits("naval") == 20
    assert tasks.n_splits("protein") == 10


def test_published_means_are_those_of_the_rows(paper):
    published = paper["published"]
    tasks = paper["tasks"]
    assert set(published.TABLE_2) <= set(tasks.NAMES)
    for measure in ("picp", "mpiw"):
        rows = np.array([getattr(row, measure) for row in published.TABLE_2.values()])
        assert np.abs(rows.mean(axis=0) - getattr(published.MEANS, measure)).max() < 0.0075


def test_level_is_found_between_levels_and_past_noise(paper):
    level_reaching = paper["matching"].level_reaching
    levels = np.array([0.5, 0.7, 0.9])
    assert level_reaching(levels, np.array([0.4, 0.6, 0.8]), 0.7) == pytest.approx(0.8)
    assert level_reaching(levels, np.array([0.75, 0.72, 0.9]), 0.7) == 0.5
    assert level_reaching(levels, np.array([0.6, 0.5, 0.8]), 0.7) == pytest.approx(0.8)
    assert level_reaching(levels, np.array([0.4, 0.6, 0.8]), 0.95) == 0.9


def test_ratio_of_widths_by_hand(paper):
    width_ratio = paper["matching"].width_ratio
    same = width_ratio(np.array([2.0, 4.0]), np.array([1.0, 2.0]), 0.25)
    assert same == pytest.approx((2, 2, 2))
    # Logarithms -1 and 1: variance 2, error sqrt(2 * (1/2 + 1/4)), t of one degree of freedom.
    found = width_ratio(np.exp([-1.0, 1.0]), np.ones(2), 0.25)
    reach = 12.706204736 * np.sqrt(1.5)
    assert found == pytest.approx((1, np.exp(-reach), np.exp(reach)))


class OneFit:
    """A candidate whose intervals are [-c, c], c by level, whatever the rows."""

    def __init__(self, y, levels, reach):
        self.fitted_at = []
        interface = importlib.import_module("systems.interface")

        def intervals(n, at):
            c = np.interp(at, levels, reach)
            return np.broadcast_to(np.stack([-c, c]), (n, 2, len(c)))

        def fit(at):
            self.fitted_at.append(list(at))
            return interface.Fitted(lambda X: intervals(len(X), at), 1.5)

        levels = np.asarray(levels)
        unseen = intervals(len(y), levels)
        self.candidate = interface.Levelled({"reach": 1}, y, levels, unseen, fit)


def test_the_narrowest_candidate_at_the_target_is_chosen(paper):
    choose = paper["protocol"].choose
    y = np.linspace(-1, 1, 101)
    levels = [0.1, 0.5, 0.9]
    wide = OneFit(y, levels, [0.4, 0.8, 1.0]).candidate
    fine = OneFit(y, levels, [0.5, 0.6, 1.0]).candidate
    short = OneFit(y, levels, [0.1, 0.2, 0.31]).candidate
    assert wide.reach(0.8).level == pytest.approx(0.5, abs=0.01)
    found = choose([short, wide, fine], 0.6)
    assert found.candidate != 0  # the only one that does not cover 0.6
    assert found.at.picp == pytest.approx(0.6, abs=0.01)
    assert found.at.mpiw == pytest.approx(1.2, abs=0.01)
    assert choose([short, short], 0.6) == (0, (0.9, pytest.approx(31 / 101), pytest.approx(0.62)))


def test_a_unit_is_measured_by_hand(paper):
    protocol, tasks = paper["protocol"], paper["tasks"]
    interface = importlib.import_module("systems.interface")
    y = np.linspace(-1, 1, 200)
    task = tasks.Task("boston", np.zeros((200, 1), np.float32), y, ["x"], [], None)
    train, _ = next(tasks.splits(task, 1))
    one = OneFit(y[train], [0.0, 1.0], [0.0, 1.0])
    family = interface.Family("f", 1, ("QRF",), lambda part: {"QRF": [one.candidate]})
    found = protocol.measure(family, task, next(tasks.splits(task, 1)), 0, interface.QUICK)
    assert set(found) == {"QRF"}
    assert len(one.fitted_at) == 5  # four targets and the curve
    targets = found["QRF"]["targets"]
    assert sorted(targets) == ["0.90", "0.92", "0.93", "0.95"]  # canonical, its own, matched
    at = targets["0.90"]
    assert at["level"] == pytest.approx(0.9, abs=0.03)
    assert at["mpiw"] == pytest.approx(2 * at["level"] / y.std(), rel=1e-5)
    assert at["picp"] == pytest.approx(0.9, abs=0.1)
    assert at["fit_seconds"] == 1.5
    assert len(found["QRF"]["curve"]["picp"]) == len(interface.LEVELS)


def test_pairs_are_compared_on_shared_splits_and_marked(paper):
    pd = pytest.importorskip("pandas")
    rows = [
        {
            "task": "wine",
            "system": system,
            "seed": seed,
            "n_train": 80,
            "n_test": 20,
            "target": 0.92,
            "picp": picp,
            "mpiw": mpiw * (1 + 0.01 * seed),
        }
        for system, picp, mpiw, seeds in (("A", 0.9, 1.0, 5), ("B", 0.93, 2.0, 4))
        for seed in range(seeds)
    ]
    (pair,) = paper["comparing"].pairs(pd.DataFrame(rows), "A", "B")
    assert pair.task == "wine"
    assert pair.n_splits == 4
    assert pair.ratio == pytest.approx((0.5, 0.5, 0.5))
    assert pair.verdict == "narrower"
    assert not pair.is_matched
    is_close = paper["comparing"].is_close
    assert is_close(0.905, 0.9, 0.9)
    assert not is_close(0.985, 0.99, 0.99)  # half as many again are missed


def test_pairs_are_compared_where_both_cover_as_much(paper):
    pd = pytest.importorskip("pandas")
    levels = np.linspace(0.5, 0.98, 9)
    frames = [
        pd.DataFrame(
            {
                "task": "wine",
                "system": system,
                "seed": seed,
                "level": levels,
                "picp": levels + shift + noise,
                "mpiw": factor * (levels + shift) * np.exp(noise),
            }
        )
        for system, shift, factor in (("A", -0.05, 1.0), ("B", 0.0, 2.0))
        for seed, noise in enumerate((-0.02, 0.0, 0.02))
    ]
    compare = paper["comparing"].pairs_at_equal_picp
    curves = pd.concat(frames)
    (pair,) = compare(curves, "A", "B", lambda _: 0.9)
    # A needs a higher level than B for the same coverage, and has half the width there.
    assert (pair.picp, pair.other_picp) == pytest.approx((0.9, 0.9))
    assert pair.ratio == pytest.approx((0.5, 0.5, 0.5), rel=1e-3)
    assert pair.n_splits == 3
    assert compare(curves, "A", "B", lambda _: 0.97) == []  # A covers 0.93 at most
    assert compare(curves, "A", "C", lambda _: 0.9) == []
    # Where splits disagree on the coverage of one system, its level and so the ratio is uncertain.
    apart = curves.copy()
    apart.loc[(apart["system"] == "A") & (apart["seed"] == 0), "picp"] -= 0.03
    (unsure,) = compare(apart, "A", "B", lambda _: 0.9)
    assert unsure.ratio.lower < unsure.ratio.mean < unsure.ratio.upper


@pytest.fixture
def written(paper, tmp_path):
    """Results of two systems on three splits of boston, the second twice as wide as the first."""
    levels = importlib.import_module("systems.interface").LEVELS
    store = paper["store"]
    for system, mpiw, settings in (("HDI-Forest", 1.0, 1), ("QRF", 2.0, 3)):
        for seed, by in enumerate((0.98, 1.0, 1.02)):
            targets = {
                f"{target:.2f}": {
                    "settings": {"min_samples_leaf": settings + (seed == 2)},
                    "level": target,
                    "training": {"picp": target, "mpiw": mpiw},
                    "fit_seconds": 1.0,
                    "predict_seconds": 0.5,
                    "picp": target + 0.001 * seed,
                    "mpiw": mpiw * by,
                    "interval_score": 3 * mpiw,
                    "strata": {
                        "rows": [0, 30, 40, 30],
                        "picp": [None, 0.8, 0.9, 1.0],
                        "mpiw": [None, 0.5, 1.0, 1.5],
                    },
                }
                for target in paper["protocol"].targets_of("boston", system)
            }
            curve = {"picp": (levels * 0.99).tolist(), "mpiw": (mpiw * by * levels).tolist()}
            shared = {"made_by": "x", "n_train": 400, "n_test": 100, "tuning_seconds": 7.0}
            result = {**shared, "unit_seconds": 3600.0, "targets": targets, "curve": curve}
            store.add(store.path_of(tmp_path, "boston"), {(system, seed): result})
    return tmp_path


def test_tables_hold_what_the_results_say(paper, written):
    tables, frames = paper["tables"], paper["frames"]
    scores, curves = frames.read_scores(written), frames.read_curves(written)
    hdi, qrf = tables.table_2(scores, curves).to_dict("records")
    # Standard error of 0.98, 1 and 1.02: 0.02 / sqrt(3).
    assert (hdi["MPIW"], hdi["paper's MPIW"], hdi["difference"]) == (
        "1.000 ± 0.012",
        "1.02",
        "-2 %",
    )
    assert (hdi["PICP"], hdi["paper's PICP"], hdi["splits"]) == ("0.931 ± 0.001", "0.93", 3)
    assert hdi["our MPIW at the paper's PICP"] == f"{0.93 / 0.99:.3f}"
    assert (qrf["system"], qrf["paper's PICP"], qrf["difference"]) == ("QRF", "0.92", "+68 %")
    # A share of 1.02 would need a level above 1.
    assert (hdi["our PICP at the paper's MPIW"], qrf["our PICP at the paper's MPIW"]) == (
        "",
        f"{1.19 / 2 * 0.99:.3f}",
    )
    (widths,) = tables.widths(scores[scores["target"] == 0.95], ["HDI-Forest", "QRF"]).to_dict(
        "records"
    )
    assert widths["QRF"] == "2.000 ± 0.023 @ 0.951"
    (ratios,) = tables.forest_pairs(scores).to_dict("records")
    assert ratios["each tuned, 0.90"] == "0.500 [0.500, 0.500]"
    (ratios,) = tables.forest_pairs_at_equal_picp(curves).to_dict("records")
    assert ratios["each tuned, paper's PICP"] == "0.500 [0.500, 0.500]"
    (shares,) = tables.coverage_by_width(scores).to_dict("records")
    assert shares["QRF"] == "- / 0.80 / 0.90 / 1.00"
    (times,) = tables.seconds(scores).to_dict("records")
    assert times["HDI-Forest"] == "7 / 1 / 0.5"
    counted = tables.choices(frames.read_settings(written)).to_dict("records")
    assert [row["value: times chosen"] for row in counted] == ["1: 2, 2: 1", "3: 2, 4: 1"]
    (work,) = tables.hours(scores, {"forests": ["HDI-Forest", "QRF"]}).to_dict("records")
    assert (work["units"], work["hours of one core"]) == (3, "3.0")
    assert "boston 3" in work["fewer splits than planned for all"]


def test_words_are_counted_from_the_results(paper, written):
    frames = paper["frames"]
    scores, curves = frames.read_scores(written), frames.read_curves(written)
    said = "\n".join(paper["words"].summary(scores, curves))
    assert (
        "MPIW within 5 %: boston -2 % at PICP 0.931 for 0.93. Narrower than printed: none" in said
    )
    assert "Further apart: boston -8 %" in said  # 0.93 / 0.99 / 1.02
    assert "narrower: boston 0.500 [0.500, 0.500]. no difference shown: none" in said
    assert "over these 1 data sets 0.500." in said  # too few for a test
    assert "* QRF. narrower: boston; no difference shown: none" in said


def test_the_best_configuration_in_hindsight_by_hand(paper):
    hindsight, levels = paper["in_hindsight"], importlib.import_module("systems.interface").LEVELS

    def configuration(leaf, reach, width):
        curve = {"picp": (reach * levels).tolist(), "mpiw": (width * levels).tolist()}
        return {"settings": {"min_samples_leaf": leaf}, **curve}

    # The narrowest never covers 0.9; means over both splits decide between the others.
    first = [configuration(1, 0.8, 0.1), configuration(3, 1.0, 2.0), configuration(5, 1.0, 1.0)]
    second = [configuration(1, 0.8, 0.1), configuration(3, 1.0, 2.0), configuration(5, 1.0, 5.0)]
    widths = hindsight.widths_at([first, second], 0.9)
    assert widths == pytest.approx([np.inf, 1.8, 2.7])
    row = hindsight.row("boston", [first, second])  # 1.02 @ 0.93
    assert row["best forest at that PICP"] == "1.860 (+82%)"
    assert row["at 0.005 less"] == "1.850 (+81%)"
    assert row["settings of the best"] == "min_samples_leaf 3"
    # On the first half alone the last is best.
    assert row["of half of the splits, 5 to 95 %"] == "0.925 (-9%) to 1.850 (+81%)"
    assert row["forest and level chosen anew on each test part"] == "1.388 (+36%)"


def test_every_forest_is_read_in_hindsight(paper, monkeypatch):
    hindsight, tasks = paper["in_hindsight"], paper["tasks"]
    monkeypatch.setattr(hindsight, "_N_TREES", 5)
    found = hindsight.run_split(tasks.load("boston"), 0)
    assert len({tuple(one["settings"].items()) for one in found}) == 30
    assert all(np.all(np.diff(one["mpiw"]) >= 0) for one in found)


def test_figure_1_has_the_intervals_of_the_gamma_distribution(paper):
    shortest, equal_tailed = paper["figures"].gamma_intervals()
    assert np.allclose(shortest, [0.435552, 1.917951], atol=2e-4)
    assert np.allclose(equal_tailed, [0.961279, 2.692635], atol=2e-4)


def test_a_quick_run_is_complete_and_continues(paper, tmp_path):
    store = paper["store"]
    command = [sys.executable, ROOT / "bench" / "paper" / "run.py", "--quick", "--jobs", "2"]
    command += ["--tasks", "boston", "wine", "--results", tmp_path]
    subprocess.run(command, check=True, capture_output=True, text=True)
    files = [tmp_path / "boston.jsonl", tmp_path / "wine.jsonl"]
    boston, wine = (store.read(path) for path in files)
    assert len(boston) == len(wine) == 2 * 12  # splits, systems
    assert set(boston["HDI-Forest", 0]["targets"]) == {"0.90", "0.93", "0.95"}
    text = (tmp_path / "report" / "tables.md").read_text()
    for name in ("HDI-Forest", "QRF", "QR_GBDT", "IntPred", "QD-Ens", "LUBE", "MVE", "MC dropout"):
        assert f" {name} " in text
    assert (tmp_path / "report" / "figure_2.png").stat().st_size > 0
    # Without the result of one system, its unit is run again, and nothing else.
    kept = [
        line for line in files[0].read_text().splitlines(True) if '"LUBE", "seed": 0' not in line
    ]
    assert len(kept) == 2 * 12 - 1
    files[0].write_text("".join(kept))
    before = files[1].stat().st_mtime_ns
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    assert "tables and pictures" in done.stdout
    assert files[1].stat().st_mtime_ns == before
    again = store.read(files[0])
    del again["LUBE", 0]
    del boston["LUBE", 0]
    assert again == boston


def test_a_plan_runs_nothing(paper, tmp_path):
    command = [sys.executable, ROOT / "bench" / "paper" / "run.py", "--plan"]
    command += ["--families", "forests", "--tasks", "boston", "--results", tmp_path]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    assert "forests" in done.stdout
    assert not list(tmp_path.iterdir())
