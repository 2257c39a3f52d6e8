package bench

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// eventsPerStep is how many events are appended before the request, and again after
// the answer: as many as the service appends of a call.
const eventsPerStep = 2

// Bare is a call on the record and nothing else: a group commit of the intent, a
// request to a child process over a pipe, a group commit of the outcome; and each event
// is published on JetStream afterwards. It checks nothing, knows no protocol, names no
// host and would lose its way at the first fault.
type Bare struct {
	log   *bareLog
	relay *relay
	child *Child
	event [][]byte
}

// StartBare starts one in an empty directory, with the program and arguments that run
// Echo. End it with Close.
func StartBare(dir string, command ...string) (b *Bare, err error) {
	b = &Bare{event: bareEvents()}
	if b.relay, err = startRelay(filepath.Join(dir, "jetstream")); err != nil {
		return nil, err
	}
	if b.log, err = startBareLog(filepath.Join(dir, "bare.db"), b.relay.put); err == nil {
		b.child, err = StartChild(command...)
	}
	if err != nil {
		return nil, errors.Join(err, b.Close())
	}
	return b, nil
}

// Call makes one call. Safe for concurrent use.
func (b *Bare) Call(context.Context, int) error {
	b.log.append(b.event)
	if err := b.child.Call(); err != nil {
		return err
	}
	b.log.append(b.event)
	return nil
}

// Close ends everything that was started, and says what went wrong meanwhile.
func (b *Bare) Close() error {
	var errs []error
	if b.child != nil {
		errs = append(errs, b.child.Close())
	}
	if b.log != nil {
		errs = append(errs, b.log.close())
	}
	if b.relay != nil {
		errs = append(errs, b.relay.close())
	}
	return errors.Join(errs...)
}

// bareEvents are as long as the service's are, about 600 bytes.
func bareEvents() [][]byte {
	out := make([][]byte, eventsPerStep)
	for i := range out {
		out[i] = fmt.Appendf(nil, `{"specversion":"1.0","type":"call.%d","data":%q}`, i, Arguments+Arguments)
	}
	return out
}

// relay publishes what was committed.
type relay struct {
	server *server.Server
	nc     *nats.Conn
	js     jetstream.JetStream
	queue  chan [][]byte
	done   sync.WaitGroup
	sent   int
	err    error
}

func startRelay(dir string) (r *relay, err error) {
	r = &relay{queue: make(chan [][]byte, 1024)}
	r.server, err = server.NewServer(&server.Options{DontListen: true, JetStream: true, StoreDir: dir, NoLog: true, NoSigs: true})
	if err != nil {
		return nil, err
	}
	r.server.Start()
	if !r.server.ReadyForConnections(10 * time.Second) {
		return nil, errors.Join(errors.New("the bare NATS server was not ready"), r.close())
	}
	if r.nc, err = nats.Connect("", nats.InProcessServer(r.server)); err == nil {
		r.js, err = jetstream.New(r.nc)
	}
	if err == nil {
		_, err = r.js.CreateStream(context.Background(), jetstream.StreamConfig{Name: "BARE", Subjects: []string{"bare"}})
	}
	if err != nil {
		return nil, errors.Join(err, r.close())
	}
	r.done.Go(r.run)
	return r, nil
}

func (r *relay) put(batch [][]byte) { r.queue <- batch }

func (r *relay) run() {
	for batch := range r.queue {
		if err := r.publish(batch); err != nil && r.err == nil {
			r.err = err
		}
	}
}

func (r *relay) publish(batch [][]byte) error {
	acks := make([]jetstream.PubAckFuture, len(batch))
	for i, b := range batch {
		r.sent++
		ack, err := r.js.PublishAsync("bare", b, jetstream.WithMsgID(fmt.Sprint(r.sent)))
		if err != nil {
			return err
		}
		acks[i] = ack
	}
	for _, ack := range acks {
		select {
		case <-ack.Ok():
		case err := <-ack.Err():
			return err
		}
	}
	return nil
}

func (r *relay) close() error {
	close(r.queue)
	r.done.Wait()
	if r.nc != nil {
		r.nc.Close()
	}
	r.server.Shutdown()
	r.server.WaitForShutdown()
	return r.err
}
