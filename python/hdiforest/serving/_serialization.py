"""Fitted models as facts, arrays and objects, and back: for files and for pickles."""

from __future__ import annotations

import math
import re
import reprlib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass
from functools import cache, partial
from itertools import repeat
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from hdicore import Forest, LeafIndex, Scorer
from hdiforest._model.fitted import FittedForest, Jackknife
from hdiforest._model.residuals import (
    BoostedMean,
    CentredForest,
    LocalLinearMean,
    Mean,
    RegressorMean,
)
from hdiforest._model.table_steps import TableSteps
from hdiforest._model.training_rows import TrainingRows
from hdiforest._tables.encoder import TableEncoder
from hdiforest.calibration._bases import Base
from hdiforest.calibration._distribution import PredictiveDistribution
from hdiforest.calibration._groups import Groups
from hdiforest.calibration._postprocess import Lattice, PostProcess
from hdiforest.calibration._result import (
    CROSS_METHODS,
    Calibration,
    CrossCalibration,
    CrossCheck,
    FixedLevel,
    JointCalibration,
    Level,
    level_of_check,
    output_names,
)
from hdiforest.serving import _schema as schema
from hdiforest.serving._schema import Arrays, Facts, Origin

_PART = re.compile(r"(fold|output)\d+\.")
_HERE = Origin()  # no file


class Parts(NamedTuple):
    """What a model is made of."""

    facts: Facts  # types of JSON
    arrays: Arrays
    objects: dict[str, Any]  # fitted ones of scikit-learn that no array stands for

    def state(self) -> dict[str, Any]:
        """Return the parts for a pickle: copies of a model do not look at a file."""
        mapped = {n: np.array(a) for n, a in self.arrays.items() if isinstance(a, np.memmap)}
        return self._replace(arrays=self.arrays | mapped)._asdict()


def to_arrays(fitted: FittedForest, *, training_rows: bool = True) -> Parts:
    """Return what `from_arrays` makes an equal model of; ValueError if its rows are damaged."""
    forest, index = fitted.scorer.forest, fitted.scorer.index
    has_rows = training_rows and fitted.training_rows is not None
    rows = fitted.require_training_rows() if has_rows else None
    encoder, centred = fitted.encoder, fitted.centred
    facts: Facts = {name: getattr(fitted, name) for name in schema.FIELDS}
    facts |= {
        "n_features": forest.n_features,
        "feature_names": _texts(fitted.feature_names),
        "target_names": _texts(fitted.target_names),
        "scalar_output": index.scalar_output,
        "counts_are_weighted": rows is not None and rows.counts_are_weighted,
        "encoder": encoder.facts() if isinstance(encoder, TableEncoder) else None,
        "steps": encoder.facts() if isinstance(encoder, TableSteps) else None,
        "calibration": None,
        "mean": None,
        "folds": [],
        "outputs": [],
    }
    arrays: Arrays = {name: getattr(fitted, name) for name in schema.ARRAY_FIELDS}
    arrays |= _named("forest", forest.arrays()) | _named("index", index.arrays())
    objects: dict[str, Any] = {}
    if isinstance(encoder, TableSteps):
        objects["steps"] = encoder.pipeline
    if rows is not None:
        arrays |= _named("training", rows.arrays())
    if isinstance(fitted.calibration, JointCalibration):
        arrays["joint.q_hat"] = fitted.calibration.q_hat
        arrays["joint.levels"] = np.array(
            [
                [each.mean_width, each.realised, *_cross_check_row(each.cross_check)]
                for each in fitted.calibration.levels
            ],
            dtype=np.float64,
        )
    elif fitted.calibration is not None:
        facts["calibration"], own = calibration_to_arrays(fitted.calibration)
        arrays |= _named("calibration", own)
    if centred is not None:
        arrays |= _named("residuals", centred.scorer.index.arrays())
        arrays["centred.leaf_means"] = centred.leaf_means
    if centred is not None and centred.mean is not None:
        mean = centred.mean
        facts["mean"] = {"share": centred.share, "baseline": None, "penalty": None}
        if isinstance(mean, BoostedMean):
            facts["mean"]["baseline"] = mean.baseline
            arrays |= _named("mean_forest", mean.forest.arrays())
            arrays["centred.mean_values"] = mean.leaf_values
        elif isinstance(mean, LocalLinearMean):
            facts["mean"]["penalty"] = mean.penalty
            arrays |= _named("drawn", mean.scorer.index.arrays()) | _named("local", mean.arrays())
        else:
            objects["mean"] = cast("RegressorMean", mean).regressor
    if fitted.jackknife is not None:
        arrays |= _named("inbag", fitted.jackknife.index.arrays())
        arrays["jackknife.drawn"] = fitted.jackknife.drawn.astype(np.uint8)
    for kind, parts in (("fold", fitted.folds), ("output", fitted.outputs)):
        for i, part in enumerate(parts):
            own_facts, own_arrays, own_objects = to_arrays(part, training_rows=False)
            facts[f"{kind}s"].append(own_facts)
            arrays |= _named(f"{kind}{i}", own_arrays)
            objects |= {f"{kind}{i}.{name}": each for name, each in own_objects.items()}
    return Parts(facts, arrays, objects)


