// Drives a weir by p4runtime-go-client: each step says what came of it, and the first that fails ends the program with 1.
//
//	smoke ADDRESS PROGRAM P4INFO
//
// PROGRAM is crates/weir-server/tests/p4/everything.p4. Ports 1 and 2 of the switch are the two ends of one cable, so that a
// packet that is sent out of port 1 comes in at port 2. run.sh arranges all that.
package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"time"

	"github.com/antoninbas/p4runtime-go-client/pkg/client"
	config "github.com/p4lang/p4runtime/go/p4/config/v1"
	p4 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/prototext"
)

const (
	cpuPort  = 510
	patience = 5 * time.Second
)

// Kinds of packets that the program tells apart by their first byte.
const (
	kindCount    = 20
	kindCopy     = 30
	kindDigest   = 32
	kindToClient = 33
)

type controller struct {
	*client.Client
	isPrimary chan bool
	messages  chan *p4.StreamMessageResponse
	stop      chan struct{}
}

func connect(connection *grpc.ClientConn, election uint64) *controller {
	c := &controller{
		Client:    client.NewClient(p4.NewP4RuntimeClient(connection), 1, &p4.Uint128{Low: election}),
		isPrimary: make(chan bool, 16),
		messages:  make(chan *p4.StreamMessageResponse, 1000),
		stop:      make(chan struct{}),
	}
	go c.Run(c.stop, c.isPrimary, c.messages)
	return c
}

func (c *controller) standing() (bool, error) {
	select {
	case is := <-c.isPrimary:
		return is, nil
	case <-time.After(patience):
		return false, fmt.Errorf("nobody says who is primary")
	}
}

// The next message of the stream that is wanted; others are left out.
func (c *controller) next(wanted func(*p4.StreamMessageResponse) bool) (*p4.StreamMessageResponse, error) {
	end := time.After(patience)
	for {
		select {
		case message := <-c.messages:
			if wanted(message) {
				return message, nil
			}
		case <-end:
			return nil, fmt.Errorf("no message in %v", patience)
		}
	}
}

// Sends a packet of a kind out of port 1.
func (c *controller) send(ctx context.Context, kind byte, key uint32) error {
	packet := make([]byte, 60)
	packet[0] = kind
	packet[2], packet[3], packet[4], packet[5] = byte(key>>24), byte(key>>16), byte(key>>8), byte(key)
	return c.SendPacketOut(ctx, &p4.PacketOut{
		Payload:  packet,
		Metadata: []*p4.PacketMetadata{{MetadataId: 1, Value: []byte{1}}, {MetadataId: 2, Value: []byte{0}}},
	})
}

func expect(what string, got, want any) error {
	if fmt.Sprint(got) != fmt.Sprint(want) {
		return fmt.Errorf("%s is %v, not %v", what, got, want)
	}
	return nil
}

func expectCode(err error, want codes.Code) error {
	if status.Code(err) == want {
		return nil
	}
	// A failure of an update of a batch is told in the details: the code of the whole is UNKNOWN.
	for _, detail := range status.Convert(err).Details() {
		if e, ok := detail.(*p4.Error); ok && codes.Code(e.CanonicalCode) == want {
			return nil
		}
	}
	return fmt.Errorf("%v instead of %v", err, want)
}

func exact(key ...byte) map[string]client.MatchInterface {
	return map[string]client.MatchInterface{"key": &client.ExactMatch{Value: key}}
}

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "smoke ADDRESS PROGRAM P4INFO")
		os.Exit(2)
	}
	connection, err := grpc.Dial(os.Args[1], grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	s := &smoke{ctx: ctx, connection: connection}
	steps := []struct {
		name string
		do   func() (string, error)
	}{
		{"capabilities", s.capabilities},
		{"arbitration", s.arbitration},
		{"pipeline set and read", s.pipeline},
		{"table entry", s.tableEntry},
		{"entries of other kinds", s.otherMatches},
		{"default entry", s.defaultEntry},
		{"action profile", s.actionProfile},
		{"counter", s.counter},
		{"meter", s.meter},
		{"multicast group", s.multicast},
		{"clone session", s.cloneSession},
		{"digest", s.digest},
		{"packet out and in", s.packets},
	}
	for _, step := range steps {
		said, err := step.do()
		if err != nil {
			fmt.Printf("%s: FAILED: %v\n", step.name, err)
			os.Exit(1)
		}
		fmt.Printf("%s: %s\n", step.name, said)
	}
}

