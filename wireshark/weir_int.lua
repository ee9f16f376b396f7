-- In-band Network Telemetry (INT) for Wireshark 3.4 or later.
--
-- INT 2.1 (MD and MX), 1.0 and 0.5 over TCP and UDP, and the lab format of int_lab. Load it by
-- `-X lua_script:weir_int.lua`, or put it into the folder of personal Lua plugins. How a network
-- signals INT is a preference. Two files need this one: weir_int_marked.lua, for INT that DSCP or a
-- probe marker signals, and weir_report.lua, for telemetry reports.
--
-- No bit operators: they are syntax errors in Lua 5.2, and the `bit` library is absent from 5.4.

local int = Proto("weir_int", "In-band Network Telemetry")
local lab = Proto("weir_int_lab", "In-band Network Telemetry, lab format")

local TYPES = { [1] = "MD", [2] = "Destination", [3] = "MX" }
local OLD_TYPES = { [1] = "Hop-by-hop", [2] = "Destination" }
local NEXT = { [0] = "Unchanged (DSCP or probe marker)", [1] = "Original UDP port", [2] = "Inserted UDP header" }
local REPLICATION = { [0] = "None", [1] = "Layer 2", [2] = "Layer 3", [3] = "Layers 2 and 3" }

local f = {
    type = ProtoField.uint8("weir_int.type", "Type", base.DEC, TYPES, 0xf0),
    old_type = ProtoField.uint8("weir_int.old_type", "Type", base.DEC, OLD_TYPES),
    next = ProtoField.uint8("weir_int.next", "Next protocol type", base.DEC, NEXT, 0x0c),
    length = ProtoField.uint8("weir_int.length", "Length in words of 4 bytes", base.DEC),
    original_dscp = ProtoField.uint8("weir_int.original_dscp", "Original DSCP", base.DEC, nil, 0xfc),
    original_port = ProtoField.uint16("weir_int.original_port", "Original destination port", base.DEC),
    original_protocol = ProtoField.uint8("weir_int.original_protocol", "Original IP protocol", base.DEC),
    version = ProtoField.uint8("weir_int.version", "Version", base.DEC, nil, 0xf0),
    replication = ProtoField.uint8("weir_int.replication", "Replication", base.DEC, REPLICATION, 0x0c),
    copy = ProtoField.bool("weir_int.copy", "Copy", 8, nil, 0x02),
    discard = ProtoField.bool("weir_int.discard", "Discard at the sink", 8, nil, 0x08),
    exceeded = ProtoField.bool("weir_int.hop_count_exceeded", "Hop count exceeded", 8, nil, 0x04),
    mtu = ProtoField.bool("weir_int.mtu_exceeded", "MTU exceeded", 8, nil, 0x02),
    old_exceeded = ProtoField.bool("weir_int.hop_count_exceeded", "Hop count exceeded", 8, nil, 0x01),
    old_mtu = ProtoField.bool("weir_int.mtu_exceeded", "MTU exceeded", 8, nil, 0x80),
    hop_words = ProtoField.uint8("weir_int.hop_words", "Words per hop", base.DEC, nil, 0x1f),
    remaining_hops = ProtoField.uint8("weir_int.remaining_hops", "Remaining hops", base.DEC),
    max_hops = ProtoField.uint8("weir_int.max_hops", "Maximum hops", base.DEC),
    total_hops = ProtoField.uint8("weir_int.total_hops", "Total hops", base.DEC),
    instruction_count = ProtoField.uint8("weir_int.instruction_count", "Instruction count", base.DEC, nil, 0x1f),
    instructions = ProtoField.uint16("weir_int.instructions", "Instructions", base.HEX),
    domain_id = ProtoField.uint16("weir_int.domain_id", "Domain", base.HEX),
    domain_instructions = ProtoField.uint16("weir_int.domain_instructions", "Domain-specific instructions", base.HEX),
    domain_flags = ProtoField.uint16("weir_int.domain_flags", "Domain-specific flags", base.HEX),
    source_metadata = ProtoField.bytes("weir_int.source_metadata", "Metadata of the source"),
    destination = ProtoField.bytes("weir_int.destination", "Destination header"),
    hops = ProtoField.uint8("weir_int.hops", "Hops", base.DEC),
    tail_dscp = ProtoField.uint8("weir_int.tail_dscp", "Reserved or original DSCP", base.DEC),
}

