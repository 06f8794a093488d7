"""python3 -m strobe: where the program strobe is; with arguments, runs it with them."""
import os
import shutil
import sys

from . import __version__


def main() -> int:
    program = shutil.which("strobe")
    if program is None:
        print("strobe: the program strobe is not on the PATH (this package records and opens traces; the program is built "
              "by `make build`)", file=sys.stderr)
        return 2
    if len(sys.argv) > 1:
        os.execv(program, [program, *sys.argv[1:]])
    print(f"package {__version__}, program {program}")
    return 0


sys.exit(main())
