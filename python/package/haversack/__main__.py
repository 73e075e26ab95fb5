"""The command line: `haversack` and `python -m haversack`."""

from __future__ import annotations

import signal
import sys

from . import _native


def main() -> int:
    """Runs the command line of this process; its exit code."""
    # Python's handler would raise KeyboardInterrupt after the command has ended by itself.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    return _native.main(["haversack", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
