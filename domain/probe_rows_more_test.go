package domain

import "fmt"

func uncorrelatedRows() []row {
	const evidence, waits = "closed modern_evidence", "waits for server/discover (first_message)"
	rows := []row{
		same("a modern code under another id, then silence", seedNoFall, evidence, true, under("99", modernError), silence),
		same("a modern code under another id, then the process ends", seedNoFall, evidence, true, under("99", modernError), exit, spawnNext),
		same("a modern code under another id, then -32601", seedNoFall, evidence, true, under("99", modernError), code(-32601)),
		same("a modern code under another id, then a DiscoverResult", lessonProbe, "modern 2026-07-28", true,
			under("99", modernError), says(discoverResult)),
		same("a modern code under another id", lessonProbe, waits, true, under("99", modernError)),
		same("a modern code under the id as a string", specAnswers, waits, true, under(`"$ID"`, modernError)),
		same("a modern code under the id as a fraction", specAnswers, waits, true, under(`$ID.0`, modernError)),
		same("a DiscoverResult under another id", lessonProbe, waits, true, under("99", validResult)),
		same("a DiscoverResult under the id as a string, then silence", specAnswers, evidence, true, under(`"$ID"`, validResult), silence),
		same("a DiscoverResult under null, then {}", specAnswers, evidence, true, under("null", validResult), result(`{}`)),
		same("-32601 under another id", specAnswers, waits, false, under("99", oldError)),
		same("-32601 under null", specAnswers, waits, false, under("null", oldError)),
		same("-32601 under no id", specAnswers, waits, false, under("", oldError)),
		same("-32601 under the id as a string", specAnswers, waits, false, under(`"$ID"`, oldError)),
		same("-32601 under the id as a fraction", specAnswers, waits, false, under(`$ID.0`, oldError)),
		same("-32601 under the id in scientific notation", specAnswers, waits, false, under(`1e0`, oldError)),
		same("an empty result under another id", specAnswers, waits, false, under("99", `"result":{}`)),
		same("a broken answer under another id", specAnswers, waits, false, under("99", `"result":{"ok":true}`)),
	}
	for _, n := range []int{-32020, -32021, -32022} {
		member := fmt.Sprintf(`"error":{"code":%d,"message":"no"}`, n)
		rows = append(rows,
			same(fmt.Sprintf("%d under null", n), seedNoFall, evidence, true, under("null", member)),
			same(fmt.Sprintf("%d under no id", n), seedNoFall, evidence, true, under("", member)))
	}
	return rows
}

const waitsInit = "waits for initialize (allow_legacy); initialize sent"

func ambiguousRows() []row {
	one := func(name, source, off string, steps ...step) row {
		return row{name, source, steps, "closed " + off, waitsInit, false}
	}
	rows := []row{
		one("silence", seedLegacy, "ambiguous_silence", silence),
		one("the process ends", seedLegacy, "ambiguous_exit", exit, spawnNext),
		one("null", seedLegacy, "ambiguous_empty", result(`null`)),
		one("an empty object", seedLegacy, "ambiguous_empty", result(`{}`)),
		one("an empty object with white space", seedLegacy, "ambiguous_empty", result("{ \t }")),
		one("a byte order mark before -32601", seedLegacy, "ambiguous_error", says("\xef\xbb\xbf"+notFound)),
	}
	for _, n := range []int{-32601, -32602, -32600, -32603, -32700, -32000, -32002, -32019, -32023, -32042, 0, 1, 404} {
		rows = append(rows, one(fmt.Sprintf("error %d", n), seedNoAllow, "ambiguous_error", code(n)))
	}
	return append(rows,
		row{"the process ends twice", seedLegacy, []step{exit, spawnNext, exit, spawnNext}, "closed ambiguous_exit", "closed legacy_exit; initialize sent", false},
		row{"the process ends, and before it is known the next one does", seedLegacy, []step{exit, exit}, "closed ambiguous_exit", "closed legacy_exit", false},
	)
}

