-- EFCP, the data transfer protocol of RINA, for Wireshark 3.4 or later.
--
-- Three formats of its protocol control information: that of rina_router and of the paper "A
-- P4-Enabled RINA Interior Router for Software-Defined Data Centers", that of IRATI, and that of
-- rlite. Bytes do not tell them apart: a preference does. Load it by
-- `-X lua_script:weir_efcp.lua`, or put it into the folder of personal Lua plugins.

local efcp = Proto("weir_efcp", "RINA EFCP")

local PAPER, IRATI, RLITE = 0, 1, 2
local DIALECTS = { { 1, "rina_router", PAPER }, { 2, "IRATI", IRATI }, { 3, "rlite", RLITE } }
local WIDTHS = { { 1, "1 byte", 1 }, { 2, "2 bytes", 2 }, { 3, "4 bytes", 4 } }
local TYPES = {
    [0x40] = "Layer management", [0x80] = "Data transfer", [0xc0] = "Control acknowledgement", [0xc1] = "ACK",
    [0xc2] = "NACK", [0xc4] = "Flow control", [0xc5] = "ACK and flow control", [0xc6] = "NACK and flow control",
    [0xc9] = "Selective ACK", [0xca] = "Selective NACK", [0xcd] = "Selective ACK and flow control",
    [0xce] = "Selective NACK and flow control", [0xcf] = "Rendezvous",
}
-- rlite composes its control types of bits: 0x04 ACK, 0x08 flow control.
local RLITE_TYPES = {
    [0x40] = "Layer management", [0x80] = "Data transfer", [0xc4] = "ACK", [0xc8] = "Flow control",
    [0xcc] = "ACK and flow control",
}

local f = {
    version = ProtoField.uint8("weir_efcp.version", "Version", base.DEC),
    dst = ProtoField.uint32("weir_efcp.dst", "Destination address", base.DEC),
    src = ProtoField.uint32("weir_efcp.src", "Source address", base.DEC),
    qos = ProtoField.uint32("weir_efcp.qos", "QoS id", base.DEC),
    dst_cep = ProtoField.uint32("weir_efcp.dst_cep", "Destination CEP id", base.DEC),
    src_cep = ProtoField.uint32("weir_efcp.src_cep", "Source CEP id", base.DEC),
    type = ProtoField.uint8("weir_efcp.type", "PDU type", base.HEX, TYPES),
    rlite_type = ProtoField.uint8("weir_efcp.type", "PDU type", base.HEX, RLITE_TYPES),
    flags = ProtoField.uint32("weir_efcp.flags", "Flags", base.HEX),
    ecn = ProtoField.bool("weir_efcp.flags.ecn", "Explicit congestion notification", 8, nil, 0x01),
    drf = ProtoField.bool("weir_efcp.flags.drf", "Data run", 8, nil, 0x80),
    length = ProtoField.uint32("weir_efcp.length", "Length", base.DEC),
    sequence = ProtoField.uint32("weir_efcp.sequence", "Sequence number", base.DEC),
    checksum = ProtoField.uint16("weir_efcp.checksum", "Checksum", base.HEX),
    checksum_good = ProtoField.bool("weir_efcp.checksum.good", "Checksum is right"),
    ttl = ProtoField.uint16("weir_efcp.ttl", "TTL", base.DEC),
    acked = ProtoField.uint32("weir_efcp.acked", "Acknowledged sequence number", base.DEC),
    last_control = ProtoField.uint32("weir_efcp.last_control", "Last control sequence number", base.DEC),
    new_lwe = ProtoField.uint32("weir_efcp.new_lwe", "New left window edge", base.DEC),
    new_rwe = ProtoField.uint32("weir_efcp.new_rwe", "New right window edge", base.DEC),
    my_lwe = ProtoField.uint32("weir_efcp.my_lwe", "My left window edge", base.DEC),
    my_rwe = ProtoField.uint32("weir_efcp.my_rwe", "My right window edge", base.DEC),
    rate = ProtoField.uint32("weir_efcp.rate", "Rate", base.DEC),
    frame = ProtoField.uint32("weir_efcp.time_frame", "Time frame", base.DEC),
}

