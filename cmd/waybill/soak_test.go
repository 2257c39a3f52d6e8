package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"waybill/cmd/waybill/config"
	"waybill/harness"
	"waybill/harness/bus"
)

var soakFor = flag.Duration("soak", 2*time.Minute, "how long BenchmarkSoak keeps up its load")

// soakPeer is a modern server that notes its process id, and each key it was
// charged with before it answers. Its tools: charge, crash (charges and exits),
// hang (charges and never answers) and slow.
func soakPeer(args []string) int {
	dir := args[0]
	if err := os.WriteFile(filepath.Join(dir, args[1]+".pid"), []byte(strconv.Itoa(os.Getpid())), 0o600); err != nil {
		return 1
	}
	charged, err := os.OpenFile(filepath.Join(dir, args[1]+".charged"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return 1
	}
	in := bufio.NewReaderSize(os.Stdin, 1<<16)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return 0
		}
		var m rpc
		if json.Unmarshal(line, &m) != nil || m.ID == nil {
			continue
		}
		if !soakAnswer(m, charged, os.Stdout) {
			return 4
		}
	}
}

func soakAnswer(m rpc, charged, out io.Writer) bool {
	switch m.Method {
	case "server/discover":
		fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%s,"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"ttlMs":0,"cacheScope":"private"}}`+"\n", m.ID)
		return true
	case "tools/list":
		var tools []string
		for _, name := range []string{"charge", "crash", "hang", "slow"} {
			tools = append(tools, `{"name":"`+name+`","inputSchema":{"type":"object"}}`)
		}
		fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%s,"result":{"resultType":"complete","tools":[%s],"ttlMs":0,"cacheScope":"private"}}`+"\n", m.ID, strings.Join(tools, ","))
		return true
	}
	var a struct {
		Key string `json:"key"`
	}
	if json.Unmarshal(m.Params.Arguments, &a) == nil {
		fmt.Fprintf(charged, "%s\n", a.Key)
	}
	switch m.Params.Name {
	case "crash":
		return false
	case "hang":
		return true
	case "slow":
		<-time.After(30 * time.Millisecond) // the tool's own work
	}
	fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%s,"result":{"resultType":"complete","content":[]}}`+"\n", m.ID)
	return true
}

// soak is a service under fire, and what its hosts were told.
type soak struct {
	b     *testing.B
	dir   string
	s     *server
	stop  chan struct{}
	wait  sync.WaitGroup
	key   atomic.Int64
	mu    sync.Mutex
	ran   map[string]string // what each reply said, by key
	ended map[string]int64  // replies by status and code
	chaos map[string]int
}

// BenchmarkSoak keeps a service under load for -soak while its peers are killed,
// stopped, crash in the middle of a call and hang, and one host floods. At the
// end every call has had its one reply, no side effect was doubled, memory,
// goroutines and descriptors are where they began, and the log verifies and
// replays.
//
//	go test ./cmd/waybill -run xxx -bench Soak -benchtime 1x -timeout 10m
func BenchmarkSoak(b *testing.B) {
	for range b.N {
		x := newSoak(b)
		before := x.atRest()
		x.underFire()
		after := x.atRest()
		x.report(before, after)
		if err := x.s.stop(); err != nil {
			b.Error(err)
		}
		x.settled()
		if n := auditLog(b, x.s.dir.LogFile()).InFlight(); n != 0 {
			b.Errorf("%d calls have no end in the log", n)
		}
	}
}

func newSoak(b *testing.B) *soak {
	b.Helper()
	self, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	x := &soak{b: b, dir: b.TempDir(), stop: make(chan struct{}), ran: map[string]string{}, ended: map[string]int64{}, chaos: map[string]int{}}
	yaml := "nats: {listen: \"127.0.0.1:0\"}\nlimits: {host_inflight: 128}\npeers:\n"
	for _, name := range []string{"steady", "hurt", "stuck"} {
		yaml += fmt.Sprintf("  %s:\n    command: %q\n    args: [soak-peer, %q, %s]\n    data_files: [%q]\n    call_timeout: 2s\n    hung_after: 2\n    quarantine: 2s\n",
			name, self, x.dir, name, x.dir)
	}
	file := filepath.Join(x.dir, "waybill.yaml")
	if err := os.WriteFile(file, []byte(yaml), 0o600); err != nil {
		b.Fatal(err)
	}
	var out bytes.Buffer
	for _, c := range []string{"init", "pin"} {
		if code := run([]string{c, "-c", file}, &out, &out); code != exitDone {
			b.Fatalf("%s: %s", c, out.String())
		}
	}
	x.start(file, newApp(b.Context(), io.Discard, io.Discard, file))
	return x
}

