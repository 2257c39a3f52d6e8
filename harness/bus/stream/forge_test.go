package stream

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"waybill/harness/bus"
	"waybill/harness/bus/access"
)

// victims are the subjects that somebody would name who wants to write into a
// stream, remove one, or answer in somebody else's place.
func victims() []string {
	event := bus.EventRoot(bus.DefaultPrefix, testLog)
	return []string{
		event + "call.routed.-", event + "era.determined.-", bus.CheckpointSubject(bus.DefaultPrefix, testLog),
		"$JS.API.STREAM.DELETE." + bus.StreamName(testLog),
		"$JS.API.STREAM.DELETE." + bus.PublicStreamName(testLog),
		"$JS.API.STREAM.PURGE." + bus.PublicStreamName(testLog),
		"$JS.API.STREAM.DELETE." + bus.CheckpointStreamName(testLog),
		"_INBOX.service.x", "_INBOX.curator.x", "_INBOX.local.x", "_R_.x", "waybill.v1.call.local",
		"waybill.v1.read." + bus.StreamName(testLog) + ".auditor.create", "other.subject",
	}
}

// extents are what the three streams hold, in messages and last sequences.
func (g *stage) extents(t testing.TB) string {
	t.Helper()
	said := ""
	for _, of := range []struct {
		nc   *nats.Conn
		name string
	}{{g.service, bus.StreamName(testLog)}, {g.service, bus.CheckpointStreamName(testLog)}, {g.curator, bus.PublicStreamName(testLog)}} {
		js := must[jetstream.JetStream](t)(jetstream.New(of.nc))
		info := must[jetstream.Stream](t)(js.Stream(testContext(t), of.name)).CachedInfo()
		said += fmt.Sprintf("%s: %d messages up to %d, made %v\n", of.name, info.State.Msgs, info.State.LastSeq, info.Created)
	}
	return said
}

// mine are the stream names that a reader may read.
func mine(name string) []string {
	if name == "dashboard" {
		return []string{bus.PublicStreamName(testLog)}
	}
	return []string{bus.StreamName(testLog), bus.CheckpointStreamName(testLog)}
}

func TestReadersHaveNoConsumerThatPushes(t *testing.T) {
	g := newStage(t, 8)
	before := g.extents(t)
	for _, name := range []string{"auditor", "dashboard"} {
		_, js := g.reader(t, name)
		for _, stream := range mine(name) {
			for _, to := range append(victims(), "_INBOX."+name+".x") {
				_, err := js.CreateOrUpdatePushConsumer(testContext(t), stream, jetstream.ConsumerConfig{DeliverSubject: to, HeadersOnly: true,
					IdleHeartbeat: 100 * time.Millisecond, InactiveThreshold: time.Hour})
				if err == nil || !strings.Contains(err.Error(), ErrPushConsumer.Error()) {
					t.Errorf("%s on %s to %s: %v", name, stream, to, err)
				}
			}
		}
	}
	if after := g.extents(t); after != before {
		t.Errorf("the streams were\n%s and are\n%s", before, after)
	}
}

// What JetStream reads in a request is what the keeper has read in it.
func TestARequestForAConsumerCannotHideWhereItDelivers(t *testing.T) {
	g := newStage(t, 8)
	nc, js := g.reader(t, "auditor")
	name := bus.StreamName(testLog)
	for i, config := range []string{
		`"Deliver_Subject":"a.b"`, `"DELIVER_SUBJECT":"a.b"`, `"deliver_subject":"a.b","deliver_subject":""`, `"deliver_subject":"","deliver_subject":"a.b"`,
		`"name":"hidden"},"Config":{"deliver_subject":"a.b"`, `"name":"hidden"},"config":{"deliver_subject":"a.b"`, `"deliver\u005fsubject":"a.b"`,
		`"flow_control":true`, `"idle_heartbeat":1000000000`, `"deliver_group":"x"`,
	} {
		body := fmt.Sprintf(`{"stream_name":%q,"action":"","config":{%s}}`, name, config)
		answer := must[*nats.Msg](t)(nc.RequestWithContext(testContext(t), "$JS.API.CONSUMER.CREATE."+name, []byte(body)))
		var r struct {
			Error  *jetstream.APIError       `json:"error"`
			Config *jetstream.ConsumerConfig `json:"config"`
		}
		if err := json.Unmarshal(answer.Data, &r); err != nil || r.Error == nil && (r.Config == nil || r.Config.DeliverSubject != "") {
			t.Errorf("%d: %s was answered %s", i, body, answer.Data)
		}
	}
	// What the keeper does not know it does not pass on; JetStream would refuse this.
	unknown := must[*nats.Msg](t)(nc.RequestWithContext(testContext(t), "$JS.API.CONSUMER.CREATE."+name, []byte(`{"stream_name":"`+name+`","config":{"direct":true}}`)))
	if strings.Contains(string(unknown.Data), `"error"`) {
		t.Errorf("answered %s", unknown.Data)
	}
	for _, body := range []string{"", "x", `[]`, `{"stream_name":"ELSE","config":{}}`, `{"config":{}}`} {
		answer := must[*nats.Msg](t)(nc.RequestWithContext(testContext(t), "$JS.API.CONSUMER.CREATE."+name, []byte(body)))
		if !strings.Contains(string(answer.Data), `"err_code":10012`) {
			t.Errorf("%q was answered %s", body, answer.Data)
		}
	}
	consumers := must[jetstream.Stream](t)(js.Stream(testContext(t), name)).ListConsumers(testContext(t))
	for info := range consumers.Info() {
		if info.Config.DeliverSubject != "" && !strings.HasPrefix(info.Config.DeliverSubject, access.CopyDelivery) {
			t.Errorf("there is a consumer that pushes to %s", info.Config.DeliverSubject)
		}
	}
	if consumers.Err() != nil {
		t.Error(consumers.Err())
	}
}

