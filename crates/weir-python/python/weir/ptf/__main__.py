"""``python -m weir.ptf`` writes the folder for ``--platform-dir``."""

import sys

from . import platform_dir

sys.stdout.write(platform_dir() + "\n")