func (x *soak) start(file string, a *app) {
	f, err := config.Load(file)
	if err != nil {
		x.b.Fatal(err)
	}
	n, err := a.openNode(f)
	if err != nil {
		x.b.Fatal(err)
	}
	if err := os.Remove(filepath.Join(credentialsDir(f), bus.AccountsFile)); err != nil { // it is for outside servers
		x.b.Fatal(err)
	}
	if _, err := bus.WriteCredentials(credentialsDir(f), prefix, n.log.ID(), []string{"quiet", "busy", "flood"}); err != nil {
		x.b.Fatal(err)
	}
	x.s = newServer(n)
	if err := x.s.start(); err != nil {
		x.b.Fatal(err)
	}
	if err := x.s.engine.WaitSettled(a.ctx); err != nil {
		x.b.Fatal(err)
	}
}

// rest is what the process holds while nothing is under way.
type rest struct {
	goroutines, descriptors int
	heap                    uint64
}

// atRest waits until every peer is ready and no call is under way, and measures.
func (x *soak) atRest() rest {
	x.b.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for {
		r, err := x.s.engine.Report(context.Background())
		if err != nil {
			x.b.Fatal(err)
		}
		if r.AllReady() && x.s.engine.Drain(context.Background()) == nil {
			break
		}
		if time.Now().After(deadline) {
			x.b.Fatalf("not at rest after 30 s: %+v", r.Peers)
		}
		x.pause(50 * time.Millisecond)
	}
	if err := harness.CatchUpWithin(viewPatience, x.s.views, x.s.engine.Feed.Head()); err != nil {
		x.b.Fatal(err)
	}
	x.pause(6 * time.Second) // noise is folded for five seconds
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		x.b.Fatal(err)
	}
	return rest{goroutines: runtime.NumGoroutine(), descriptors: len(fds), heap: m.HeapAlloc}
}

func (x *soak) pause(d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	<-t.C
}

// underFire runs the load and the chaos until the time is over.
func (x *soak) underFire() {
	var clients []*bus.Client
	for _, host := range []string{"quiet", "busy", "flood"} {
		c, err := bus.Dial(context.Background(), x.s.url(), credentialsDir(x.s.file), host, prefix)
		if err != nil {
			x.b.Fatal(err)
		}
		clients = append(clients, c)
	}
	for i := range 24 {
		x.wait.Go(func() { x.caller(clients[i%2], rand.New(rand.NewPCG(7, uint64(i)))) })
	}
	x.wait.Go(func() { x.hurting(rand.New(rand.NewPCG(11, 13))) })
	x.wait.Go(func() { x.flooding(clients[2]) })
	x.pause(*soakFor)
	close(x.stop)
	x.wait.Wait()
	for _, c := range clients {
		c.Close()
	}
}

func (x *soak) over() bool {
	select {
	case <-x.stop:
		return true
	default:
		return false
	}
}

// caller makes one call after the other, of any kind.
func (x *soak) caller(c *bus.Client, r *rand.Rand) {
	for !x.over() {
		tool := "charge"
		switch n := r.IntN(400); {
		case n == 0:
			tool = "crash"
		case n < 4:
			tool = "hang"
		case n < 20:
			tool = "slow"
		}
		x.call(c, []string{"steady", "hurt", "stuck"}[r.IntN(3)], tool)
	}
}

