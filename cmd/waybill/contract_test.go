package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"testing"

	jsonx "github.com/go-json-experiment/json"

	"waybill/domain"
	"waybill/harness"
	"waybill/harness/bus"
	"waybill/harness/bus/contract"
	"waybill/harness/bus/contract/contracttest"
	"waybill/replay/explain"
)

var recordSchemas = flag.Bool("record", false, "write the schemas of requests and replies anew; read the difference before you keep it")

const schemaFolder = "../../harness/bus/contract/schemas/"

// message is what the contract says of one verb: what it does, what is asked and what
// is answered. full are replies that between them have every member; json marshals.
type message struct {
	verb, does string
	order      bool
	ask, reply func(g *contracttest.Generator) schema
	full       []any
}

type schema = contracttest.Object

var messageWords = contracttest.Words{
	reflect.TypeFor[domain.Era](): contracttest.WordsOf(domain.EraUnknown, domain.EraModern, domain.EraLegacy),
	reflect.TypeFor[domain.Ran](): contracttest.WordsOf(domain.RanYes, domain.RanNo, domain.RanMaybe),
	reflect.TypeFor[domain.Status](): contracttest.WordsOf(domain.StatusComplete, domain.StatusToolError, domain.StatusInputRequired,
		domain.StatusProtocolError, domain.StatusRefused, domain.StatusTimedOut, domain.StatusCancelled, domain.StatusLost),
}

var (
	of      = contracttest.Of
	isObj   = of("type", "object")
	callID  = of("type", "string", "pattern", "^[A-Za-z0-9_-]{1,64}$")
	name    = of("type", "string", "pattern", "^[a-z0-9][a-z0-9_-]{0,62}$")
	keyText = of("type", "string", "pattern", callKey.String())
)

// messages are all verbs of hosts and all orders.
func messages() []message {
	return []message{
		{verb: "call", does: "Submit a call of a tool. It is answered once, when it has ended.", ask: askCall, reply: replyOfCall,
			full: fullReplies()},
		{verb: "cancel", does: "Give up a call of this host that is under way. The call itself is answered too.", ask: askID, reply: of1[cancelReply],
			full: []any{filled[cancelReply]()}},
		{verb: "outcome", does: "What became of a call of this host, from the log, with the result where payloads are kept.", ask: askID,
			reply: replyOfCall, full: fullReplies()},
		{verb: "part", does: "A part of a result that did not fit its reply, for a while after the call has ended.", ask: askPart,
			reply: of1[partReply], full: []any{filled[partReply]()}},
		{verb: "explain", does: "Why a call of this host went where it went and ended as it did, each sentence with the events it rests on.", ask: askID,
			reply: of1[explain.Explanation], full: []any{filled[explain.Explanation]()}},
		{verb: "tools", does: "The tools that this host can call, sorted by canonical name, as many as fit one message.", ask: askTools,
			reply: of1[toolsReply], full: []any{filled[toolsReply]()}},
		{verb: "peers", does: "How the peers, their lists, names and collisions are now.", ask: askNothing, reply: of1[domain.Report],
			full: []any{filled[domain.Report]()}},
		{verb: "check", does: "As peers, once every peer has settled: ready, failed or refused.", ask: askNothing, reply: of1[domain.Report],
			full: []any{filled[domain.Report]()}},
		{verb: "status", does: "How the service itself is: its log, its views and its copy in JetStream.", ask: askNothing, reply: of1[statusReply],
			full: []any{filled[statusReply]()}},
		{verb: domain.VerbRevive, order: true, does: "Start a peer again that is down.", reply: replyOfOrder, full: fullOrders(),
			ask: func(*contracttest.Generator) schema { return onlyThese(of("peer", name), "peer") }},
		{verb: domain.VerbResend, order: true, does: "Send a call again that was lost or timed out. Its tool may run twice.", reply: replyOfOrder,
			full: fullOrders(), ask: func(*contracttest.Generator) schema {
				return onlyThese(of("call", keyText, "arguments", isObj.Says("As the call was made, byte for byte. They may be left out where payloads are kept.")), "call")
			}},
		{verb: domain.VerbErase, order: true, does: "Erase what is kept of calls: one call, those of a host, or those older than a time.",
			reply: replyOfOrder, full: fullOrders(), ask: func(*contracttest.Generator) schema {
				return onlyThese(of("call", keyText, "host", name, "older_than_ms", of("type", "integer", "minimum", 1))).With("minProperties", 1)
			}},
		{verb: domain.VerbApprove, order: true, does: "Let a tool be called again whose definition changed: the definition of this digest and no other.",
			reply: replyOfOrder, full: fullOrders(), ask: func(*contracttest.Generator) schema {
				return onlyThese(of("tool", contracttest.Some.Says("Its canonical name."), "digest", of("type", "string", "pattern", hexDigest.String())), "tool")
			}},
	}
}