-- The values that a node adds to a packet or a report.
local function value_fields(prefix)
    return {
        node_id = ProtoField.uint32(prefix .. "node_id", "Node", base.DEC),
        ingress_port = ProtoField.uint16(prefix .. "ingress_port", "Ingress port", base.DEC),
        egress_port = ProtoField.uint16(prefix .. "egress_port", "Egress port", base.DEC),
        latency = ProtoField.uint32(prefix .. "latency", "Hop latency", base.DEC),
        queue_id = ProtoField.uint8(prefix .. "queue_id", "Queue", base.DEC),
        queue_occupancy = ProtoField.uint32(prefix .. "queue_occupancy", "Queue occupancy", base.DEC),
        congestion = ProtoField.uint32(prefix .. "congestion", "Queue congestion", base.DEC),
        ingress_timestamp = ProtoField.uint64(prefix .. "ingress_timestamp", "Ingress timestamp", base.DEC),
        egress_timestamp = ProtoField.uint64(prefix .. "egress_timestamp", "Egress timestamp", base.DEC),
        l2_ingress_port = ProtoField.uint32(prefix .. "l2_ingress_port", "Level 2 ingress port", base.DEC),
        l2_egress_port = ProtoField.uint32(prefix .. "l2_egress_port", "Level 2 egress port", base.DEC),
        tx_utilisation = ProtoField.uint32(prefix .. "tx_utilisation", "Egress port utilisation", base.DEC),
        buffer_id = ProtoField.uint8(prefix .. "buffer_id", "Buffer", base.DEC),
        buffer_occupancy = ProtoField.uint32(prefix .. "buffer_occupancy", "Buffer occupancy", base.DEC),
        drop_reason = ProtoField.uint8(prefix .. "drop_reason", "Drop reason", base.DEC),
        reserved = ProtoField.uint32(prefix .. "reserved", "Reserved", base.HEX),
        complement = ProtoField.uint32(prefix .. "checksum_complement", "Checksum complement", base.HEX),
        domain_metadata = ProtoField.bytes(prefix .. "domain_metadata", "Domain-specific metadata"),
        empty = ProtoField.uint16(prefix .. "empty", "Empty", base.HEX),
        bottom = ProtoField.bool(prefix .. "bottom", "Bottom of stack", 8, nil, 0x80),
        residence = ProtoField.uint64(prefix .. "residence", "Egress minus ingress timestamp", base.DEC),
    }
end

local h = value_fields("weir_int.hop.")

local int_truncated = ProtoExpert.new(
    "weir_int.truncated", "INT is truncated", expert.group.MALFORMED, expert.severity.NOTE)
local int_malformed = ProtoExpert.new(
    "weir_int.malformed", "INT is malformed", expert.group.MALFORMED, expert.severity.ERROR)