// call makes one call and keeps what its reply says.
func (x *soak) call(c *bus.Client, peer, tool string) {
	if peer == "steady" && tool != "slow" {
		tool = "charge"
	}
	key := fmt.Sprintf("k%d", x.key.Add(1))
	request := fmt.Sprintf(`{"tool":"%s/%s","arguments":{"key":%q}}`, peer, tool, key)
	if peer == "hurt" { // sorts first, and has the bare names
		request = fmt.Sprintf(`{"tool":%q,"arguments":{"key":%q}}`, tool, key)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	reply, _, err := c.Request(ctx, "call", []byte(request))
	var d struct{ Status, Code, Ran string }
	if err != nil || json.Unmarshal(reply, &d) != nil {
		x.b.Errorf("call %s of %s/%s had no reply: %v %s", key, peer, tool, err, reply)
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.ran[key] = d.Ran
	x.ended[strings.TrimSuffix(d.Status+" "+d.Code, " ")]++
}

// hurting kills and stops processes of peers.
func (x *soak) hurting(r *rand.Rand) {
	for !x.over() {
		x.pause(time.Duration(400+r.IntN(1600)) * time.Millisecond)
		peer := []string{"hurt", "stuck"}[r.IntN(2)]
		b, err := os.ReadFile(filepath.Join(x.dir, peer+".pid"))
		if err != nil {
			x.b.Error(err)
			return
		}
		pid, err := strconv.Atoi(string(b))
		if err != nil {
			continue // it is being written
		}
		name, signal := "kill", syscall.SIGKILL
		if r.IntN(5) == 0 {
			name, signal = "stop", syscall.SIGSTOP
		}
		if syscall.Kill(pid, signal) == nil {
			x.chaos[name]++
		}
	}
}

// flooding sends bursts that are far more than the host may have under way.
func (x *soak) flooding(c *bus.Client) {
	for !x.over() {
		var burst sync.WaitGroup
		for range 512 {
			burst.Go(func() { x.call(c, "steady", "charge") })
		}
		burst.Wait()
		x.chaos["flood"]++
		x.pause(2 * time.Second)
	}
}

// report compares the two rests.
func (x *soak) report(before, after rest) {
	b := x.b
	b.ReportMetric(float64(len(x.ran)), "calls")
	b.ReportMetric(float64(x.chaos["kill"]), "kills")
	b.ReportMetric(float64(x.chaos["stop"]), "stops")
	b.ReportMetric(float64(x.chaos["flood"]), "floods")
	b.ReportMetric(float64(after.goroutines-before.goroutines), "goroutines-more")
	b.ReportMetric(float64(after.descriptors-before.descriptors), "descriptors-more")
	b.ReportMetric((float64(after.heap)-float64(before.heap))/(1<<20), "heap-MiB-more")
	b.Logf("replies: %v", x.ended)
	if after.goroutines > before.goroutines+2 || after.descriptors > before.descriptors+4 {
		b.Errorf("at rest before: %+v, and after: %+v", before, after)
	}
	// What may stay: ids, the ended calls that an operator may send again, caches of SQLite and NATS.
	if after.heap > before.heap+64<<20 {
		b.Errorf("the heap has grown from %d to %d bytes", before.heap, after.heap)
	}
	if x.chaos["kill"] == 0 || x.chaos["flood"] == 0 {
		b.Errorf("nothing was hurt: %v", x.chaos)
	}
}

// settled holds what the replies said against what the peers were charged with.
func (x *soak) settled() {
	charged := map[string]int{}
	for _, peer := range []string{"steady", "hurt", "stuck"} {
		b, err := os.ReadFile(filepath.Join(x.dir, peer+".charged"))
		if err != nil {
			x.b.Fatal(err)
		}
		for key := range strings.Lines(string(b)) {
			charged[strings.TrimSpace(key)]++
		}
	}
	doubled, wrong := 0, 0
	for key, n := range charged {
		if n > 1 {
			doubled++
		}
		if _, known := x.ran[key]; !known {
			x.b.Errorf("%s was charged and never asked for", key)
		}
	}
	for key, ran := range x.ran {
		if n := charged[key]; ran == "yes" && n != 1 || ran == "no" && n != 0 {
			wrong++
		}
	}
	x.b.ReportMetric(float64(doubled), "doubled")
	if doubled+wrong > 0 || int64(len(x.ran)) != x.key.Load() {
		x.b.Errorf("%d doubled, %d not as their reply said, %d of %d calls had a reply", doubled, wrong, len(x.ran), x.key.Load())
	}
}
