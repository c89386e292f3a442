"""The systems compared: the paper's six and those its related work names."""

from . import boosting, forests, gaussian, linear, lube, quality_driven

FAMILIES = {
    module.FAMILY.name: module.FAMILY
    for module in (forests, linear, boosting, quality_driven, lube, gaussian)
}