def from_arrays(parts: Parts, origin: Origin = _HERE, *, copy: bool = True) -> FittedForest:
    """Return the model that `to_arrays` took apart; nothing is trusted but the objects.

    Without the `origin` of a file everything is checked now. With `copy` compiled objects copy
    arrays, unless these map a file for reading, as ``joblib.load(path, mmap_mode="r")`` returns
    them. ValueError says that an entry is missing, not known, of another type or shape, or out of
    range.
    """
    facts, arrays, objects = parts
    schema.check_facts(facts, schema.FACTS)
    own = {name: array for name, array in arrays.items() if not _PART.match(name)}
    schema.check_arrays(own, schema.ARRAYS, _sizes(facts, own))
    mean = facts["mean"]
    is_object = mean and mean["baseline"] is None and mean["penalty"] is None
    named = {"steps": facts["steps"] is not None, "mean": is_object}
    if {each for each in objects if not _PART.match(each)} != {n for n in named if named[n]}:
        raise ValueError("its objects are not those that its facts name")
    names = _names(facts, "feature", facts["n_features"])
    read = _Reader(_grouped(own), origin, copy)
    scorer = Scorer(read.forest("forest", facts), read.index("index", facts["scalar_output"]))
    rows, check_rows = _training_rows(read, facts, scorer.index)
    fields: dict[str, Any] = {name: facts[name] for name in schema.FIELDS}
    outputs = _forests("output", parts, origin, copy)
    has_boxes = bool(outputs or read.groups["joint"])
    return FittedForest(
        scorer=scorer,
        feature_names=None if names is None else np.array(names, dtype=object),
        target_names=_names(facts, "target", scorer.index.n_outputs),
        training_rows=rows,
        check_rows=check_rows,
        calibration=_joint(outputs, facts, read) if has_boxes else _calibration(facts, read),
        centred=_centred(read, facts, objects, scorer.forest),
        folds=_forests("fold", parts, origin, copy),
        outputs=outputs,
        jackknife=_jackknife(read, scorer.forest),
        encoder=_encoder(facts, objects),
        **fields | {name: np.array(arrays[name]) for name in schema.ARRAY_FIELDS},
    )


@dataclass(frozen=True, eq=False)
class IndexedLeaves:
    """What is kept of a `LeafModel`."""

    index: LeafIndex
    n_training_rows: int | None = None
    calibration: Calibration | None = None
    target_names: Sequence[str] | None = None

    def __post_init__(self) -> None:
        calibration = self.calibration
        if calibration is not None and (
            not isinstance(calibration, Calibration)
            or calibration.method != "split"
            or self.index.n_outputs > 1
            or calibration.bases[0].family != "raw"
            or len(set(calibration.bases)) > 1
        ):
            raise ValueError("the calibration does not fit an index of leaves")


def leaves_to_arrays(leaves: IndexedLeaves) -> Parts:
    """Return what `leaves_from_arrays` makes equal leaves of."""
    facts: Facts = {"n_training_rows": leaves.n_training_rows, "calibration": None}
    facts["scalar_output"] = leaves.index.scalar_output
    facts["target_names"] = _texts(leaves.target_names)
    arrays = _named("index", leaves.index.arrays())
    if leaves.calibration is not None:
        facts["calibration"], own = calibration_to_arrays(leaves.calibration)
        arrays |= _named("calibration", own)
    return Parts(facts, arrays, {})


