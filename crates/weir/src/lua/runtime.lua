-- A number in a preference: decimal, or hexadecimal behind 0x. Nothing if it is none, or too wide.
local function parse_number(text, width)
    local hex = text:match("^0[xX](%x+)$")
    local bits
    if hex then
        bits = B.of_hex(hex)
    elseif text:match("^%d+$") then
        bits = B.zero(#text * 4)
        local ten = B.zextend("1010", #bits)
        for digit in text:gmatch("%d") do
            bits = B.add(B.mul(bits, ten), B.zextend(B.of_hex(digit), #bits))
        end
    else
        return nil
    end
    local excess = #bits - width
    if excess > 0 and bits:sub(1, excess):find("1", 1, true) then
        return nil
    end
    return B.zextend(bits, width)
end

-- A field of a member of a value set: VALUE, VALUE&&&MASK or LOW..HIGH, as a function of the key.
local function parse_pattern(text, width)
    local low, high = text:match("^(.-)%.%.(.+)$")
    if low then
        low, high = parse_number(low, width), parse_number(high, width)
        return low and high and function(key) return B.between(key, low, high) end
    end
    local value, mask = text:match("^(.-)&&&(.+)$")
    if value then
        value, mask = parse_number(value, width), parse_number(mask, width)
        return value and mask and function(key) return B.matches(key, value, mask) end
    end
    value = parse_number(text, width)
    return value and function(key) return key == value end
end

-- The members of a value set: separated by spaces or commas, their fields by colons. Nothing, and
-- the text that is wrong, if they are none.
local function parse_set(text, widths)
    local members = {}
    for entry in text:gmatch("[^%s,]+") do
        local member = {}
        for part in (entry .. ":"):gmatch("([^:]*):") do
            local width = widths[#member + 1]
            local pattern = width and parse_pattern(part, width)
            if not pattern then
                return nil, entry
            end
            member[#member + 1] = pattern
        end
        if #member ~= #widths then
            return nil, entry
        end
        members[#members + 1] = member
    end
    return members
end

-- A parser at work on a packet. `bits` are those of the packet, `at` is the cursor.
local Parser = {}
Parser.__index = Parser

function Parser:fail(name)
    self.vars[self.program.error or 0] = B.of_number(self.program.codes[name], 32)
    self.failure = name
    return self.program.on_error or -2
end

function Parser:take(width)
    if self.at + width > #self.bits then
        return nil
    end
    return self.bits:sub(self.at + 1, self.at + width)
end

function Parser:extract(id, varbit)
    local header = self.program.headers[id]
    local width = header.width
    if varbit then
        varbit = distance(varbit, 2 ^ 31)
        if varbit > header.varbit then
            return "HeaderTooShort"
        elseif (width + varbit) % 8 ~= 0 then
            return "ParserInvalidArgument"
        end
        width = width + varbit
    end
    if not self:take(width) then
        return "PacketTooShort"
    end
    local found = { header = header, at = self.at, width = width, values = {} }
    for index, field in ipairs(header.fields) do
        local value = self:take(field.varbit and (varbit or 0) or field.width)
        self.vars[field.var] = value
        found.values[index] = value
        self.at = self.at + #value
    end
    self.vars[header.valid] = "1"
    self.found[#self.found + 1] = found
end

function Parser:lookahead(var, offset, width)
    if self.at + offset + width > #self.bits then
        return "PacketTooShort"
    end
    self.vars[var] = self.bits:sub(self.at + offset + 1, self.at + offset + width)
end

function Parser:advance(bits)
    local count = distance(bits, 2 ^ 31)
    if self.at + count > #self.bits then
        return "PacketTooShort"
    end
    self.at = self.at + count
end

function Parser:is_member(set, ...)
    for _, member in ipairs(self.sets[set]) do
        local matches = true
        for index, pattern in ipairs(member) do
            matches = matches and pattern((select(index, ...)))
        end
        if matches then
            return true
        end
    end
    return false
end

-- The bits of a header for a checksum: none if it is not valid.
function Parser:bits_of(id)
    local header, bits = self.program.headers[id], {}
    if header and self.vars[header.valid] == "1" then
        for index, field in ipairs(header.fields) do
            bits[index] = self.vars[field.var]
        end
    end
    return table.concat(bits)
end

-- InternetChecksum: the one's complement sum of words of 16 bits, the last one padded with zeros.
function Parser:add_to_sum(id, bits, change)
    local sum = self.externs[id] or 0
    for at = 1, #bits, 16 do
        local word = bits:sub(at, at + 15)
        sum = sum + change(B.number(word .. B.zero(16 - #word)))
        if sum > 0xffff then
            sum = sum - 0xffff
        end
    end
    self.externs[id] = sum
end

function Parser:sum_clear(id) self.externs[id] = 0 end
function Parser:sum_add(id, bits) self:add_to_sum(id, bits, function(word) return word end) end
function Parser:sum_subtract(id, bits) self:add_to_sum(id, bits, function(word) return 0xffff - word end) end
function Parser:sum_get(id) return B.of_number(0xffff - (self.externs[id] or 0), 16) end
function Parser:sum_state(id) return B.of_number(self.externs[id] or 0, 16) end
function Parser:sum_set_state(id, bits) self.externs[id] = B.number(bits) end

-- ParserCounter: a signed number of 8 bits.
function Parser:counter_set(id, bits) self.externs[id] = B.number(B.zextend(bits, 8)) end

function Parser:counter_increment(id, bits)
    self.externs[id] = ((self.externs[id] or 0) + B.number(B.zextend(bits, 8))) % 256
end

function Parser:counter_decrement(id, bits)
    self.externs[id] = ((self.externs[id] or 0) - B.number(B.zextend(bits, 8))) % 256
end

function Parser:counter_is_zero(id) return truth((self.externs[id] or 0) == 0) end
function Parser:counter_is_negative(id) return truth((self.externs[id] or 0) >= 128) end

-- Loops that take nothing from the packet would not end.
local MAX_STEPS = 10000

function Parser:run(block)
    local program, steps = self.program, 0
    while block >= 0 do
        steps = steps + 1
        if steps > MAX_STEPS then
            self.failure = "the parser does not end"
            return
        end
        local state = program.states[block]
        if state then
            self.path[#self.path + 1] = state
        end
        block = program.blocks[block](self, self.vars)
    end
    local code = program.error and B.number(self.vars[program.error]) or 0
    if code ~= 0 then
        self.failure = program.errors[code]
    elseif block == -2 then
        self.failure = self.failure or "reject"
    end
end

local function signed_number(bits)
    local n = B.number(bits)
    return bits:sub(1, 1) == "1" and n - 2 ^ #bits or n
end

-- How values of each kind get into the tree. Addresses and bytes at whole bytes are taken from the
-- packet, so that Wireshark shows them where they are.
local ADDERS = {
    bool = function(tree, field, range, bits) return tree:add(field, range, bits == "1") end,
    uint = function(tree, field, range, bits) return tree:add(field, range, B.number(bits)) end,
    uint64 = function(tree, field, range, bits) return tree:add(field, range, UInt64.fromhex(B.to_hex(bits))) end,
    int = function(tree, field, range, bits) return tree:add(field, range, signed_number(bits)) end,
    int64 = function(tree, field, range, bits)
        return tree:add(field, range, Int64.fromhex(B.to_hex(B.sextend(bits, 64))))
    end,
    ether = function(tree, field, range, bits)
        local address = B.to_hex(bits):gsub("%x%x", "%0:"):sub(1, -2)
        return tree:add(field, range, Address.ether(address))
    end,
    ipv4 = function(tree, field, range, bits)
        local address = B.to_bytes(bits):gsub(".", function(byte) return byte:byte() .. "." end):sub(1, -2)
        return tree:add(field, range, Address.ip(address))
    end,
    ipv6 = function(tree, field, range, bits)
        local address = B.to_hex(bits):gsub("%x%x%x%x", "%0:"):sub(1, -2)
        return tree:add(field, range, Address.ipv6(address))
    end,
    -- Wireshark takes as many bytes as the range has.
    bytes = function(tree, field, range, bits)
        local bytes = B.to_bytes(bits)
        return tree:add(field, range(range:len() - #bytes, #bytes), bytes)
    end,
}
local IN_PLACE = { ether = true, ipv4 = true, ipv6 = true, bytes = true }

local function add_value(tree, tvb, spec, bits, at)
    if #bits == 0 then
        return
    end
    local first = math.floor(at / 8)
    local range = tvb(first, math.ceil((at + #bits) / 8) - first)
    if IN_PLACE[spec.kind] and at % 8 == 0 and #bits % 8 == 0 then
        tree:add(spec.field, range)
    else
        ADDERS[spec.kind](tree, spec.field, range, bits)
    end
end

-- Adds a header to the tree. The cursor counts the bits that the device has put before the frame.
local function add_header(tree, proto, tvb, fields, found, prefix)
    local at = found.at - prefix
    if at < 0 then
        return
    end
    local first = math.floor(at / 8)
    local range = tvb(first, math.ceil((at + found.width) / 8) - first)
    local subtree = tree:add(proto, range, found.header.label)
    for index, bits in ipairs(found.values) do
        add_value(subtree, tvb, fields[found.header.fields[index].field], bits, at)
        at = at + #bits
    end
end

local function make_fields(program)
    local all = {}
    for index, spec in ipairs(program.fields) do
        local make = ProtoField[spec.type]
        if spec.type == "bool" then
            spec.field = ProtoField.bool(spec.abbr, spec.label)
        elseif spec.kind == "uint" or spec.kind == "uint64" or spec.kind == "int" or spec.kind == "int64" then
            spec.field = make(spec.abbr, spec.label, base.DEC, spec.names)
        else
            spec.field = make(spec.abbr, spec.label)
        end
        all[index] = spec.field
    end
    return all
end

-- The bits that the device puts before the frame, with the ingress port in its place.
local function prefix_of(program, port)
    local prefix = program.prefix
    if not prefix then
        return ""
    end
    local bits = B.zero(prefix.width)
    if port and prefix.port then
        local lo = prefix.width - prefix.port - prefix.port_width
        bits = B.insert(bits, lo + prefix.port_width - 1, lo, B.zextend(port, prefix.port_width))
    end
    return bits
end

-- Reads the preferences: the value of each input, and the members of each value set. Returns what
-- is wrong with them.
local function read_preferences(program, prefs)
    local inputs, sets, wrong = {}, {}, nil
    for _, input in ipairs(program.inputs) do
        inputs[input.pref] = parse_number(prefs[input.pref], input.width)
        if not inputs[input.pref] then
            wrong = "the preference " .. input.pref .. " is no number of " .. input.width .. " bits"
            inputs[input.pref] = B.zero(input.width)
        end
    end
    for index, set in ipairs(program.sets) do
        local members, entry = parse_set(prefs[set.pref], set.widths)
        sets[index] = members or {}
        if not members then
            wrong = "the preference " .. set.pref .. " has no member " .. entry
        end
    end
    return inputs, sets, wrong
end

-- Runs the parser over a frame.
local function parse(program, frame, inputs, sets, start)
    local prefix = prefix_of(program, inputs.ingress_port)
    local vars = setmetatable({}, { __index = function(_, var) return B.zero(program.widths[var]) end })
    for _, input in ipairs(program.inputs) do
        if input.var then
            vars[input.var] = inputs[input.pref]
        end
    end
    local parser = setmetatable({
        program = program, bits = prefix .. B.of_hex(frame), at = 0, vars = vars, sets = sets, found = {}, path = {},
        externs = {},
    }, Parser)
    if start ~= program.start then
        parser.at = #prefix
    end
    parser:run(start)
    return parser, #prefix
end

local NEVER, REPLACE, BESIDE = 0, 1, 2
local FRAMES = {
    { 1, "Only by Decode As", NEVER }, { 2, "In place of Wireshark's dissectors", REPLACE },
    { 3, "Beside Wireshark's dissectors", BESIDE },
}
local ETHERNET = 1

local function make_preferences(program, prefs)
    prefs.frames = Pref.enum("Frames", NEVER, "Which frames the program's parser dissects", FRAMES, false)
    local starts = {}
    for index, start in ipairs(program.starts) do
        starts[index] = { index, start[1], start[2] }
    end
    prefs.start = Pref.enum("First state", program.start, "The state in which the parser begins", starts, false)
    for _, input in ipairs(program.inputs) do
        prefs[input.pref] = Pref.string(input.label, "0", "What the device would give the parser")
    end
    for _, set in ipairs(program.sets) do
        prefs[set.pref] = Pref.string(
            set.label, "", "Members of the value set: VALUE, VALUE&&&MASK or LOW..HIGH, fields separated by colons")
    end
end

-- Registers the dissector of a parser.
local function register(program)
    local proto = Proto(program.name, program.title)
    local fields = make_fields(program)
    local path = ProtoField.string(program.name .. ".states", "States")
    fields[#fields + 1] = path
    proto.fields = fields
    local failed = ProtoExpert.new(
        program.name .. ".failed", "The parser failed", expert.group.MALFORMED, expert.severity.WARN)
    local misconfigured = ProtoExpert.new(
        program.name .. ".preference", "A preference is wrong", expert.group.PROTOCOL, expert.severity.ERROR)
    proto.experts = { failed, misconfigured }
    local prefs = proto.prefs
    make_preferences(program, prefs)
    local inputs, sets, wrong = read_preferences(program, prefs)

    local function dissect(tvb, pinfo, tree)
        if tvb:len() == 0 then
            return 0
        end
        local parser, prefix = parse(program, tostring(tvb():bytes()), inputs, sets, prefs.start)
        local subtree = tree:add(proto, tvb())
        subtree:add(path, tvb(), table.concat(parser.path, " ")):set_generated()
        for _, found in ipairs(parser.found) do
            add_header(subtree, proto, tvb, program.fields, found, prefix)
        end
        if parser.failure then
            subtree:add_proto_expert_info(failed, "The parser failed: " .. parser.failure)
        end
        if wrong then
            subtree:add_proto_expert_info(misconfigured, wrong)
        end
        return math.max(0, math.floor((parser.at - prefix) / 8))
    end

    function proto.dissector(tvb, pinfo, tree)
        local taken = dissect(tvb, pinfo, tree)
        pinfo.cols.protocol = program.name
        if taken < tvb:len() then
            Dissector.get("data"):call(tvb(taken):tvb(), pinfo, tree)
        end
        return tvb:len()
    end

    local beside = Proto(program.name .. "_frames", program.title .. ", beside Wireshark's dissectors")
    function beside.dissector(tvb, pinfo, tree)
        if prefs.frames == BESIDE then
            dissect(tvb, pinfo, tree)
        end
    end
    register_postdissector(beside)

    local encapsulations = DissectorTable.get("wtap_encap")
    local ethernet = encapsulations:get_dissector(ETHERNET)
    local replaced = false
    proto.prefs_changed = function()
        inputs, sets, wrong = read_preferences(program, prefs)
        local replaces = prefs.frames == REPLACE
        if replaces ~= replaced then
            encapsulations:add(ETHERNET, replaces and proto or ethernet)
            replaced = replaces
        end
    end
    for _, name in ipairs({ "ethertype", "ip.proto", "udp.port", "tcp.port" }) do
        DissectorTable.get(name):add_for_decode_as(proto)
    end
end
