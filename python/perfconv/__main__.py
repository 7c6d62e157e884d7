"""The command ``perfconv``, as ``perfconv`` or ``python -m perfconv``."""

from __future__ import annotations

import sys

from ._perfconv import main as _main


def main() -> int:
    """Run the command with the arguments of this process, and return its exit status."""
    return _main(["perfconv", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
