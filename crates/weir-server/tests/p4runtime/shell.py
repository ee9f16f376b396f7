"""Drives a P4Runtime server by p4runtime-shell, unmodified.

Arguments: address, P4Info file, program file, or the address only to join the program that runs. What the switch does
with packets is asked of the test that started this, a line each way: `ask KIND HASH KEY`, `send PORT KIND HASH KEY`,
`sent`, `advance NS`.
"""

import os
import sys
import traceback

import p4runtime_sh.shell as sh


def command(*words):
    print(*words, flush=True)
    return sys.stdin.readline().strip()


def ask(kind, hash_, key):
    answer = command("ask", kind, hash_, key)
    return None if answer == "none" else int(answer)


def tables():
    te = sh.TableEntry("exact_table")(action="answer")
    te.match["key"] = "0x1234"
    te.action["value"] = "77"
    te.counter_data.packet_count = 5
    te.insert()
    assert ask(1, 0, 0x1234) == 77
    te.counter_data
    found = list(te.read())
    assert len(found) == 1 and found[0].counter_data.packet_count == 6, found
    te.clear_counter_data()
    te.action["value"] = "78"
    te.modify()
    assert ask(1, 0, 0x1234) == 78
    try:
        te.insert()
        raise AssertionError("inserted twice")
    except Exception as e:
        assert "ALREADY_EXISTS" in str(e), e
    te.delete()
    assert ask(1, 0, 0x1234) is None

    te = sh.TableEntry("lpm_table")(action="metered")
    te.match["key"] = "10.0.0.0/8"
    te.action["value"] = "1"
    te.meter_config.cir = 10
    te.meter_config.cburst = 20
    te.meter_config.pir = 30
    te.meter_config.pburst = 40
    te.insert()
    assert ask(2, 0, 0x0A010203) == 1
    assert [e.meter_config.pburst for e in te.read()] == [40]

    te = sh.TableEntry("ternary_table")(action="answer", priority=10)
    te.match["key"] = "0x10&&&0xf0"
    te.match["hash"] = "9"
    te.action["value"] = "3"
    te.insert()
    assert ask(3, 9, 0x15) == 3 and ask(3, 9, 0x25) is None

    te = sh.TableEntry("range_table")(action="answer", priority=1)
    te.match["key"] = "5..9"
    te.action["value"] = "5"
    te.insert()
    assert ask(4, 0, 9) == 5 and ask(4, 0, 10) is None

    te = sh.TableEntry("optional_table")(action="answer", priority=1)
    te.match["key"] = "7"
    te.action["value"] = "6"
    te.insert()
    assert ask(5, 0, 7) == 6 and ask(5, 0, 8) is None

    te = sh.TableEntry("exact_table")(action="answer", is_default=True)
    te.action["value"] = "9"
    te.modify()
    assert ask(1, 0, 99) == 9
    te = sh.TableEntry("exact_table")(is_default=True)
    te.modify()
    assert ask(1, 0, 99) is None
    entries = []
    sh.TableEntry("const_table").read(entries.append)
    assert len(entries) == 2


def profiles():
    member = sh.ActionProfileMember("profile")(member_id=1, action="answer")
    member.action["value"] = "70"
    member.insert()
    te = sh.TableEntry("profile_table")(member_id=1)
    te.match["key"] = "1"
    te.insert()
    assert ask(9, 0, 1) == 70
    member.action["value"] = "71"
    member.modify()
    assert ask(9, 0, 1) == 71
    assert len(list(sh.ActionProfileMember("profile").read())) == 1
    te.delete()
    member.delete()

    for i in (1, 2):
        member = sh.ActionProfileMember("selector")(member_id=i, action="answer")
        member.action["value"] = str(10 * i)
        member.insert()
    group = sh.ActionProfileGroup("selector")(group_id=1, max_size=8)
    group.add(1, weight=1, watch_port=b"\x04").add(2, weight=3)
    group.insert()
    te = sh.TableEntry("selector_table")(group_id=1)
    te.match["key"] = "1"
    te.insert()
    assert [ask(10, h, 1) for h in range(4)] == [10, 20, 20, 20]
    found = list(sh.ActionProfileGroup("selector")(group_id=1).read())
    assert len(found) == 1 and len(found[0].members) == 2
    te.delete()
    group.delete()
    for i in (1, 2):
        sh.ActionProfileMember("selector")(member_id=i).delete()

    te = sh.TableEntry("selector_table")
    te.match["key"] = "1"
    oneshot = sh.Oneshot("selector_table")
    for value, weight in (("5", 1), ("6", 2)):
        action = sh.Action("answer")
        action["value"] = value
        oneshot.add(action, weight=weight)
    te.oneshot = oneshot
    te.insert()
    assert [ask(10, h, 1) for h in range(3)] == [5, 6, 6]
    assert [len(e.oneshot.actions) for e in te.read()] == [2]
    te.delete()


