"""Tables of any library, on disk, and as features of a forest."""
