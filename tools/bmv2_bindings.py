"""bmv2's Python bindings (bm_runtime, sswitch_runtime, bmpy_utils) as p4-utils calls them, for weir.

weir does not speak Thrift. Here each call becomes a line of simple_switch_CLI, sent as that sends it
to the switch's port (docs/bmv2.md), so that SimpleSwitchThriftAPI of p4-utils works unchanged.
`install(folder)` makes the modules in a folder for PYTHONPATH; weir's `p4c` must be on PATH. Digests
arrive by nanomsg in bmv2, and do not here.
"""

import json
import re
import socket
import subprocess
import tempfile
from pathlib import Path

MODULES = {
    "bm_runtime/standard": ("Standard",),
    "bm_runtime/simple_pre": ("SimplePre",),
    "bm_runtime/simple_pre_lag": ("SimplePreLAG",),
    "sswitch_runtime": ("SimpleSwitch",),
}


# Lines that are sent before the first of them is answered.
AHEAD = 256


def install(folder):
    """Makes the modules that p4-utils imports; they import this file."""
    for module, services in MODULES.items():
        path = folder / module
        path.mkdir(parents=True)
        for parent in (path, path.parent):
            if parent != folder:
                (parent / "__init__.py").touch()
        for name in (*services, "ttypes"):
            (path / f"{name}.py").write_text("from bmv2_bindings import *\n")
    (folder / "bmpy_utils.py").write_text("from bmv2_bindings import thrift_connect\n")
    (folder / "bmv2_bindings.py").write_text(Path(__file__).read_text())


class Refused(Exception):
    """What the switch said of a call that it refused."""

    def __init__(self, code):
        super().__init__(code)
        self.code = code


class InvalidTableOperation(Refused):
    """Every refusal is one, and names itself."""


class NotRaised(Exception):
    """The errors of bmv2 of which none comes from here."""


InvalidCounterOperation = InvalidMeterOperation = InvalidRegisterOperation = NotRaised
InvalidLearnOperation = InvalidSwapOperation = InvalidDevMgrOperation = NotRaised
InvalidCrcOperation = InvalidParseVSetOperation = InvalidMcOperation = InvalidMirroringOperation = NotRaised


class Names(dict):
    """The name of a code is the code."""

    def __missing__(self, code):
        return code


class TableOperationErrorCode:
    _VALUES_TO_NAMES = Names()


CounterOperationErrorCode = MeterOperationErrorCode = RegisterOperationErrorCode = TableOperationErrorCode
McOperationErrorCode = MirroringOperationErrorCode = TableOperationErrorCode


class Value:
    """A struct of Thrift: its fields by position or name."""

    FIELDS = ()

    def __init__(self, *values, **named):
        for field in self.FIELDS:
            setattr(self, field, None)
        for field, value in (*zip(self.FIELDS, values), *named.items()):
            setattr(self, field, value)

    def __repr__(self):
        return f"{type(self).__name__}({vars(self)})"


def struct(name, *fields):
    return type(name, (Value,), {"FIELDS": fields})


BmMatchParam = struct("BmMatchParam", "type", "exact", "lpm", "ternary", "valid", "range")
BmMatchParamExact = struct("BmMatchParamExact", "key")
BmMatchParamLPM = struct("BmMatchParamLPM", "key", "prefix_length")
BmMatchParamTernary = struct("BmMatchParamTernary", "key", "mask")
BmMatchParamValid = struct("BmMatchParamValid", "key")
BmMatchParamRange = struct("BmMatchParamRange", "start", "end_")
BmAddEntryOptions = struct("BmAddEntryOptions", "priority")
BmMeterRateConfig = struct("BmMeterRateConfig", "units_per_micros", "burst_size")
BmCounterValue = struct("BmCounterValue", "bytes", "packets")
BmCrc16Config = struct(
    "BmCrc16Config", "polynomial", "initial_remainder", "final_xor_value", "is_data_reflected", "is_remainder_reflected"
)
BmCrc32Config = type("BmCrc32Config", (BmCrc16Config,), {})
BmMtEntry = struct("BmMtEntry", "match_key", "entry_handle")
MirroringSessionConfig = struct("MirroringSessionConfig", "port", "mgid")


class BmMatchParamType:
    EXACT, LPM, TERNARY, VALID, RANGE = range(5)
    _VALUES_TO_NAMES = dict(enumerate(("EXACT", "LPM", "TERNARY", "VALID", "RANGE")))


