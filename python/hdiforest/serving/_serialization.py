"""Fitted models as facts, arrays and objects, and back: for files and for pickles."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np

from hdicore import Forest, LeafIndex, Scorer
from hdicore.means import BoostedMean
from hdiforest._model import residuals
from hdiforest._model.fitted import FittedForest, Jackknife
from hdiforest._model.reference import Reference
from hdiforest._model.table_steps import TableSteps
from hdiforest._model.training_rows import TrainingRows
from hdiforest._tables.encoder import TableEncoder
from hdiforest._utils import Array
from hdiforest.calibration import _result as results
from hdiforest.calibration._result import Calibration, CrossCalibration, JointCalibration
from hdiforest.serving import _schema as schema
from hdiforest.serving._schema import Arrays, Facts, ModelFacts

# Fields of `FittedForest` that are facts as they are.
_FIELDS = ModelFacts._fields[: ModelFacts._fields.index("n_features")]
_HERE = schema.Origin()  # no file

Made = TypeVar("Made", Forest, LeafIndex)

# Arrays of compiled objects in a model.
_KNOWN: dict[type, tuple[str, ...]] = {
    Forest: ("nodes", "tree_offsets", "leaf_nodes"),
    LeafIndex: (
        *("leaf_offsets", "atom_offsets", "atoms", "tree_begin", "leaf_begin", "ranks"),
        *("units", "copies", "seen"),
    ),
}


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
    encoder, centred, jackknife = fitted.encoder, fitted.centred, fitted.jackknife
    arrays = _within("forest", forest.arrays()) | _within("index", index.arrays())
    arrays["feature_range"] = fitted.feature_range
    objects, mean, boxes, calibration = {}, None, None, fitted.calibration
    if isinstance(encoder, TableSteps):
        objects["steps"] = encoder.pipeline
    if rows is not None:
        arrays |= _within("training", rows.arrays())
    if isinstance(calibration, JointCalibration):
        own_of_boxes = _Boxes(calibration.levels, calibration.q_hat)
        boxes, calibration = schema.pack(own_of_boxes, arrays, "boxes"), None
    calibration_facts, own_arrays = calibration_to_arrays(calibration)
    arrays |= _within("calibration", own_arrays)
    if centred is not None:
        arrays |= _within("residuals", centred.scorer.index.arrays())
        arrays["centred.leaf_means"] = centred.leaf_means
        boosted = None
        if isinstance(other := centred.mean, BoostedMean):
            boosted = schema.BoostedFacts(other.baseline, other.low, other.high)
            arrays |= _within("mean_forest", other.forest.arrays())
            arrays |= {"mean_values": other.leaf_values, "mean_line": other.line}
        elif isinstance(other, residuals.RegressorMean):
            objects["mean"] = other.regressor
        if other is not None:
            mean = schema.MeanFacts(centred.share, boosted)
    reference = schema.pack(fitted.reference, arrays, "reference")
    if jackknife is not None:
        arrays |= _within("inbag", jackknife.index.arrays())
        arrays["jackknife.drawn"] = jackknife.drawn.astype(np.uint8)
    part_facts: dict[str, list[Facts]] = {"fold": [], "output": []}
    for kind, parts in (("fold", fitted.folds), ("output", fitted.outputs)):
        for i, part in enumerate(parts):
            own = to_arrays(part, training_rows=False)
            part_facts[kind].append(own.facts)
            arrays |= _within(f"{kind}{i}", own.arrays)
            objects |= _within(f"{kind}{i}", own.objects)
    facts = ModelFacts(
        **{name: getattr(fitted, name) for name in _FIELDS},
        n_features=forest.n_features,
        feature_names=_texts(fitted.feature_names),
        target_names=_texts(fitted.target_names),
        scalar_output=index.scalar_output,
        counts_are_weighted=rows is not None and rows.counts_are_weighted,
        encoder=encoder.facts() if isinstance(encoder, TableEncoder) else None,
        steps=schema.StepsFacts(**encoder.facts()) if isinstance(encoder, TableSteps) else None,
        calibration=calibration_facts,
        mean=mean,
        boxes=boxes,
        reference=reference,
        folds=part_facts["fold"],
        outputs=part_facts["output"],
    )
    return Parts(schema.pack(facts, {}), arrays, objects)


def from_arrays(parts: Parts, origin: schema.Origin = _HERE, *, copy: bool = True) -> FittedForest:
    """Return the model that `to_arrays` took apart; nothing is trusted but the objects.

    Without the `origin` of a file everything is checked now. With `copy` compiled objects copy
    arrays, unless these map a file for reading, as ``joblib.load(path, mmap_mode="r")`` returns
    them. Raises as `unpack`, or if something is out of range.
    """
    facts = schema.unpack(ModelFacts, parts.facts)
    read = _Reader(_grouped(parts.arrays), _grouped(parts.objects), origin, copy)
    forest = read.made(Forest, "forest", facts.n_features)
    index = read.made(LeafIndex, "index", facts.scalar_output)
    training = read.groups.get("training")
    rows, check_rows = _training_rows(read, facts, forest, index)
    if len(facts.outputs) not in (0, index.n_outputs):
        raise ValueError(f"outputs must be as many as the targets, {index.n_outputs}, or none")
    outputs = _forests(read, "output", facts.outputs, facts, training)
    names = _checked_names(facts.feature_names, "feature", facts.n_features)
    reference = None
    if facts.reference is not None:
        own = read.groups.pop("reference", {})
        reference = schema.unpack(Reference, facts.reference, own)
    jackknife = None
    if {"jackknife", "inbag"} & read.groups.keys():
        drawn = read.array("jackknife.drawn") != 0
        jackknife = Jackknife.checked(forest, read.made(LeafIndex, "inbag"), drawn)
    fitted = partial(
        FittedForest,
        scorer=Scorer(forest, index),
        feature_names=None if names is None else np.array(names, dtype=object),
        target_names=_checked_names(facts.target_names, "target", index.n_outputs),
        training_rows=rows,
        check_rows=check_rows,
        feature_range=np.array(read.array("feature_range")),
        calibration=_boxes(read, facts, outputs) or _calibration(facts.calibration, read),
        centred=_centred(read, facts, forest),
        folds=_forests(read, "fold", facts.folds, facts),
        outputs=outputs,
        jackknife=jackknife,
        encoder=_encoder(read, facts),
        reference=reference,
        **{name: getattr(facts, name) for name in _FIELDS},
    )
    schema.require_none(read.groups, "tensor")
    schema.require_none(read.objects, "object")
    return fitted()


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
    calibration, own = calibration_to_arrays(leaves.calibration)
    arrays = _within("index", leaves.index.arrays()) | _within("calibration", own)
    names = _texts(leaves.target_names)
    facts = schema.LeafFacts(leaves.index.scalar_output, leaves.n_training_rows, names, calibration)
    return Parts(facts._asdict(), arrays, {})


def leaves_from_arrays(
    facts: Facts, arrays: Arrays, origin: schema.Origin = _HERE, *, copy: bool = True
) -> IndexedLeaves:
    """Return the leaves that `leaves_to_arrays` took apart; see `from_arrays`."""
    own = schema.unpack(schema.LeafFacts, facts)
    read = _Reader(_grouped(arrays), {}, origin, copy)
    index = read.made(LeafIndex, "index", own.scalar_output, more=("pooled",))
    calibration = cast("Calibration | None", _calibration(own.calibration, read))
    schema.require_none(read.groups, "tensor")
    targets = _checked_names(own.target_names, "target", index.n_outputs)
    return IndexedLeaves(index, own.n_training_rows, calibration, targets)


def _texts(names: Iterable[Any] | None) -> list[str] | None:
    return None if names is None else list(map(str, names))


def _checked_names(names: list[str] | None, what: str, n: int) -> list[str] | None:
    """Return the names of the n features or targets, or None if they have none."""
    if names is not None and len(names) != n:
        raise ValueError(f"it names {len(names)} {what}s of {n}")
    return names


def _within(group: str, own: Mapping[str, Any]) -> dict[str, Any]:
    """Return arrays or objects with the name of a group in front of their own."""
    return {f"{group}.{name}": each for name, each in own.items() if each is not None}


def _grouped(joined: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return arrays or objects by group; what has no group is one by itself, of an empty name."""
    groups: dict[str, Any] = defaultdict(dict)
    for full, each in joined.items():
        group, _, name = full.partition(".")
        groups[group][name] = each
    return dict(groups)


