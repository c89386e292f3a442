"""Which kinds of intervals there are, by the engine's table."""

from __future__ import annotations

from hdicore import kinds

# Kinds that a model predicts, and which of their ends are numbers.
ENDS = {kind: facts["ends"] for kind, facts in kinds().items() if facts["holds_coverage"]}
TWO_SIDED = tuple(kind for kind, ends in ENDS.items() if len(ends) == 2)
ONE_SIDED = tuple(kind for kind, ends in ENDS.items() if len(ends) == 1)
# Kinds that a calibration widens.
BASE_KINDS = tuple(kind for kind, facts in kinds().items() if len(facts["ends"]) == 2)
