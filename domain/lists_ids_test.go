package domain

import "testing"

// onceEach fails where two requests of a run have one id, or one call was sent
// twice without a word about why (specification, basic, "Requests": an id must not
// have been used before).
func (k *keeper) onceEach() {
	k.t.Helper()
	ids, routed := map[int64]Send{}, map[string]bool{}
	for _, x := range k.sends {
		if first, twice := ids[x.RequestID]; twice {
			k.t.Errorf("request id %d is used twice: for %s %s%s and for %s %s%s", x.RequestID,
				first.Method, first.Call, first.Context, x.Method, x.Call, x.Context)
		}
		ids[x.RequestID] = x
	}
	for _, d := range all[CallRouted](k.log) {
		if routed[d.CallKey()] {
			k.t.Errorf("call %s is routed twice", d.CallKey())
		}
		routed[d.CallKey()] = true
	}
}

func patient(d *CallReceived) { d.Wait = 60_000 }

// TestAListThatIsReadAgainAndACallThatWaitedHaveTwoIDs: both follow from one list
// that came in, stale on arrival.
func TestAListThatIsReadAgainAndACallThatWaitedHaveTwoIDs(t *testing.T) {
	for _, tool := range []string{"x", "new"} { // the names stay, or change first
		k := noticed(t)
		k.exited("p")
		k.rises("p", discoverNotices)
		must[CallHeld](t, k.submit("", "x", patient))
		k.acknowledges("p", "", true)
		k.changes("p", "")
		k.pass(3_000)
		out := k.answered("p", "", listPage(cached(60_000, ScopePublic), "x", tool))
		must[CallRouted](t, out)
		must[ListRequested](t, out)
		k.onceEach()
		k.refolds()
	}
}

// TestAListThatIsDoubtedAndACallThatGetsItsPlaceHaveTwoIDs: both follow from one
// answer, by which the peer does not know the tool of the call.
func TestAListThatIsDoubtedAndACallThatGetsItsPlaceHaveTwoIDs(t *testing.T) {
	k := kept(t, func(p *PeerConfig) { p.Inflight = 1 })
	k.exited("p")
	must[CallHeld](t, k.submit("", "x", patient))
	must[CallHeld](t, k.submit("", "x", patient))
	k.rises("p", discoverQuiet)
	r := must[CallRouted](t, k.answered("p", "", listPage(cached(60_000, ScopePublic), "x")))
	k.pass(2_000)
	out := k.answersCall(r, Facts{Kind: FactError, ErrorCode: -32602})
	must[CallRouted](t, out)
	must[ListRequested](t, out)
	k.onceEach()
	k.refolds()
}

// TestACallThatWaitedIsRoutedOnce: though the list that it waited for changes the
// names of several contexts at once.
func TestACallThatWaitedIsRoutedOnce(t *testing.T) {
	k := newKeeper(t)
	k.start(ruled(testConfig(PrefixOnCollision, "p", "q"), onlyPeer("p", inContexts("alice", "bob"))))
	k.rises("p", discoverQuiet)
	k.answered("p", "alice", listPage(cached(60_000, ScopePrivate), "a"))
	k.answered("p", "bob", listPage(cached(60_000, ScopePrivate), "b"))
	k.rises("q", discoverQuiet)
	k.answered("q", "", listPage(cached(60_000, ScopePrivate), "x"))
	k.exited("q")
	must[CallHeld](t, k.submit("alice", "x", patient))
	k.rises("q", discoverQuiet)
	out := k.answered("q", "", listPage(cached(60_000, ScopePrivate), "x", "y"))
	if n := len(all[CallRouted](out)); n != 1 {
		t.Errorf("it is routed %d times: %v", n, kinds(out))
	}
	k.onceEach()
	k.refolds()
}

