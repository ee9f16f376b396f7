// An INT node (In-band Network Telemetry 2.1) that routes IPv4: source, transit and sink of INT-MD
// and INT-MX, reports of its own (INT-XD), of drops and of long queues, all by its tables. See
// README.md beside this file.
#include <core.p4>
#include <v1model.p4>

#include "headers.p4i"
#include "parser.p4i"
#include "state.p4i"
#include "ingress.p4i"
#include "source.p4i"
#include "hop.p4i"
#include "sink.p4i"
#include "events.p4i"
#include "report.p4i"
#include "egress.p4i"
#include "deparser.p4i"

V1Switch(IntParser(), IntVerifyChecksum(), IntIngress(), IntEgress(), IntComputeChecksum(), IntDeparser()) main;
