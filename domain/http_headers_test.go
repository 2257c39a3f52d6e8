package domain

import (
	"strings"
	"testing"

	"waybill/domain/catalog"
)

// mismatched is a call to the endpoint "p" that was answered with -32020, a time
// after its list was read.
func mismatched(t *testing.T, after int64, change ...func(*PeerConfig)) (*keeper, CallRouted, []Event) {
	k := kept(t, append([]func(*PeerConfig){httpPeer, resends(1)}, change...)...)
	k.pass(after)
	r := must[CallRouted](t, k.submit("", "x", waits(0)))
	return k, r, k.answersCall(r, rejects(-32020))
}

// listAgain answers the reading that was asked for last.
func (k *keeper) listAgain(tools ...string) []Event {
	return k.answered("p", "", listPage(cached(10_000, ScopePublic), tools...))
}

// TestHeadersThatDoNotMatch (design, Calls: "-32020 (headers corrected after a fresh
// list)"): the list is read first, then the call is sent again, once.
func TestHeadersThatDoNotMatch(t *testing.T) {
	k, r, out := mismatched(t, 5_000)
	sameKinds(t, out, "cache.decided", "list.requested", "call.held")
	c, l, h := must[CacheDecided](t, out), must[ListRequested](t, out), must[CallHeld](t, out)
	if c.Why != WhyHeader || len(c.Uses) != 1 || c.Uses[0].met() != "fresh read" || c.Uses[0].Age != 5_000 || c.Uses[0].List == 0 {
		t.Errorf("%+v", c)
	}
	if l.Why != WhyHeader || l.Page != 1 || h.Rule != RuleHeader || h.Code != CodeHeaderMismatch || h.Ran != RanNo || h.Wait != resendWait || h.Peer != "p" {
		t.Errorf("%+v, %+v", l, h)
	}
	out = k.listAgain("x")
	d := must[CallResent](t, out)
	if d.Rule != RuleHeader || d.After != r.RequestID || d.Attempt != 2 || d.Deadline != 55_000+5_000 {
		t.Errorf("%+v", d)
	}
	out = k.see(CallAnswered{CallID: r.CallID, At: d.At, RequestID: d.RequestID, Facts: rejects(-32020)})
	ends(t, out, "protocol_error peer_error no")
	if k.count(MethodCall) != 2 || k.s.InFlight() != 0 {
		t.Errorf("sent %d times", k.count(MethodCall))
	}
	k.refolds()
}

// TestHeadersWhoseToolHasChanged: new names come first, and then the call, with the
// schema that was just read.
func TestHeadersWhoseToolHasChanged(t *testing.T) {
	k, r, _ := mismatched(t, 5_000)
	def := strings.Replace(toolDef("x"), `"type":"object"`, `"type":"object","properties":{"a":{"type":"string","x-mcp-header":"A"}}`, 1)
	out := k.answered("p", "", told(cached(10_000, ScopePublic), def, toolDef("new")))
	if _, again := find[CallResent](out); !again || len(all[NamespaceMerged](out)) != 1 {
		t.Fatalf("%v", kinds(out))
	}
	if got := string(k.s.InputSchema(r.CallKey())); !strings.Contains(got, `"x-mcp-header":"A"`) {
		t.Errorf("its headers are made from %s", got)
	}
	k, r, _ = mismatched(t, 5_000)
	ends(t, k.listAgain("y"), "protocol_error header_mismatch no") // it is gone
	if k.s.InputSchema(r.CallKey()) != nil || k.count(MethodCall) != 1 {
		t.Error("a call that has ended")
	}
	k, r, _ = mismatched(t, 5_000)
	bad := strings.Replace(toolDef("x"), `"type":"object"`, `"type":"object","properties":{"a":{"type":"number","x-mcp-header":"A"}}`, 1)
	out = k.answered("p", "", told(cached(10_000, ScopePublic), bad, toolDef("y")))
	if d := must[ToolRejected](t, out); d.Code != CodeToolHeader {
		t.Errorf("%+v", d)
	}
	ends(t, out, "protocol_error header_mismatch no") // it is left out
	if k.s.UnderWay(r.CallKey()) {
		t.Error("it goes on")
	}
}

