"""`python -m harp`: `doctor` says what harp finds on this machine, `cache` what it has compiled, `port` which names of
JAX a file uses."""

from __future__ import annotations

import argparse
import sys

from harp import __version__, port
from harp.backends import cache_command, doctor
from harp.errors import CacheError
from harp.trace.source_locations import printable


def main(argv: list[str] | None = None) -> int:
    """Run a command; returns the exit status."""
    parser = _parser()
    chosen = parser.parse_args(argv)
    if chosen.command is None:
        parser.print_help()
        return 0
    if chosen.command == "doctor":
        return doctor.main()
    if chosen.command == "port":
        return port.main(chosen.files)
    if (chosen.file is None) is (chosen.action in ("export", "import")):
        parser.error("export and import take a FILE, and nothing else does")
    try:
        return cache_command.main(chosen.action, chosen.file, chosen.max_size)
    except CacheError as error:
        print(f"harp cache: {printable(str(error))}", file=sys.stderr)
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m harp", description="harp's command line")
    parser.add_argument("--version", action="version", version=f"harp {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    commands.add_parser("doctor", help="report compilers, cache and a trial program")
    text = "size, entries and hits of the cache of programs; clear it, bound it, move programs between machines"
    cache = commands.add_parser("cache", help=text, description=text)
    cache.add_argument(
        "action", nargs="?", choices=["clear", "export", "import"], help="what to do; else only a report"
    )
    cache.add_argument("file", nargs="?", metavar="FILE", help="what to write programs to, or to read them from")
    cache.add_argument("--max-size", metavar="SIZE", help="how large it may be from now on, as in 500M or 2GB")
    text = "list the names of JAX that files use and harp lacks"
    files = commands.add_parser("port", help=text, description=text)
    files.add_argument("files", nargs="+", metavar="FILE", help="a file of Python, or a folder of them")
    return parser


if __name__ == "__main__":
    sys.exit(main())