type smoke struct {
	ctx        context.Context
	connection *grpc.ClientConn
	*controller
}

func (s *smoke) capabilities() (string, error) {
	answer, err := p4.NewP4RuntimeClient(s.connection).Capabilities(s.ctx, &p4.CapabilitiesRequest{})
	return "P4Runtime " + answer.GetP4RuntimeApiVersion(), err
}

func (s *smoke) arbitration() (string, error) {
	s.controller = connect(s.connection, 2)
	is, err := s.standing()
	if err != nil || !is {
		return "", fmt.Errorf("the first controller is no primary: %v", err)
	}
	lower := connect(s.connection, 1)
	defer close(lower.stop)
	if is, err = lower.standing(); err != nil || is {
		return "", fmt.Errorf("a lower election id is no backup: %v", err)
	}
	return "the higher election id is primary, the lower a backup", nil
}

// P4Info as text, without what was added to it after the version of P4Runtime that the client is made for: it reads no text
// that has more.
func knownInfo(path string) ([]byte, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	info := &config.P4Info{}
	if err := (prototext.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(text, info); err != nil {
		return nil, err
	}
	return prototext.Marshal(info)
}

func (s *smoke) pipeline() (string, error) {
	const cookie = 7
	source, err := os.ReadFile(os.Args[2])
	if err != nil {
		return "", err
	}
	info, err := knownInfo(os.Args[3])
	if err != nil {
		return "", err
	}
	if _, err := s.SetFwdPipeFromBytes(s.ctx, source, info, cookie); err != nil {
		return "", err
	}
	found, err := s.GetFwdPipe(s.ctx, client.GetFwdPipeAll)
	if err != nil {
		return "", err
	}
	if !bytes.Equal(found.P4DeviceConfig, source) {
		return "", fmt.Errorf("the device config is another")
	}
	return fmt.Sprintf("%d tables, cookie %d", len(found.P4Info.Tables), found.Cookie), expect("the cookie", found.Cookie, cookie)
}

func (s *smoke) tableEntry() (string, error) {
	const table = "I.exact_table"
	entry := func(value byte) *p4.TableEntry {
		return s.NewTableEntry(table, exact(0, 0, 1, 2), s.NewTableActionDirect("I.answer", [][]byte{{value}}), nil)
	}
	read := func() ([]byte, error) {
		found, err := s.ReadTableEntry(s.ctx, table, []client.MatchInterface{&client.ExactMatch{Value: []byte{1, 2}}})
		if err != nil {
			return nil, err
		}
		return found.GetAction().GetAction().GetParams()[0].Value, nil
	}
	if err := s.InsertTableEntry(s.ctx, entry(5)); err != nil {
		return "", err
	}
	if err := expectCode(s.InsertTableEntry(s.ctx, entry(5)), codes.AlreadyExists); err != nil {
		return "", err
	}
	first, err := read()
	if err != nil {
		return "", err
	}
	if err := s.ModifyTableEntry(s.ctx, entry(6)); err != nil {
		return "", err
	}
	second, err := read()
	if err != nil {
		return "", err
	}
	if err := s.DeleteTableEntry(s.ctx, entry(6)); err != nil {
		return "", err
	}
	if err := expectCode(s.DeleteTableEntry(s.ctx, entry(6)), codes.NotFound); err != nil {
		return "", err
	}
	left, err := s.ReadTableEntryWildcard(s.ctx, table)
	if err != nil {
		return "", err
	}
	said := "inserted, refused twice, read, modified, deleted, refused again"
	return said, expect("what was read", []any{first, second, len(left)}, []any{[]byte{5}, []byte{6}, 0})
}

func (s *smoke) otherMatches() (string, error) {
	answer := s.NewTableActionDirect("I.answer", [][]byte{{1}})
	priority := &client.TableEntryOptions{Priority: 3}
	entries := []*p4.TableEntry{
		s.NewTableEntry("I.lpm_table", map[string]client.MatchInterface{"key": &client.LpmMatch{Value: []byte{10, 0, 0, 0}, PLen: 8}},
			s.NewTableActionDirect("I.metered", [][]byte{{1}}), nil),
		s.NewTableEntry("I.ternary_table", map[string]client.MatchInterface{
			"key":  &client.TernaryMatch{Value: []byte{0, 0, 0, 5}, Mask: []byte{0, 0, 0, 15}},
			"hash": &client.ExactMatch{Value: []byte{3}},
		}, answer, priority),
		s.NewTableEntry("I.range_table", map[string]client.MatchInterface{"key": &client.RangeMatch{Low: []byte{1}, High: []byte{9}}},
			answer, priority),
		s.NewTableEntry("I.optional_table", map[string]client.MatchInterface{"hash": &client.OptionalMatch{Value: []byte{4}}},
			answer, priority),
		s.NewTableEntry("I.idle_table", exact(1), answer, &client.TableEntryOptions{IdleTimeout: time.Hour}),
	}
	for _, entry := range entries {
		if err := s.InsertTableEntry(s.ctx, entry); err != nil {
			return "", err
		}
	}
	found, err := s.ReadTableEntryWildcard(s.ctx, "I.idle_table")
	if err != nil {
		return "", err
	}
	said := "LPM, ternary, range, optional, with a time-out"
	return said, expect("the time-out", found[0].IdleTimeoutNs, time.Hour.Nanoseconds())
}

func (s *smoke) defaultEntry() (string, error) {
	set := s.NewTableEntry("I.keyless_table", nil, s.NewTableActionDirect("I.answer", [][]byte{{9}}), nil)
	if err := s.ModifyTableEntry(s.ctx, set); err != nil {
		return "", err
	}
	return "set and reset", s.ModifyTableEntry(s.ctx, s.NewTableEntry("I.keyless_table", nil, nil, nil))
}

func (s *smoke) actionProfile() (string, error) {
	for id := uint32(1); id <= 2; id++ {
		member := s.NewActionProfileMember("I.selector", id, "I.answer", [][]byte{{byte(id)}})
		if err := s.InsertActionProfileMember(s.ctx, member); err != nil {
			return "", err
		}
	}
	members := []*p4.ActionProfileGroup_Member{{MemberId: 1, Weight: 1}, {MemberId: 2, Weight: 2}}
	group := s.NewActionProfileGroup("I.selector", 1, members, 4)
	if err := s.InsertActionProfileGroup(s.ctx, group); err != nil {
		return "", err
	}
	entry := s.NewTableEntry("I.selector_table", exact(1), s.NewTableActionGroup(1), nil)
	if err := s.InsertTableEntry(s.ctx, entry); err != nil {
		return "", err
	}
	// Members and one-shot sets do not mix: the former go first.
	if err := s.DeleteTableEntry(s.ctx, entry); err != nil {
		return "", err
	}
	if err := s.DeleteActionProfileGroup(s.ctx, group); err != nil {
		return "", err
	}
	for id := uint32(1); id <= 2; id++ {
		member := s.NewActionProfileMember("I.selector", id, "I.answer", [][]byte{{byte(id)}})
		if err := s.DeleteActionProfileMember(s.ctx, member); err != nil {
			return "", err
		}
	}
	set := s.NewActionProfileActionSet().
		AddAction("I.answer", [][]byte{{1}}, 1, client.NewPortFromInt(1)).
		AddAction("I.answer", [][]byte{{2}}, 1, client.NewPortFromInt(2))
	entry = s.NewTableEntry("I.selector_table", exact(2), set.TableAction(), nil)
	return "members, a group, a one-shot set", s.InsertTableEntry(s.ctx, entry)
}

func (s *smoke) counter() (string, error) {
	if err := s.send(s.ctx, kindCount, 3); err != nil {
		return "", err
	}
	for end := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		data, err := s.ReadCounterEntry(s.ctx, "I.counts", 3)
		if err != nil {
			return "", err
		}
		if data.PacketCount == 1 {
			break
		}
		if time.Now().After(end) {
			return "", fmt.Errorf("nothing was counted")
		}
	}
	if err := s.ModifyCounterEntry(s.ctx, "I.counts", 4, &p4.CounterData{PacketCount: 8, ByteCount: 80}); err != nil {
		return "", err
	}
	all, err := s.ReadCounterEntryWildcard(s.ctx, "I.counts")
	if err != nil {
		return "", err
	}
	said := fmt.Sprintf("a packet counted, a cell set, %d read", len(all))
	return said, expect("the counts", []any{len(all), all[3].PacketCount, all[4].PacketCount}, []any{8, 1, 8})
}

