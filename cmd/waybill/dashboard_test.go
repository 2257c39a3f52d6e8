package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"waybill/domain"
	"waybill/harness"
	"waybill/harness/bus"
)

// A board is what a dashboard shows: what it makes of the public stream, and nothing
// else of the log.
type board struct {
	Peers      map[string]boardPeer `json:"peers"`
	Namespaces map[string]boardSpace
	Owners     map[string]string // of names that more than one tool claims, "" for nobody

	next uint64 // of the stream
}

type boardPeer struct {
	Incarnation int64
	Era         string
	Version     string
	Code        string
}

type boardSpace struct {
	Generation int64
	Digest     string
	Policy     string
	Tools      int
}

func newBoard() *board {
	return &board{Peers: map[string]boardPeer{}, Namespaces: map[string]boardSpace{}, Owners: map[string]string{}, next: 1}
}

// digest names a board.
func (b *board) digest(t *testing.T) string {
	t.Helper()
	doc, err := json.Marshal(b) // maps are written in the order of their keys
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(doc)
	return hex.EncodeToString(sum[:])
}

// take goes on by one event, as the bytes of the message say it.
func (b *board) take(t *testing.T, msg []byte) {
	t.Helper()
	var e struct {
		Type, Subject string
		Data          struct {
			Incarnation           int64
			Era, Version, Code    string
			Context, Digest, Name string
			Generation            int64
			Policy                string
			Tools                 int
			Winner                *domain.Owner
		}
	}
	if err := json.Unmarshal(msg, &e); err != nil {
		t.Fatalf("%q: %v", msg, err)
	}
	d, p := e.Data, b.Peers[e.Subject]
	switch e.Type {
	case "peer.admitted":
		p = boardPeer{}
	case "peer.launched", "peer.restarted":
		p = boardPeer{Incarnation: d.Incarnation}
	case "peer.refused", "era.refused":
		p.Code = d.Code
	case "era.determined":
		p.Era, p.Version = d.Era, d.Version
	case "namespace.merged":
		b.Namespaces[d.Context] = boardSpace{d.Generation, d.Digest, d.Policy, d.Tools}
		return
	case "collision.decided":
		b.Owners[d.Context+" "+d.Name] = ownerOf(d.Winner)
		return
	case "peer.spawned", "peer.exited", "peer.quarantined", "peer.abandoned", "name.moved", "name.flagged":
		return
	default:
		t.Fatalf("a dashboard is told of %s", e.Type)
	}
	b.Peers[e.Subject] = p
}

func ownerOf(o *domain.Owner) string {
	if o == nil {
		return ""
	}
	return o.Peer + " " + o.Local
}

// boardOf is the board as the views have it.
func boardOf(r domain.Report) *board {
	b := newBoard()
	for _, p := range r.Peers {
		x := boardPeer{Era: string(p.Era)}
		if x.Era == string(domain.EraUnknown) {
			x.Era = ""
		}
		if p.Incarnation != nil {
			x.Incarnation = *p.Incarnation
		}
		if p.Version != nil {
			x.Version = *p.Version
		}
		if p.Code != nil {
			x.Code = string(*p.Code)
		}
		b.Peers[p.Name] = x
	}
	for _, n := range r.Namespaces {
		b.Namespaces[n.Context] = boardSpace{n.Generation, n.Digest, n.Policy, n.Tools}
	}
	for _, c := range r.Collisions {
		context := c.Context
		if context == "" {
			context = "default"
		}
		b.Owners[context+" "+c.Name] = ownerOf(c.Winner)
	}
	return b
}

// catchUp reads the public stream from where the board stands to its end.
func (b *board) catchUp(t *testing.T, run *harness.Run) {
	t.Helper()
	id, err := bus.LoadReader(run.Credentials, "dashboard")
	if err != nil {
		t.Fatal(err)
	}
	nc, err := bus.Connect(id, bus.Target{URL: run.URL})
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	c, err := js.OrderedConsumer(t.Context(), bus.PublicStreamName(run.Log), jetstream.OrderedConsumerConfig{
		DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: b.next})
	if err != nil {
		t.Fatal(err)
	}
	for {
		m, err := c.Next(jetstream.FetchMaxWait(500 * time.Millisecond))
		if errors.Is(err, nats.ErrTimeout) {
			return // there is nothing new
		}
		if err != nil {
			t.Fatal(err)
		}
		b.take(t, m.Data())
		meta, err := m.Metadata()
		if err != nil {
			t.Fatal(err)
		}
		if b.next = meta.Sequence.Stream + 1; meta.NumPending == 0 {
			return
		}
	}
}

// agrees goes on until the board is that of the views: what is public reaches its stream
// a moment later.
func (b *board) agrees(t *testing.T, w *world, run *harness.Run) {
	t.Helper()
	var want *board
	defer func() {
		if t.Failed() {
			t.Logf("the dashboard shows\n%+v\nand the views have\n%+v", *b, *want)
		}
	}()
	eventually(t, "the board of the public stream is that of the views", func() bool {
		b.catchUp(t, run)
		want = boardOf(decode[domain.Report](t, w.must(exitDone, "peers", "--json")))
		return b.digest(t) == want.digest(t)
	})
}

// A dashboard knows the public stream alone. From it it comes to the peer table, the
// namespaces and the owners of contested names as the views have them, from the
// beginning and also where it was away while much happened.
func TestADashboardComesToTheStateOfTheViewsFromThePublicStreamAlone(t *testing.T) {
	w := newWorld(t, "", peerYAML{name: "a", mode: "modern"}, peerYAML{name: "b", mode: "modern"},
		peerYAML{name: "old", mode: "legacy", more: []string{"allow_legacy: true"}}, peerYAML{name: "shut", mode: "legacy"}).ready()
	w.configure("", peerYAML{name: "a", mode: "modern"}, peerYAML{name: "b", mode: "modern"},
		peerYAML{name: "old", mode: "legacy", more: []string{"allow_legacy: true"}}, peerYAML{name: "shut", mode: "legacy"}, peerYAML{name: "unpinned", mode: "modern"})
	s := w.serve()
	run, err := harness.DataDir(w.dir + "/.waybill").Running()
	if err != nil || run == nil {
		t.Fatal(run, err)
	}
	b := newBoard()
	b.agrees(t, w, run)
	if len(b.Owners) == 0 || len(b.Namespaces) == 0 || len(b.Peers) != 5 {
		t.Fatalf("too little is shown: %+v", *b)
	}
	for range 3 { // meanwhile nobody looks
		before := b.Peers["a"].Incarnation
		w.run("call", "leave")
		eventually(t, "the peer is up again", func() bool {
			r := decode[domain.Report](t, w.must(exitDone, "peers", "--json"))
			return *r.Peers[0].Incarnation > before && r.Peers[0].State == "ready"
		})
		w.must(exitDone, "call", "b/echo")
	}
	if b.agrees(t, w, run); b.Peers["a"].Incarnation < 4 {
		t.Errorf("the peer was not seen to be started again: %+v", b.Peers["a"])
	}
	if code := s.stop(syscall.SIGTERM); code != exitDone {
		t.Errorf("serve ended with %d", code)
	}
	if keys := slices.Sorted(maps.Keys(b.Peers)); len(keys) != 5 {
		t.Errorf("peers %q", keys)
	}
}
