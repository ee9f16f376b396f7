"""A test for PTF, as it would be for a switch behind interfaces."""

import ptf
from ptf.base_tests import BaseTest
from ptf.testutils import send_packet, simple_udp_packet, verify_no_other_packets, verify_packet


class ForwardTest(BaseTest):
    """A packet between two networks is routed."""

    def setUp(self):
        BaseTest.setUp(self)
        self.dataplane = ptf.dataplane_instance
        self.dataplane.flush()

    def runTest(self):
        addresses = {"ip_src": "10.0.1.10", "ip_dst": "10.0.2.10"}
        packet = simple_udp_packet(
            eth_src="02:00:00:00:01:10", eth_dst="02:00:00:00:01:01", ip_ttl=64, **addresses
        )
        expected = simple_udp_packet(
            eth_src="02:00:00:00:02:01", eth_dst="02:00:00:00:02:10", ip_ttl=63, **addresses
        )
        send_packet(self, 1, packet)
        verify_packet(self, expected, 2)
        verify_no_other_packets(self)


class DropTest(BaseTest):
    """A packet for an unknown network goes nowhere."""

    def setUp(self):
        BaseTest.setUp(self)
        self.dataplane = ptf.dataplane_instance
        self.dataplane.flush()

    def runTest(self):
        packet = simple_udp_packet(eth_dst="02:00:00:00:01:01", ip_dst="192.0.2.1")
        send_packet(self, 1, packet)
        verify_no_other_packets(self)