// asks is every sort of request that JetStream answers a reader, with a message, many
// messages or a word that there is none.
func asks(stream, consumer string) map[string]string {
	ack := "$JS.ACK." + stream + "." + consumer + ".1.1.1.1.1"
	return map[string]string{
		"$JS.API.CONSUMER.MSG.NEXT." + stream + "." + consumer: `{"batch":3,"no_wait":true}`,
		"$JS.API.CONSUMER.MSG.NEXT." + stream + ".none":        `{"batch":3,"no_wait":true}`,
		"$JS.API.CONSUMER.INFO." + stream + "." + consumer:     ``,
		"$JS.API.CONSUMER.CREATE." + stream:                    `x`,
		"$JS.API.DIRECT.GET." + stream:                         `{"seq":1,"batch":3}`,
		"$JS.API.DIRECT.GET." + stream + ".no.such.subject":    ``,
		"$JS.API.STREAM.MSG.GET." + stream:                     `{"seq":1}`,
		"$JS.API.STREAM.INFO." + stream:                        ``,
		"$JS.API.STREAM.NAMES":                                 ``,
		"$JS.API.INFO":                                         ``,
		ack:                                                    `+NXT {"batch":3,"no_wait":true}`,
	}
}

func TestWhatAReaderIsAnsweredWritesIntoNoStream(t *testing.T) {
	g := newStage(t, 8)
	before := g.extents(t)
	for _, name := range []string{"auditor", "dashboard"} {
		nc, js := g.reader(t, name)
		for _, stream := range mine(name) {
			must[jetstream.Consumer](t)(js.CreateConsumer(testContext(t), stream, jetstream.ConsumerConfig{Durable: "mine", AckPolicy: jetstream.AckExplicitPolicy}))
			for subject, body := range asks(stream, "mine") {
				for _, reply := range victims() {
					if reply == "_R_.x" {
						continue // the server ends connections for that
					}
					if err := nc.PublishRequest(subject, reply, []byte(body)); err != nil {
						t.Fatal(err)
					}
				}
			}
			must[jetstream.Stream](t)(js.Stream(testContext(t), stream)) // what was asked before is done
		}
	}
	must[*nats.Msg](t)(g.service.RequestWithContext(testContext(t), "$JS.API.INFO", nil))
	if after := g.extents(t); after != before {
		t.Errorf("the streams were\n%s and are\n%s", before, after)
	}
}

// JetStream answers in the account that asked. This is what would happen there if the
// streams were in it.
func TestAnAnswerInTheAccountOfAStreamCanRemoveIt(t *testing.T) {
	g := newStage(t, 8)
	js := must[jetstream.JetStream](t)(jetstream.New(g.curator))
	stream := must[jetstream.Stream](t)(js.Stream(testContext(t), bus.PublicStreamName(testLog)))
	must[jetstream.Consumer](t)(stream.CreateConsumer(testContext(t), jetstream.ConsumerConfig{Durable: "mine", FilterSubject: "none"}))
	if err := g.curator.PublishRequest("$JS.API.CONSUMER.MSG.NEXT."+bus.PublicStreamName(testLog)+".mine",
		"$JS.API.STREAM.DELETE."+bus.PublicStreamName(testLog), []byte(`{"no_wait":true}`)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the stream made again", func() bool {
		s, err := js.Stream(testContext(t), bus.PublicStreamName(testLog))
		return err == nil && !s.CachedInfo().Created.Equal(stream.CachedInfo().Created)
	})
	eventually(t, "the stream filled again", func() bool { return g.public.Health().Lag == 0 && g.extents(t) != "" })
}

