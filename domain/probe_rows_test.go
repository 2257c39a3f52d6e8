package domain

import "fmt"

// Where the rows of the probe table come from. A section is one of the
// specification of revision 2026-07-28.
const (
	seedProbe    = "seed 2.1.0 rule 3"
	seedLegacy   = "seed 2.1.0 rule 4"
	seedNoFall   = "seed 2.1.0 hard reject 2"
	seedNoAllow  = "seed 2.1.0 hard reject 3"
	seedNoProof  = "seed 2.1.0 hard reject 4"
	seedNoType   = "seed 2.1.0 hard reject 7"
	lessonProbe  = "lesson, stdio compatibility probe"
	lessonAllow  = "lesson, allowlisting is intent"
	lessonLegacy = "lesson, legacy is a branch"
	specDiscover = "server/discover, DiscoverResult"
	specVersion  = "basic/versioning, Protocol Version Negotiation"
	specErrors   = "basic, Error Codes"
	specAnswers  = "basic, Responses"
	specCaching  = "server/utilities/caching, Cacheable Model"
)

// A row is one thing a peer may do when it is probed, and what follows with
// allow_legacy off and on.
type row struct {
	name   string
	source string
	steps  []step
	off    string
	on     string
	modern bool // modern behaviour was seen: initialize is forbidden, whatever comes next
}

// A step is one thing that happens to a peer.
type step func(w *world, peer string)

func says(frame string) step          { return func(w *world, peer string) { w.probed(peer, frame) } }
func silence(w *world, peer string)   { w.silent(peer) }
func exit(w *world, peer string)      { w.exited(peer) }
func spawnNext(w *world, peer string) { w.spawned(peer) }

func tooLong(w *world, peer string) {
	w.see(PeerExited{At: w.at(peer), Status: -1, Signal: "killed", Cause: "frame_too_large"})
}

// saidBefore feeds a frame of the incarnation before the present one.
func saidBefore(frame string) step {
	return func(w *world, peer string) {
		at := w.at(peer)
		at.Incarnation = max(1, at.Incarnation-1)
		f := w.frame(peer, frame)
		w.see(ProbeAnswered{At: at, Frame: RefTo([]byte(f))}, f)
	}
}

func result(r string) step { return says(`{"jsonrpc":"2.0","id":$ID,"result":` + r + `}`) }
func failure(e string) step {
	return says(`{"jsonrpc":"2.0","id":$ID,"error":` + e + `}`)
}
func code(n int) step          { return failure(fmt.Sprintf(`{"code":%d,"message":"no"}`, n)) }
func refused(list string) step { return failure(`{"code":-32022,"message":"no","data":` + list + `}`) }
func requires(c string) step {
	return failure(`{"code":-32021,"message":"no","data":{"requiredCapabilities":` + c + `}}`)
}

// under is a message with this id, as it stands in JSON; "" is no id at all.
func under(id, member string) step {
	if id != "" {
		id = `"id":` + id + `,`
	}
	return says(`{"jsonrpc":"2.0",` + id + member + `}`)
}

const (
	usable      = `{"supported":["2026-07-28"]}`
	validResult = `"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{},"ttlMs":1,"cacheScope":"public"}`
	modernError = `"error":{"code":-32022,"message":"no"}`
	oldError    = `"error":{"code":-32601,"message":"no"}`
)

func same(name, source, outcome string, modern bool, steps ...step) row {
	return row{name, source, steps, outcome, outcome, modern}
}