def number(data):
    return "0x" + bytes(data).hex()


def key(param):
    """A part of a match key as the CLI takes it."""
    if param.exact is not None:
        return number(param.exact.key)
    if param.lpm is not None:
        return f"{number(param.lpm.key)}/{param.lpm.prefix_length}"
    if param.ternary is not None:
        return f"{number(param.ternary.key)}&&&{number(param.ternary.mask)}"
    if param.range is not None:
        return f"{number(param.range.start)}->{number(param.range.end_)}"
    return str(int(param.valid.key))


def dumped(kind, text):
    """A part of a match key as the CLI shows it."""
    param, words = BmMatchParam(type=getattr(BmMatchParamType, kind)), text.split()
    if kind == "EXACT":
        param.exact = BmMatchParamExact(bytes.fromhex(words[0]))
    elif kind == "LPM":
        prefix, length = words[0].split("/")
        param.lpm = BmMatchParamLPM(bytes.fromhex(prefix), int(length))
    elif kind == "TERNARY":
        param.ternary = BmMatchParamTernary(bytes.fromhex(words[0]), bytes.fromhex(words[2]))
    else:
        param.range = BmMatchParamRange(bytes.fromhex(words[0]), bytes.fromhex(words[2]))
    return param


def ports(bits):
    """Thrift has sets of ports as strings of bits, the last is port 0."""
    return " ".join(str(port) for port, bit in enumerate(reversed(bits)) if bit == "1")


def configuration(info, calculations):
    """As much of bmv2's JSON as p4-utils reads, of a P4Info and the calculations of the program."""
    actions = {a["preamble"]["id"]: a for a in info.get("actions", [])}
    profiles = {p["preamble"]["id"]: p for p in info.get("actionProfiles", [])}
    tables = {t["preamble"]["id"]: t["preamble"]["name"] for t in info.get("tables", [])}
    made = {"pipelines": [], "headers": [], "header_types": []}
    made["actions"] = [
        {
            "name": a["preamble"]["name"],
            "id": i,
            "runtime_data": [{"name": p["name"], "bitwidth": p["bitwidth"]} for p in a.get("params", [])],
        }
        for i, a in actions.items()
    ]
    for table in info.get("tables", []):
        name, fields = table["preamble"]["name"], table.get("matchFields", [])
        kinds = [f["matchType"].lower() for f in fields]
        kind = next((k for k in ("range", "ternary", "lpm") if k in kinds), "exact")
        profile = profiles.get(table.get("implementationId"))
        about = {
            "name": name,
            "id": table["preamble"]["id"],
            "match_type": kind,
            "type": "simple" if not profile else "indirect_ws" if profile.get("withSelector") else "indirect",
            "support_timeout": "idleTimeoutBehavior" in table,
            "actions": [actions[ref["id"]]["preamble"]["name"] for ref in table["actionRefs"]],
            "key": [{"match_type": f["matchType"].lower(), "target": [name, f["name"]]} for f in fields],
        }
        pipeline = {"tables": [about], "source_info": {"source_fragment": name.rpartition(".")[0]}}
        if profile:
            about["action_profile"] = about["act_prof_name"] = profile["preamble"]["name"]
            pipeline["action_profiles"] = [{"name": about["action_profile"], "id": profile["preamble"]["id"]}]
            if profile.get("withSelector"):
                pipeline["action_profiles"][0]["selector"] = about["selector"] = {}
        made["pipelines"].append(pipeline)
        made["headers"].append({"name": name, "header_type": name})
        made["header_types"].append({"name": name, "fields": [[f["name"], f["bitwidth"]] for f in fields]})

    def arrays(plain, direct):
        for array in info.get(plain, []) + info.get(direct, []):
            about = {"name": array["preamble"]["name"], "id": array["preamble"]["id"], "rate_count": 2}
            about["type"] = "bytes" if array["spec"].get("unit") == "BYTES" else "packets"
            about["is_direct"] = "directTableId" in array
            about["binding"] = tables.get(array.get("directTableId"))
            about["size"] = int(array.get("size", 0))
            yield about

    made["meter_arrays"] = list(arrays("meters", "directMeters"))
    made["counter_arrays"] = list(arrays("counters", "directCounters"))
    made["register_arrays"] = [
        {
            "name": r["preamble"]["name"],
            "id": r["preamble"]["id"],
            "size": int(r["size"]),
            "bitwidth": r["typeSpec"].get("bitstring", {}).get("bit", {}).get("bitwidth", 0),
        }
        for r in info.get("registers", [])
    ]
    made["calculations"] = calculations
    return made


