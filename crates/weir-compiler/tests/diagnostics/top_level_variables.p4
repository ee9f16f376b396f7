bit<8> limit = 5; //~ error[invalid] expected a constant or an instance at the top level, found the variable `limit` = help: write `const` before it, or declare it in the parser, control or action that uses it
bit<8> packets;
//~^ error[invalid] expected a constant or an instance at the top level, found the variable `packets` = help: declare it in the parser, control or action that uses it; what outlives a packet is kept in a register
control c(inout bit<8> x) { apply { x = limit; packets = packets + 1; } }
