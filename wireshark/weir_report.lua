-- Telemetry reports of INT for Wireshark 3.4 or later: 2.0, 1.0 and 0.5, with the packets in them.
--
-- Load weir_int.lua and weir_int_marked.lua first: they dissect the INT in those packets. In a
-- folder of plugins Wireshark does so by itself.

local weir_int = _G.weir_int
if not (weir_int and weir_int.dissect_marked) then
    error("weir_report.lua needs weir_int.lua and weir_int_marked.lua, which have to be loaded before it")
end

local report = Proto("weir_report", "INT Telemetry Report")

local REPORT_TYPES = { [0] = "Inner only", [1] = "INT", [2] = "IOAM" }
local INNER_TYPES =
    { [0] = "None", [1] = "TLV", [2] = "Domain-specific", [3] = "Ethernet", [4] = "IPv4", [5] = "IPv6" }
local NEXT_0_5 = { [0] = "Ethernet", [1] = "Drop header", [2] = "Local header" }
local NEXT_1_0 = { [0] = "Ethernet", [1] = "IPv4", [2] = "IPv6" }
local TLV_TYPES = { [0] = "Domain-specific", [1] = "Ethernet", [2] = "IPv4", [3] = "IPv6" }
-- The versions that the preference selects.
local DETECT, V0_5, V1_0, V2_0 = 0, 1, 2, 3
local VERSIONS = { { 1, "Detect", DETECT }, { 2, "0.5", V0_5 }, { 3, "1.0", V1_0 }, { 4, "2.0", V2_0 } }

local v = weir_int.value_fields("weir_report.")
local f = {
    version = ProtoField.uint8("weir_report.version", "Version", base.DEC, nil, 0xf0),
    hw_id = ProtoField.uint32("weir_report.hw_id", "Hardware id", base.DEC, nil, 0x0fc00000),
    sequence = ProtoField.uint32("weir_report.sequence", "Sequence number", base.DEC, nil, 0x003fffff),
    old_hw_id = ProtoField.uint32("weir_report.hw_id", "Hardware id", base.DEC, nil, 0x3f),
    old_sequence = ProtoField.uint32("weir_report.sequence", "Sequence number", base.DEC),
    type = ProtoField.uint8("weir_report.type", "Report type", base.DEC, REPORT_TYPES, 0xf0),
    inner_type = ProtoField.uint8("weir_report.inner_type", "Inner type", base.DEC, INNER_TYPES, 0x0f),
    next_0_5 = ProtoField.uint32("weir_report.next", "Next protocol", base.DEC, NEXT_0_5, 0x0f000000),
    next_1_0 = ProtoField.uint32("weir_report.next", "Next protocol", base.DEC, NEXT_1_0, 0x00e00000),
    length = ProtoField.uint8("weir_report.length", "Length in words of 4 bytes", base.DEC),
    length_1_0 = ProtoField.uint8("weir_report.length", "Length in words of 4 bytes", base.DEC, nil, 0x0f),
    metadata_length = ProtoField.uint8("weir_report.metadata_length", "Words of metadata", base.DEC),
    dropped = ProtoField.bool("weir_report.dropped", "Dropped", 8, nil, 0x80),
    congested = ProtoField.bool("weir_report.congested_queue", "Congested queue", 8, nil, 0x40),
    tracked = ProtoField.bool("weir_report.tracked_flow", "Tracked flow", 8, nil, 0x20),
    intermediate = ProtoField.bool("weir_report.intermediate", "Intermediate", 8, nil, 0x10),
    dropped_1_0 = ProtoField.bool("weir_report.dropped", "Dropped", 32, nil, 0x100),
    congested_1_0 = ProtoField.bool("weir_report.congested_queue", "Congested queue", 32, nil, 0x80),
    tracked_1_0 = ProtoField.bool("weir_report.tracked_flow", "Tracked flow", 32, nil, 0x40),
    dropped_0_5 = ProtoField.bool("weir_report.dropped", "Dropped", 32, nil, 0x00800000),
    congested_0_5 = ProtoField.bool("weir_report.congested_queue", "Congested queue", 32, nil, 0x00400000),
    tracked_0_5 = ProtoField.bool("weir_report.tracked_flow", "Tracked flow", 32, nil, 0x00200000),
    metadata_bits = ProtoField.uint16("weir_report.metadata_bits", "Metadata bits", base.HEX),
    bits_1_0 = ProtoField.uint32("weir_report.metadata_bits", "Metadata bits", base.HEX, nil, 0x001f8000),
    domain_id = ProtoField.uint16("weir_report.domain_id", "Domain", base.HEX),
    domain_bits = ProtoField.uint16("weir_report.domain_bits", "Domain-specific metadata bits", base.HEX),
    domain_status = ProtoField.uint16("weir_report.domain_status", "Domain-specific metadata status", base.HEX),
    extension = ProtoField.bytes("weir_report.domain_extension", "Domain-specific extension data"),
    contents = ProtoField.bytes("weir_report.contents", "Contents of an unknown format"),
    tlv_type = ProtoField.uint8("weir_report.tlv.type", "Type", base.DEC, TLV_TYPES, 0xf0),
    tlv_length = ProtoField.uint8("weir_report.tlv.length", "Length in words of 4 bytes", base.DEC),
    tlv_template = ProtoField.uint16("weir_report.tlv.template", "Template", base.HEX),
}

