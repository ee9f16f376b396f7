"""Prints a packet test of ipsec_gateway in which scapy is the peer, in both directions.

Usage: peer.py PACKETS SEED LARGEST, where LARGEST is the most bytes of a UDP datagram's data.
Scapy checks what the gateway encrypts and encrypts what the gateway decrypts; some packets are sent
twice, changed or cut, and must be dropped.
"""
import logging
import random
import struct
import sys

logging.getLogger("scapy.runtime").setLevel(logging.ERROR)
from scapy.all import Ether, IP, UDP, Raw, raw
from scapy.layers.ipsec import SecurityAssociation, ESP
count, seed, largest = (int(argument) for argument in sys.argv[1:])
random.seed(seed)
sizes = [size for size in [0, 1, 2, 3, 4, 5, 17, 18, 100, 500, 1000, 1300, 1400] if size <= largest]
key_out, key_in = bytes(range(20)), bytes(range(100,136))
lines = ["extern_key numbers 0", "extern_key window 7", "extern_key outbound 0 " + key_out.hex(), "extern_key inbound 7 " + key_in.hex(),
 "add tunnels meta.inner.dst_addr:0x0a020000/16 protect(sa:0, spi:0x1001, local:0xc0000201, remote:0xc0000202, src_mac:0x020000000001, dst_mac:0x020000000002, port:2)",
 "add associations hdr.outer.dst_addr:0xc0000201 hdr.esp.spi:0x2002 unprotect(sa:7, src_mac:0x020000000011, dst_mac:0x020000000012, port:1)"]
out_sa = SecurityAssociation(ESP, spi=0x1001, crypt_algo='AES-GCM', crypt_key=key_out, auth_algo=None, tunnel_header=IP(src="192.0.2.1", dst="192.0.2.2"))
in_sa = SecurityAssociation(ESP, spi=0x2002, crypt_algo='AES-GCM', crypt_key=key_in, auth_algo=None, tunnel_header=IP(src="192.0.2.2", dst="192.0.2.1"))
seq = 0
for i in range(count):
    size = random.choice(sizes) if i % 3 else random.randrange(largest + 1)
    body = Raw(random.randbytes(size))
    if random.random() < 0.5:
        inner = IP(src="10.1.0.5", dst="10.2.%d.%d" % (random.randrange(256), random.randrange(256)), ttl=random.randrange(2,255))/UDP(sport=random.randrange(65536), dport=5)/body
        inner = IP(raw(inner))
        seq += 1
        e = out_sa.encrypt(inner, seq_num=seq, iv=struct.pack("!Q", seq))
        e = IP(raw(e)); e.ttl = 64; e.id = 0; e.flags = 2; e.chksum = None; e = IP(raw(e))
        frame = raw(Ether(src="02:00:00:00:00:77", dst="02:00:00:00:00:01")/inner)
        frame += bytes(max(0, 60 - len(frame)))
        lines.append("packet 1 " + frame.hex())
        lines.append("expect 2 " + raw(Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02")/e).hex() + " $")
    else:
        inner = IP(raw(IP(src="10.2.0.5", dst="10.1.0.9", ttl=9)/UDP(sport=1, dport=5)/body))
        e = in_sa.encrypt(inner)
        frame = raw(Ether(src="02:00:00:00:00:78", dst="02:00:00:00:00:01")/e)
        frame += bytes(max(0, 60 - len(frame)))
        kind = random.random()
        good = "expect 1 " + raw(Ether(src="02:00:00:00:00:11", dst="02:00:00:00:00:12")/inner).hex() + " $"
        if kind < 0.7:
            lines += ["packet 2 " + frame.hex(), good]
        elif kind < 0.8:
            lines += ["packet 2 " + frame.hex(), good, "packet 2 " + frame.hex(), "no_packet"]
        elif kind < 0.9:
            broken = bytearray(frame); at = random.randrange(34+8, 14+e.len); broken[at] ^= 1 << random.randrange(8)
            lines += ["packet 2 " + broken.hex(), "no_packet"]
        else:
            lines += ["packet 2 " + frame[:random.randrange(14, 14 + e.len)].hex(), "no_packet"]
print("\n".join(lines))
