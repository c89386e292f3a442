"""The systems compared: the paper's six and those its related work names."""

from . import boosting, dropout, forests, linear, lube, mean_variance, quality_driven

FAMILIES = {
    module.FAMILY.name: module.FAMILY
    for module in (forests, linear, boosting, quality_driven, lube, mean_variance, dropout)
}
