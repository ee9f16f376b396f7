#include <core.p4>
#include <pna.p4>
//~^ error[preprocessor] `pna.p4` is not found: weir does not have the architecture PNA = help: weir comes with core.p4, v1model.p4, psa.p4, tna.p4, t2na.p4; for other files, name their directory with `-I DIR`
#include <v1mode1.p4>
//~^ error[preprocessor] `v1mode1.p4` is not found = help: did you mean `v1model.p4`? searched: the files that come with weir
control c(inout pna_main_input_metadata_t m) { apply { } }