func discoverRows() []row {
	const modern, broken, none = "modern 2026-07-28", "closed broken_answer", "closed no_common_version"
	valid := func(members string) step { return result(`{"resultType":"complete",` + members + `}`) }
	return []row{
		same("DiscoverResult", seedProbe, modern, true, says(discoverResult)),
		same("DiscoverResult without tools", specDiscover, modern, true, says(noToolsResult)),
		same("DiscoverResult with members nobody knows", specDiscover, modern, true,
			valid(`"supportedVersions":["2026-07-28"],"capabilities":{"x":1},"ttlMs":0,"cacheScope":"private","more":[1]`)),
		same("DiscoverResult with newer and older versions too", specVersion, modern, true,
			valid(`"supportedVersions":["2027-01-01","2026-07-28","2025-11-25"],"capabilities":{},"ttlMs":0,"cacheScope":"private"`)),
		same("DiscoverResult without cache hints", specCaching, modern+", 2 warnings", true,
			valid(`"supportedVersions":["2026-07-28"],"capabilities":{}`)),
		same("DiscoverResult with a negative ttlMs", specCaching, modern+", 1 warning", true,
			valid(`"supportedVersions":["2026-07-28"],"capabilities":{},"ttlMs":-1,"cacheScope":"public"`)),
		same("DiscoverResult with a textual ttlMs", specCaching, modern+", 1 warning", true,
			valid(`"supportedVersions":["2026-07-28"],"capabilities":{},"ttlMs":"60","cacheScope":"public"`)),
		same("DiscoverResult with an unknown cacheScope", specCaching, modern+", 1 warning", true,
			valid(`"supportedVersions":["2026-07-28"],"capabilities":{},"ttlMs":60,"cacheScope":"shared"`)),
		same("DiscoverResult with newer versions only", specVersion, none, true, valid(`"supportedVersions":["2027-01-01"],"capabilities":{}`)),
		same("DiscoverResult with legacy versions only", seedNoFall, none, true, valid(`"supportedVersions":["2025-11-25"],"capabilities":{}`)),
		same("DiscoverResult without resultType", seedNoType, broken, false, result(`{"supportedVersions":["2026-07-28"],"capabilities":{}}`)),
		same("DiscoverResult with resultType input_required", specDiscover, broken, false,
			result(`{"resultType":"input_required","supportedVersions":["2026-07-28"],"capabilities":{}}`)),
		same("DiscoverResult with resultType that is no string", specDiscover, broken, false,
			result(`{"resultType":true,"supportedVersions":["2026-07-28"],"capabilities":{}}`)),
		same("DiscoverResult without supportedVersions", seedNoProof, broken, false, valid(`"capabilities":{}`)),
		same("DiscoverResult with no version at all", seedNoProof, broken, false, valid(`"supportedVersions":[],"capabilities":{}`)),
		same("DiscoverResult with a version that is no string", seedNoProof, broken, false, valid(`"supportedVersions":["2026-07-28",1],"capabilities":{}`)),
		same("DiscoverResult with one version as a string", seedNoProof, broken, false, valid(`"supportedVersions":"2026-07-28","capabilities":{}`)),
		same("DiscoverResult without capabilities", seedNoProof, broken, false, valid(`"supportedVersions":["2026-07-28"]`)),
		same("DiscoverResult with a list of capabilities", seedNoProof, broken, false, valid(`"supportedVersions":["2026-07-28"],"capabilities":[]`)),
		same("DiscoverResult with capabilities null", seedNoProof, broken, false, valid(`"supportedVersions":["2026-07-28"],"capabilities":null`)),
		same("another result", seedNoProof, broken, false, result(`{"ok":true}`)),
		same("a result that is a list", seedNoProof, broken, false, result(`[]`)),
		same("a result that is a string", seedNoProof, broken, false, result(`""`)),
		same("a result that is false", seedNoProof, broken, false, result(`false`)),
		same("an initialize result", seedNoProof, broken, false, says(legacyResult)),
	}
}

func brokenRows() []row {
	const broken = "closed broken_answer"
	return []row{
		same("both result and error", specAnswers, broken, false, says(`{"jsonrpc":"2.0","id":$ID,"result":{},"error":{"code":-32601,"message":"no"}}`)),
		same("both DiscoverResult and modern error", specAnswers, broken, true, says(`{"jsonrpc":"2.0","id":$ID,`+validResult+`,`+modernError+`}`)),
		same("a result beside error null", specAnswers, broken, false, says(`{"jsonrpc":"2.0","id":$ID,"result":null,"error":null}`)),
		same("neither result nor error", specAnswers, broken, false, says(`{"jsonrpc":"2.0","id":$ID}`)),
		same("Result in capitals", specAnswers, broken, false, says(`{"jsonrpc":"2.0","id":$ID,"Result":{}}`)),
		same("an extra Result beside result", specAnswers, "modern 2026-07-28", true, says(`{"jsonrpc":"2.0","id":$ID,"Result":{},`+validResult+`}`)),
		same("no jsonrpc", specAnswers, broken, false, says(`{"id":$ID,`+validResult+`}`)),
		same("jsonrpc 1.0", specAnswers, broken, false, says(`{"jsonrpc":"1.0","id":$ID,`+oldError+`}`)),
		same("jsonrpc as a number", specAnswers, broken, false, says(`{"jsonrpc":2.0,"id":$ID,"result":{}}`)),
		same("jsonrpc 1.0 with a modern code", specAnswers, broken, true, says(`{"jsonrpc":"1.0","id":$ID,`+modernError+`}`)),
		same("an answer that has a method", specAnswers, broken, false, says(`{"jsonrpc":"2.0","id":$ID,"method":"ping",`+oldError+`}`)),
		same("error null", specAnswers, broken, false, failure(`null`)),
		same("an error that is a string", specAnswers, broken, false, failure(`"no"`)),
		same("an error without a code", specAnswers, broken, false, failure(`{"message":"no"}`)),
		same("an error with a textual code", specAnswers, broken, false, failure(`{"code":"-32601"}`)),
		same("an error with a fractional code", specAnswers, broken, false, failure(`{"code":-32601.5}`)),
		same("a frame beyond limits.frame", lessonProbe, "closed frame_too_large", false, tooLong),
	}
}

