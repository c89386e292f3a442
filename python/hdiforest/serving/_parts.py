"""Arrays and objects of a stored model, taken one by one; each must be as such a model has it."""

from __future__ import annotations

import json
import reprlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hdiforest._utils.checks import alternatives

Arrays = dict[str, NDArray[Any]]
Facts = dict[str, Any]  # of JSON's types
Shape = tuple[int | None, ...]  # None: any length


class Origin(NamedTuple):
    """Where arrays come from, and when they are checked."""

    source: str | None = None  # what errors begin with; None: memory that a caller may change
    lazy: bool = False  # whether what large arrays hold is checked at its first use

    def part(self, name: str) -> Origin:
        """Return the origin of a part."""
        return self if self.source is None else self._replace(source=f"{self.source}: {name}")


_HERE = Origin()  # no file


@dataclass
class Parts:
    """What a model is made of: each taken leaves it, and the dicts that were given stay whole.

    ValueError says what is missing or wrong.
    """

    arrays: Arrays
    objects: dict[str, Any] = field(default_factory=dict)  # fitted ones that no array stands for
    origin: Origin = _HERE
    prefix: str = ""  # of all names, for errors

    def __post_init__(self) -> None:
        self.arrays, self.objects = dict(self.arrays), dict(self.objects)

    def state(self) -> dict[str, Any]:
        """Return the parts for a pickle: copies of a model do not look at a file."""
        mapped = {n: np.array(a) for n, a in self.arrays.items() if isinstance(a, np.memmap)}
        return {"arrays": self.arrays | mapped, "objects": self.objects}

    def has(self, group: str) -> bool:
        """Whether there are arrays whose names begin with that of a group."""
        return any(name.startswith(f"{group}.") for name in self.arrays)

    def group(self, name: str) -> Parts:
        """Take all whose names begin with that of a group."""
        arrays, objects = _taken(self.arrays, name), _taken(self.objects, name)
        return Parts(arrays, objects, self.origin.part(name), f"{self.prefix}{name}.")

    def array(self, name: str, dtypes: str, shape: Shape) -> NDArray[Any]:
        """Take an array of one of these types."""
        if name not in self.arrays:
            raise ValueError(f"the tensor {self.prefix}{name} is missing")
        array = self.arrays.pop(name)
        fits = len(shape) == array.ndim and all(
            n in (None, length) for n, length in zip(shape, array.shape, strict=True)
        )
        if array.dtype.name not in dtypes.split() or not fits:
            types = alternatives(dtypes.split())
            lengths = ", ".join("any" if n is None else str(n) for n in shape)
            raise ValueError(
                f"{self.prefix}{name} must be {types} of shape ({lengths}), got {array.dtype} of "
                f"shape {reprlib.repr(array.shape)}"
            )
        return array

    def optional(self, name: str, dtypes: str, shape: Shape) -> NDArray[Any] | None:
        """Take an array that need not be there."""
        return self.array(name, dtypes, shape) if name in self.arrays else None

    def text(self, name: str) -> str | None:
        """Take a text; None if there is none."""
        characters = self.optional(name, "uint8", (None,))
        return None if characters is None else characters.tobytes().decode("utf-8", "surrogatepass")

    def texts(self, name: str, n: int, what: str) -> list[str] | None:
        """Take the names of n features or targets; None if they have none."""
        if (text := self.text(name)) is None:
            return None
        *names, end = text.split("\0")
        if end or len(names) != n:
            raise ValueError(f"it names {len(names)} {what}s of {n}")
        return names

    def facts(self, name: str) -> Facts:
        """Take facts; ValueError unless they are an object of JSON."""
        try:
            facts = json.loads(str(self.text(name)))
        except (RecursionError, ValueError) as error:
            raise ValueError(f"{self.prefix}{name} must be JSON: {error}") from None
        if not isinstance(facts, dict):
            raise ValueError(f"{self.prefix}{name} must be an object, got {reprlib.repr(facts)}")
        return facts

    def object(self, name: str) -> Any:
        """Take a fitted object."""
        if name not in self.objects:
            raise ValueError(f"the object {self.prefix}{name} is missing")
        return self.objects.pop(name)

    def require_empty(self) -> None:
        """Raise ValueError if something was not taken."""
        require_none((self.prefix + name for name in self.arrays), "tensor")
        require_none((self.prefix + name for name in self.objects), "object")


def _taken(left: dict[str, Any], group: str) -> dict[str, Any]:
    """Take what is of a group, by the rest of its names."""
    names = [name for name in left if name.startswith(f"{group}.")]
    return {name.removeprefix(f"{group}."): left.pop(name) for name in names}


def require_none(left: Iterable[str], what: str) -> None:
    """Raise ValueError if something of a file was not read."""
    for name in left:
        raise ValueError(
            f"it has the {what} {reprlib.repr(name)}, which this version does not know, or not in "
            "such a model; upgrade hdicore"
        )


def within(group: str, members: Mapping[str, Any]) -> dict[str, Any]:
    """Return arrays or objects with the name of a group in front of their own."""
    return {f"{group}.{name}": each for name, each in members.items() if each is not None}


def as_text(text: str) -> NDArray[np.uint8]:
    """Return what `Parts.text` takes."""
    return np.frombuffer(text.encode("utf-8", "surrogatepass"), dtype=np.uint8)


def as_texts(names: Iterable[Any] | None, what: str) -> NDArray[np.uint8] | None:
    """Return what `Parts.texts` takes; ValueError if a name has the character that ends one."""
    if names is None:
        return None
    texts = list(map(str, names))
    for name in texts:
        if "\0" in name:
            raise ValueError(f"names of {what}s must be without the character \\0, got {name!r}")
    return as_text("".join(f"{name}\0" for name in texts))


def as_facts(facts: Facts) -> NDArray[np.uint8]:
    """Return what `Parts.facts` takes, of JSON's types."""
    return as_text(json.dumps(facts))


@contextmanager
def as_written() -> Iterator[None]:
    """Raise ValueError where facts are not such that a model can be made of them."""
    try:
        yield
    except (AttributeError, LookupError, OverflowError, TypeError) as error:
        reason = f"{type(error).__name__}: {error}"
        raise ValueError(f"its facts are not what this version writes: {reason}") from None
