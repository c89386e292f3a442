"""Join the sources of each room: headers take most of the time that one file takes to compile."""

from collections.abc import Iterable
from pathlib import Path

# Of classes with members of types that no other file knows.
_HEAD = """\
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wsubobject-linkage"
#endif
"""


def join(sources: Iterable[str], folder: Path) -> dict[str, list[str]]:
    """Write a source that includes all of a room; return what each source is made of.

    Kernels stay apart, as each has instructions of its own. The longest come first: compilers that
    work side by side then end together.
    """
    parts: dict[str, list[str]] = {}
    for path in map(Path, sources):
        is_kernel = path.parent.name == "kernels"
        room = path if is_kernel else folder / f"{path.parent.name}.cpp"
        parts.setdefault(str(room), []).append(str(path))
    for room, paths in parts.items():
        text = _HEAD + "".join(f'#include "{Path(path).resolve().as_posix()}"\n' for path in paths)
        if room not in paths and not (Path(room).exists() and Path(room).read_text() == text):
            Path(room).write_text(text)
    return dict(sorted(parts.items(), key=_length, reverse=True))


def _length(room: tuple[str, list[str]]) -> int:
    return sum(Path(path).stat().st_size for path in room[1])