@dataclass(frozen=True)
class _Reader:
    """Makes compiled objects of groups of arrays, each of which is read once."""

    groups: dict[str, Arrays]  # those left
    objects: dict[str, dict[str, Any]]  # groups that are left
    origin: schema.Origin
    copy: bool

    def array(self, name: str) -> Any:
        """Return an array that is a group by itself, or the only one of a group."""
        group, _, own = name.partition(".")
        arrays = self.groups.pop(group, {})
        if list(arrays) != [own]:
            raise ValueError(f"the tensor {name} is missing, or there are others beside it")
        return arrays[own]

    def object(self, name: str) -> Any:
        if "" not in self.objects.get(name, {}):
            raise ValueError(f"the object {name} is missing")
        return self.objects.pop(name)[""]

    def made(
        self, kind: type[Made], group: str, argument: Any = True, more: tuple[str, ...] = ()
    ) -> Made:
        """Return a compiled object, whose `argument` is a number of features, or scalar_output."""
        arrays: Any = self.groups.pop(group, {})
        known = (*_KNOWN[kind], *more)
        schema.require_none((f"{group}.{name}" for name in arrays if name not in known), "tensor")
        is_mapped = all(
            isinstance(array, np.memmap) and not array.flags.writeable for array in arrays.values()
        )
        origin, copy = self.origin.part(group), self.copy and not is_mapped
        try:
            return kind.from_arrays(arrays, argument, copy=copy, **origin._asdict())
        except ValueError as error:
            if origin.source is not None and str(error).startswith(origin.source):
                raise
            raise ValueError(f"{group}: {error}") from None