// onlyThese is the schema of a request: nothing but these members.
func onlyThese(properties schema, required ...string) schema {
	o := of("type", "object", "properties", properties)
	if len(required) > 0 {
		o = o.With("required", required)
	}
	return o.With("additionalProperties", false)
}

func askNothing(*contracttest.Generator) schema {
	return onlyThese(schema{}).With("$comment", "An empty message will do.")
}

func askID(*contracttest.Generator) schema { return onlyThese(of("call_id", callID), "call_id") }

func askPart(*contracttest.Generator) schema {
	return onlyThese(of("call_id", callID, "offset", of("type", "integer", "minimum", 0).With("description", "The next of the part before; 0, or nothing, for the first part.")), "call_id")
}

func askTools(*contracttest.Generator) schema {
	return onlyThese(of("after", contracttest.Text.Says("The next of the page before; nothing for the first page."))).With("$comment", "An empty message asks for the first page.")
}

// askCall says in words of a schema what domain.ParseCall takes.
func askCall(*contracttest.Generator) schema {
	most := func(n int64) schema { return of("type", "integer", "minimum", 1, "maximum", n) }
	tool := of("type", "string", "minLength", 1, "maxLength", 256)
	return onlyThese(of(
		"tool", tool.Says("Its canonical name, at most 256 bytes."),
		"model_name", tool.Says("Its name in the form of models, in the place of tool."),
		"arguments", isObj.Says("Passed on byte for byte; {} if absent. They nest at most "+strconv.Itoa(domain.MaxDepth)+" levels."),
		"call_id", callID.Says("Chosen by the host, unique for it; made by the service if absent. It begins with "+domain.GeneratedPrefix+" only where it goes on with a call of that id."),
		"idempotency_key", of("type", "string", "minLength", 1, "maxLength", domain.MaxKey).Says("At most "+strconv.Itoa(domain.MaxKey)+" bytes, of this host. The same call under the same key is not run again: it is answered with the outcome of the first."),
		"generation", most(1<<53).Says("Of the tools that the host has seen: the call is refused if the route of the name has changed since."),
		"timeout_ms", most(domain.MaxTimeout).Says("How long to wait for an answer or for progress."),
		"limit_ms", most(domain.MaxTimeout).Says("How long the call may take in all; not less than timeout_ms."),
		"wait_ms", most(domain.MaxTimeout).Says("How long to wait for a peer that is down; refused at once if absent."),
		"progress", contracttest.Boolean.Says("Publish its progress on <prefix>.v1.progress.<host>.<call_id>."),
		"capabilities", isObj.Says("What the host can do when the tool asks, as in MCP; at most 2048 bytes."),
		"inputResponses", isObj.Says("The answers to an input_required, as in MCP."),
		"requestState", contracttest.Text.Says("The one that came with the input_required."),
	)).With("oneOf", []any{of("required", []string{"tool"}), of("required", []string{"model_name"})}).
		With("dependentRequired", of("inputResponses", []string{"call_id"}, "requestState", []string{"call_id"})).
		With("not", of("required", []string{"idempotency_key"}, "anyOf", []any{of("required", []string{"inputResponses"}), of("required", []string{"requestState"})}))
}

// of1 is the schema of a type of reply that is encoded as it is.
func of1[T any](g *contracttest.Generator) schema { return g.Struct(reflect.TypeFor[T]()) }

