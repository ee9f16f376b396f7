"""A controller by P4Runtime with asyncio: `controller.py ADDRESS`, for a switch of
`weir run p4/programs/l2_switch/l2_switch.p4 -i 1@… -i 2@… --p4runtime ADDRESS`."""

import asyncio
import sys
from typing import List

import weir.aio


async def control(address: str, macs: int) -> str:
    """Fills the table of addresses, and reads it back."""
    async with await weir.aio.connect(address) as client:
        await client.primary()
        table = client.table("destination_macs")
        entries = [table.entry({"dst_addr": 0x020000000000 + n}, "forward", {"port": n % 8}) for n in range(macs)]
        loaded = await client.load(entries)
        found = await table.entries()
        return f"{loaded.done} written, {loaded.failures} failed, {len(found)} read\n"


def main(arguments: List[str]) -> str:
    if len(arguments) != 1:
        return "usage: controller.py ADDRESS\n"
    return asyncio.run(control(arguments[0], 1000))


if __name__ == "__main__":
    sys.stdout.write(main(sys.argv[1:]))