def _training_rows(
    read: _Reader, facts: ModelFacts, forest: Forest, index: LeafIndex
) -> tuple[Any, Any]:
    """Return the training rows, and a function that checks what they hold; None without them."""
    atoms = [index.atoms(output) for output in range(index.n_outputs)]
    moved, n = facts.weights == "monotonic", facts.n_training_rows
    if not moved and max(map(len, atoms)) > n:
        raise ValueError("leaves hold more distinct targets than there were training rows")
    arrays = read.groups.pop("training", None)
    if arrays is None:
        return None, None
    outputs = () if facts.scalar_output else (index.n_outputs,)
    schema.check_arrays(
        "training",
        arrays,
        {
            "X": ("float32", (n, facts.n_features)),
            "y": ("float64", (n, *outputs)),
            "sample_weight": ("float64", (n,)),
            "counts": ("uint8 uint16 uint32 uint64", (n, forest.n_trees)),
        },
        optional=("sample_weight", "counts"),
    )
    is_lazy, options = read.origin.lazy, {"allow_nan": facts.allow_nan, "moved": moved}

    @cache
    def check_rows() -> None:
        try:
            schema.check_training_values(arrays, atoms, **options)
        except ValueError as error:
            raise ValueError(f"{read.origin.source}: {error}" if is_lazy else error) from None

    if not is_lazy:
        check_rows()
    rows = TrainingRows.from_arrays(arrays, facts.counts_are_weighted)
    return rows, check_rows if is_lazy else None


def _encoder(read: _Reader, facts: ModelFacts) -> TableEncoder | TableSteps | None:
    if facts.steps is None:
        return None if facts.encoder is None else TableEncoder.from_facts(facts.encoder)
    if facts.encoder is not None:
        raise ValueError("it has an encoder of tables and steps, but a model has one of them")
    pipeline = read.object("steps")
    return TableSteps.from_facts(facts.steps._asdict(), pipeline, facts.n_features, facts.allow_nan)


def _centred(read: _Reader, facts: ModelFacts, forest: Forest) -> residuals.CentredForest | None:
    mean = facts.mean
    if mean is None and not {"centred", "residuals"} & read.groups.keys():
        return None
    leaf_means = read.array("centred.leaf_means")
    leaf_means = np.array(leaf_means) if read.copy else leaf_means
    predicted = None if mean is None else _mean(read, mean, facts)
    share = 0.0 if mean is None else mean.share
    origin = read.origin.part("centred.leaf_means")._asdict()
    index = read.made(LeafIndex, "residuals")
    scorer = Scorer(forest, index)  # raises unless they have the same leaves
    return residuals.CentredForest(scorer, leaf_means, predicted, share, **origin)