local truncated = ProtoExpert.new(
    "weir_report.truncated", "Report is truncated", expert.group.MALFORMED, expert.severity.ERROR)
local malformed = ProtoExpert.new(
    "weir_report.malformed", "Report is malformed", expert.group.MALFORMED, expert.severity.ERROR)

report.fields = weir_int.list(f, v)
report.experts = { truncated, malformed }
report.prefs.ports = Pref.range("UDP ports", "5900", "UDP destination ports of telemetry reports", 65535)
report.prefs.version = Pref.enum("Version", DETECT, "Version of the reports", VERSIONS, false)

local i = weir_int.items
local METADATA_2_0 = weir_int.bits({
    i.reserved, i.ports, i.latency, i.queue, i.ingress64, i.egress64, i.l2_ports, i.utilisation, i.buffer,
})
METADATA_2_0[16] = i.drop
local METADATA_1_0 = weir_int.bits({ i.ports, i.latency, i.queue, i.egress32, i.drop, i.utilisation })
local NEXT_HEADERS_0_5 = { [0] = {}, { i.node, i.ports, i.drop }, { i.node, i.ports, i.queue, i.egress32 } }

-- Whether `count` bytes follow; says so if not.
local function has(tree, tvb, at, count)
    if tvb:len() >= at + count then
        return true
    end
    tree:add_proto_expert_info(truncated)
    return false
end

-- The packet of a report. Wireshark's dissectors take the addresses of the inner packet for those
-- of the frame, so these are put back.
local function dissect_packet(name, tvb, at, length, pinfo, tree)
    length = math.min(length, tvb:len() - at)
    if length <= 0 then
        return
    end
    local src, dst, src_port, dst_port = pinfo.src, pinfo.dst, pinfo.src_port, pinfo.dst_port
    weir_int.hand_on(Dissector.get(name), tvb, at, pinfo, tree, length)
    local packet = tvb(at, length):tvb()
    local start = 0
    if name == "eth_withoutfcs" then
        start = weir_int.behind_ethernet(packet)
    end
    if start then
        weir_int.dissect_marked(packet, pinfo, tree, start)
    end
    pinfo.src, pinfo.dst, pinfo.src_port, pinfo.dst_port = src, dst, src_port, dst_port
end

local PACKETS_2_0 = { [3] = "eth_withoutfcs", [4] = "ip", [5] = "ipv6" }
local PACKETS_TLV = { "eth_withoutfcs", "ip", "ipv6" }
local PACKETS_1_0 = { [0] = "eth_withoutfcs", "ip", "ipv6" }

local function dissect_tlvs(tree, tvb, at, last, pinfo)
    while at < last do
        if not has(tree, tvb, at, 4) then
            return
        end
        local kind, size = tvb(at, 1):bitfield(0, 4), tvb(at + 1, 1):uint() * 4
        local there = math.min(size, last - at - 4)
        local tlv = tree:add(report, tvb(at, 4 + there), "TLV")
        tlv:add(f.tlv_type, tvb(at, 1))
        tlv:add(f.tlv_length, tvb(at + 1, 1))
        tlv:add(f.tlv_template, tvb(at + 2, 2))
        if there < size then
            tlv:add_proto_expert_info(malformed, "The TLV exceeds its report")
        end
        if PACKETS_TLV[kind] then
            dissect_packet(PACKETS_TLV[kind], tvb, at + 4, there, pinfo, tlv)
        elseif there > 0 then
            tlv:add(kind == 0 and f.extension or f.contents, tvb(at + 4, there))
        end
        at = at + 4 + size
    end
