"""Tables on disk: each format in batches, read and written; training tables as features."""