local function list(...)
    local all = {}
    for _, fields in ipairs({ ... }) do
        for _, field in pairs(fields) do
            all[#all + 1] = field
        end
    end
    return all
end

int.fields = list(f, h)
int.experts = { int_truncated, int_malformed }

int.prefs.ports = Pref.range("UDP ports of INT", "", "UDP destination ports that signal INT 2.1 or older", 65535)
int.prefs.lab_ports = Pref.range(
    "UDP ports of the lab format", "5000", "UDP destination ports that signal the format of int_lab", 65535)

-- Packets are nested in reports, and reports may be measured by INT. Each level takes some of the
-- few stack frames that Lua has for calls through C.
local MAX_DEPTH = 6
local depth = 0

-- Calls a dissector for the bytes from `offset` on. Its exceptions are in the tree already.
local function hand_on(dissector, tvb, offset, pinfo, tree, length)
    length = length or tvb:len() - offset
    if length <= 0 then
        return
    end
    if not dissector or depth >= MAX_DEPTH then
        dissector = Dissector.get("data")
    end
    local rest = tvb(offset, length):tvb()
    depth = depth + 1
    pcall(function() dissector:call(rest, pinfo, tree) end)
    depth = depth - 1
end

-- Adds a field; all ones stand for a value that is not available.
local function value(tree, field, range)
    local item = tree:add(field, range)
    if tostring(range:bytes()):upper() == string.rep("FF", range:len()) then
        item:append_text(" (not available)")
    end
end

local function pair(first, second, split, size)
    return { size, function(tree, v, range)
        value(tree, v[first], range(0, split))
        value(tree, v[second], range(split, size - split))
    end }
end

local function single(name, size)
    return { size, function(tree, v, range) value(tree, v[name], range) end }
end

local NODE, LATENCY, UTILISATION = single("node_id", 4), single("latency", 4), single("tx_utilisation", 4)
local PORTS, L2_PORTS = pair("ingress_port", "egress_port", 2, 4), pair("l2_ingress_port", "l2_egress_port", 4, 8)
local L2_SHORT = pair("l2_ingress_port", "l2_egress_port", 2, 4)
local QUEUE, BUFFER = pair("queue_id", "queue_occupancy", 1, 4), pair("buffer_id", "buffer_occupancy", 1, 4)
local CONGESTION = pair("queue_id", "congestion", 1, 4)
local RESERVED, COMPLEMENT = single("reserved", 4), single("complement", 4)
local INGRESS32, EGRESS32 = single("ingress_timestamp", 4), single("egress_timestamp", 4)
local INGRESS64, EGRESS64 = single("ingress_timestamp", 8), single("egress_timestamp", 8)
local DROP = { 4, function(tree, v, range)
    value(tree, v.queue_id, range(0, 1))
    value(tree, v.drop_reason, range(1, 1))
end }

-- The item of each bit of a bitmap, the most significant first.
local function bits(given)
    local items = {}
    for bit = 1, 16 do
        items[bit] = given[bit] or RESERVED
    end
    return items
end

local V2 = bits({ NODE, PORTS, LATENCY, QUEUE, INGRESS64, EGRESS64, L2_PORTS, UTILISATION, BUFFER })
V2[16] = COMPLEMENT
local V1 = bits({ NODE, PORTS, LATENCY, QUEUE, INGRESS32, EGRESS32, L2_PORTS, UTILISATION })
V1[16] = COMPLEMENT
-- The sizes of GEANT's INT 1.0.
local V1_WIDE = bits({ NODE, PORTS, LATENCY, QUEUE, INGRESS64, EGRESS64, L2_SHORT, UTILISATION })
V1_WIDE[16] = COMPLEMENT
local V0 = bits({ NODE, PORTS, LATENCY, QUEUE, INGRESS32, EGRESS32, CONGESTION, UTILISATION })

-- The items of the bits that are set, and their size in bytes.
local function items_of(items, bitmap)
    local selected, size = {}, 0
    for bit = 1, 16 do
        if math.floor(bitmap / 2 ^ (16 - bit)) % 2 == 1 then
            selected[#selected + 1] = items[bit]
            size = size + items[bit][1]
        end
    end
    return selected, size
end

-- Adds the values of one node. `range` may have more bytes than the items: domain-specific
-- metadata, which precede a checksum complement.
local function add_values(tree, v, items, range)
    local size, at = 0, 0
    for _, item in ipairs(items) do
        size = size + item[1]
    end
    local extra = range:len() - size
    local ingress, egress
    local function extension()
        if extra > 0 then
            tree:add(v.domain_metadata, range(at, extra))
            at, extra = at + extra, 0
        end
    end
    for _, item in ipairs(items) do
        if item == COMPLEMENT then
            extension()
        end
        local part = range(at, item[1])
        item[2](tree, v, part)
        if item == INGRESS64 then ingress = part:uint64() end
        if item == EGRESS64 then egress = part:uint64() end
        at = at + item[1]
    end
    extension()
    if ingress and egress and egress >= ingress and egress ~= UInt64.max() then
        tree:add(v.residence, range, egress - ingress):set_generated()
    end
end

-- Adds a record of the lab format.
local function add_record(tree, range)
    value(tree, h.ingress_timestamp, range(0, 6))
    tree:add(h.empty, range(6, 2))
    value(tree, h.egress_timestamp, range(8, 6))
    value(tree, h.ingress_port, range(14, 2))
    value(tree, h.egress_port, range(16, 2))
    tree:add(h.bottom, range(18, 1))
    local wrap = UInt64.new(0, 0x10000)
    local difference = range(8, 6):uint64() + wrap - range(0, 6):uint64()
    tree:add(h.residence, range, difference % wrap):set_generated()
end

-- Adds the stack of `length` bytes, of which those that were captured are there. `add` adds the
-- record of a hop; the source's record, the last one, may be longer.
local function add_stack(tree, tvb, at, length, hop, add)
    local hops = hop > 0 and math.floor(length / hop) or 0
    if (hops == 0 and length > 0) or hops > 255 then
        tree:add_proto_expert_info(int_malformed, "The stack has " .. length .. " bytes, a hop " .. hop)
        return
    end
    tree:add(f.hops, hops):set_generated()
    local extra = length - hops * hop
    for index = 1, hops do
        local size = index == hops and hop + extra or hop
        if tvb:len() < at + size then
            tree:add_proto_expert_info(int_truncated, "Only " .. (index - 1) .. " of " .. hops .. " hops were captured")
            return
        end
        local name = "Hop " .. index .. (index == 1 and " (newest)" or "")
        add(tree:add(int, tvb(at, size), name), tvb(at, size), index == hops)
        at = at + size
    end
end

-- The MD header of INT 2.x with its stack, or the lab format.
local function dissect_md(tree, tvb, at, length, is_lab)
    tree:add(f.discard, tvb(at, 1))
    tree:add(f.exceeded, tvb(at, 1))
    tree:add(f.mtu, tvb(at, 1))
    tree:add(f.hop_words, tvb(at + 2, 1))
    tree:add(f.remaining_hops, tvb(at + 3, 1))
    tree:add(f.instructions, tvb(at + 4, 2))
    tree:add(f.domain_id, tvb(at + 6, 2))
    tree:add(f.domain_instructions, tvb(at + 8, 2))
    tree:add(f.domain_flags, tvb(at + 10, 2))
    if is_lab then
        if (length - 12) % 20 ~= 0 then
            tree:add_proto_expert_info(int_malformed, "The stack is no multiple of 20 bytes")
            return
        end
        add_stack(tree, tvb, at + 12, length - 12, 20, function(hop, range, is_last)
            add_record(hop, range)
            if (range(18, 1):bitfield(0, 1) == 1) ~= is_last then
                hop:add_proto_expert_info(int_malformed, "The bottom of the stack is marked wrongly")
            end
        end)
        return
    end
    local items, needed = items_of(V2, tvb(at + 4, 2):uint())
    local hop = tvb(at + 2, 1):bitfield(3, 5) * 4
    if hop < needed then
        tree:add_proto_expert_info(int_malformed, "The instructions need " .. needed / 4 .. " words per hop")
        return
    end
    add_stack(tree, tvb, at + 12, length - 12, hop, function(tree, range)
        add_values(tree, h, items, range)
    end)
end

-- The MX header of INT 2.x with the metadata of the source.
local function dissect_mx(tree, tvb, at, length)
    tree:add(f.discard, tvb(at, 1))
    tree:add(f.instructions, tvb(at + 4, 2))
    tree:add(f.domain_id, tvb(at + 6, 2))
    tree:add(f.domain_instructions, tvb(at + 8, 2))
    tree:add(f.domain_flags, tvb(at + 10, 2))
    local there = math.min(length, tvb:len() - at) - 12
    if there > 0 then
        tree:add(f.source_metadata, tvb(at + 12, there))
    end
end

-- INT 2.x. Returns the offset behind it, and the original port or protocol.
local function dissect_v2(tree, tvb, at, is_lab)
    local kind, next_type = tvb(at, 1):bitfield(0, 4), tvb(at, 1):bitfield(4, 2)
    local length = tvb(at + 1, 1):uint() * 4
    tree:add(f.type, tvb(at, 1))
    tree:add(f.next, tvb(at, 1))
    tree:add(f.length, tvb(at + 1, 1))
    local original = {}
    if next_type == 0 then
        tree:add(f.original_dscp, tvb(at + 3, 1))
    elseif next_type == 1 then
        tree:add(f.original_port, tvb(at + 2, 2))
        original.port = tvb(at + 2, 2):uint()
    elseif next_type == 2 then
        tree:add(f.original_protocol, tvb(at + 3, 1))
        original.protocol = tvb(at + 3, 1):uint()
    else
        tree:add_proto_expert_info(int_malformed, "Next protocol type 3 is reserved")
    end
    local start = at + 4
    if kind == 2 then
        local there = math.min(length, tvb:len() - start)
        if there > 0 then
            tree:add(f.destination, tvb(start, there))
        end
    elseif length < 12 or not TYPES[kind] then
        local what = TYPES[kind] and "The length does not cover the header" or "The type is unknown"
        tree:add_proto_expert_info(int_malformed, what)
        return nil
    elseif tvb:len() < start + 12 then
        tree:add_proto_expert_info(int_truncated)
    else
        tree:add(f.version, tvb(start, 1))
        if tvb(start, 1):bitfield(0, 4) ~= 2 then
            tree:add_proto_expert_info(int_malformed, "The version is not 2")
        elseif kind == 1 then
            dissect_md(tree, tvb, start, length, is_lab)
        else
            dissect_mx(tree, tvb, start, length)
        end
    end
    if tvb:len() < start + length then
        tree:add_proto_expert_info(int_truncated)
    end
    return start + length, original
end

-- The header of INT 1.0 with its stack.
local function dissect_v1(tree, tvb, at, length)
    tree:add(f.replication, tvb(at, 1))
    tree:add(f.copy, tvb(at, 1))
    tree:add(f.old_exceeded, tvb(at, 1))
    tree:add(f.old_mtu, tvb(at + 1, 1))
    tree:add(f.hop_words, tvb(at + 2, 1))
    tree:add(f.remaining_hops, tvb(at + 3, 1))
    tree:add(f.instructions, tvb(at + 4, 2))
    local hop, bitmap = tvb(at + 2, 1):bitfield(3, 5) * 4, tvb(at + 4, 2):uint()
    local items, size = items_of(V1, bitmap)
    if hop ~= size then
        items, size = items_of(V1_WIDE, bitmap)
    end
    if hop ~= size or hop == 0 then
        tree:add_proto_expert_info(int_malformed, "The words per hop are not those of the instructions")
        return
    end
    if length % hop ~= 0 then
        tree:add_proto_expert_info(int_malformed, "The stack is no multiple of the words per hop")
        return
    end
    add_stack(tree, tvb, at + 8, length, hop, function(tree, range) add_values(tree, h, items, range) end)
end

-- The header of INT 0.5 with its stack and tail. Returns the original port.
local function dissect_v0(tree, tvb, at, length)
    tree:add(f.replication, tvb(at, 1))
    tree:add(f.copy, tvb(at, 1))
    tree:add(f.old_exceeded, tvb(at, 1))
    tree:add(f.instruction_count, tvb(at + 1, 1))
    tree:add(f.max_hops, tvb(at + 2, 1))
    tree:add(f.total_hops, tvb(at + 3, 1))
    tree:add(f.instructions, tvb(at + 4, 2))
    local items, hop = items_of(V0, tvb(at + 4, 2):uint())
    local stack = length - 4
    if stack ~= tvb(at + 3, 1):uint() * hop then
        tree:add_proto_expert_info(int_malformed, "The length is not that of the hops")
        return {}
    end
    add_stack(tree, tvb, at + 8, stack, hop, function(tree, range) add_values(tree, h, items, range) end)
    local tail = at + 8 + stack
    if tvb:len() < tail + 4 then
        return {}
    end
    tree:add(f.original_protocol, tvb(tail, 1))
    tree:add(f.original_port, tvb(tail + 1, 2))
    tree:add(f.tail_dscp, tvb(tail + 3, 1))
    return { port = tvb(tail + 1, 2):uint() }
end

-- INT 1.0 and 0.5, whose length includes the shim.
local function dissect_old(tree, tvb, at)
    local length = tvb(at + 2, 1):uint() * 4
    tree:add(f.old_type, tvb(at, 1))
    tree:add(f.length, tvb(at + 2, 1))
    tree:add(f.original_dscp, tvb(at + 3, 1))
    local kind, header, original = tvb(at, 1):uint(), at + 4, {}
    if not OLD_TYPES[kind] or length < 4 then
        tree:add_proto_expert_info(int_malformed, "The type is unknown, or the length does not cover the shim")
        return nil
    elseif kind == 2 then
        local there = math.min(length - 4, tvb:len() - header)
        if there > 0 then
            tree:add(f.destination, tvb(header, there))
        end
    elseif tvb:len() < header + 8 then
        tree:add_proto_expert_info(int_truncated)
    else
        local version = tvb(header, 1):bitfield(0, 4)
        tree:add(f.version, tvb(header, 1))
        local fixed = version == 0 and 16 or 12
        if version > 1 or length < fixed then
            tree:add_proto_expert_info(int_malformed, "The version or the length is wrong")
            return nil
        elseif version == 1 then
            dissect_v1(tree, tvb, header, length - 12)
        else
            original = dissect_v0(tree, tvb, header, length - 12)
        end
    end
    if tvb:len() < at + length then
        tree:add_proto_expert_info(int_truncated)
    end
    return at + length, original
end

-- INT at an offset. Returns the offset behind it, and what the headers were before INT; nothing if
-- it is malformed.
local function dissect_int(tvb, pinfo, tree, at, is_lab)
    local subtree = tree:add(int, tvb(at))
    if tvb:len() < at + 4 then
        subtree:add_proto_expert_info(int_truncated, "The shim is truncated")
        return nil
    end
    local is_old = tvb(at, 1):bitfield(0, 4) == 0 and not is_lab
    local behind, original
    if is_old then
        behind, original = dissect_old(subtree, tvb, at)
    else
        behind, original = dissect_v2(subtree, tvb, at, is_lab)
    end
    if behind and behind < tvb:len() then
        subtree:set_len(behind - at)
    end
    return behind, original
end

-- INT behind a UDP header whose port signals it.
local function dissect_by_port(tvb, pinfo, tree, is_lab)
    if tvb:len() == 0 then
        return 0
    end
    local behind, original = dissect_int(tvb, pinfo, tree, 0, is_lab)
    if not behind then
        hand_on(nil, tvb, 0, pinfo, tree)
    elseif original.protocol then
        hand_on(DissectorTable.get("ip.proto"):get_dissector(original.protocol), tvb, behind, pinfo, tree)
    else
        local dissector = original.port and DissectorTable.get("udp.port"):get_dissector(original.port)
        hand_on(dissector, tvb, behind, pinfo, tree)
    end
    pinfo.cols.protocol = is_lab and "INT lab" or "INT"
    return tvb:len()
end

function int.dissector(tvb, pinfo, tree)
    return dissect_by_port(tvb, pinfo, tree, false)
end

function lab.dissector(tvb, pinfo, tree)
    return dissect_by_port(tvb, pinfo, tree, true)
end

local udp = DissectorTable.get("udp.port")
local bound = {}

-- Binds a dissector to the ports of a preference. Wireshark does not rebind ports by itself.
local function bind(proto, ports)
    if bound[proto.name] == ports then
        return
    end
    if (bound[proto.name] or "") ~= "" then
        udp:remove(bound[proto.name], proto)
    end
    if ports ~= "" then
        udp:add(ports, proto)
    end
    bound[proto.name] = ports
end

local function bind_all()
    bind(int, int.prefs.ports)
    bind(lab, int.prefs.lab_ports)
end

int.prefs_changed = bind_all
bind_all()
udp:add_for_decode_as(int)
udp:add_for_decode_as(lab)

-- Whether a port signals INT by itself.
local function is_bound(port)
    for _, ports in ipairs({ int.prefs.ports, int.prefs.lab_ports }) do
        for first, last in ports:gmatch("(%d+)%-?(%d*)") do
            first = tonumber(first)
            if first <= port and port <= (tonumber(last) or first) then
                return true
            end
        end
    end
    return false
end

-- What weir_int_marked.lua and weir_report.lua need. Wireshark gives each script its own globals.
_G.weir_int = {
    add_values = add_values,
    bind = bind,
    bits = bits,
    dissect = dissect_int,
    hand_on = hand_on,
    is_bound = is_bound,
    items_of = items_of,
    list = list,
    value_fields = value_fields,
    items = {
        buffer = BUFFER, drop = DROP, egress32 = EGRESS32, egress64 = EGRESS64, ingress64 = INGRESS64,
        l2_ports = L2_PORTS, latency = LATENCY, node = NODE, ports = PORTS, queue = QUEUE,
        reserved = RESERVED, utilisation = UTILISATION,
    },
}