def leaves_from_arrays(parts: Parts, origin: Origin = _HERE, *, copy: bool = True) -> IndexedLeaves:
    """Return the leaves that `leaves_to_arrays` took apart; see `from_arrays`."""
    facts, arrays, _ = parts
    schema.check_facts(facts, schema.LEAF_FACTS)
    schema.check_arrays(arrays, schema.LEAF_ARRAYS, {})
    read = _Reader(_grouped(arrays), origin, copy)
    index = read.index("index", facts["scalar_output"])
    calibration = cast("Calibration | None", _calibration(facts, read))
    targets = _names(facts, "target", index.n_outputs)
    return IndexedLeaves(index, facts["n_training_rows"], calibration, targets)


def _texts(names: Iterable[Any] | None) -> list[str] | None:
    return None if names is None else list(map(str, names))


def _names(facts: Facts, what: str, n: int) -> list[str] | None:
    """Return the names of the n features or targets, or None if they have none."""
    names: list[str] | None = facts[f"{what}_names"]
    if names is not None and len(names) != n:
        raise ValueError(f"it names {len(names)} {what}s of {n}")
    return names


def _named(group: str, arrays: Mapping[str, Any]) -> Arrays:
    return {f"{group}.{name}": array for name, array in arrays.items() if array is not None}


def _grouped(arrays: Arrays) -> dict[str, Any]:
    """Return the arrays of each group by their names in it."""
    groups: dict[str, Any] = defaultdict(dict)
    for name, array in arrays.items():
        group, _, rest = name.partition(".")
        groups[group][rest] = array
    return groups


def _sizes(facts: Facts, arrays: Arrays) -> dict[str, int | None]:
    """Return what is known of the shapes of all arrays, where these are there."""
    sizes = {
        name: int(arrays[of].size) - 1
        for name, of in (("n_trees", "forest.tree_offsets"), ("n_outputs", "index.atom_offsets"))
        if of in arrays
    }
    if "local.columns" in arrays:
        sizes["n_local"] = int(arrays["local.columns"].size)
    rows = {name: facts[name] for name in ("n_training_rows", "n_features")}
    return sizes | rows | ({"n_outputs": None} if facts["scalar_output"] else {})


@dataclass(frozen=True)
class _Reader:
    """Makes compiled objects of groups of arrays."""

    groups: dict[str, Any]
    origin: Origin
    copy: bool

    def forest(self, group: str, facts: Facts) -> Forest:
        arrays = self.groups[group]
        return Forest.from_arrays(arrays, facts["n_features"], **self._options(group))

    def index(self, group: str, scalar_output: bool = True) -> LeafIndex:
        return LeafIndex.from_arrays(self.groups[group], scalar_output, **self._options(group))

    def require(self, group: str, *names: str) -> None:
        for name in names:
            if name not in self.groups[group]:
                raise ValueError(f"the tensor {group}.{name} is missing")

    def _options(self, group: str) -> dict[str, Any]:
        is_mapped = all(
            isinstance(array, np.memmap) and not array.flags.writeable
            for array in self.groups[group].values()
        )
        return {"copy": self.copy and not is_mapped, **self.origin.part(group)._asdict()}


def _training_rows(read: _Reader, facts: Facts, index: LeafIndex) -> tuple[Any, Any]:
    """Return the training rows, and a function that checks what they hold; None without them."""
    atoms = [index.atoms(output) for output in range(index.n_outputs)]
    moved = facts["weights"] == "monotonic"
    if not moved and max(map(len, atoms)) > facts["n_training_rows"]:
        raise ValueError("leaves hold more distinct targets than there were training rows")
    arrays = read.groups["training"]
    if not arrays:
        return None, None
    read.require("training", "X", "y")
    check = partial(
        schema.check_training_values, arrays, atoms, allow_nan=facts["allow_nan"], moved=moved
    )
    rows = TrainingRows.from_arrays(arrays, facts["counts_are_weighted"])
    if not read.origin.lazy:
        check()
        return rows, None

    @cache
    def check_rows() -> None:
        try:
            check()
        except ValueError as error:
            raise ValueError(f"{read.origin.source}: {error}") from None

    return rows, check_rows


def _calibration(facts: Facts, read: _Reader) -> Calibration | CrossCalibration | None:
    own, arrays = facts["calibration"], read.groups["calibration"]
    if own is None:
        if arrays:
            raise ValueError("it has tensors of a calibration, but no facts of one")
        return None
    try:
        return calibration_from_arrays(own, arrays)
    except ValueError as error:
        raise ValueError(f"calibration: {error}") from None


