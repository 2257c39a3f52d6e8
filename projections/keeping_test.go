package projections_test

import (
	"fmt"

	"waybill/domain"
)

// keeping is what a history says of lists that are kept by rules.
type keeping struct {
	rules    *domain.ListRules   // of every peer; nil: lists are read once
	contexts map[string][]string // of each peer
	words    map[string]string   // with which each peer describes its tools
	private  bool                // lists are
	failing  string              // the peer that cannot list
	subs     map[string]int64    // subscriptions, by peer and context
}

func (h *history) acknowledge(x domain.Send) {
	if h.subs == nil {
		h.subs = map[string]int64{}
	}
	h.subs[x.Peer+x.Context] = x.RequestID
	f := fmt.Appendf(nil, `{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"notifications":{"toolsListChanged":true},`+
		`"_meta":{"io.modelcontextprotocol/subscriptionId":%d}}}`, x.RequestID)
	h.tell(domain.SubscriptionAcknowledged{At: x.At, Context: x.Context, RequestID: x.RequestID, Frame: domain.RefTo(f)}, f)
}

func (h *history) at(peer string) domain.At {
	return domain.At{Peer: peer, Incarnation: h.state.Peer(peer).Incarnation}
}

// changed has a peer say that its tools have changed.
func (h *history) changed(peer, space string) {
	h.tell(domain.ListChanged{At: h.at(peer), Context: space, Subscription: h.subs[peer+space], Count: 1}, nil)
}

// approve has an operator approve a tool as it is.
func (h *history) approve(name string) {
	h.t.Helper()
	for _, e := range h.state.Tools("", "", 0, 0).Tools {
		if e.Canonical == name && e.Held != nil {
			h.tell(domain.OperatorCommanded{By: "ann", Verb: domain.VerbApprove, Tool: name, Digest: e.Held.Now}, nil)
			return
		}
	}
	h.t.Fatalf("%s is not in quarantine", name)
}

// keepLists is two lives of the service in which lists change, tools are held and
// approved, and a peer lists for two contexts; and two in which the second context
// is gone again, and a peer comes back as it was.
func (h *history) keepLists() {
	h.t.Helper()
	h.rules = &domain.ListRules{Interval: 100, Stale: 3_600_000, Listen: 1000, Hold: true}
	h.contexts = map[string][]string{"beta": {"ann", "default"}}
	h.words, h.private = map[string]string{"alpha": "first", "beta": "of beta"}, true
	h.tools = map[string][]string{"alpha": {"search", "alpha_only"}, "beta": {"search", "sum"}, "betaann": {"search", "anns"}, "gamma": {"Sum"}}
	h.start(domain.PrefixOnCollision, "alpha", "beta", "gamma")
	h.holdTools()
	h.failing = "beta"
	h.changed("beta", "ann")
	h.failing = ""
	h.tell(domain.ListDue{At: h.at("beta"), Context: "ann"}, nil)
	h.tell(domain.SubscriptionEnded{At: h.at("beta"), RequestID: h.subs["beta"], How: domain.EndedAnswered}, nil)
	h.tell(domain.SubscriptionDue{At: h.at("beta")}, nil)
	h.tell(domain.PeerExited{At: h.at("beta"), Status: 1, Cause: "exited"}, nil)
	h.tell(domain.ServiceStopped{Reason: "test"}, nil)

	h.rules = &domain.ListRules{Interval: 100, Stale: 1000, Listen: 1000} // nothing is held any more
	h.start(domain.PrefixOnCollision, "alpha", "beta", "gamma")
	h.private = false
	h.changed("beta", "")
	h.changed("beta", "ann") // newer than that of the default context, which is now served it
	h.changed("beta", "")
	h.changed("beta", "")
	h.private = true
	h.changed("beta", "") // ann is served its own again
	h.private = false
	h.changed("beta", "ann")
	h.changed("beta", "ann")
	h.tell(domain.ServiceStopped{Reason: "test"}, nil)

	h.contexts = nil
	h.words["alpha"] = "fourth"
	h.start(domain.PrefixOnCollision, "alpha", "gamma")
	h.mute = true
	h.start(domain.PrefixOnCollision, "gamma") // which never lists, so that alpha keeps its names, and has no list any more
	h.mute = false
	h.start(domain.PrefixOnCollision, "alpha", "gamma")
	h.tell(domain.ServiceStopped{Reason: "test"}, nil)
	h.tools = map[string][]string{"alpha": {"search", "alpha_only"}, "beta": {"search", "sum"}}
	h.keeping = keeping{}
}

// holdTools has tools change, come to be contested and be approved.
func (h *history) holdTools() {
	h.t.Helper()
	h.words["alpha"] = "second"
	h.changed("alpha", "") // both of its tools are held
	h.approve("search")
	h.words["alpha"] = "third"
	h.tools["beta"] = []string{"search", "sum", "late"}
	h.tell(domain.ToolsRead{Reads: 2}, nil) // finds both
	h.words["alpha"] = "second"
	h.changed("alpha", "") // search is again what was approved
	h.approve("alpha_only")
	h.tell(domain.ToolsRead{Reads: 1}, nil) // finds nothing new
	h.tools["alpha"] = []string{"alpha_only"}
	h.changed("alpha", "") // search moves to beta
	h.tools["alpha"] = []string{"alpha_only", "anns"}
	h.changed("alpha", "") // anns is contested for ann alone
	h.tools["gamma"] = []string{"Sum", "anns"}
	h.changed("gamma", "") // and now for the default context, and by one more for ann
	h.changed("beta", "ann")
	h.tools["beta"] = h.tools["betaann"]
	h.changed("beta", "") // which was another list, and is now like that of ann
	h.tools["beta"] = []string{"search", "sum", "late"}
	h.changed("beta", "")
}