func (s *smoke) meter() (string, error) {
	all, err := s.ReadMeterEntryWildcard(s.ctx, "I.meters")
	if err != nil {
		return "", err
	}
	_, err = s.ReadMeterEntry(s.ctx, "I.meters", 1)
	return fmt.Sprintf("%d read", len(all)), err
}

func (s *smoke) multicast() (string, error) {
	if err := s.InsertMulticastGroup(s.ctx, 5, []uint32{cpuPort}); err != nil {
		return "", err
	}
	if err := s.send(s.ctx, kindCopy, 5); err != nil {
		return "", err
	}
	if _, err := s.next(func(m *p4.StreamMessageResponse) bool { return m.GetPacket() != nil }); err != nil {
		return "", err
	}
	if err := s.DeleteMulticastGroup(s.ctx, 5); err != nil {
		return "", err
	}
	return "a packet was copied to the port of the controller", expectCode(s.DeleteMulticastGroup(s.ctx, 5), codes.NotFound)
}

func (s *smoke) cloneSession() (string, error) {
	if err := s.InsertCloneSession(s.ctx, 7, []uint32{1, 2}, client.CloneSessionOptions{}); err != nil {
		return "", err
	}
	return "inserted and deleted", s.DeleteCloneSession(s.ctx, 7)
}