// lateRows are what comes while initialize is under way. With allow_legacy off
// the peer was closed before.
func lateRows() []row {
	const evidence = "closed modern_evidence; initialize sent"
	late := func(name, source, on string, modern bool, steps ...step) row {
		return row{"late: " + name, source, append([]step{silence}, steps...), "closed ambiguous_silence", on, modern}
	}
	lateAs := func(member string) step { return under("$FIRST", member) }
	rows := []row{
		late("DiscoverResult", lessonProbe, "modern 2026-07-28; initialize sent", true, lateAs(validResult)),
		late("DiscoverResult, then an initialize result", lessonProbe, "modern 2026-07-28; initialize sent", true, lateAs(validResult), says(legacyResult)),
		late("DiscoverResult without a common version", lessonProbe, "closed no_common_version; initialize sent", true,
			lateAs(`"result":{"resultType":"complete","supportedVersions":["2027-01-01"],"capabilities":{}}`)),
		late("-32601", seedLegacy, waitsInit, false, lateAs(oldError)),
		late("a broken answer", seedLegacy, waitsInit, false, lateAs(`"result":{"ok":true}`)),
		late("-32601, then an initialize result", seedLegacy, "legacy 2025-11-25; initialize sent", false, lateAs(oldError), says(legacyResult)),
		late("a modern code under another id", seedNoFall, evidence, true, under("99", modernError)),
		late("a modern code under null", seedNoFall, evidence, true, under("null", modernError)),
		late("a modern code under no id", seedNoFall, evidence, true, under("", modernError)),
		late("a DiscoverResult under another id", seedNoFall, evidence, true, under("99", validResult)),
		{"late: a modern error of the process that ended", seedNoFall, []step{exit, saidBefore(`{"jsonrpc":"2.0","id":$FIRST,` + modernError + `}`), spawnNext},
			"closed ambiguous_exit", "closed modern_evidence", true},
		{"late: a modern error of the process that ended, while initialize is under way", seedNoFall,
			[]step{exit, spawnNext, saidBefore(`{"jsonrpc":"2.0","id":$FIRST,` + modernError + `}`)}, "closed ambiguous_exit", evidence, true},
		{"late: -32601 of the process that ended", seedLegacy, []step{exit, saidBefore(`{"jsonrpc":"2.0","id":$FIRST,` + oldError + `}`), spawnNext},
			"closed ambiguous_exit", waitsInit, false},
	}
	for _, n := range []int{-32020, -32021, -32022} {
		rows = append(rows, late(fmt.Sprint(n), seedNoFall, evidence, true, lateAs(fmt.Sprintf(`"error":{"code":%d,"message":"no"}`, n))))
	}
	return rows
}