def _encoder(facts: Facts, objects: Mapping[str, Any]) -> TableEncoder | TableSteps | None:
    steps, encoder = facts["steps"], facts["encoder"]
    if steps is None:
        return None if encoder is None else TableEncoder.from_facts(encoder)
    if encoder is not None:
        raise ValueError("it has an encoder of tables and steps, but a model has one of them")
    return TableSteps.from_facts(steps, objects["steps"], facts["n_features"], facts["allow_nan"])


def _centred(
    read: _Reader, facts: Facts, objects: Mapping[str, Any], forest: Forest
) -> CentredForest | None:
    mean, arrays = facts["mean"], read.groups["centred"]
    if mean is None and not any(
        read.groups[group] for group in ("centred", "residuals", "mean_forest", "drawn", "local")
    ):
        return None
    read.require("centred", "leaf_means")
    predicted = _mean(read, facts, objects, forest)
    leaf_means = np.array(arrays["leaf_means"]) if read.copy else arrays["leaf_means"]
    share = 0.0 if mean is None else mean["share"]
    origin = read.origin.part("centred.leaf_means")._asdict()
    scorer = Scorer(forest, read.index("residuals"))  # raises unless they have the same leaves
    return CentredForest(scorer, leaf_means, predicted, share, **origin)


def _mean(read: _Reader, facts: Facts, objects: Mapping[str, Any], forest: Forest) -> Mean | None:
    mean, arrays = facts["mean"] or {}, read.groups["centred"]
    is_boosted = mean.get("baseline") is not None
    is_local = mean.get("penalty") is not None
    has_trees = bool(read.groups["mean_forest"]) or "mean_values" in arrays
    has_rows = bool(read.groups["drawn"] or read.groups["local"])
    if (has_trees and not is_boosted) or (has_rows and not is_local) or (is_boosted and is_local):
        raise ValueError("it has tensors of a mean, but no facts of one")
    if is_boosted:
        read.require("centred", "mean_values")
        trees = read.forest("mean_forest", facts)
        return BoostedMean(trees, arrays["mean_values"], mean["baseline"])
    if is_local:
        read.require("local", *schema.LOCAL)
        own = {name: np.array(array) for name, array in read.groups["local"].items()}
        return LocalLinearMean.checked(forest, read.index("drawn"), own, mean["penalty"])
    if not mean:
        return None
    if not hasattr(objects["mean"], "predict"):
        raise ValueError("the mean must be a regressor")
    return RegressorMean(objects["mean"])


def _jackknife(read: _Reader, forest: Forest) -> Jackknife | None:
    arrays = read.groups["jackknife"]
    if not arrays and not read.groups["inbag"]:
        return None
    read.require("jackknife", "drawn")
    return Jackknife.checked(forest, read.index("inbag"), arrays["drawn"] != 0)


def _forests(kind: str, parts: Parts, origin: Origin, copy: bool) -> tuple[FittedForest, ...]:
    """Return the forests of folds, or those of outputs, which have the training rows of all."""
    facts, arrays, objects = parts
    names = [f"{kind}{i}" for i in range(len(facts[f"{kind}s"]))]
    own = [name for name in (*arrays, *objects) if re.match(rf"{kind}\d+\.", name)]
    own_arrays = _grouped({name: arrays[name] for name in own if name in arrays})
    own_objects = _grouped({name: objects[name] for name in own if name in objects})
    if set(own_arrays) != set(names) or not set(own_objects) <= set(names):
        raise ValueError(f"its tensors are not those of its {kind}s")
    forests = []
    for i, (name, own_facts) in enumerate(zip(names, facts[f"{kind}s"], strict=True)):
        if own_facts.get("folds") != [] or own_facts.get("outputs") != []:
            raise ValueError(f"{kind}s must be a list of the facts of forests without folds")
        if kind == "output" and "training.y" in arrays and i < arrays["training.y"].shape[-1]:
            own_facts = own_facts | {"counts_are_weighted": facts["counts_are_weighted"]}
            own_arrays[name] |= {n: a for n, a in arrays.items() if n.startswith("training.")}
            own_arrays[name]["training.y"] = np.ascontiguousarray(arrays["training.y"][..., i])
        part = Parts(own_facts, own_arrays[name], own_objects[name])
        forests.append(from_arrays(part, origin.part(name), copy=copy))
    return tuple(forests)