// replyOfCall is what harness.Reply.Encode writes.
func replyOfCall(g *contracttest.Generator) schema {
	s := g.Struct(reflect.TypeFor[harness.Reply]())
	properties, required := s[1].Value.(schema), s[2].Value.([]string)
	properties = append(of("call_id", contracttest.Or(contracttest.Text).Says("As the host chose it, or as it was made.")), properties...)
	properties = append(properties, of(
		"code", contracttest.Or(contracttest.Text).Says("Why it was refused or ended as it did, also in the header Nats-Service-Error; null where all went well."),
		"error", isObj.Says("The JSON-RPC error object of the peer, as it wrote it."),
		"result", contracttest.Or(isObj).Says("As the peer wrote it, byte for byte."))...)
	return contracttest.Open(properties, append([]string{"call_id"}, append(required, "code", "result")...))
}

// replyOfOrder is what harness.CommandReply.Encode writes.
func replyOfOrder(g *contracttest.Generator) schema {
	text, maybe := contracttest.Text, contracttest.Or(contracttest.Text)
	erased := g.Struct(reflect.TypeFor[harness.Erased]())
	return contracttest.Open(of(
		"by", text, "verb", text, "peer", maybe, "call", maybe.Says("Its key, host/call_id."), "tool", text.Says("Its canonical name."),
		"code", maybe.Says("Why the order changes nothing, also in the header Nats-Service-Error; null where it was carried out."), "reason", maybe,
		"seqs", of("type", "array", "items", contracttest.Number).Says("Of the order and of what it led to at once."), "log", text,
		"erased", erased.Says("What was erased."),
		"outcome", contracttest.Or(replyOfCall(g)).Says("How a call ended that was sent again."),
	), []string{"by", "verb", "peer", "call", "code", "reason", "seqs", "log", "outcome"})
}

// refusalSchema is what harness.Refused leads to.
func refusalSchema() schema {
	return contracttest.Open(of(
		"call_id", contracttest.Or(contracttest.Text), "status", of("const", "refused"), "ran", of("const", "no"), "route", contracttest.Null,
		"seqs", of("type", "array", "maxItems", 0), "log", contracttest.Text, "reason", contracttest.Text,
		"size", contracttest.Number.Says("Of what does not fit one message, in bytes."),
		"code", contracttest.Some.Says("As in the header Nats-Service-Error."), "result", contracttest.Null,
	), []string{"call_id", "status", "ran", "route", "seqs", "log", "reason", "code", "result"})
}

func progressSchema() schema {
	number := of("type", "number")
	return contracttest.Open(of("progress", number.Says("More than the last one."), "total", number, "message", contracttest.Text), []string{"progress"})
}

func filled[T any]() any {
	var v T
	contracttest.Fill(reflect.ValueOf(&v).Elem(), messageWords)
	return v
}

func fullReplies() []any {
	r := filled[harness.Reply]().(harness.Reply)
	r.CallID, r.Code, r.Result, r.Error = "x", "x", []byte("{}"), []byte("{}")
	return []any{json.RawMessage(r.Encode()), json.RawMessage(harness.Reply{Status: domain.StatusComplete, Ran: domain.RanYes}.Encode()),
		json.RawMessage(harness.Refused("x", "y", "z").Encode())}
}

func fullOrders() []any {
	r := harness.CommandReply{By: "x", Verb: "x", Peer: "x", Call: "x/x", Tool: "x", Code: "x", Reason: "x", Seqs: []int64{1}, Log: "x"}
	erased := filled[harness.Erased]().(harness.Erased)
	r.Erased = &erased
	out := []any{json.RawMessage(harness.CommandReply{}.Encode())}
	for _, outcome := range fullReplies() {
		var doc harness.Reply
		doc.Status, doc.Ran = domain.StatusComplete, domain.RanYes
		r.Reply = &doc
		head := bytes.SplitN(r.Encode(), []byte(`"outcome":`), 2)[0]
		out = append(out, json.RawMessage(append(append(head, `"outcome":`...), append(outcome.(json.RawMessage), '}')...)))
	}
	return out
}

func schemaGenerator(t testing.TB) *contracttest.Generator {
	t.Helper()
	docs, err := contracttest.ReadDocs("../..", "domain", "harness", "harness/bus/stream", "cmd/waybill", "replay/explain")
	if err != nil {
		t.Fatal(err)
	}
	return &contracttest.Generator{Docs: docs, Words: messageWords, Raw: map[string]schema{"definition": isObj}}
}

