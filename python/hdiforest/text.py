"""Text that any terminal shows as it stands."""


def printable(text: str) -> str:
    """Escape what a terminal would not print as it stands, such as control characters."""
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode() for char in text
    )