end

-- The inner contents of a report 2.0, up to an offset.
local function dissect_inner(tree, tvb, at, last, kind, pinfo)
    if at >= last then
        return
    elseif PACKETS_2_0[kind] then
        dissect_packet(PACKETS_2_0[kind], tvb, at, last - at, pinfo, tree)
    elseif kind == 1 then
        dissect_tlvs(tree, tvb, at, last, pinfo)
    else
        tree:add(kind == 2 and f.extension or f.contents, tvb(at, last - at))
    end
end

-- The main contents of RepType 1: fixed part, metadata. Returns the offset behind them.
local function dissect_main(tree, tvb, at, last, words)
    if last < at + 8 then
        tree:add_proto_expert_info(malformed, "The report ends within its main contents")
        return nil
    end
    tree:add(f.metadata_bits, tvb(at, 2))
    tree:add(f.domain_id, tvb(at + 2, 2))
    tree:add(f.domain_bits, tvb(at + 4, 2))
    tree:add(f.domain_status, tvb(at + 6, 2))
    local items, size = weir_int.items_of(METADATA_2_0, tvb(at, 2):uint())
    at = at + 8
    if size > words * 4 then
        tree:add_proto_expert_info(malformed, "The metadata bits need " .. size / 4 .. " words")
        return nil
    elseif last < at + words * 4 then
        tree:add_proto_expert_info(malformed, "The report ends within its metadata")
        return nil
    end
    if words > 0 then
        weir_int.add_values(tree, v, items, tvb(at, words * 4))
    end
    return at + words * 4
end

-- A report of a datagram of 2.0. Returns the offset behind it.
local function dissect_individual(tree, tvb, at, index, pinfo)
    if not has(tree, tvb, at, 4) then
        return tvb:len()
    end
    local kind, inner = tvb(at, 1):bitfield(0, 4), tvb(at, 1):bitfield(4, 4)
    local words, metadata = tvb(at + 1, 1):uint(), tvb(at + 2, 1):uint()
    local last = words == 255 and tvb:len() or math.min(at + 4 + words * 4, tvb:len())
    local subtree = tree:add(report, tvb(at, last - at), "Report " .. index)
    subtree:add(f.type, tvb(at, 1))
    subtree:add(f.inner_type, tvb(at, 1))
    subtree:add(f.length, tvb(at + 1, 1))
    subtree:add(f.metadata_length, tvb(at + 2, 1))
    subtree:add(f.dropped, tvb(at + 3, 1))
    subtree:add(f.congested, tvb(at + 3, 1))
    subtree:add(f.tracked, tvb(at + 3, 1))
    subtree:add(f.intermediate, tvb(at + 3, 1))
    if words ~= 255 and tvb:len() < at + 4 + words * 4 then
        subtree:add_proto_expert_info(truncated)
    end
    local start = at + 4
    if kind == 1 then
        start = dissect_main(subtree, tvb, start, last, metadata)
    elseif kind > 1 then
        subtree:add_proto_expert_info(malformed, "Reports of this type have no specified format")
        if start < last then
            subtree:add(f.contents, tvb(start, last - start))
        end
        start = nil
    end
    if start then
        dissect_inner(subtree, tvb, start, last, inner, pinfo)
    end
    return last
end

local function dissect_2_0(tree, tvb, pinfo)
    if not has(tree, tvb, 0, 8) then
        return
    end
    tree:add(f.hw_id, tvb(0, 4))
    tree:add(f.sequence, tvb(0, 4))
    tree:add(v.node_id, tvb(4, 4))
    tree:append_text(", node " .. tvb(4, 4):uint())
    local at, index = 8, 1
    -- A datagram has one report at least. Each takes 4 bytes at least.
    repeat
        at = dissect_individual(tree, tvb, at, index, pinfo)
        index = index + 1
    until at >= tvb:len()
end