local truncated = ProtoExpert.new(
    "weir_efcp.truncated", "PDU is truncated", expert.group.MALFORMED, expert.severity.ERROR)
local malformed = ProtoExpert.new(
    "weir_efcp.malformed", "PDU is malformed", expert.group.MALFORMED, expert.severity.ERROR)
local bad_checksum = ProtoExpert.new(
    "weir_efcp.checksum.bad", "Checksum is wrong", expert.group.CHECKSUM, expert.severity.ERROR)

local all = {}
for _, field in pairs(f) do
    all[#all + 1] = field
end
efcp.fields = all
efcp.experts = { truncated, malformed, bad_checksum }
efcp.prefs.dialect = Pref.enum("Format", PAPER, "Whose protocol control information it is", DIALECTS, false)
efcp.prefs.ethertypes = Pref.range("EtherTypes", "53744", "EtherTypes of EFCP (53744 is 0xd1f0)", 65535)
efcp.prefs.little_endian = Pref.bool("IRATI, rlite: little-endian", true, "The byte order of the hosts")
efcp.prefs.address = Pref.enum("IRATI: address", 2, "Bytes of an address, a constant of the DIF", WIDTHS, false)
efcp.prefs.cep = Pref.enum("IRATI: CEP id", 2, "Bytes of a CEP id, a constant of the DIF", WIDTHS, false)
efcp.prefs.qos = Pref.enum("IRATI: QoS id", 2, "Bytes of a QoS id, a constant of the DIF", WIDTHS, false)
efcp.prefs.length = Pref.enum("IRATI: length", 2, "Bytes of the length, a constant of the DIF", WIDTHS, false)

-- Adds fields of given sizes in order. Returns the offset behind them, and the values by name;
-- nothing if the PDU is truncated.
local function add_all(tree, tvb, at, layout, is_little)
    local values = {}
    for _, entry in ipairs(layout) do
        local name, size = entry[1], entry[2]
        if tvb:len() < at + size then
            tree:add_proto_expert_info(truncated)
            return nil
        end
        local range = tvb(at, size)
        if is_little then
            tree:add_le(f[name], range)
            values[name] = range:le_uint()
        else
            tree:add(f[name], range)
            values[name] = range:uint()
        end
        if name == "flags" then
            local low = is_little and range(0, 1) or range(size - 1, 1)
            tree:add(f.ecn, low)
            tree:add(f.drf, low)
        end
        at = at + size
    end
    return at, values
end

local PAPER_LAYOUT = {
    { "version", 1 }, { "dst", 2 }, { "src", 2 }, { "qos", 1 }, { "dst_cep", 2 }, { "src_cep", 2 }, { "type", 1 },
    { "flags", 1 }, { "length", 2 }, { "sequence", 4 }, { "checksum", 2 },
}

-- The one's complement sum of the first 18 bytes and the checksum is 0xffff if nothing changed.
local function check(tree, tvb)
    local sum = 0
    for at = 0, 18, 2 do
        sum = sum + tvb(at, 2):uint()
    end
    local is_good = sum > 0 and sum % 0xffff == 0
    tree:add(f.checksum_good, tvb(18, 2), is_good):set_generated()
    if not is_good then
        tree:add_proto_expert_info(bad_checksum)
    end
end

local function dissect_paper(tree, tvb)
    local at, values = add_all(tree, tvb, 0, PAPER_LAYOUT, false)
    if at then
        check(tree, tvb)
    end
    return at, values
end

local IRATI_ACK = { { "acked", 4 } }
local IRATI_FC = { { "new_rwe", 4 }, { "my_lwe", 4 }, { "my_rwe", 4 }, { "rate", 4 }, { "frame", 4 } }
local IRATI_ALL = {
    { "last_control", 4 }, { "new_lwe", 4 }, { "new_rwe", 4 }, { "my_lwe", 4 }, { "my_rwe", 4 }, { "rate", 4 },
    { "frame", 4 },
}
local IRATI_BOTH = { { "acked", 4 } }
for _, entry in ipairs(IRATI_ALL) do
    IRATI_BOTH[#IRATI_BOTH + 1] = entry
end
-- What follows the control sequence number, by PDU type. The formats of other types are not known.
local IRATI_TAILS = {
    [0x40] = {}, [0x80] = {}, [0xc0] = IRATI_ALL, [0xc1] = IRATI_ACK, [0xc4] = IRATI_FC, [0xc5] = IRATI_BOTH,
    [0xcf] = IRATI_ALL,
}

local function dissect_irati(tree, tvb)
    local p = efcp.prefs
    local layout = {
        { "version", 1 }, { "dst", p.address }, { "src", p.address }, { "qos", p.qos }, { "dst_cep", p.cep },
        { "src_cep", p.cep }, { "type", 1 }, { "flags", 1 }, { "length", p.length }, { "sequence", 4 },
    }
    local at, values = add_all(tree, tvb, 0, layout, p.little_endian)
    if at then
        at = add_all(tree, tvb, at, IRATI_TAILS[values.type] or {}, p.little_endian)
    end
    return at, values
end

local RLITE_LAYOUT = {
    { "version", 1 }, { "rlite_type", 1 }, { "flags", 2 }, { "checksum", 2 }, { "ttl", 2 }, { "sequence", 4 },
    { "dst", 4 }, { "src", 4 }, { "dst_cep", 2 }, { "src_cep", 2 }, { "length", 2 }, { "qos", 2 },
}
local RLITE_CONTROL = {
    { "last_control", 4 }, { "acked", 4 }, { "new_rwe", 4 }, { "new_lwe", 4 }, { "my_lwe", 4 }, { "my_rwe", 4 },
}

local function dissect_rlite(tree, tvb)
    local little = efcp.prefs.little_endian
    local at, values = add_all(tree, tvb, 0, RLITE_LAYOUT, little)
    if at then
        values.type = values.rlite_type
        if values.type >= 0xc0 then
            at = add_all(tree, tvb, at, RLITE_CONTROL, little)
        end
    end
    return at, values
end

local DISSECTORS = { [PAPER] = dissect_paper, [IRATI] = dissect_irati, [RLITE] = dissect_rlite }

function efcp.dissector(tvb, pinfo, tree)
    if tvb:len() == 0 then
        return 0
    end
    local subtree = tree:add(efcp, tvb())
    local dialect = efcp.prefs.dialect
    local at, values = DISSECTORS[dialect](subtree, tvb)
    pinfo.cols.protocol = "EFCP"
    if not at then
        return tvb:len()
    end
    local names = dialect == RLITE and RLITE_TYPES or TYPES
    local name = names[values.type]
    if not name then
        subtree:add_proto_expert_info(malformed, "The PDU type is unknown")
    end
    pinfo.cols.info =
        values.src .. " → " .. values.dst .. " " .. (name or "unknown type") .. " Seq=" .. values.sequence
    -- Frames are padded to the least length of Ethernet.
    if values.length < at then
        subtree:add_proto_expert_info(malformed, "The length does not cover the PDU's control information")
    elseif values.length > tvb:len() then
        subtree:add_proto_expert_info(truncated, "The length exceeds what was captured")
    end
    local last = math.max(at, math.min(values.length, tvb:len()))
    subtree:set_len(at)
    if last > at then
        Dissector.get("data"):call(tvb(at, last - at):tvb(), pinfo, tree)
    end
    return last
end

local ethertype = DissectorTable.get("ethertype")
local bound = ""

-- Binds the EtherTypes of the preference. Wireshark does not rebind them by itself.
local function bind()
    local ethertypes = efcp.prefs.ethertypes
    if ethertypes == bound then
        return
    end
    if bound ~= "" then
        ethertype:remove(bound, efcp)
    end
    if ethertypes ~= "" then
        ethertype:add(ethertypes, efcp)
    end
    bound = ethertypes
end

efcp.prefs_changed = bind
bind()