func (s *smoke) digest() (string, error) {
	settings := &p4.DigestEntry_Config{MaxTimeoutNs: 0, MaxListSize: 1, AckTimeoutNs: time.Second.Nanoseconds()}
	if err := s.EnableDigest(s.ctx, "seen_t", settings); err != nil {
		return "", err
	}
	if err := s.send(s.ctx, kindDigest, 0x1234); err != nil {
		return "", err
	}
	message, err := s.next(func(m *p4.StreamMessageResponse) bool { return m.GetDigest() != nil })
	if err != nil {
		return "", err
	}
	seen := message.GetDigest().Data[0].GetStruct().Members
	if err := s.AckDigestList(s.ctx, message.GetDigest()); err != nil {
		return "", err
	}
	got := []any{seen[0].GetBitstring(), seen[1].GetBitstring()}
	if err := expect("the message", got, []any{[]byte{0x12, 0x34}, []byte{2}}); err != nil {
		return "", err
	}
	return fmt.Sprintf("%v came from port 2", got[0]), s.DisableDigest(s.ctx, "seen_t")
}

func (s *smoke) packets() (string, error) {
	if err := s.send(s.ctx, kindToClient, 0x55); err != nil {
		return "", err
	}
	message, err := s.next(func(m *p4.StreamMessageResponse) bool { return m.GetPacket() != nil })
	if err != nil {
		return "", err
	}
	packet := message.GetPacket()
	metadata := map[uint32][]byte{}
	for _, m := range packet.Metadata {
		metadata[m.MetadataId] = m.Value
	}
	got := []any{metadata[1], metadata[2], packet.Payload[0]}
	said := fmt.Sprintf("%d bytes came in at port 2", len(packet.Payload))
	return said, expect("the packet", got, []any{[]byte{2}, []byte{0x55}, kindToClient})
}
