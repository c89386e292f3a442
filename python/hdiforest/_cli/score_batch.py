"""Scores tables as one batch: a price from passes over all rows, then the intervals it chooses."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from hdicore.batch import PriceRule, Reading, Sums, find_rule
from hdiforest._cli.inputs import Settings, Source, features_of
from hdiforest._tables.frames import Results
from hdiforest._utils.files import writing
from hdiforest._utils.optional import pa
from hdiforest.serving._batch_scorer import BatchScorer


class TableOfBatch(BatchScorer):
    """Scores one table of a batch; what `score` returns goes through `settle`, in order of rows."""

    def __init__(
        self, scorer: BatchScorer, coverage: float, rule: PriceRule | None = None, part: int = 0
    ) -> None:
        vars(self).update(vars(scorer))
        self.coverage, self.rule = [coverage], rule
        self.missing = 0 if rule is None else rule.missing[part]

    @property
    def types(self) -> dict[str, Any]:
        """The types of pyarrow of `results`."""
        level = f"{self.coverage[0]:.15g}"
        names = "prediction", f"batch_lower_{level}", f"batch_upper_{level}", "mass"
        return dict.fromkeys(names, pa.float64())

    @property
    def origin(self) -> list[Any] | None:
        """What its intervals depend on beside the model and the table, as JSON's types."""
        rule = self.rule
        return rule and [*rule.prices.tolist(), rule.min_coverage, rule.coverage, self.missing]

    def score(self, table: Any, encoder: Any, first_row: int = 0) -> Results:
        """Return means, and the intervals and masses at both prices."""
        fitted, (prices, min_coverage, *_) = self.model.fitted, cast("PriceRule", self.rule)
        X, counts = fitted.encode(table, encoder, first_row)
        self.counts.add(counts)
        reading = Reading.of(fitted.scorer, X, prices, min_coverage, n_threads=1)
        return {"prediction": fitted.scorer.mean(X, n_threads=1)} | reading._asdict()

    def settle(self, results: Results) -> Results:
        """Choose an interval for each row behind those that came before."""
        mean, *reading = results.values()
        chosen = PriceRule.choose(Reading(*reading), self.missing)
        ends, mass, self.missing = chosen
        return dict(zip(self.results, (mean, *ends.T.copy(), mass), strict=True))


def find_price(
    scorer: BatchScorer,
    sources: Sequence[Source],
    settings: Settings,
    coverage: float,
    min_coverage: float,
    record: Path | None = None,
) -> list[TableOfBatch]:
    """Return the scorer of each source, all of which are read several times for their price.

    What is found goes into the file `record`, and a run that resumes takes it from there if it asks
    for the same.
    """
    files = [[str(s.path), *s.size_and_time(), s.keys, asdict(s.form)] for s in sources]
    asked = json.loads(json.dumps([scorer.digest, coverage, min_coverage, files]))
    rule, whole = None, TableOfBatch(scorer, coverage)
    with suppress(OSError, RecursionError, TypeError, ValueError):
        found = json.loads(record.read_bytes()) if record and settings.resume else []
        was_asked, (prices, missing, bound) = found
        if was_asked == asked and (len(prices), len(missing)) == (2, len(sources)):
            own = np.array(prices, np.float64), min_coverage, coverage, tuple(map(int, missing))
            rule = PriceRule(*own, float(bound))
    if rule is None:

        def ask(prices: NDArray[np.float64]) -> list[Sums]:
            none = Sums(0, np.zeros(len(prices), np.int64), np.zeros(len(prices)))
            how = whole, settings, prices, min_coverage
            return [Sums.of([none, *_sums(source, *how)]) for source in sources]

        rule = find_rule(ask, scorer.model.fitted.scorer, coverage, min_coverage)
        if record is not None:
            record.parent.mkdir(parents=True, exist_ok=True)
            facts = [rule.prices.tolist(), rule.missing, rule.bound]
            with writing(record) as file:
                file.write(json.dumps([asked, facts]).encode())
    return [TableOfBatch(scorer, coverage, rule, part) for part in range(len(sources))]


def _sums(
    source: Source, scorer: TableOfBatch, settings: Settings, prices: Any, min_coverage: float
) -> Iterator[Sums]:
    """Yield the sums of some rows of a table after the others."""
    fitted = scorer.model.fitted
    with source.open() as table:
        features = features_of(scorer, table, settings.keep)
        for batch in features.batches(settings.batch_rows):
            with features.naming_the_file():
                X, _ = fitted.encode(features.raw(batch), features.encoder)
            yield Sums.read(fitted.scorer, X, prices, min_coverage, settings.n_threads)