func TestEveryVerbHasTheSchemasOfItsMessages(t *testing.T) {
	g, write := schemaGenerator(t), *recordSchemas
	for _, m := range messages() {
		folder, id := schemaFolder+"host/", "host:"
		if m.order {
			folder, id = schemaFolder+"operator/", "operator:"
		}
		ask := g.Whole(contracttest.Head(id+m.verb+":request", m.verb+", request", m.does), m.ask(g))
		contracttest.Compare(t, write, folder+m.verb+".request.json", ask.Text())
		reply := g.Whole(contracttest.Head(id+m.verb+":reply", m.verb+", reply", ""), m.reply(g))
		contracttest.Compare(t, write, folder+m.verb+".reply.json", reply.Text())
	}
	contracttest.Compare(t, write, schemaFolder+"refusal.json",
		append(contracttest.Head("refusal", "refusal", "The body of a reply with the header Nats-Service-Error to whatever was not even begun."), refusalSchema()...).Text())
	contracttest.Compare(t, write, schemaFolder+"progress.json",
		append(contracttest.Head("progress", "progress", "Progress of a call, as its peer wrote it."), progressSchema()...).Text())
}

func TestTheContractNamesTheVerbsOfTheService(t *testing.T) {
	s := &server{}
	verbs, orders := []string{bus.CallVerb}, []string{}
	for verb := range s.handlers().Read {
		verbs = append(verbs, verb)
	}
	for verb := range s.handlers().Quick {
		verbs = append(verbs, verb)
	}
	for verb := range s.handlers().Order {
		orders = append(orders, verb)
	}
	slices.Sort(verbs)
	slices.Sort(orders)
	if got := contract.Verbs(); !slices.Equal(got, verbs) {
		t.Errorf("the contract has the verbs %v, the service %v", got, verbs)
	}
	if got := contract.Orders(); !slices.Equal(got, orders) {
		t.Errorf("the contract has the orders %v, the service %v", got, orders)
	}
}

func TestEveryMemberOfAReplyIsInItsSchema(t *testing.T) {
	for _, m := range messages() {
		published, shut := contracttest.Published(t, contract.Reply(m.verb)), contracttest.Closed(t, contract.Reply(m.verb))
		var all [][]byte
		for _, v := range m.full {
			b, err := jsonx.Marshal(v)
			if raw, ok := v.(json.RawMessage); ok {
				b, err = raw, nil
			}
			if err != nil {
				t.Fatal(err)
			}
			contracttest.Check(t, published, m.verb, b)
			contracttest.Check(t, shut, m.verb+", closed", b)
			all = append(all, b)
		}
		if left := contracttest.Unseen(t, contract.Reply(m.verb), all...); len(left) > 0 {
			t.Errorf("%s: no reply has %v", m.verb, left)
		}
	}
	refusal := harness.Refused("x", "y", "z")
	refusal.Size = 1
	contracttest.Check(t, contracttest.Closed(t, contract.Refusal()), "refusal", refusal.Encode())
}

// The parser of calls knows its members by name. Each must be in the schema, and the
// other way round.
func TestTheSchemaOfACallNamesWhatTheParserTakes(t *testing.T) {
	f, err := parser.ParseFile(token.NewFileSet(), filepath.Join("..", "..", "domain", "request.go"), nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var parsed []string
	for n := range ast.Preorder(f) {
		s, ok := n.(*ast.SwitchStmt)
		if !ok {
			continue
		}
		if id, ok := s.Tag.(*ast.Ident); !ok || id.Name != "key" {
			continue
		}
		for _, c := range s.Body.List {
			for _, e := range c.(*ast.CaseClause).List {
				word, err := strconv.Unquote(e.(*ast.BasicLit).Value)
				if err != nil {
					t.Fatal(err)
				}
				parsed = append(parsed, word)
			}
		}
	}
	var doc struct{ Properties map[string]any }
	if err := json.Unmarshal(contract.Request(bus.CallVerb), &doc); err != nil {
		t.Fatal(err)
	}
	var named []string
	for word := range doc.Properties {
		named = append(named, word)
	}
	slices.Sort(parsed)
	slices.Sort(named)
	if len(parsed) < 12 || !slices.Equal(parsed, named) {
		t.Errorf("the parser takes %v, the schema %v", parsed, named)
	}
}
