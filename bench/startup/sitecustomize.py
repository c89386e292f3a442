"""Keeps an editable install out of a process that imports the package from another folder.

Its finder would add modules that only the checkout has. `revisions.start` puts this on the path.
"""

import sys

sys.meta_path = [finder for finder in sys.meta_path if "editable" not in str(finder)]
