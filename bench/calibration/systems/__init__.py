"""The systems compared, the ones that say most first."""

from . import by_crepes, by_mapie, cqr, ours, qoob, split

SYSTEMS = {
    system.name: system
    for module in (ours, qoob, cqr, by_mapie, by_crepes, split)
    for system in module.SYSTEMS
}