// TestHeadersAfterManyPages: the whole list is read, and one that is being read
// serves.
func TestHeadersAfterManyPages(t *testing.T) {
	k, _, _ := mismatched(t, 5_000)
	out := k.answered("p", "", listPage(before("2", cached(10_000, ScopePublic)), "x"))
	sameKinds(t, out, "list.requested")
	out = k.listAgain("y")
	if _, again := find[CallResent](out); !again {
		t.Fatalf("%v", kinds(out))
	}
	k = kept(t, httpPeer, resends(1))
	k.pass(20_000)
	r := must[CallRouted](t, k.submit("", "x"))
	k.reads("")
	out = k.answersCall(r, rejects(-32020))
	sameKinds(t, out, "cache.decided", "call.held")
	if u := usesOf(out)["p"]; u.met() != "stale joined" {
		t.Errorf("%+v", u)
	}
	must[CallResent](t, k.listAgain("x"))
}

// TestHeadersKeepToTheInterval: the list is read no more often than list_interval
// says, and the call waits; it ends where that is too long.
func TestHeadersKeepToTheInterval(t *testing.T) {
	k, r, out := mismatched(t, 400)
	sameKinds(t, out, "cache.decided", "list.deferred", "call.held")
	if d := must[ListDeferred](t, out); d.Why != WhyHeader || d.Delay != 600 || usesOf(out)["p"].Act != ActDeferred {
		t.Errorf("%+v", d)
	}
	second := must[CallRouted](t, k.submit("", "x"))
	sameKinds(t, k.answersCall(second, rejects(-32020)), "cache.decided", "call.held") // one reading for both
	k.pass(600)
	sameKinds(t, k.isDue("p", "", DueList), "list.requested")
	out = k.listAgain("x")
	if d := all[CallResent](out); len(d) != 2 || d[0].CallID != r.CallID || d[1].CallID != second.CallID || d[0].RequestID == d[1].RequestID {
		t.Errorf("%+v", d)
	}
	k, r, out = mismatched(t, 400, func(p *PeerConfig) { p.Lists.Interval = 60_000 })
	sameKinds(t, out, "cache.decided", "list.deferred", "call.held")
	ends(t, k.see(WaitPassed{r.CallID}), "protocol_error header_mismatch no")
	if k.count(MethodCall) != 1 || k.count(MethodList) != 1 {
		t.Errorf("%d calls, %d lists", k.count(MethodCall), k.count(MethodList))
	}
}

// TestHeadersInsideTheTimeOfTheCall: its deadline goes on.
func TestHeadersInsideTheTimeOfTheCall(t *testing.T) {
	for _, c := range []struct{ passed, wait int64 }{{0, 5_000}, {56_000, 4_000}, {59_999, 1}, {60_000, 0}, {61_000, 0}} {
		k := kept(t, httpPeer, resends(1))
		k.pass(2_000)
		r := must[CallRouted](t, k.submit("", "x"))
		k.pass(c.passed)
		out := k.answersCall(r, rejects(-32020))
		if c.wait == 0 {
			ends(t, out, "protocol_error peer_error no")
			continue
		}
		if d := must[CallHeld](t, out); d.Wait != c.wait {
			t.Errorf("after %d ms it waits %d ms, want %d", c.passed, d.Wait, c.wait)
		}
		if d := must[CallResent](t, k.listAgain("x")); d.Deadline != min(60_000, 60_000-c.passed) {
			t.Errorf("after %d ms it is sent with %d ms", c.passed, d.Deadline)
		}
	}
}