def _joint(outputs: Sequence[FittedForest], facts: Facts, read: _Reader) -> JointCalibration:
    """Return the calibrations of several outputs together."""
    own: list[Any] = [part.calibration for part in outputs]
    if not own or not all(isinstance(each, Calibration) for each in own):
        raise ValueError("each of several outputs must have a calibration that is not by folds")
    arrays, coverages = read.groups["joint"], own[0].coverages
    schema.check_arrays(arrays, schema.JOINT, {"n_levels": len(coverages), "n_targets": len(own)})
    rows = zip(coverages, arrays["levels"].tolist(), strict=True)
    levels = tuple(Level(c, row[0], row[1], _cross_check_of(row[2:])) for c, row in rows)
    names = output_names(_names(facts, "target", len(own)), len(own))
    common = np.array(arrays["q_hat"]), names, own[0].method, own[0].n
    return JointCalibration(tuple(own), levels, *common)


Checks = list[CrossCheck | None]
_N_CROSS_CHECK = 7  # coverage, standard error, mean width, three thirds, worst of five


def calibration_to_arrays(calibration: Calibration | CrossCalibration) -> tuple[Facts, Arrays]:
    """Return facts and float64 arrays that `calibration_from_arrays` makes it of again.

    Of k levels there are coverage, (k,), and cross_check, (k, 7): the numbers of `CrossCheck` in
    their order, NaN for None; of a lattice targets, (m,), the training targets on it. Of a
    `Calibration` there are level and `LEVEL_FIELDS`, (k,) each, perhaps later, as cross_check, of g
    groups group_q_hat, (g, k), and group_counts, (g,), and of the distribution known_levels and
    known_scores; of a `CrossCalibration` of n rows
    scores, and weights if rows have any, (n, k), fold after fold.
    """
    postprocess = calibration.postprocess
    lattice = None if postprocess.lattice is None else list(postprocess.lattice)
    facts: Facts = {name: getattr(postprocess, name) for name in ("low", "high", "clip")}
    facts |= {"method": calibration.method, "lattice": lattice}
    checks = [_cross_check_row(level.cross_check) for level in calibration.levels]
    arrays: Arrays = {"cross_check": np.array(checks, dtype=np.float64)}
    if postprocess.targets is not None:
        arrays["targets"] = postprocess.targets
    if isinstance(calibration, CrossCalibration):
        facts["fold_sizes"] = [len(scores) for scores in calibration.scores]
        facts["grouped"] = calibration.grouped
        arrays["coverage"] = np.array(calibration.coverages)
        arrays["scores"] = np.concatenate(calibration.scores)
        if calibration.weights is not None:
            arrays["weights"] = np.concatenate(calibration.weights)
        return facts, arrays
    bases = [level.base for level in calibration.levels]
    facts |= {name: getattr(calibration, name) for name in ("confidence", "weighted", "n")}
    facts |= {
        "families": [base.family for base in bases],
        "kinds": [base.kind for base in bases],
        "min_samples_leaf": bases[0].min_samples_leaf,
        "groups": None,
    }
    if (groups := calibration.groups) is not None:
        facts["groups"] = {"labels": list(groups.labels), "feature": groups.feature}
        arrays |= {"group_q_hat": groups.q_hat, "group_counts": groups.counts}
    if any(level.later is not None for level in calibration.levels):
        later = [_cross_check_row(level.later) for level in calibration.levels]
        arrays["later"] = np.array(later, dtype=np.float64)
    arrays["level"] = np.array([base.level for base in bases])
    if calibration.distribution is not None:
        arrays["known_levels"] = calibration.distribution.levels
        arrays["known_scores"] = calibration.distribution.scores
    for name in schema.LEVEL_FIELDS:
        arrays[name] = np.array([getattr(level, name) for level in calibration.levels])
    return facts, arrays