func versionRows() []row {
	const again, evidence = "waits for server/discover (version_refused)", "closed modern_evidence"
	return []row{
		same("-32022 with a usable list", seedProbe, again, true, refused(usable)),
		same("-32022 written as -32022.0", seedProbe, again, true, failure(`{"code":-32022.0,"data":`+usable+`}`)),
		same("-32022, then a DiscoverResult", lessonProbe, "modern 2026-07-28", true, refused(usable), says(discoverResult)),
		same("-32022 twice for one version", seedNoFall, "closed version_refused", true, refused(usable), refused(usable)),
		same("-32022, then without a list", seedNoFall, "closed no_version_list", true, refused(usable), code(-32022)),
		same("-32022, then an unrecognised error", seedNoFall, evidence, true, refused(usable), code(-32601)),
		same("-32022, then silence", seedNoFall, evidence, true, refused(usable), silence),
		same("-32022, then the process ends", seedNoFall, evidence, true, refused(usable), exit, spawnNext),
		same("-32022, then an empty result", seedNoFall, evidence, true, refused(usable), result(`{}`)),
		same("-32022, then a broken answer", seedNoFall, "closed broken_answer", true, refused(usable), result(`{"ok":true}`)),
		same("-32022 without data", specErrors, "closed no_version_list", true, code(-32022)),
		same("-32022 with an empty list", specErrors, "closed no_version_list", true, refused(`{"supported":[]}`)),
		same("-32022 with a string for a list", specErrors, "closed no_version_list", true, refused(`{"supported":"2026-07-28"}`)),
		same("-32022 with a list of numbers", specErrors, "closed no_version_list", true, refused(`{"supported":[20260728]}`)),
		same("-32022 with legacy revisions only", seedNoFall, "closed legacy_only", true, refused(`{"supported":["2025-03-26","2025-11-25"]}`)),
		same("-32022 with newer versions only", specVersion, "closed no_common_version", true, refused(`{"supported":["2027-01-01"]}`)),
		same("-32022 with newer and legacy versions", specVersion, "closed no_common_version", true, refused(`{"supported":["2027-01-01","2025-11-25"]}`)),
	}
}

func correctableRows() []row {
	const raise, stamp, missing, evidence = "waits for server/discover (capability_configured)",
		"waits for server/discover (stamped_again)", "closed capability_missing", "closed modern_evidence"
	return []row{
		same("-32021 for what is configured", seedProbe, raise, true, requires(`{"sampling":{}}`)),
		same("-32021 for a part of what is configured", seedProbe, raise, true, requires(`{"elicitation":{"form":{}}}`)),
		same("-32021 met, then a DiscoverResult", seedProbe, "modern 2026-07-28", true, requires(`{"sampling":{}}`), says(discoverResult)),
		same("-32021 again after it was met", seedNoFall, missing, true, requires(`{"sampling":{}}`), requires(`{"sampling":{}}`)),
		same("-32021 for another one afterwards", seedNoFall, missing, true, requires(`{"sampling":{}}`), requires(`{"elicitation":{}}`)),
		same("-32021 met, then silence", seedNoFall, evidence, true, requires(`{"sampling":{}}`), silence),
		same("-32021 met, then the process ends", seedNoFall, evidence, true, requires(`{"sampling":{}}`), exit, spawnNext),
		same("-32021 for what is not configured", seedNoFall, missing, true, requires(`{"roots":{}}`)),
		same("-32021 for more than is configured inside", seedNoFall, missing, true, requires(`{"elicitation":{"form":{},"url":{}}}`)),
		same("-32021 for a value as it is configured", seedProbe, raise, true, requires(`{"experimental":{"flag":true}}`)),
		same("-32021 for another value", seedNoFall, missing, true, requires(`{"experimental":{"flag":false}}`)),
		same("-32021 for another kind of value", seedNoFall, missing, true, requires(`{"sampling":true}`)),
		same("-32021 without data", specErrors, missing, true, code(-32021)),
		same("-32021 with a list of names", specErrors, missing, true, requires(`["sampling"]`)),
		same("-32020", seedProbe, stamp, true, code(-32020)),
		same("-32020 twice", seedNoFall, "closed header_mismatch", true, code(-32020), code(-32020)),
		same("-32020, then a DiscoverResult", seedProbe, "modern 2026-07-28", true, code(-32020), says(discoverResult)),
		same("-32020, then -32022 with a usable list", seedProbe, "waits for server/discover (version_refused)", true, code(-32020), refused(usable)),
		same("-32020, -32021 and -32022, then -32020", seedNoFall, "closed header_mismatch", true,
			code(-32020), requires(`{"sampling":{}}`), refused(usable), code(-32020)),
		same("-32020, then the process ends", seedNoFall, evidence, true, code(-32020), exit, spawnNext),
		same("-32020, then an unrecognised error", seedNoFall, evidence, true, code(-32020), code(-32601)),
		same("-32020, then null", seedNoFall, evidence, true, code(-32020), result(`null`)),
	}
}
