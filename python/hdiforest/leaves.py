"""Where pickles of version 0.1.0 look for LeafModel."""

from hdiforest.leaf_model import LeafModel

__all__ = ["LeafModel"]
