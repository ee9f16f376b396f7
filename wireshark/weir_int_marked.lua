-- INT that DSCP or a probe marker signals, for Wireshark 3.4 or later.
--
-- The ports of such packets are those of their flow, so that Wireshark's dissectors see INT as the
-- payload. This post-dissector adds INT to the tree. It needs weir_int.lua, loaded before; in a
-- folder of plugins Wireshark does so by itself.

local weir_int = _G.weir_int
if not weir_int then
    error("weir_int_marked.lua needs weir_int.lua, which has to be loaded before it")
end

local marked = Proto("weir_int_marked", "In-band Network Telemetry, marked by DSCP or probe marker")

marked.prefs.dscp = Pref.uint("DSCP value", 0x17, "DSCP value of packets with INT (decimal)")
marked.prefs.dscp_mask = Pref.uint("DSCP mask", 0x3f, "Bits of the DSCP value that count; 0: DSCP does not signal INT")
marked.prefs.probe_marker = Pref.string(
    "Probe marker", "", "First 8 bytes behind the TCP or UDP header of packets with INT, in hexadecimal")

local function matches_dscp(dscp)
    local mask, value = marked.prefs.dscp_mask, marked.prefs.dscp
    for bit = 0, 5 do
        local place = 2 ^ bit
        local counts = math.floor(mask / place) % 2 == 1
        if counts and math.floor(dscp / place) % 2 ~= math.floor(value / place) % 2 then
            return false
        end
    end
    return mask % 64 ~= 0
end

local VLAN_TAGS = { [0x8100] = true, [0x88a8] = true, [0x9100] = true }

-- The offset of the IP header of an Ethernet frame with at most four VLAN tags.
local function behind_ethernet(tvb)
    local at = 12
    for _ = 0, 4 do
        if tvb:len() < at + 2 then
            return nil
        end
        local ethertype = tvb(at, 2):uint()
        if ethertype == 0x0800 or ethertype == 0x86dd then
            return at + 2
        elseif not VLAN_TAGS[ethertype] then
            return nil
        end
        at = at + 4
    end
    return nil
end

-- Bytes of IPv6 extension headers, by their number and second byte.
local EXTENSIONS = {
    [0] = function(length) return (length + 1) * 8 end,
    [43] = function(length) return (length + 1) * 8 end,
    [44] = function() return 8 end,
    [51] = function(length) return (length + 2) * 4 end,
    [60] = function(length) return (length + 1) * 8 end,
}

-- Offset, protocol and DSCP value of what is behind an IPv6 header.
local function behind_ipv6(tvb, at)
    if tvb:len() < at + 40 then
        return nil
    end
    local dscp, protocol = tvb(at, 2):bitfield(4, 6), tvb(at + 6, 1):uint()
    at = at + 40
    for _ = 1, 8 do
        local size = EXTENSIONS[protocol]
        if not size then
            return at, protocol, dscp
        elseif tvb:len() < at + 8 or (protocol == 44 and tvb(at + 2, 2):bitfield(0, 13) ~= 0) then
            return nil
        end
        protocol, at = tvb(at, 1):uint(), at + size(tvb(at + 1, 1):uint())
    end
    return nil
end

-- Offset, protocol and DSCP value of what is behind an IP header; nothing for later fragments.
local function behind_ip(tvb, at)
    if tvb:len() < at + 20 then
        return nil
    end
    local version, words = tvb(at, 1):bitfield(0, 4), tvb(at, 1):bitfield(4, 4)
    if version == 6 then
        return behind_ipv6(tvb, at)
    elseif version ~= 4 or words < 5 or tvb(at + 6, 2):bitfield(3, 13) ~= 0 then
        return nil
    end
    return at + words * 4, tvb(at + 9, 1):uint(), tvb(at + 1, 1):bitfield(0, 6)
end

-- The offset of what is behind a TCP or UDP header.
local function behind_transport(tvb, at, protocol)
    if protocol == 17 then
        return at + 8
    end
    local words = tvb:len() >= at + 13 and tvb(at + 12, 1):bitfield(0, 4) or 0
    return words >= 5 and at + words * 4 or nil
end

-- INT that DSCP or a probe marker signals, in a packet whose IP header is at an offset.
local function dissect_marked(tvb, pinfo, tree, at)
    local transport, protocol, dscp = behind_ip(tvb, at)
    if not transport or (protocol ~= 6 and protocol ~= 17) or tvb:len() < transport + 8 then
        return
    end
    local port = tvb(transport + 2, 2):uint()
    if protocol == 17 and weir_int.is_bound(port) then
        return
    end
    local payload = behind_transport(tvb, transport, protocol)
    if not payload or tvb:len() <= payload then
        return
    end
    local marker = marked.prefs.probe_marker:lower()
    if #marker == 16 and tvb:len() > payload + 8 and tostring(tvb(payload, 8):bytes()):lower() == marker then
        payload = payload + 8
    elseif not matches_dscp(dscp) then
        return
    end
    local behind = weir_int.dissect(tvb, pinfo, tree, payload, false)
    local dissector = protocol == 17 and DissectorTable.get("udp.port"):get_dissector(port)
    if behind and dissector then
        weir_int.hand_on(dissector, tvb, behind, pinfo, tree)
    end
end

local frame_ethernet, frame_ipv4, frame_ipv6 = Field.new("eth.dst"), Field.new("ip.version"), Field.new("ipv6.version")

-- The outermost headers of a frame.
function marked.dissector(tvb, pinfo, tree)
    local ethernet, ipv4, ipv6 = frame_ethernet(), frame_ipv4(), frame_ipv6()
    local at
    if ethernet and ethernet.offset == 0 then
        at = behind_ethernet(tvb)
    elseif (ipv4 and ipv4.offset == 0) or (ipv6 and ipv6.offset == 0) then
        at = 0
    end
    if at then
        dissect_marked(tvb, pinfo, tree, at)
    end
end

register_postdissector(marked)

-- What weir_report.lua needs for the packets in reports.
weir_int.behind_ethernet = behind_ethernet
weir_int.dissect_marked = dissect_marked
