"""`python -m pydeno`: the `pydeno` command that was installed with this package."""

import os
import sys
import sysconfig


def main() -> None:
    """Become the command."""
    # The scheme of this installation: a virtual environment's or the system's, else the user's.
    for scheme in (sysconfig.get_default_scheme(), sysconfig.get_preferred_scheme("user")):
        command = sysconfig.get_path("scripts", scheme) + "/pydeno"
        if os.access(command, os.X_OK):
            os.execv(command, [command, *sys.argv[1:]])  # noqa: S606
    sys.exit("pydeno: the command is not where this Python puts scripts; install pydeno again")


main()
