"""The platform ``weir_switch`` of PTF: a switch in process."""

import sys
from typing import Any, MutableMapping

import weir
import weir.ptf


def platform_config_update(config: MutableMapping[str, Any]) -> None:
    """Called by PTF with its configuration."""
    try:
        weir.ptf.configure(config, config.get("platform_args") or "")
    except (weir.WeirError, ValueError, OSError) as error:
        # PTF goes on with other exceptions and then has no ports.
        sys.exit(f"weir_switch: {error}")