class Client:
    """A client of each of the services."""

    def __init__(self, port):
        self.stream = socket.create_connection(("127.0.0.1", port)).makefile("rw")
        if "weir_runtime" not in json.loads(self.stream.readline()):
            raise ConnectionError(f"there is no switch of weir at port {port}")
        self.known = None

    def run(self, *words):
        """Executes a line as simple_switch_CLI does: what it prints."""
        line, text, after = " ".join(str(word) for word in words), "", 0
        while after is not None:
            self.ask(line, after)
            self.stream.flush()
            part, after = self.answer(line)
            text += part
        return text

    def run_all(self, lines):
        """Executes lines whose output is short, AHEAD of them before the first is answered.

        A refusal is raised once those have been executed.
        """
        for first in range(0, len(lines), AHEAD):
            some = lines[first : first + AHEAD]
            for line in some:
                self.ask(line, 0)
            self.stream.flush()
            answers = []
            for line in some:
                try:
                    answers.append(self.answer(line))
                except InvalidTableOperation as refused:
                    answers.append(refused)
            for answer in answers:
                if isinstance(answer, InvalidTableOperation):
                    raise answer

    def ask(self, line, after):
        self.stream.write(json.dumps({"execute": {"line": line, "from": after}}) + "\n")

    def answer(self, line):
        """The output, and where it continues; None at its end."""
        reply = json.loads(self.stream.readline())
        if "output" not in reply:
            raise InvalidTableOperation(f"{line}: {reply.get('error')}")
        return reply["output"]["text"], reply["output"]["next"]

    def found(self, pattern, *words):
        return re.search(pattern, self.run(*words))

    def config(self):
        if self.known is None:
            running = json.loads(self.run("get_config"))
            program = running["program"]
            with tempfile.NamedTemporaryFile(suffix=".json") as info:
                command = ["p4c", "--p4runtime-files", info.name, "-o", tempfile.gettempdir(), program]
                subprocess.run(command, check=True, capture_output=True)
                self.known = configuration(json.load(open(info.name)), running["calculations"])
        return self.known

    def bound(self, kind, table):
        """The direct counter or meter of a table."""
        return next(array["name"] for array in self.config()[kind] if array["binding"] == table)

    def with_priorities(self, table):
        """p4-utils gives each entry a priority, also where the table has none."""
        tables = (t for pipeline in self.config()["pipelines"] for t in pipeline["tables"])
        return next(t["match_type"] for t in tables if t["name"] == table) in ("ternary", "range")

    def bm_get_config(self):
        return json.dumps(self.config())

    def bm_reset_state(self):
        self.run("reset_state")

    def bm_mt_add_entry(self, _, table, match, action, data, options=None):
        words = ["table_add", table, action, *map(key, match), "=>", *map(number, data)]
        if self.with_priorities(table):
            words.append(options.priority)
        return int(self.found(r"handle (\d+)", *words)[1])

    def bm_mt_get_entries(self, _, table):
        """Only what p4-utils reads: the key and the handle."""
        entries = []
        for text in self.run("table_dump", table).split("Dumping entry ")[1:]:
            parts = re.findall(r"^\* .*: (EXACT|LPM|TERNARY|RANGE) +(.*)$", text, re.M)
            entries.append(BmMtEntry([dumped(*part) for part in parts], int(text.split()[0], 16)))
        return entries

    def bm_mt_get_num_entries(self, _, table):
        return int(self.run("table_num_entries", table))

    def bm_mt_clear_entries(self, _, table, reset_default):
        self.run("table_clear", table)

    def bm_mt_delete_entry(self, _, table, handle):
        self.run("table_delete", table, handle)

    def bm_mt_modify_entry(self, _, table, handle, action, data):
        self.run("table_modify", table, action, handle, *map(number, data))

    def bm_mt_set_default_action(self, _, table, action, data):
        self.run("table_set_default", table, action, *map(number, data))

    def bm_mt_reset_default_entry(self, _, table):
        self.run("table_reset_default", table)

    def bm_mt_set_entry_ttl(self, _, table, handle, milliseconds):
        self.run("table_set_timeout", table, handle, milliseconds)

    def bm_mc_mgrp_create(self, _, group):
        self.run("mc_mgrp_create", group)
        return group

    def bm_mc_mgrp_destroy(self, _, group):
        self.run("mc_mgrp_destroy", group)

    def bm_mc_node_create(self, _, rid, port_map, lag_map=""):
        lags = f"| {ports(lag_map)}" if "1" in lag_map else ""
        return int(self.found(r"handle (\d+)", "mc_node_create", rid, ports(port_map), lags)[1])

    def bm_mc_node_update(self, _, node, port_map, lag_map=""):
        self.run("mc_node_update", node, ports(port_map), f"| {ports(lag_map)}" if "1" in lag_map else "")

    def bm_mc_node_associate(self, _, group, node):
        self.run("mc_node_associate", group, node)

    def bm_mc_node_dissociate(self, _, group, node):
        self.run("mc_node_dissociate", group, node)

    def bm_mc_node_destroy(self, _, node):
        self.run("mc_node_destroy", node)

    def rates(self, rates):
        return [f"{rate.units_per_micros:.12f}:{rate.burst_size}" for rate in rates]

    def bm_meter_array_set_rates(self, _, meter, rates):
        self.run("meter_array_set_rates", meter, *self.rates(rates))

    def bm_meter_set_rates(self, _, meter, index, rates):
        self.run("meter_set_rates", meter, index, *self.rates(rates))

    def bm_mt_set_meter_rates(self, _, table, handle, rates):
        self.bm_meter_set_rates(0, self.bound("meter_arrays", table), handle, rates)

    def bm_counter_read(self, _, counter, index):
        found = self.found(r"\((\d+) bytes, (\d+) packets\)", "counter_read", counter, index)
        return BmCounterValue(int(found[1]), int(found[2]))

    def bm_mt_read_counter(self, _, table, handle):
        return self.bm_counter_read(0, self.bound("counter_arrays", table), handle)

    def bm_counter_reset_all(self, _, counter):
        self.run("counter_reset", counter)

    def bm_mt_reset_counters(self, _, table):
        self.run("counter_reset", self.bound("counter_arrays", table))

    def bm_register_read(self, _, register, index):
        return int(self.run("register_read", register, index).partition("=")[2])

    def bm_register_read_all(self, _, register):
        return [int(value) for value in self.run("register_read", register).partition("=")[2].split(",")]

    def bm_register_write(self, _, register, index, value):
        self.run("register_write", register, index, value)

    def bm_register_write_range(self, _, register, start, end, value):
        self.run_all([f"register_write {register} {index} {value}" for index in range(start, end)])

    def bm_register_reset(self, _, register):
        self.run("register_reset", register)

    def set_crc(self, width, name, config):
        numbers = (config.polynomial, config.initial_remainder, config.final_xor_value)
        mask = (1 << width) - 1
        flags = [str(bool(f)).lower() for f in (config.is_data_reflected, config.is_remainder_reflected)]
        self.run(f"set_crc{width}_parameters", name, *(hex(n & mask) for n in numbers), *flags)

    def bm_set_crc16_custom_parameters(self, _, name, config):
        self.set_crc(16, name, config)

    def bm_set_crc32_custom_parameters(self, _, name, config):
        self.set_crc(32, name, config)

    def mirroring_session_add(self, session, config):
        if config.mgid is not None:
            self.run("mirroring_add_mc", session, config.mgid)
        if config.port is not None:
            self.run("mirroring_add", session, config.port)

    def mirroring_session_delete(self, session):
        self.run("mirroring_delete", session)

    def set_egress_queue_rate(self, port, rate):
        self.run("set_queue_rate", rate, port)

    def set_egress_priority_queue_rate(self, port, priority, rate):
        self.run("set_queue_rate", rate, port, priority)

    def set_egress_queue_depth(self, port, depth):
        self.run("set_queue_depth", depth, port)

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        raise NotImplementedError(f"{name} has no line of simple_switch_CLI here")


def thrift_connect(ip, port, services):
    """A client for each service, as bmpy_utils gives them."""
    shared = Client(port)
    return [shared if client else None for _, client in services]


# Not the helpers: p4-utils imports everything.
__all__ = [name for name in globals() if name[0].isupper() and name != "Path"] + ["thrift_connect"]
