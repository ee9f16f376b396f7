// `switch` on values and on the action that a table ran.
#include "plain.p4i"
enum color { red, green, blue }
enum bit<8> kind { one = 1, two = 2, ten = 10 }
bit<32> named(in bit<8> x) {
    switch (x) {
        1: { return 0x11; }
        2:
        3: { return 0x23; }
        default: { }
    }
    return 0xdd;
}
control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    action first() { hdr.h.s = 1; }
    action second(bit<8> x) { hdr.h.s = (bit<32>)x; }
    action third() { hdr.h.s = 3; }
    table t {
        key = { hdr.h.a: exact; }
        actions = { first; second; third; NoAction; }
        const entries = { 1: first(); 2: second(0x22); 3: third(); }
        default_action = NoAction();
    }
    color c = color.red;
    apply {
        if (hdr.h.op == 1) {
            switch (hdr.h.a) {
                1: { hdr.h.r = 1; }
                2:
                3:
                4: { hdr.h.r = 4; }
                5: { }
                default: { hdr.h.r = 0xff; }
            }
        } else if (hdr.h.op == 2) {
            switch (hdr.h.a) { 7: { hdr.h.r = 7; } 8: { hdr.h.r = 8; } }
        } else if (hdr.h.op == 3) {
            if (hdr.h.a == 1) { c = color.green; } else if (hdr.h.a == 2) { c = color.blue; }
            switch (c) {
                color.blue: { hdr.h.r = 2; }
                color.red:
                color.green: { hdr.h.r = 1; }
            }
        } else if (hdr.h.op == 4) {
            switch ((kind)hdr.h.a) {
                kind.one: { hdr.h.r = 1; }
                kind.ten: { hdr.h.r = 10; }
                default: { hdr.h.r = 99; }
            }
        } else if (hdr.h.op == 5) {
            switch (t.apply().action_run) {
                first:
                second: { hdr.h.r = 12; }
                third: { hdr.h.r = 3; }
                default: { hdr.h.r = 99; }
            }
        } else if (hdr.h.op == 6) {
            switch (t.apply().action_run) {
                third: { hdr.h.r = 3; }
                NoAction: { hdr.h.r = 4; }
            }
        } else if (hdr.h.op == 7) {
            // The value is computed once, before any case runs.
            switch (hdr.h.a + 1) {
                1: { hdr.h.a = 1; hdr.h.r = hdr.h.r + 1; }
                2: { hdr.h.a = 2; hdr.h.r = hdr.h.r + 16; }
            }
        } else if (hdr.h.op == 8) {
            hdr.h.r = named(hdr.h.a);
        } else if (hdr.h.op == 9) {
            switch (sm.parser_error) {
                error.NoError: { hdr.h.r = 1; }
                default: { hdr.h.r = 2; }
            }
        } else if (hdr.h.op == 10) {
            switch (hdr.h.a > 4) { true: { hdr.h.r = 1; } false: { hdr.h.r = 2; } }
        } else if (hdr.h.op == 11) {
            // A fallthrough label at the end has no body to run.
            switch (hdr.h.a) { 1: { hdr.h.r = 1; } 2: }
        } else if (hdr.h.op == 12) {
            switch ((int<8>)hdr.h.a) { -1: { hdr.h.r = 1; } 1: { hdr.h.r = 2; } }
        }
    }
}
#include "../v1model/skeleton.p4i"