// TestHeadersOfAListThatCannotBeRead: the call ends, with why.
func TestHeadersOfAListThatCannotBeRead(t *testing.T) {
	for name, fail := range map[string]func(*keeper, Send) []Event{
		"an error": func(k *keeper, x Send) []Event { return k.answered("p", "", notFound) },
		"silence":  func(k *keeper, x Send) []Event { return k.see(DeadlinePassed{At: x.At, RequestID: x.RequestID}) },
		"401": func(k *keeper, x Send) []Event {
			return k.see(ExchangeFailed{At: x.At, RequestID: x.RequestID, Written: "maybe", Code: CodeUnauthorized, Status: 401, Reason: "no message in it"})
		},
		"lost": func(k *keeper, x Send) []Event {
			return k.see(ExchangeFailed{At: x.At, RequestID: x.RequestID, Written: "maybe", Code: CodeTransportLost})
		},
	} {
		k, r, _ := mismatched(t, 5_000)
		out := fail(k, k.last("p", "", MethodList))
		must[CatalogRefused](t, out)
		if got := end(out); got != "protocol_error header_mismatch no" || k.count(MethodCall) != 1 {
			t.Errorf("%s: %q, %v", name, got, kinds(out))
		}
		sameKinds(t, k.see(WaitPassed{r.CallID}))
		k.refolds()
	}
}

// TestHeadersWhileTheEndpointIsGone: what another peer lists is not waited for; the
// call goes when the peer has listed again, or ends with it.
func TestHeadersWhileTheEndpointIsGone(t *testing.T) {
	gone := func() (*keeper, CallRouted) {
		k := newKeeper(t)
		k.start(ruled(testConfig(PrefixOnCollision, "p", "q"), httpPeer, resends(1), unsubscribed))
		for _, peer := range []string{"p", "q"} {
			k.rises(peer, discoverQuiet)
			k.answered(peer, "", listPage(cached(0, ScopePublic), map[string]string{"p": "x", "q": "z"}[peer]))
		}
		k.pass(5_000)
		r := must[CallRouted](t, k.submit("", "x"))
		must[CallHeld](t, k.answersCall(r, rejects(-32020)))
		must[PeerRestarted](t, k.see(PeerExited{At: r.At, Cause: causeUnreachable}))
		k.reads("")
		ends(t, k.answered("q", "", listPage(cached(0, ScopePublic), "z", "new")), "")
		return k, r
	}
	k, r := gone()
	k.rises("p", discoverQuiet)
	d := must[CallResent](t, k.listAgain("x"))
	if d.At == r.At || d.Rule != RuleHeader {
		t.Errorf("%+v", d)
	}
	k, _ = gone()
	k.see(PeerSpawned{At: k.at("p")})
	x := k.last("p", "", MethodDiscover)
	ends(t, k.see(ProbeFailed{At: x.At, RequestID: x.RequestID, Class: ClassUnauthorized, Status: 401, Reason: "no message in it"}), "protocol_error header_mismatch no")
	k, r = gone()
	k.rises("p", discoverQuiet)
	ends(t, k.answered("p", "", notFound), "protocol_error header_mismatch no")
	k, r = gone()
	ends(t, k.see(WaitPassed{r.CallID}), "protocol_error header_mismatch no")
}

// TestHeadersOfAProcess are none: -32020 is answered at once, as ever, and so it is
// where lists are not kept by rules.
func TestHeadersOfAProcess(t *testing.T) {
	k := kept(t, resends(1))
	k.pass(5_000)
	r := must[CallRouted](t, k.submit("", "x"))
	sameKinds(t, k.answersCall(r, rejects(-32020)), "call.resent")
	k = kept(t, httpPeer, resends(1), func(p *PeerConfig) { p.Lists = nil })
	r = must[CallRouted](t, k.submit("", "x"))
	sameKinds(t, k.answersCall(r, rejects(-32020)), "call.resent")
	k = kept(t, httpPeer)
	r = must[CallRouted](t, k.submit("", "x"))
	ends(t, k.answersCall(r, rejects(-32020)), "protocol_error peer_error no") // resends: 0
}

