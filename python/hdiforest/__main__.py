"""Makes ``python -m hdiforest`` the command hdiforest."""

import sys

from hdiforest._cli import main

if __name__ == "__main__":
    sys.exit(main())
