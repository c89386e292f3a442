"""Fitted models as arrays and objects, and back: for files and for pickles."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np

from hdicore import Forest, LeafIndex, Scorer
from hdicore.means import BoostedMean
from hdiforest._model import residuals
from hdiforest._model.fitted import Calibrated, FitFacts, FittedForest
from hdiforest._model.reference import Reference
from hdiforest._model.table_steps import TableFacts, TableSteps
from hdiforest._model.training_rows import WEIGHTINGS, TrainingRows
from hdiforest._tables.encoder import TableEncoder
from hdiforest._utils.checks import alternatives
from hdiforest.calibration._folds import FoldIntervals, JackknifeIntervals, JackknifePlus
from hdiforest.calibration._outputs import OutputIntervals
from hdiforest.calibration._result import Calibration, CrossCalibration
from hdiforest.calibration._tails import TailIntervals
from hdiforest.calibration._widened import WidenedIntervals
from hdiforest.serving._calibrations import (
    boxes_arrays,
    boxes_of,
    calibration_arrays,
    calibration_of,
    tail_arrays,
    tails_of,
)
from hdiforest.serving._parts import (
    Arrays,
    Parts,
    as_facts,
    as_text,
    as_texts,
    as_written,
    require_none,
    within,
)

Made = TypeVar("Made", Forest, LeafIndex)

# Arrays of compiled objects in a model.
_KNOWN: dict[type, tuple[str, ...]] = {
    Forest: ("nodes", "tree_offsets", "leaf_nodes"),
    LeafIndex: (
        *("leaf_offsets", "atom_offsets", "atoms", "tree_begin", "leaf_begin", "ranks"),
        *("units", "copies", "seen", "events"),
    ),
}
_WEIGHTINGS = tuple(WEIGHTINGS)
_MONOTONIC = _WEIGHTINGS.index("monotonic")
_READ_FROM_C = ("number", "boolean")  # kinds of columns


class Numbers(NamedTuple):
    """Numbers of a model, which the reader in C has by their places."""

    n_features: int
    n_training_rows: int
    weights: int  # position in `WEIGHTINGS`
    allow_nan: bool
    matches_forest: bool
    scalar_output: bool
    counts_are_weighted: bool
    n_folds: int
    n_outputs: int  # that have a calibration of their own

    @classmethod
    def of(cls, parts: Parts) -> Numbers:
        """Take the numbers of a model."""
        values = parts.array("numbers", "int64", (len(cls._fields),)).tolist()
        numbers = cls(*values)
        truths = numbers[cls._fields.index("allow_nan") : cls._fields.index("n_folds")]
        if min(values) < 0 or numbers.weights >= len(_WEIGHTINGS) or max(truths) > 1:
            raise ValueError(f"numbers of a model must be in range, got {values}")
        return numbers


def to_arrays(fitted: FittedForest, *, training_rows: bool = True) -> Parts:
    """Return what `from_arrays` makes an equal model of; ValueError if its rows are damaged."""
    forest, index, facts = fitted.scorer.forest, fitted.scorer.index, fitted.facts
    has_rows = training_rows and fitted.training_rows is not None
    rows = fitted.require_training_rows() if has_rows else None
    encoder, calibrated = fitted.encoder, fitted.calibrated
    numbers = Numbers(
        n_features=forest.n_features,
        n_training_rows=facts.n_training_rows,
        weights=_WEIGHTINGS.index(facts.weights),
        allow_nan=facts.allow_nan,
        matches_forest=facts.matches_forest,
        scalar_output=index.scalar_output,
        counts_are_weighted=rows is not None and rows.counts_are_weighted,
        n_folds=0 if calibrated is None else len(calibrated.folds),
        n_outputs=0 if calibrated is None else len(calibrated.outputs),
    )
    not_in_c, is_steps = _not_in_c(encoder), isinstance(encoder, TableSteps)
    if index.censored:
        not_in_c = "of censored targets, which is not read from C"
    steps = None if encoder is None else as_facts(encoder.facts())
    named: dict[str, Any] = {
        "numbers": np.array(numbers, dtype=np.int64),
        "feature_names": as_texts(facts.feature_names, "feature"),
        "target_names": as_texts(facts.target_names, "target"),
        "training_digest": as_text(facts.training_digest),
        "feature_range": facts.feature_range,
        "not_in_c": None if not_in_c is None else as_text(not_in_c),
        "steps" if is_steps else "encoder": steps,
    }
    arrays = {name: array for name, array in named.items() if array is not None}
    arrays |= within("forest", forest.arrays()) | within("index", index.arrays())
    objects = {"steps": encoder.pipeline} if isinstance(encoder, TableSteps) else {}
    if rows is not None:
        arrays |= within("training", rows.arrays())
    if fitted.reference is not None:
        arrays |= within("reference", _reference_arrays(fitted.reference))
    if calibrated is not None:
        of_calibration = _calibrated_arrays(calibrated)
        arrays |= of_calibration.arrays
        objects |= of_calibration.objects
    return Parts(arrays, objects)


def _calibrated_arrays(calibrated: Calibrated) -> Parts:
    """Return what `_calibrated` makes an equal calibration of."""
    arrays: Arrays = {}
    objects: dict[str, Any] = {}
    if isinstance(calibrated, TailIntervals):
        arrays |= within("tails", tail_arrays(calibrated.result))
    elif isinstance(calibrated, OutputIntervals):
        arrays |= within("boxes", boxes_arrays(calibrated.result))
    else:
        arrays |= within("calibration", calibration_arrays(calibrated.result))
    if (centred := calibrated.centred) is not None:
        arrays |= within("centred.index", centred.scorer.index.arrays())
        arrays["centred.leaf_means"] = centred.leaf_means
        arrays |= within("mean", _mean_arrays(centred))
        if isinstance(centred.mean, residuals.RegressorMean):
            objects["mean"] = centred.mean.regressor
    if isinstance(calibrated, JackknifeIntervals):
        arrays |= within("jackknife.index", calibrated.index.arrays())
        arrays["jackknife.drawn"] = calibrated.drawn.astype(np.uint8)
    parts = {"fold": calibrated.folds, "output": calibrated.outputs}
    parts["censoring"] = calibrated.censoring
    for kind, forests in parts.items():
        for i, each in enumerate(forests):
            part = to_arrays(each, training_rows=False)
            arrays |= within(f"{kind}{i}", part.arrays)
            objects |= within(f"{kind}{i}", part.objects)
    return Parts(arrays, objects)


def from_arrays(parts: Parts) -> FittedForest:
    """Return the model that `to_arrays` took apart; nothing is trusted but the objects.

    Without the origin of a file everything is checked now. Compiled objects copy arrays, unless
    these map a file for reading, as ``joblib.load(path, mmap_mode="r")`` returns them. ValueError
    says what is missing, unknown or out of range.
    """
    return _forest(Parts(dict(parts.arrays), dict(parts.objects), parts.origin, parts.copy))


def _forest(parts: Parts) -> FittedForest:
    numbers = Numbers.of(parts)
    forest = _made(parts, Forest, "forest", numbers.n_features)
    index = _made(parts, LeafIndex, "index", bool(numbers.scalar_output))
    if numbers.n_outputs not in (0, index.n_outputs):
        raise ValueError(f"outputs must be as many as the targets, {index.n_outputs}, or none")
    most_atoms = max(len(index.atoms(output)) for output in range(index.n_outputs))
    if numbers.weights != _MONOTONIC and most_atoms > numbers.n_training_rows:
        raise ValueError("leaves hold more distinct targets than there were training rows")
    training = parts.group("training").arrays
    names = parts.texts("feature_names", numbers.n_features, "feature")
    facts = FitFacts(
        weights=_WEIGHTINGS[numbers.weights],
        n_training_rows=numbers.n_training_rows,
        allow_nan=bool(numbers.allow_nan),
        matches_forest=bool(numbers.matches_forest),
        training_digest=_digest(parts),
        feature_range=np.array(parts.array("feature_range", "float32", (2, numbers.n_features))),
        feature_names=None if names is None else np.array(names, dtype=object),
        target_names=parts.texts("target_names", index.n_outputs, "target"),
    )
    rows, reference = None, None
    if training:
        rows = _training_rows(training, parts, numbers, forest, index)
    if parts.has("reference"):
        reference = _reference(parts.group("reference"), numbers.n_features)
    _ = parts.text("not_in_c")
    kept = rows, _encoder(parts, numbers), reference
    fitted = FittedForest(Scorer(forest, index), facts, *kept)
    calibrated = _calibrated(fitted.without_rows(), parts, training, numbers)
    if numbers.n_folds != (0 if calibrated is None else len(calibrated.folds)):
        raise ValueError("the calibration does not fit the folds of the model")
    if calibrated is not None:
        fitted = fitted.with_calibration(calibrated)
    parts.require_empty()
    return fitted


def _calibrated(
    forest: FittedForest, parts: Parts, training: Arrays, numbers: Numbers
) -> Calibrated | None:
    """Return the calibration of a forest, whose parts are those of its method; None: none."""
    folds = tuple(_part(parts, f"fold{i}") for i in range(numbers.n_folds))
    outputs = tuple(
        _part(parts, f"output{i}", training, i, numbers) for i in range(numbers.n_outputs)
    )
    if outputs:
        boxes = boxes_of(parts.group("boxes"), outputs, forest.facts.target_names)
        return OutputIntervals(forest, boxes, outputs)
    if parts.has("tails"):
        has_censoring = parts.has("censoring0")
        censoring = (_part(parts, "censoring0"),) if has_censoring else ()
        return TailIntervals(forest, tails_of(parts.group("tails")), censoring)
    if not parts.has("calibration"):
        return None
    try:
        result = calibration_of(parts.group("calibration"))
    except ValueError as error:
        raise ValueError(f"calibration: {error}") from None
    if isinstance(result, Calibration):
        trees = forest.scorer.forest
        centred = _centred(parts, trees, numbers) if parts.has("centred") else None
        return WidenedIntervals(forest, result, centred)
    if result.method == JackknifePlus.name:
        return _jackknife(forest, result, parts.group("jackknife"))
    return FoldIntervals(forest, result, folds)


def _part(
    parts: Parts, name: str, training: Arrays | None = None, output: int = 0, whole: Any = None
) -> FittedForest:
    """Return the forest of a fold, or that of an output, which has the training rows of all."""
    part = parts.group(name)
    numbers = Numbers.of(Parts(dict(part.arrays)))
    if numbers.n_folds or numbers.n_outputs:
        raise ValueError(f"{name} must be a forest without folds and outputs")
    if training:
        y = np.ascontiguousarray(training["y"].reshape(len(training["y"]), -1)[:, output])
        part.arrays |= within("training", training | {"y": y})
        numbers = numbers._replace(counts_are_weighted=whole.counts_are_weighted)
        part.arrays["numbers"] = np.array(numbers, dtype=np.int64)
    return _forest(part)


def _not_in_c(encoder: TableEncoder | TableSteps | None) -> str | None:
    """Say why the rows of a model are not made in C, behind "the file holds a model"."""
    if isinstance(encoder, TableSteps):
        return (
            "whose rows come from steps of scikit-learn, which are not computed from C; fit the "
            "forest alone on their result"
        )
    for column in () if encoder is None else encoder.entries:
        if column.kind not in _READ_FROM_C:
            return (
                f"of tables whose column {column.name} is a {column.kind}: only columns of numbers "
                "and booleans are read from C"
            )
    if encoder is not None and encoder.missing:
        return f"of tables whose missing cells have words: {alternatives(encoder.missing)}"
    return None


def _made(
    parts: Parts, kind: type[Made], group: str, argument: Any = True, more: tuple[str, ...] = ()
) -> Made:
    """Return a compiled object, whose `argument` is a number of features, or scalar_output."""
    group_parts = parts.group(group)
    arrays: Any = group_parts.arrays
    names = (*_KNOWN[kind], *more)
    require_none((group_parts.prefix + name for name in arrays if name not in names), "tensor")
    is_mapped = all(
        isinstance(array, np.memmap) and not array.flags.writeable for array in arrays.values()
    )
    copy = parts.copy and not is_mapped
    try:
        return kind.from_arrays(arrays, argument, copy=copy, **group_parts.origin._asdict())
    except ValueError as error:
        if group_parts.origin.source is not None and str(error).startswith(
            group_parts.origin.source
        ):
            raise
        raise ValueError(f"{group}: {error}") from None


def _training_rows(
    arrays: Arrays, parts: Parts, numbers: Numbers, forest: Forest, index: LeafIndex
) -> TrainingRows:
    """Return the training rows; what those of a file hold is checked at their first use."""
    n = numbers.n_training_rows
    outputs = () if numbers.scalar_output else (index.n_outputs,)
    stored = Parts(dict(arrays), prefix=f"{parts.prefix}training.")
    rows: dict[str, Any] = {}
    rows["X"] = stored.array("X", "float32", (n, numbers.n_features))
    rows["y"] = stored.array("y", "float64", (n, *outputs))
    rows["sample_weight"] = stored.optional("sample_weight", "float64", (n,))
    rows["counts"] = stored.optional("counts", "uint8 uint16 uint32 uint64", (n, forest.n_trees))
    rows["event"] = stored.optional("event", "uint8", (n,))
    if index.censored != (rows["event"] is not None):
        raise ValueError("training.event must be there if, and only if, the index has events")
    stored.require_empty()
    source, is_lazy = parts.origin

    @cache
    def check_rows() -> None:
        try:
            _check_training_values(rows, index, numbers)
        except ValueError as error:
            raise ValueError(f"{source}: {error}" if is_lazy else error) from None

    if not is_lazy:
        check_rows()
    is_weighted = bool(numbers.counts_are_weighted)
    return TrainingRows.from_arrays(rows, is_weighted, check_rows)


def _check_training_values(arrays: dict[str, Any], index: LeafIndex, numbers: Numbers) -> None:
    """Raise ValueError if the values of training rows do not fit the index."""
    X, y = arrays["X"], arrays["y"]
    if np.isinf(X).any() or not (numbers.allow_nan or np.isfinite(X).all()):
        raise ValueError("training.X must be finite, but for missing values where they are allowed")
    if not np.isfinite(y).all():
        raise ValueError("training.y must be finite")
    for output, target in enumerate(y.reshape(len(y), -1).T):
        atoms = index.atoms(output)
        inside = atoms[[0, -1]].clip(target.min(), target.max()) == atoms[[0, -1]]
        is_moved = numbers.weights == _MONOTONIC  # within the range of all
        if not (inside.all() if is_moved else np.isin(atoms, target).all()):
            raise ValueError("training.y lacks targets that leaves hold")
    weights, counts = arrays["sample_weight"], arrays["counts"]
    if weights is not None and not (
        np.isfinite(weights).all() and (weights >= 0).all() and (weights > 0).any()
    ):
        raise ValueError("training.sample_weight must be finite, not negative, not all zero")
    if counts is not None and (counts.max() > 2**31 - 1 or not (counts > 0).any(axis=0).all()):
        raise ValueError("training.counts must be below 2**31, with a row for every tree")


def _digest(parts: Parts) -> str:
    digest = parts.text("training_digest") or ""
    if not re.fullmatch("[0-9a-f]{32}", digest):
        raise ValueError(f"training_digest must be 32 hexadecimal digits, got {digest[:40]!r}")
    return digest


def _encoder(parts: Parts, numbers: Numbers) -> TableEncoder | TableSteps | None:
    if "steps" in parts.arrays:
        with as_written():
            table = TableFacts.of(parts.facts("steps"))
        pipeline, allow_nan = parts.object("steps"), bool(numbers.allow_nan)
        return TableSteps(pipeline, table, numbers.n_features, allow_nan)
    if "encoder" not in parts.arrays:
        return None
    return TableEncoder.from_facts(parts.facts("encoder"))


def _centred(parts: Parts, forest: Forest, numbers: Numbers) -> residuals.CentredForest:
    index = _made(parts, LeafIndex, "centred.index")
    scorer = Scorer(forest, index)  # raises unless they have the same leaves
    leaf_means = parts.array("centred.leaf_means", "float64", (None,))
    leaf_means = np.array(leaf_means) if parts.copy else leaf_means
    origin = parts.origin.part("centred.leaf_means")._asdict()
    mean, share = _mean(parts, numbers) if parts.has("mean") else (None, 0.0)
    return residuals.CentredForest(scorer, leaf_means, mean, share, **origin)


def _mean_arrays(centred: residuals.CentredForest) -> Arrays:
    """Return the arrays of another mean: a regressor is an object."""
    mean = centred.mean
    arrays: Arrays = {} if mean is None else {"share": np.array([centred.share])}
    if isinstance(mean, BoostedMean):
        arrays |= {"values": mean.leaf_values, "line": mean.line}
        arrays["range"] = np.array([mean.baseline, mean.low, mean.high])
        arrays |= within("forest", mean.forest.arrays())
    return arrays


def _mean(parts: Parts, numbers: Numbers) -> tuple[residuals.Mean, float]:
    stored = parts.group("mean")
    share = float(stored.array("share", "float64", (1,))[0])
    if stored.has("forest"):
        trees = _made(stored, Forest, "forest", numbers.n_features)
        values = stored.array("values", "float64", (None,))
        line = stored.array("line", "float64", (2, numbers.n_features))
        bounds = stored.array("range", "float64", (3,)).tolist()
        stored.require_empty()
        return BoostedMean(trees, values, line, *bounds), share
    stored.require_empty()
    regressor = parts.object("mean")
    if not hasattr(regressor, "predict"):
        raise ValueError("the mean must be a regressor")
    return residuals.RegressorMean(regressor), share


def _jackknife(forest: FittedForest, result: CrossCalibration, parts: Parts) -> JackknifeIntervals:
    drawn = parts.array("drawn", "uint8", (None, forest.scorer.forest.n_trees)) != 0
    index = _made(parts, LeafIndex, "index")
    parts.require_empty()
    return JackknifeIntervals(forest, result, index, drawn)


def _reference_arrays(reference: Reference) -> Arrays:
    arrays = {name: getattr(reference, name) for name in ("rows", "importance", "mean", "sd")}
    arrays["categorical"] = np.array(reference.categorical, dtype=np.int64)
    return arrays | {"scales": np.array([reference.scale, reference.threshold])}


def _reference(parts: Parts, n_features: int) -> Reference:
    rows = np.array(parts.array("rows", "float32", (None, n_features)))
    importance, mean, sd = (
        np.array(parts.array(name, "float64", (n_features,)))
        for name in ("importance", "mean", "sd")
    )
    categorical = tuple(parts.array("categorical", "int64", (None,)).tolist())
    scale, threshold = parts.array("scales", "float64", (2,)).tolist()
    parts.require_empty()
    return Reference(rows, importance, mean, sd, categorical, scale, threshold)


@dataclass(frozen=True, eq=False)
class IndexedLeaves:
    """What is kept of a `LeafModel`."""

    index: LeafIndex
    n_training_rows: int | None = None
    calibration: Calibration | None = None
    target_names: Sequence[str] | None = None
    # Of a mapped file: raises OSError if it was written to since it was opened.
    check_file: Callable[[], None] | None = field(default=None, repr=False)

    @property
    def n_outputs(self) -> int:
        """Number of targets of a row."""
        return self.index.n_outputs

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
    n_rows = -1 if leaves.n_training_rows is None else leaves.n_training_rows
    arrays = {"numbers": np.array([leaves.index.scalar_output, n_rows], dtype=np.int64)}
    arrays |= within("index", leaves.index.arrays())
    arrays |= within("names", {"targets": as_texts(leaves.target_names, "target")})
    if leaves.calibration is not None:
        arrays |= within("calibration", calibration_arrays(leaves.calibration))
    return Parts(arrays)


def leaves_from_arrays(parts: Parts) -> IndexedLeaves:
    """Return the leaves that `leaves_to_arrays` took apart; see `from_arrays`."""
    parts = Parts(dict(parts.arrays), {}, parts.origin, parts.copy)
    is_scalar, n_rows = parts.array("numbers", "int64", (2,)).tolist()
    if is_scalar not in (0, 1) or n_rows < -1:
        raise ValueError(f"numbers must be 0 or 1, and a number of rows, got {is_scalar}, {n_rows}")
    index = _made(parts, LeafIndex, "index", bool(is_scalar), more=("pooled",))
    calibration = None
    if parts.has("calibration"):
        calibration = calibration_of(parts.group("calibration"))
    names = parts.texts("names.targets", index.n_outputs, "target")
    parts.require_empty()
    n_training_rows = None if n_rows == -1 else n_rows
    return IndexedLeaves(index, n_training_rows, cast("Calibration | None", calibration), names)