def calibration_from_arrays(
    facts: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]
) -> Calibration | CrossCalibration:
    """Return the calibration that `calibration_to_arrays` took apart; raises as `from_arrays`."""
    is_cross = facts.get("method") in CROSS_METHODS
    schema.check_facts(facts, schema.CROSS_FACTS if is_cross else schema.FIXED_FACTS)
    coverage = arrays.get("coverage")
    sizes = {} if coverage is None or coverage.ndim != 1 else {"n_levels": len(coverage)}
    if is_cross:
        sizes["n_rows"] = sum(facts["fold_sizes"])
    elif facts["groups"] is not None:
        sizes["n_groups"] = len(facts["groups"]["labels"])
    schema.check_arrays(arrays, schema.CROSS_ARRAYS if is_cross else schema.FIXED_ARRAYS, sizes)
    # Calibrations are given to callers, so they must not depend on a file that arrays map.
    arrays = {name: np.array(array) for name, array in arrays.items()}
    checks = [_cross_check_of(row) for row in arrays["cross_check"].tolist()]
    low, high, values = float(facts["low"]), float(facts["high"]), facts["lattice"]
    lattice = None if values is None else Lattice(*map(float, values))
    postprocess = PostProcess(low, high, lattice, facts["clip"], arrays.get("targets"))
    if lattice is not None and postprocess.targets is None:
        raise ValueError("the tensor targets is missing")
    make = _cross_calibration if is_cross else _fixed_calibration
    return make(facts, arrays, checks, postprocess)


def _cross_calibration(
    facts: Mapping[str, Any], arrays: Arrays, checks: Checks, postprocess: PostProcess
) -> CrossCalibration:
    coverages = arrays["coverage"].tolist()
    if not all(0 < coverage < 1 for coverage in coverages):
        raise ValueError(f"coverages must be above 0 and below 1, got {coverages}")
    ends = np.cumsum(facts["fold_sizes"])[:-1]
    return CrossCalibration(
        levels=tuple(map(level_of_check, coverages, checks)),
        scores=tuple(np.split(arrays["scores"], ends)),
        postprocess=postprocess,
        grouped=facts["grouped"],
        method=facts["method"],
        weights=tuple(np.split(arrays["weights"], ends)) if "weights" in arrays else None,
    )


def _fixed_calibration(
    facts: Mapping[str, Any], arrays: Arrays, checks: Checks, postprocess: PostProcess
) -> Calibration:
    for name in ("families", "kinds"):
        if len(facts[name]) != len(checks):
            raise ValueError(
                f"{name} must be a list of {len(checks)} names, got {reprlib.repr(facts[name])}"
            )
    confidence = None if facts["confidence"] is None else float(facts["confidence"])
    leaf_sizes = repeat(facts["min_samples_leaf"])
    bases = map(Base, facts["families"], facts["kinds"], arrays["level"].tolist(), leaf_sizes)
    later: Checks = [None] * len(checks)
    if "later" in arrays:
        later = [_cross_check_of(row) for row in arrays["later"].tolist()]
    levels = []
    for j, (base, check) in enumerate(zip(bases, checks, strict=True)):
        numbers: dict[str, Any] = {name: arrays[name].item(j) for name in schema.LEVEL_FIELDS}
        levels.append(FixedLevel(**numbers, base=base, cross_check=check, later=later[j]))
    own = facts["n"], confidence, facts["weighted"], _groups_of(facts["groups"], arrays)
    distribution = None
    if "known_levels" in arrays or "known_scores" in arrays:
        known = [arrays.get(f"known_{what}", np.empty(0)) for what in ("levels", "scores")]
        distribution = PredictiveDistribution(known[0], known[1], postprocess)
    return Calibration(facts["method"], tuple(levels), postprocess, *own, distribution)


def _groups_of(facts: Mapping[str, Any] | None, arrays: Arrays) -> Groups | None:
    """Return the groups that have quantiles of their own, or raise ValueError."""
    has = {"group_q_hat", "group_counts"} & arrays.keys()
    if len(has) != (0 if facts is None else 2):
        raise ValueError("the quantiles of groups do not fit their labels")
    if facts is None:
        return None
    labels = (float(each) if isinstance(each, int) else each for each in facts["labels"])
    return Groups(tuple(labels), arrays["group_counts"], arrays["group_q_hat"], facts["feature"])


def _cross_check_row(check: CrossCheck | None) -> list[float | None]:
    """Return the numbers of a cross-check in their order; numpy makes NaN of None."""
    if check is None:
        return [None] * _N_CROSS_CHECK
    coverage, standard_error, mean_width, thirds, worst = astuple(check)
    return [coverage, standard_error, mean_width, *thirds, worst]


def _cross_check_of(row: list[float]) -> CrossCheck | None:
    """Return the cross-check that `_cross_check_row` took apart."""
    if all(map(math.isnan, row)):
        return None
    narrow, middle, wide = (None if math.isnan(third) else third for third in row[3:6])
    return CrossCheck(row[0], row[1], row[2], (narrow, middle, wide), row[6])