// No consumer leads a dashboard to calls.
func TestADashboardReachesNothingOfCalls(t *testing.T) {
	g := newStage(t, 40)
	nc, js := g.reader(t, "dashboard")
	root := bus.EventRoot(bus.DefaultPrefix, testLog)
	name := bus.PublicStreamName(testLog)
	for what, cfg := range map[string]jetstream.ConsumerConfig{
		"no filter":    {},
		"everything":   {FilterSubject: ">"},
		"calls":        {FilterSubject: root + "call.>"},
		"wildcards":    {FilterSubject: "waybill.v1.events.*.*.*.*"},
		"many":         {FilterSubjects: []string{root + "call.>", root + "list.>", root + "era.>"}},
		"many of them": {FilterSubjects: []string{"waybill.v1.events.*.call.>", "waybill.v1.events.*.era.>"}},
		"all events":   {FilterSubject: root + ">"},
	} {
		for _, msg := range readAll(t, js, name, cfg) {
			if kind := strings.TrimPrefix(msg.Subject(), root); !isPublic(kind) {
				t.Errorf("%s: %s", what, msg.Subject())
			}
		}
	}
	ctx := testContext(t)
	for _, stream := range []string{bus.StreamName(testLog), bus.CheckpointStreamName(testLog)} {
		for _, subject := range []string{"$JS.API.STREAM.INFO." + stream, "$JS.API.CONSUMER.CREATE." + stream, "$JS.API.DIRECT.GET." + stream,
			"$JS.API.STREAM.MSG.GET." + stream, "$JS.API.CONSUMER.NAMES." + stream, "waybill.v1.read." + stream + ".create", access.CopyAPI + ".CONSUMER.CREATE." + stream} {
			if msg, err := nc.Request(subject, []byte(`{"stream_name":"`+stream+`","seq":1}`), 20*time.Millisecond); !errors.Is(err, nats.ErrTimeout) {
				t.Errorf("%s: %v, %v", subject, msg, err)
			}
		}
	}
	s := must[jetstream.Stream](t)(js.Stream(ctx, name))
	if _, err := s.GetLastMsgForSubject(ctx, root+"call.routed.-"); !errors.Is(err, jetstream.ErrMsgNotFound) {
		t.Errorf("a call by its subject: %v", err)
	}
	for info := range must[jetstream.Stream](t)(js.Stream(ctx, name)).CachedInfo().State.Subjects {
		if strings.Contains(info, ".call.") {
			t.Errorf("the stream has %s", info)
		}
	}
}

// An auditor reads all of the log and its heads in the same ways.
func TestAnAuditorReadsEverything(t *testing.T) {
	g := newStage(t, 40)
	nc, js := g.reader(t, "auditor")
	got := readAll(t, js, bus.StreamName(testLog), jetstream.ConsumerConfig{})
	if len(got) != 40 {
		t.Fatalf("%d messages", len(got))
	}
	for i, msg := range got {
		if e := g.log.events[i]; string(msg.Data()) != string(e.Bytes) || msg.Subject() != e.Subject {
			t.Errorf("message %d is %s", i+1, msg.Data())
		}
	}
	if heads := readAll(t, js, bus.CheckpointStreamName(testLog), jetstream.ConsumerConfig{}); len(heads) != 1 || string(heads[0].Data()) != string(headOf(1)) {
		t.Errorf("%d heads", len(heads))
	}
	x, err := Read(testContext(t), nc, testLog, func(int64, []byte) error { return nil })
	if err != nil || x.Messages != 40 {
		t.Errorf("%+v, %v", x, err)
	}
	live := must[*nats.Subscription](t)(nc.SubscribeSync("waybill.v1.events.*.>"))
	head := must[*nats.Subscription](t)(nc.SubscribeSync(bus.CheckpointSubject(bus.DefaultPrefix, testLog)))
	if err := nc.FlushWithContext(testContext(t)); err != nil {
		t.Fatal(err)
	}
	g.log.grow(1)
	msg := must[*nats.Msg](t)(live.NextMsgWithContext(testContext(t)))
	if msg.Header.Get("Nats-Msg-Id") != "41" {
		t.Errorf("%v %s", msg.Header, msg.Data)
	}
	heads := must[*Checkpoints](t)(NewCheckpoints(g.service, checkpointsConfig()))
	if err := heads.Publish(headOf(41)); err != nil {
		t.Fatal(err)
	}
	must[*nats.Msg](t)(head.NextMsgWithContext(testContext(t)))
}