def counters_and_meters():
    assert ask(20, 0, 3) is None
    ce = sh.CounterEntry("counts")(index=3)
    assert [c.packet_count for c in ce.read()] == [1]
    ce.packet_count = 100
    ce.modify()
    assert [c.packet_count for c in sh.CounterEntry("counts")(index=3).read()] == [100]
    assert len(list(sh.CounterEntry("counts").read())) == 8

    me = sh.MeterEntry("meters")(index=2)
    me.cir, me.cburst, me.pir, me.pburst = 1, 1, 2, 2
    me.modify()
    assert [ask(21, 0, 2) for _ in range(3)] == [0, 1, 2]
    assert [m.pburst for m in sh.MeterEntry("meters")(index=2).read()] == [2]

    dce = sh.DirectCounterEntry("exact_counter")
    te = sh.TableEntry("I.exact_table")(action="answer")
    te.match["key"] = "1"
    te.action["value"] = "1"
    te.insert()
    dce.table_entry = te
    ask(1, 0, 1)
    assert [d.packet_count for d in dce.read()] == [1]
    dce.packet_count = 9
    dce.modify()
    assert [d.packet_count for d in dce.read()] == [9]
    te.delete()

    dme = sh.DirectMeterEntry("lpm_meter")
    te = sh.TableEntry("I.lpm_table")(action="metered")
    te.match["key"] = "10.0.0.0/8"
    dme.table_entry = te
    assert [d.cir for d in dme.read()] == [10]


def replication():
    mcast = sh.MulticastGroupEntry(5)
    mcast.add(2, 20).add(3, 30)
    mcast.insert()
    assert command("send", 1, 30, 0, 5) == "2 3"
    assert [len(m.replicas) for m in sh.MulticastGroupEntry(5).read()] == [2]
    mcast.delete()
    clone = sh.CloneSessionEntry(100)
    clone.add(6, 1)
    clone.packet_length_bytes = 12
    clone.insert()
    assert command("send", 1, 31, 0, 100) == "6"
    assert len(list(sh.CloneSessionEntry(100).read())) == 1
    clone.delete()


def streams():
    de = sh.DigestEntry("seen_t")
    de.max_timeout_ns, de.max_list_size, de.ack_timeout_ns = 0, 1, 0
    de.insert()
    digests = sh.DigestList()
    ask(32, 0, 5)
    lists = list(digests.sniff(timeout=1))
    assert len(lists) == 1, lists
    members = lists[0].digest.data[0].struct.members
    assert [m.bitstring for m in members] == [b"\x05", b"\x01"], members
    assert len(list(sh.DigestEntry("seen_t").read())) == 1
    de.delete()

    packet_in = sh.PacketIn()
    command("send", 258, 33, 0, 0x55)
    packets = list(packet_in.sniff(timeout=1))
    assert len(packets) == 1, packets
    assert [m.value for m in packets[0].packet.metadata] == [b"\x01\x02", b"\x55"]

    packet_out = sh.PacketOut(b"\x00" * 10, egress_port="300", pad="0")
    packet_out.send()
    assert command("sent") == "300"

    idle = sh.IdleTimeoutNotification()
    te = sh.TableEntry("idle_table")(action="answer")
    te.match["key"] = "1"
    te.action["value"] = "1"
    te.idle_timeout_ns = 1000000
    te.insert()
    te.time_since_last_hit.elapsed_ns
    command("advance", 1000000)
    notifications = list(idle.sniff(timeout=1))
    assert len(notifications) == 1, notifications
    entries = notifications[0].idle_timeout_notification.table_entry
    assert len(entries) == 1 and entries[0].idle_timeout_ns == 1000000
    te.delete()


def main():
    address, *files = sys.argv[1:]
    config = sh.FwdPipeConfig(*files) if files else None
    sh.setup(device_id=1, grpc_addr=address, election_id=(0, 1), config=config, verbose=False)
    assert sh.APIVersion() in (None, "1.5.0")
    for part in (tables, profiles, counters_and_meters, replication, streams):
        part()
        print("# done:", part.__name__, flush=True)


if __name__ == "__main__":
    code = 1
    try:
        main()
        code = 0
    except BaseException:
        traceback.print_exc()
    sys.stderr.flush()
    print("end", flush=True)
    # Threads of the shell that wait for messages would wait on.
    os._exit(code)
