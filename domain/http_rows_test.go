package domain

import "fmt"

// Where the rows over HTTP come from, besides those of stdio.
const (
	designHTTP   = "design, Streamable HTTP"
	specFallback = "basic/transports/streamable-http, Backward Compatibility"
	specNoMethod = "basic/transports/streamable-http, Protocol Version Header"
	specOldPair  = "basic/transports/streamable-http, HTTP+SSE Transport (2024-11-05)"
)

// fails is an answer of HTTP without a message in it, or none.
func fails(class string, status int) step {
	return func(w *world, peer string) { w.failed(peer, class, status) }
}

func (w *world) failed(peer, class string, status int) []Event {
	x := w.last(peer)
	d := ProbeFailed{At: x.At, RequestID: x.RequestID, Class: class, Status: status, Reason: "what was there"}
	if status == 0 {
		return w.see(d)
	}
	body := "<html>"
	d.Frame = RefTo([]byte(body))
	return w.see(d, body)
}

// gone is the end of an incarnation that could not be reached.
func gone(w *world, peer string) { w.leaves(peer, causeUnreachable) }

func (w *world) leaves(peer, cause string) []Event {
	return w.see(PeerExited{At: w.at(peer), Cause: cause})
}

// An outcomeOf is an HTTP answer without a message, and what follows from it in the
// place of the answer to server/discover and in that of the answer to initialize.
type outcomeOf struct {
	name, source, class string
	status              int
	discover            string // the closing; "" for an ambiguous one
	initialize          string
}

func outcomesOfHTTP() []outcomeOf {
	const unauthorized, unavailable, redirect, broken = "closed unauthorized", "closed unavailable", "closed redirect_refused", "closed broken_answer"
	var out []outcomeOf
	add := func(source, class, discover, initialize string, statuses ...int) {
		for _, n := range statuses {
			name := fmt.Sprintf("HTTP %d", n)
			if n == 0 {
				name = class + " without an answer"
			}
			out = append(out, outcomeOf{name, source, class, n, discover, initialize})
		}
	}
	add(designHTTP, ClassUnauthorized, unauthorized, unauthorized, 401, 403, 0)
	add(designHTTP, ClassUnavailable, unavailable, unavailable, 407, 408, 421, 425, 429, 500, 502, 503, 504, 0)
	add(designHTTP, ClassRedirect, redirect, redirect, 301, 302, 303, 304, 307, 308, 0)
	add(seedNoProof, ClassForeign, broken, broken, 200, 202, 204)
	add(specFallback, ClassAmbiguous, "", "closed legacy_status", 400, 406, 410, 415, 422)
	add(specOldPair, ClassAmbiguous, "", "closed legacy_status", 404, 405)
	return out
}

// httpRows are the rows of the probe table that are read off HTTP, and those that
// its body decides whatever the status.
func httpRows() []row {
	var rows []row
	for _, o := range outcomesOfHTTP() {
		answer := fails(o.class, o.status)
		first := same(o.name, o.source, o.discover, false, answer)
		after := "closed modern_evidence"
		if o.discover == "" {
			first.off, first.on = "closed ambiguous_status", waitsInit
		} else {
			after = o.discover
		}
		rows = append(rows, first,
			same("-32022, then "+o.name, seedNoFall, after, true, refused(usable), answer),
			same("-32020, then "+o.name, seedNoFall, after, true, code(-32020), answer),
			same("a modern code under another id, then "+o.name, seedNoFall, after, true, under("99", modernError), answer),
			row{"initialize: " + o.name, o.source, []step{fails(ClassAmbiguous, 400), answer}, "closed ambiguous_status", o.initialize + "; initialize sent", false},
			row{"initialize: a modern code under another id, then " + o.name, seedNoFall, []step{fails(ClassAmbiguous, 400), under("99", modernError), answer},
				"closed ambiguous_status", "closed modern_evidence; initialize sent", true},
			same(o.name+" to what has ended", designHTTP, "modern 2026-07-28", true, says(discoverResult), answer))
	}
	return append(rows, bodyRows()...)
}

// bodyRows are answers whose body is a message: the table is that of stdio.
func bodyRows() []row {
	const unavailable, closedAmbiguous = "closed unavailable", "closed ambiguous_status"
	again := func(name, source string, on string, modern bool, steps ...step) row {
		return row{name, source, append([]step{fails(ClassAmbiguous, 400)}, steps...), closedAmbiguous, on, modern}
	}
	return []row{
		same("DiscoverResult", seedProbe, "modern 2026-07-28", true, says(discoverResult)),
		same("-32022 with a usable list", seedProbe, "waits for server/discover (version_refused)", true, refused(usable)),
		same("-32022 with legacy revisions only", seedNoFall, "closed legacy_only", true, refused(`{"supported":["2025-11-25"]}`)),
		same("-32020 twice", seedNoFall, "closed header_mismatch", true, code(-32020), code(-32020)),
		same("another result", seedNoProof, "closed broken_answer", false, result(`{"ok":true}`)),
		{"-32601", specNoMethod, []step{code(-32601)}, "closed ambiguous_error", waitsInit, false},
		{"-32600", specFallback, []step{code(-32600)}, "closed ambiguous_error", waitsInit, false},
		{"an empty result", seedLegacy, []step{result(`{}`)}, "closed ambiguous_empty", waitsInit, false},
		same("silence", designHTTP, unavailable, false, silence),
		same("-32022, then silence", seedNoFall, unavailable, true, refused(usable), silence),
		same("the endpoint is gone", designHTTP, "waits for server/discover (first_message)", false, gone, spawnNext),
		same("-32022, then the endpoint is gone", designHTTP, "waits for server/discover (first_message)", false, refused(usable), gone, spawnNext),
		again("initialize: a valid result", seedLegacy, "legacy 2025-11-25; initialize sent", false, says(legacyResult)),
		again("initialize: an error", lessonAllow, "closed legacy_error; initialize sent", false, code(-32602)),
		again("initialize: -32022", seedNoFall, "closed modern_evidence; initialize sent", true, refused(usable)),
		again("initialize: a DiscoverResult", seedNoFall, "closed modern_evidence; initialize sent", true, says(discoverResult)),
		again("initialize: silence", designHTTP, unavailable+"; initialize sent", false, silence),
		again("initialize: a late modern code", seedNoFall, "closed modern_evidence; initialize sent", true, under("$FIRST", modernError)),
		again("initialize: a late DiscoverResult", lessonProbe, "modern 2026-07-28; initialize sent", true, under("$FIRST", validResult)),
		again("initialize: a late -32601", seedLegacy, waitsInit, false, under("$FIRST", oldError)),
		again("HTTP 401 to the discover that has ended", designHTTP, waitsInit, false, lateFailure(ClassUnauthorized)),
		again("HTTP 400 to the discover that has ended", designHTTP, waitsInit, false, lateFailure(ClassAmbiguous)),
	}
}

// lateFailure is a second outcome of the first request.
func lateFailure(class string) step {
	return func(w *world, peer string) {
		w.see(ProbeFailed{At: w.at(peer), RequestID: w.sends[0].RequestID, Class: class, Status: 400, Reason: "late"})
	}
}