// TestToolsThatHTTPLeavesOut (specification, server/tools, "x-mcp-header"): over HTTP
// alone, and only of a modern peer; a page that was read before is the page.
func TestToolsThatHTTPLeavesOut(t *testing.T) {
	odd := strings.Replace(toolDef("odd"), `"type":"object"`, `"type":"object","properties":{"a":{"type":"number","x-mcp-header":"A"}}`, 1)
	good := strings.Replace(toolDef("good"), `"type":"object"`, `"type":"object","properties":{"a":{"type":"string","x-mcp-header":"A"}}`, 1)
	for name, c := range map[string]struct {
		change []func(*PeerConfig)
		legacy bool
		want   string
	}{
		"http":           {[]func(*PeerConfig){httpPeer}, false, "good=p:good"},
		"http, unruled":  {[]func(*PeerConfig){httpPeer, func(p *PeerConfig) { p.Lists = nil }}, false, "good=p:good"},
		"stdio":          {nil, false, "good=p:good odd=p:odd"},
		"legacy, http":   {[]func(*PeerConfig){httpPeer, func(p *PeerConfig) { p.AllowLegacy = true }}, true, "good=p:good odd=p:odd"},
		"stdio, unruled": {[]func(*PeerConfig){func(p *PeerConfig) { p.Lists = nil }}, false, "good=p:good odd=p:odd"},
	} {
		var digests []string
		for _, ahead := range []string{"", "as it is", "as another transport's", "as another era's", "as an old configuration's"} {
			k := newKeeper(t)
			k.start(ruled(testConfig(PrefixOnCollision, "p"), append([]func(*PeerConfig){unsubscribed}, c.change...)...))
			hints := cached(10_000, ScopePublic)
			if c.legacy {
				k.risesLegacy("p")
				hints = ""
			} else {
				k.rises("p", discoverQuiet)
			}
			x := k.last("p", "", MethodList)
			frame := strings.ReplaceAll(told(hints, good, odd), "$ID", "7")
			d := CatalogListed{At: x.At, RequestID: x.RequestID, Frame: RefTo([]byte(frame)), Page: pageAhead(ahead, frame, !c.legacy, k.s.Peer("p").http())}
			out := k.see(d, frame)
			if got := k.names(""); got != c.want {
				t.Errorf("%s, page %q: %s, want %s", name, ahead, got, c.want)
			}
			left := all[ToolRejected](out)
			if strings.Contains(c.want, "odd") != (len(left) == 0) || len(left) == 1 && (left[0].Code != CodeToolHeader || left[0].Position != 1 || left[0].Name != "odd") {
				t.Errorf("%s: %+v", name, left)
			}
			digests = append(digests, k.s.Tools("", "", 0, 0).Digest)
			k.refolds()
		}
		for _, d := range digests {
			if d != digests[0] {
				t.Errorf("%s: what was read before is not what is read: %v", name, digests)
			}
		}
	}
}

// TestAPageReadByOtherRulesIsReadAgain: an old configuration reads less strictly.
func TestAPageReadByOtherRulesIsReadAgain(t *testing.T) {
	far := strings.Replace(toolDef("far"), `"type":"object"`, `"type":"object","properties":{"a":{"$ref":"https://example.com/a"}}`, 1)
	for want, change := range map[string]func(*PeerConfig){"": func(*PeerConfig) {}, "far=p:far": func(p *PeerConfig) { p.Lists = nil }} {
		for _, ahead := range []string{"", "as it is", "as an old configuration's"} {
			k := newKeeper(t)
			k.start(ruled(testConfig(PrefixOnCollision, "p"), unsubscribed, change))
			k.rises("p", discoverQuiet)
			x := k.last("p", "", MethodList)
			frame := strings.ReplaceAll(told(cached(10_000, ScopePublic), far), "$ID", "7")
			k.see(CatalogListed{At: x.At, RequestID: x.RequestID, Frame: RefTo([]byte(frame)), Page: pageAhead(ahead, frame, true, false)}, frame)
			if got := k.names(""); got != want {
				t.Errorf("page %q: %q, want %q", ahead, got, want)
			}
			k.refolds()
		}
	}
}

// pageAhead is what whoever reported an answer made of it.
func pageAhead(how, frame string, modern, http bool) *catalog.Page {
	var p catalog.Page
	switch how {
	case "":
		return nil
	case "as another transport's":
		http = !http
	case "as another era's":
		modern = !modern
	}
	if strict := how != "as an old configuration's"; http {
		p, _, _ = catalog.ParsePageHTTP([]byte(frame), modern)
	} else {
		p, _, _ = catalog.ParsePage([]byte(frame), modern, strict)
	}
	return &p
}
