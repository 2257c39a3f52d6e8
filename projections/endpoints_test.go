package projections_test

import (
	"slices"
	"strings"
	"testing"

	"waybill/domain"
)

// reaching is what a history says of peers that are endpoints.
type reaching struct {
	web    map[string]bool
	failed map[string][]string // classes of what comes of their next probes; "" is answered
	hosts  []domain.HostConfig
}

func (h *history) pid(peer string) int {
	if h.web[peer] {
		return 0
	}
	return 7
}

func (h *history) endpoint(p *domain.PeerConfig) {
	if h.web[p.Name] {
		p.Transport, p.Command, p.Endpoint, p.Resends = domain.TransportHTTP, "", "https://"+p.Name+".example/mcp", 1
	}
}

// fails reports a probe that fails, if that is what comes of the peer's next one.
func (h *history) fails(x domain.Send) bool {
	if x.Era != domain.EraUnknown || len(h.failed[x.Peer]) == 0 {
		return false
	}
	class := h.failed[x.Peer][0]
	h.failed[x.Peer] = h.failed[x.Peer][1:]
	if class == "" {
		return false
	}
	body := []byte("<html>")
	h.tell(domain.ProbeFailed{At: x.At, RequestID: x.RequestID, Class: class, Status: 503, Reason: "no message in it", Frame: domain.RefTo(body)}, body)
	return true
}

// endpoints is two lives of the service with peers that are endpoints: not there yet,
// not authorized until one is revived, in two contexts, with hosts.
func (h *history) endpoints() {
	h.t.Helper()
	h.web = map[string]bool{"alpha": true, "beta": true}
	h.rules = &domain.ListRules{Interval: 100, Stale: 3_600_000}
	h.contexts = map[string][]string{"beta": {"ann", "default"}}
	h.hosts = []domain.HostConfig{{Name: "ann", Context: "ann", Tools: []string{"s*"}}, {Name: "local", Context: "default"}}
	h.failed = map[string][]string{"alpha": {domain.ClassUnavailable, domain.ClassUnavailable, ""},
		"beta": {domain.ClassUnauthorized, domain.ClassUnauthorized, domain.ClassUnauthorized, ""}}
	h.tools = map[string][]string{"alpha": {"search", "far"}, "beta": {"search", "sum", "bad name"}, "betaann": {"secret"}}
	h.start(domain.PrefixOnCollision, "alpha", "beta")
	h.tell(domain.OperatorCommanded{By: "ann", Verb: domain.VerbRevive, Peer: "beta"}, nil) // now the second credential is good
	h.tell(domain.CallReceived{CallID: domain.CallID{Host: "local", ID: "h1"}, Tool: "far", Timeout: 60_000, Arguments: domain.Payload{Size: 2, HMAC: "00"}}, nil)
	s := h.next()
	h.mute = true
	h.tell(domain.PeerExited{At: s.At, Cause: "unreachable"}, nil)
	h.tell(domain.ExchangeFailed{At: s.At, RequestID: s.RequestID, Call: s.Call, Written: "no", Code: domain.CodeTransportLost}, nil)
	h.mute = false
	h.act(domain.Launch{At: h.at("alpha")})
	h.answer(domain.Facts{Kind: domain.FactResult, ResultType: "complete"})
	h.call("local", "h2", "sum", "")
	s = h.next()
	h.tell(domain.ExchangeFailed{At: s.At, RequestID: s.RequestID, Call: s.Call, Written: "maybe", Code: domain.CodeUnauthorized, Status: 401, Reason: "no message in it"}, nil)
	h.call("stranger", "h3", "sum", "")
	h.tell(domain.ServiceStopped{Reason: "test"}, nil)

	h.failed = map[string][]string{"alpha": {domain.ClassRedirect}}
	h.start(domain.PrefixOnCollision, "alpha")
	h.tell(domain.ServiceStopped{Reason: "test"}, nil)
	h.tools = map[string][]string{"alpha": {"search", "alpha_only"}, "beta": {"search", "sum"}}
	h.reaching, h.keeping, h.sent = reaching{}, keeping{}, nil
}

// TestEndpointsInTheViews: what the views say of a peer that is no process, at each
// event of its life.
func TestEndpointsInTheViews(t *testing.T) {
	list := makeHistory(t)
	v := open(t, viewsFile(t), len(list))
	defer v.Close()
	seen := map[string]bool{}
	for n := 1; n <= len(list); n++ {
		feed(t, v, list[:n], oneByOne)
		r, err := v.Report(t.Context())
		noErr(t, err)
		i := slices.IndexFunc(r.Peers, func(p domain.PeerReport) bool { return p.Name == "alpha" })
		if i < 0 || !overHTTP(list[:n]) {
			continue
		}
		p := r.Peers[i]
		doc := inJSON(t, p)
		for _, word := range []string{`"pid"`, "process", "signal 9", "token"} {
			if strings.Contains(doc, word) {
				t.Fatalf("after event %d the views speak of %s: %s", n, word, doc)
			}
		}
		if x := p.LastExit; x != nil && (x.Status != 0 || x.Signal != "" || x.StderrSize != 0) {
			t.Fatalf("after event %d: %+v", n, x)
		}
		seen[p.State] = true
		if p.Code != nil {
			seen[string(*p.Code)] = true
		}
		if p.NextTry != nil {
			seen["next try"] = true
		}
	}
	for _, what := range []string{"ready", "unavailable", "redirect_refused", "next try"} {
		if !seen[what] {
			t.Errorf("no view says %q: %v", what, seen)
		}
	}
}

// overHTTP reports whether the configuration in force has endpoints.
func overHTTP(list []domain.Event) bool {
	for _, e := range slices.Backward(list) {
		if _, ok := e.Data.(domain.ConfigLoaded); ok {
			return strings.Contains(string(e.Evidence), `"transport":"http"`)
		}
	}
	return false
}
