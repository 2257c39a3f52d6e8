package explain_test

// kinds says on events of which kinds each sentence may rest. A sentence that is not
// here is one that no test knows.
var kinds = map[string][]string{
	"asked": {"call.received"}, "renamed": {"call.received"}, "limits": {"call.received"}, "arguments": {"call.received"}, "input": {"call.received"},
	"command": {"operator.commanded"}, "command_refused": {"operator.commanded", "command.refused"},

	"model_name": {"call.routed"}, "name": {"namespace.merged", "call.routed"}, "owner_since": {"namespace.merged"}, "owner_before": {"namespace.merged"},
	"collision": {"collision.decided"}, "moved": {"name.moved"}, "called_before": {"namespace.merged"}, "name_flagged": {"name.flagged"},
	"tool_changed": {"tool.changed"}, "tool_approved": {"tool.approved"}, "tool_flagged": {"tool.flagged"},

	"list": {"catalog.accepted", "call.routed"}, "list_older": {"catalog.accepted", "catalog.refused"}, "list_read": {"list.requested", "catalog.listed"},
	"list_age": {"catalog.listed", "catalog.accepted", "call.routed", "config.loaded"}, "list_scope": {"catalog.accepted"}, "list_warnings": {"catalog.accepted"},
	"list_changed": {"list.changed"}, "cache": {"cache.decided"},

	"config": {"config.loaded"}, "pinned": {"peer.admitted"}, "incarnation": {"peer.launched", "peer.restarted", "peer.spawned"}, "probe": {"probe.issued"},
	"probe_answer": {"probe.answered"}, "probe_failed": {"probe.failed"}, "legacy_excluded": {"legacy.excluded"}, "era": {"era.determined"},
	"peer_quarantined": {"peer.quarantined"}, "peer_retry": {"peer.restarted"}, "peer_starting": {"peer.launched", "peer.restarted", "peer.spawned"},
	"list_refused": {"catalog.refused"}, "peer_unknown": {"config.loaded", "service.started"}, "peer_ended": {"peer.exited"}, "spawn_failed": {"spawn.failed"},
	"peer_closed": {"peer.refused", "era.refused", "peer.abandoned"}, "peer_abandoned": {"peer.abandoned"},

	"sent": {"call.routed"}, "held": {"call.held"}, "resent": {"call.resent", "call.received", "operator.commanded", "config.loaded"},
	"answered": {"call.answered"}, "state": {"call.answered"}, "failed": {"exchange.failed"}, "deadline": {"deadline.passed"}, "cancelled": {"call.cancelled"},
	"abandoned": {"call.abandoned"}, "wait_passed": {"wait.passed"}, "dropped": {"answer.dropped"}, "service_restarted": {"service.started"},
	"service_stopped": {"service.stopped"}, "settled": {"call.settled"}, "ran": {"call.settled", "call.answered", "exchange.failed", "deadline.passed"},
	"no_end": nil, "erased": {"payloads.erased"}, "other_submissions": {"call.received"},

	"refused": {"call.refused"}, "not_sent": {"call.refused"}, "room": {"config.loaded"}, "room_at_peer": {"config.loaded", "namespace.merged"},
	"config_rejected": {"config.rejected", "config.loaded"}, "earlier_call": {"call.received", "call.settled", "call.refused"}, "owner": {"namespace.merged"},
	"generation": {"namespace.merged"}, "host": {"config.loaded"}, "no_context": {"config.loaded"}, "no_names": {"config.loaded", "service.started"},
	"more_peers": {"config.loaded"}, "name_gone": {"namespace.merged"}, "left_out": {"tool.rejected"}, "near": {"namespace.merged"},
	"other_context": {"namespace.merged"}, "no_list": {"config.loaded"}, "listed": {"catalog.accepted"},

	"key": {"call.received"}, "trace": {"call.received"}, "joined": {"call.received", "call.joined"}, "key_holder": {"call.received", "call.settled", "call.refused"},
	"joined_by": {"call.joined"},

	"moment": nil, "would_be_refused": nil, "with_generation": {"namespace.merged"}, "routable": {"namespace.merged"}, "listed_by": {"catalog.accepted"},
	"other_name": {"namespace.merged"},
}