// initializeRows are the answers to the one initialize.
func initializeRows() []row {
	const invalid, revision, modern = "legacy_invalid", "legacy_revision", "modern_evidence"
	wrong := func(name, source, code string, steps ...step) row {
		return row{"initialize: " + name, source, append([]step{silence}, steps...), "closed ambiguous_silence",
			"closed " + code + "; initialize sent", code == modern}
	}
	answer := func(version, capabilities, info string) step {
		return result(`{"protocolVersion":` + version + `,"capabilities":` + capabilities + `,"serverInfo":` + info + `}`)
	}
	const v, info = `"2025-11-25"`, `{"name":"a","version":"1"}`
	rows := []row{
		{"initialize: a valid result", seedLegacy, []step{silence, says(legacyResult)}, "closed ambiguous_silence", "legacy 2025-11-25; initialize sent", false},
		{"initialize: an older configured revision", lessonLegacy, []step{silence, answer(`"2024-11-05"`, `{}`, info)}, "closed ambiguous_silence", "legacy 2024-11-05; initialize sent", false},
		{"initialize: a valid result of a second process", seedLegacy, []step{exit, spawnNext, says(legacyResult)}, "closed ambiguous_exit", "legacy 2025-11-25; initialize sent", false},
		{"initialize: a result under another id", lessonAllow, []step{silence, under("99", `"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":`+info+`}`)},
			"closed ambiguous_silence", waitsInit, false},
		{"initialize: a result under the id as a string", lessonAllow, []step{silence, under(`"$ID"`, `"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":`+info+`}`)},
			"closed ambiguous_silence", waitsInit, false},
		wrong("a revision that is not configured", seedLegacy, revision, answer(`"2025-03-26"`, `{}`, info)),
		wrong("a revision nobody knows", seedNoProof, revision, answer(`"2023-01-01"`, `{}`, info)),
		wrong("the modern revision", seedNoProof, revision, answer(`"2026-07-28"`, `{}`, info)),
		wrong("a revision with a space", seedNoProof, revision, answer(`"2025-11-25 "`, `{}`, info)),
		wrong("no revision", lessonAllow, invalid, result(`{"capabilities":{},"serverInfo":`+info+`}`)),
		wrong("a revision that is no string", lessonAllow, invalid, answer(`20251125`, `{}`, info)),
		wrong("no capabilities", lessonAllow, invalid, result(`{"protocolVersion":"2025-11-25","serverInfo":`+info+`}`)),
		wrong("a list of capabilities", lessonAllow, invalid, answer(v, `[]`, info)),
		wrong("capabilities null", lessonAllow, invalid, answer(v, `null`, info)),
		wrong("no serverInfo", lessonAllow, invalid, result(`{"protocolVersion":"2025-11-25","capabilities":{}}`)),
		wrong("serverInfo that is a string", lessonAllow, invalid, answer(v, `{}`, `"a 1"`)),
		wrong("no name", lessonAllow, invalid, answer(v, `{}`, `{"version":"1"}`)),
		wrong("an empty name", lessonAllow, invalid, answer(v, `{}`, `{"name":"","version":"1"}`)),
		wrong("a name that is no string", lessonAllow, invalid, answer(v, `{}`, `{"name":1,"version":"1"}`)),
		wrong("no version", lessonAllow, invalid, answer(v, `{}`, `{"name":"a"}`)),
		wrong("an empty version", lessonAllow, invalid, answer(v, `{}`, `{"name":"a","version":""}`)),
		wrong("a version that is no string", lessonAllow, invalid, answer(v, `{}`, `{"name":"a","version":1}`)),
		wrong("both result and error", lessonAllow, invalid, says(`{"jsonrpc":"2.0","id":$ID,"result":{},"error":{"code":1,"message":""}}`)),
		wrong("neither result nor error", lessonAllow, invalid, says(`{"jsonrpc":"2.0","id":$ID}`)),
		wrong("no jsonrpc", lessonAllow, invalid, says(`{"id":$ID,"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":`+info+`}}`)),
		wrong("jsonrpc 1.0", lessonAllow, invalid, says(`{"jsonrpc":"1.0","id":$ID,"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":`+info+`}}`)),
		wrong("a result that has a method", lessonAllow, invalid, says(`{"jsonrpc":"2.0","id":$ID,"method":"x","result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":`+info+`}}`)),
		wrong("null", seedNoProof, invalid, result(`null`)),
		wrong("an empty object", seedNoProof, invalid, result(`{}`)),
		wrong("a list", seedNoProof, invalid, result(`[1]`)),
		wrong("an error", lessonAllow, "legacy_error", code(-32602)),
		wrong("an error without a code", lessonAllow, "legacy_error", failure(`{}`)),
		wrong("-32022", seedNoFall, modern, refused(usable)),
		wrong("-32021", seedNoFall, modern, requires(`{"sampling":{}}`)),
		wrong("-32020", seedNoFall, modern, code(-32020)),
		wrong("a DiscoverResult", seedNoFall, modern, says(discoverResult)),
		wrong("silence", lessonAllow, "legacy_silence", silence),
		wrong("the process ends", lessonAllow, "legacy_exit", exit, spawnNext),
		wrong("a frame beyond limits.frame", lessonAllow, "frame_too_large", tooLong),
	}
	return rows
}