// TestNamesAreMergedOnceForWhatHappensAtOnce: a peer that has no tools gives each
// of its contexts an empty list, and one that is lost before it listed costs each
// its own; the names of each context are merged once.
func TestNamesAreMergedOnceForWhatHappensAtOnce(t *testing.T) {
	once := func(t *testing.T, out []Event) {
		t.Helper()
		n := map[string]int{}
		for _, d := range all[NamespaceMerged](out) {
			n[d.Context]++
		}
		if len(n) != 3 || n["alice"] != 1 || n["bob"] != 1 || n[DefaultContext] != 1 {
			t.Errorf("merged %v", n)
		}
	}
	for _, c := range []struct {
		name string
		then func(*keeper) []Event
	}{
		{"a peer without tools", func(k *keeper) []Event { return k.rises("p", discoverNone) }},
		{"one that is gone before it listed", func(k *keeper) []Event {
			k.rises("p", discoverQuiet)
			return k.exited("p")
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			k := newKeeper(t)
			k.start(ruled(testConfig(PrefixOnCollision, "p"), inContexts("alice", "bob")))
			once(t, c.then(k))
			k.refolds()
		})
	}
	t.Run("two that are refused, each of a context of its own", func(t *testing.T) {
		k := newKeeper(t)
		c := ruled(testConfig(PrefixOnCollision, "p", "q"), func(p *PeerConfig) {
			p.Refusal, p.RefusalReason = CodeNotPinned, "no pin"
		}, onlyPeer("p", inContexts("alice")), onlyPeer("q", inContexts("bob")))
		once(t, k.start(c))
		k.refolds()
	})
}

// TestACallThatWaitedIsRefusedOnce: its peer comes back without the tool, in
// several contexts at once.
func TestACallThatWaitedIsRefusedOnce(t *testing.T) {
	k := newKeeper(t)
	k.start(ruled(testConfig(PrefixOnCollision, "p"), inContexts("alice", "bob")))
	k.rises("p", discoverQuiet)
	k.answered("p", "alice", listPage(cached(60_000, ScopePrivate), "x"))
	k.answered("p", "bob", listPage(cached(60_000, ScopePrivate), "x"))
	k.exited("p")
	must[CallHeld](t, k.submit("alice", "x", patient))
	out := k.rises("p", discoverNone)
	if n := len(all[CallRefused](out)); n != 1 {
		t.Errorf("it is refused %d times: %v", n, kinds(out))
	}
	k.refolds()
}

// TestAGenerationHasOneContent: a peer that comes back without tools gives each of
// its contexts an empty list at once. What is merged on the way names neither a
// digest that never stood nor two for one generation.
func TestAGenerationHasOneContent(t *testing.T) {
	k := newKeeper(t)
	k.start(ruled(testConfig(PrefixOnCollision, "p"), inContexts("alice", "bob")))
	k.rises("p", discoverQuiet)
	k.answered("p", "bob", listPage(cached(60_000, ScopePublic), "y"))
	k.answered("p", "alice", listPage(cached(60_000, ScopePublic), "x"))
	k.exited("p")
	k.rises("p", discoverNone)
	content := map[string]string{}
	for _, d := range all[NamespaceMerged](k.log) {
		key := d.Context + " " + itoa(int(d.Generation))
		if was, twice := content[key]; twice && was != d.Digest {
			t.Errorf("generation %s is %.8s and %.8s", key, was, d.Digest)
		}
		content[key] = d.Digest
	}
	if got := k.names("alice") + k.names("bob"); got != "" {
		t.Errorf("the names are %s", got)
	}
	k.refolds()
}

// TestACallThatIsToBeSentAgainIsSentOnce, and ended once where its tool is gone,
// though the list that it waited for changes the names of several contexts at once.
func TestACallThatIsToBeSentAgainIsSentOnce(t *testing.T) {
	for name, c := range map[string]struct {
		tools []string
		want  string
	}{
		"its tool is there": {[]string{"x", "y"}, "call.resent"},
		"its tool is gone":  {[]string{"y"}, "call.settled"},
	} {
		t.Run(name, func(t *testing.T) {
			k := newKeeper(t)
			k.start(ruled(testConfig(PrefixOnCollision, "p", "q"), onlyPeer("p", inContexts("alice", "bob")), resends(3)))
			k.rises("p", discoverQuiet)
			k.answered("p", "alice", listPage(cached(60_000, ScopePrivate), "a"))
			k.answered("p", "bob", listPage(cached(60_000, ScopePrivate), "b"))
			k.rises("q", discoverQuiet)
			k.answered("q", "", listPage(cached(60_000, ScopePrivate), "x"))
			r := must[CallRouted](t, k.submit("alice", "x"))
			must[CallHeld](t, k.see(ExchangeFailed{At: r.At, RequestID: r.RequestID, Call: r.CallKey(), Written: "no", Code: CodeTransportLost}))
			k.exited("q")
			k.rises("q", discoverQuiet)
			n := 0
			out := k.answered("q", "", listPage(cached(60_000, ScopePrivate), c.tools...))
			for _, kind := range kinds(out) {
				if kind == c.want {
					n++
				}
			}
			if n != 1 {
				t.Errorf("%s %d times: %v", c.want, n, kinds(out))
			}
			k.refolds()
		})
	}
}
