-- A value is a string of its bits, "0" and "1", the most significant first: fields are hundreds of
-- bits wide, and Lua has neither such integers nor, in all of its versions, bit operators.
local B = {}

local NIBBLES, DIGITS = {}, {}
for n = 0, 15 do
    local bits = ""
    for bit = 3, 0, -1 do
        bits = bits .. math.floor(n / 2 ^ bit) % 2
    end
    bits = bits:gsub("%.0", "")
    local digit = string.format("%X", n)
    NIBBLES[digit], NIBBLES[digit:lower()], DIGITS[bits] = bits, bits, digit
end
local INVERSE = { ["0"] = "1", ["1"] = "0" }

function B.zero(width)
    return string.rep("0", width)
end

function B.of_hex(hex)
    return (hex:gsub("%x", NIBBLES))
end

function B.to_hex(a)
    return (B.zextend(a, math.ceil(#a / 4) * 4):gsub("%d%d%d%d", DIGITS))
end

-- The bytes of a value, as a string of Lua.
function B.to_bytes(a)
    local hex = B.to_hex(B.zextend(a, math.ceil(#a / 8) * 8))
    return (hex:gsub("%x%x", function(byte) return string.char(tonumber(byte, 16)) end))
end

-- The value as a number of Lua; exact up to 53 bits.
function B.number(a)
    local n = 0
    for at = 1, #a do
        n = n * 2 + (a:byte(at) - 48)
    end
    return n
end

-- A number of Lua as a value; exact up to 53 bits.
function B.of_number(n, width)
    local bits = {}
    for at = width, 1, -1 do
        bits[at] = n % 2 >= 1 and "1" or "0"
        n = math.floor(n / 2)
    end
    return table.concat(bits)
end

-- The distance of a shift: never more than `limit`.
local function distance(a, limit)
    local first = a:find("1", 1, true)
    if first and #a - first >= 31 then
        return limit
    end
    return math.min(B.number(a), limit)
end

function B.invert(a)
    return (a:gsub("%d", INVERSE))
end

local function combine(a, b, bit)
    local bits = {}
    for at = 1, #a do
        bits[at] = bit(a:byte(at) == 49, b:byte(at) == 49) and "1" or "0"
    end
    return table.concat(bits)
end

function B.band(a, b) return combine(a, b, function(x, y) return x and y end) end
function B.bor(a, b) return combine(a, b, function(x, y) return x or y end) end
function B.bxor(a, b) return combine(a, b, function(x, y) return x ~= y end) end

-- The sum and its carry.
local function sum(a, b, carry)
    local bits = {}
    for at = #a, 1, -1 do
        local total = a:byte(at) + b:byte(at) - 96 + carry
        bits[at] = total % 2 == 1 and "1" or "0"
        carry = total > 1 and 1 or 0
    end
    return table.concat(bits), carry
end

function B.add(a, b) return (sum(a, b, 0)) end
function B.sub(a, b) return (sum(a, B.invert(b), 1)) end
function B.negate(a) return B.sub(B.zero(#a), a) end

function B.mul(a, b)
    local product = B.zero(#a)
    for at = 1, #b do
        product = product:sub(2) .. "0"
        if b:byte(at) == 49 then
            product = B.add(product, a)
        end
    end
    return product
end

-- Quotient and remainder; both 0 for a zero divisor.
local function divide(a, b)
    if not b:find("1", 1, true) then
        return B.zero(#a), B.zero(#a)
    end
    local quotient, rest, divisor = {}, B.zero(#a + 1), "0" .. b
    for at = 1, #a do
        rest = rest:sub(2) .. a:sub(at, at)
        quotient[at] = "0"
        if rest >= divisor then
            rest = B.sub(rest, divisor)
            quotient[at] = "1"
        end
    end
    return table.concat(quotient), rest:sub(2)
end

function B.div(a, b) return (divide(a, b)) end
function B.mod(a, b) return (select(2, divide(a, b))) end

function B.add_sat(a, b)
    local total, carry = sum(a, b, 0)
    return carry == 1 and string.rep("1", #a) or total
end

function B.sub_sat(a, b)
    return a < b and B.zero(#a) or B.sub(a, b)
end

-- The value of a sum with one bit more, kept within the width of signed values.
local function clamp(wide)
    local width = #wide - 1
    if wide:sub(1, 1) == wide:sub(2, 2) then
        return wide:sub(2)
    end
    local sign = wide:sub(1, 1)
    return sign .. string.rep(INVERSE[sign], width - 1)
end

function B.add_sat_signed(a, b) return clamp(B.add(B.sextend(a, #a + 1), B.sextend(b, #b + 1))) end
function B.sub_sat_signed(a, b) return clamp(B.sub(B.sextend(a, #a + 1), B.sextend(b, #b + 1))) end

function B.shl(a, b)
    local n = distance(b, #a)
    return a:sub(n + 1) .. B.zero(n)
end

function B.shr(a, b)
    local n = distance(b, #a)
    return B.zero(n) .. a:sub(1, #a - n)
end

function B.shr_signed(a, b)
    local n = distance(b, #a)
    return string.rep(a:sub(1, 1), n) .. a:sub(1, #a - n)
end

local function truth(condition) return condition and "1" or "0" end

-- Signed values in the order of unsigned ones.
local function biased(a) return INVERSE[a:sub(1, 1)] .. a:sub(2) end

function B.eq(a, b) return truth(a == b) end
function B.ne(a, b) return truth(a ~= b) end
function B.lt(a, b) return truth(a < b) end
function B.le(a, b) return truth(a <= b) end
function B.lt_signed(a, b) return truth(biased(a) < biased(b)) end
function B.le_signed(a, b) return truth(biased(a) <= biased(b)) end
function B.concat(a, b) return a .. b end

function B.slice(a, hi, lo) return a:sub(#a - hi, #a - lo) end
function B.insert(a, hi, lo, b) return a:sub(1, #a - hi - 1) .. b .. a:sub(#a - lo + 1) end

function B.zextend(a, width)
    return #a >= width and a:sub(#a - width + 1) or B.zero(width - #a) .. a
end

function B.sextend(a, width)
    return #a >= width and a:sub(#a - width + 1) or string.rep(a:sub(1, 1), width - #a) .. a
end

function B.mux(condition, a, b) return condition == "1" and a or b end

-- Patterns of `select`.
function B.matches(key, value, mask) return B.band(key, mask) == B.band(value, mask) end
function B.between(key, low, high) return low <= key and key <= high end
function B.between_signed(key, low, high) return B.between(biased(key), biased(low), biased(high)) end
