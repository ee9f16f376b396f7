// The core library of P4_16: what every architecture relies on.
//
// Written for weir after the language specification; it declares the same interface as the core
// library of other compilers.

#ifndef _CORE_P4_
#define _CORE_P4_

// Errors of parsers. Targets number errors in the order of their declarations.
error {
    NoError,               // nothing went wrong
    PacketTooShort,        // the packet ended before the data that was asked for
    NoMatch,               // no case of a select expression matched
    StackOutOfBounds,      // next or last beyond the header stack
    HeaderTooShort,        // more bits than the varbit field holds
    ParserTimeout,         // too many steps
    ParserInvalidArgument  // an argument that the parser cannot deal with
}

// The packet as the parser sees it: bits behind a cursor.
extern packet_in {
    // Reads a header of fixed size and moves the cursor behind it.
    void extract<T>(out T hdr);
    // Reads a header with one varbit field and gives that field the size in bits.
    void extract<T>(out T variableSizeHeader,
                    in bit<32> variableFieldSizeInBits);
    // Reads without moving the cursor.
    T lookahead<T>();
    // Moves the cursor.
    void advance(in bit<32> sizeInBits);
    // The length of the whole packet in bytes, where the target knows it.
    bit<32> length();
}

// The packet as the deparser builds it.
extern packet_out {
    // Appends a header if it is valid; of a stack, struct or union every valid header.
    void emit<T>(in T hdr);
}

// Ends parsing with the error if the condition does not hold.
extern void verify(in bool check, in error toSignal);

// Does nothing; the default action of tables that name none.
@noWarn("unused")
action NoAction() {}

// How keys of tables are matched in every architecture.
match_kind {
    exact,    // equal
    ternary,  // equal where the mask has ones
    lpm       // equal in the longest prefix
}

// Checked while compiling: the program is rejected if the condition does not hold.
extern bool static_assert(bool check, string message);
extern bool static_assert(bool check);

#endif