local function dissect_1_0(tree, tvb, pinfo)
    if not has(tree, tvb, 0, 16) then
        return
    end
    local words, kind, bitmap = tvb(0, 1):bitfield(4, 4), tvb(1, 1):bitfield(0, 3), tvb(0, 4):bitfield(11, 6)
    tree:add(f.length_1_0, tvb(0, 1))
    tree:add(f.next_1_0, tvb(0, 4))
    tree:add(f.bits_1_0, tvb(0, 4))
    tree:add(f.dropped_1_0, tvb(0, 4))
    tree:add(f.congested_1_0, tvb(0, 4))
    tree:add(f.tracked_1_0, tvb(0, 4))
    tree:add(f.old_hw_id, tvb(0, 4))
    tree:add(v.node_id, tvb(4, 4))
    tree:append_text(", node " .. tvb(4, 4):uint())
    tree:add(f.old_sequence, tvb(8, 4))
    tree:add(v.ingress_timestamp, tvb(12, 4))
    local items, size = weir_int.items_of(METADATA_1_0, bitmap * 1024)
    -- Some generators send lengths that no header has.
    local header = words < 4 and 16 + size or words * 4
    if header < 16 + size then
        tree:add_proto_expert_info(malformed, "The metadata bits need " .. 4 + size / 4 .. " words")
        return
    elseif not has(tree, tvb, 0, header) then
        return
    end
    if size > 0 then
        weir_int.add_values(tree, v, items, tvb(16, size))
    end
    if PACKETS_1_0[kind] then
        dissect_packet(PACKETS_1_0[kind], tvb, header, tvb:len() - header, pinfo, tree)
    else
        tree:add_proto_expert_info(malformed, "The next protocol is unknown")
    end
end

local function dissect_0_5(tree, tvb, pinfo)
    if not has(tree, tvb, 0, 12) then
        return
    end
    tree:add(f.next_0_5, tvb(0, 4))
    tree:add(f.dropped_0_5, tvb(0, 4))
    tree:add(f.congested_0_5, tvb(0, 4))
    tree:add(f.tracked_0_5, tvb(0, 4))
    tree:add(f.old_hw_id, tvb(0, 4))
    tree:add(f.old_sequence, tvb(4, 4))
    tree:add(v.ingress_timestamp, tvb(8, 4))
    local items, size = NEXT_HEADERS_0_5[tvb(0, 1):bitfield(4, 4)], 0
    if not items then
        tree:add_proto_expert_info(malformed, "The next protocol is unknown")
        return
    end
    for _, item in ipairs(items) do
        size = size + item[1]
    end
    if not has(tree, tvb, 12, size) then
        return
    end
    if size > 0 then
        weir_int.add_values(tree, v, items, tvb(12, size))
    end
    dissect_packet("eth_withoutfcs", tvb, 12 + size, tvb:len() - 12 - size, pinfo, tree)
end

-- The version by the first byte. 0.5 gives no value for its own: 0 and 1 occur, and 1.0 has a
-- length of at least 4 in the place of the next protocol.
local function detect(tvb)
    local version, second = tvb(0, 1):bitfield(0, 4), tvb(0, 1):bitfield(4, 4)
    if version == 2 then
        return V2_0
    elseif version == 0 or (version == 1 and second < 4) then
        return V0_5
    elseif version == 1 then
        return V1_0
    end
    return nil
end

local DISSECTORS = { [V0_5] = dissect_0_5, [V1_0] = dissect_1_0, [V2_0] = dissect_2_0 }

function report.dissector(tvb, pinfo, tree)
    if tvb:len() == 0 then
        return 0
    end
    local subtree = tree:add(report, tvb())
    subtree:add(f.version, tvb(0, 1))
    local version = report.prefs.version
    if version == DETECT then
        version = detect(tvb)
    end
    if version then
        DISSECTORS[version](subtree, tvb, pinfo)
    else
        subtree:add_proto_expert_info(malformed, "The version is unknown")
    end
    pinfo.cols.protocol = "INT report"
    pinfo.cols.info = tostring(subtree.text)
    return tvb:len()
end

local function bind_all()
    weir_int.bind(report, report.prefs.ports)
end

report.prefs_changed = bind_all
bind_all()
DissectorTable.get("udp.port"):add_for_decode_as(report)