def _mean(read: _Reader, mean: schema.MeanFacts, facts: ModelFacts) -> residuals.Mean:
    if mean.boosted is not None:
        trees = read.made(Forest, "mean_forest", facts.n_features)
        values, line = read.array("mean_values"), read.array("mean_line")
        return BoostedMean(trees, values, line, **mean.boosted._asdict())
    regressor = read.object("mean")
    if not hasattr(regressor, "predict"):
        raise ValueError("the mean must be a regressor")
    return residuals.RegressorMean(regressor)


def _forests(
    read: _Reader,
    kind: str,
    all_facts: Sequence[Facts],
    whole: ModelFacts,
    training: Arrays | None = None,
) -> tuple[FittedForest, ...]:
    """Return the forests of folds, or of outputs, which have the `training` rows of the whole."""
    forests = []
    for i, facts in enumerate(all_facts):
        if facts.get("folds") != [] or facts.get("outputs") != []:
            raise ValueError(f"{kind}s must be a list of the facts of forests without folds")
        name = f"{kind}{i}"
        arrays = read.groups.pop(name, {})
        if training is not None:
            y = training["y"].reshape(whole.n_training_rows, -1)[:, i]
            arrays |= _within("training", training | {"y": np.ascontiguousarray(y)})
            facts = facts | {"counts_are_weighted": whole.counts_are_weighted}
        parts = Parts(facts, arrays, read.objects.pop(name, {}))
        forests.append(from_arrays(parts, read.origin.part(name), copy=read.copy))
    return tuple(forests)


class _Boxes(NamedTuple):
    """What a `JointCalibration` has that the calibrations of its outputs have not."""

    levels: tuple[results.Level, ...]
    q_hat: Array


def _boxes(
    read: _Reader, facts: ModelFacts, outputs: Sequence[FittedForest]
) -> JointCalibration | None:
    """Return the calibrations of several outputs together."""
    if facts.boxes is None and not outputs:
        return None
    own: list[Any] = [part.calibration for part in outputs]
    if not own or not all(isinstance(each, Calibration) for each in own):
        raise ValueError("each of several outputs must have a calibration that is not by folds")
    levels, q_hat = schema.unpack(_Boxes, facts.boxes, read.groups.pop("boxes", {}))
    if [level.coverage for level in levels] != list(own[0].coverages):
        raise ValueError("the coverages of boxes must be those of each output")
    names = results.output_names(facts.target_names, len(own))
    return JointCalibration(tuple(own), levels, q_hat, names, own[0].method, own[0].n)


def calibration_to_arrays(calibration: Calibration | CrossCalibration | None) -> tuple[Any, Arrays]:
    """Return facts and arrays that `calibration_from_arrays` makes it of again; None of none."""
    arrays: Arrays = {}
    # The distribution has the `postprocess` of the calibration, whose targets are stored once.
    if isinstance(calibration, Calibration) and (known := calibration.distribution) is not None:
        known = replace(known, postprocess=replace(known.postprocess, targets=None))
        calibration = replace(calibration, distribution=known)
    return schema.pack(calibration, arrays), arrays


def calibration_from_arrays(facts: Facts, arrays: Arrays) -> Calibration | CrossCalibration:
    """Return the calibration that `calibration_to_arrays` took apart; raises as `from_arrays`."""
    if facts.get("method") in results.CROSS_METHODS:
        return schema.unpack(CrossCalibration, facts, arrays)
    calibration = schema.unpack(Calibration, facts, arrays)
    if (known := calibration.distribution) is None:
        return calibration
    known = replace(known, postprocess=calibration.postprocess)
    return replace(calibration, distribution=known)


def _calibration(facts: Facts | None, read: _Reader) -> Calibration | CrossCalibration | None:
    if facts is None:
        return None
    try:
        return calibration_from_arrays(facts, read.groups.pop("calibration", {}))
    except ValueError as error:
        raise ValueError(f"calibration: {error}") from None
