// An architecture of our own: one control between a parser and a deparser, and a tally.
#ifndef HUB_P4
#define HUB_P4

struct hub_t {
    bit<8> in_port;
    // Where the packet goes; 0: nowhere.
    bit<8> out_port;
}

// Counts packets, each by a number of the program's choice.
extern Tally {
    Tally(bit<32> size);
    void note(in bit<32> index, in bit<32> by);
}

parser HubParser<H>(packet_in packet, out H hdr);
control HubControl<H>(inout H hdr, inout hub_t hub);
control HubDeparser<H>(packet_out packet, in H hdr);

package Hub<H>(HubParser<H> parse, HubControl<H> act, HubDeparser<H> put);

#endif
