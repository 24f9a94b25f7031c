"""`python -m harp doctor`: what harp finds on this machine."""

from __future__ import annotations

import argparse
import sys

from harp import __version__
from harp.backends import doctor


def main(argv: list[str] | None = None) -> int:
    """Run a command; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m harp", description="harp's command line")
    parser.add_argument("--version", action="version", version=f"harp {__version__}")
    parser.add_argument("command", choices=["doctor"], help="doctor: report compilers, cache and a trial program")
    parser.parse_args(argv)
    return doctor.main()


if __name__ == "__main__":
    sys.exit(main())
