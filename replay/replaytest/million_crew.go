package replaytest

import (
	"fmt"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"waybill/domain"
)

// member is one peer of the twenty, with what its list says now.
type member struct {
	*Peer
	name    string
	number  int
	version int  // of its list
	broken  bool // its next list is none
	legacy  bool
}

// crew says of each peer what it is: M modern, L legacy by allow_legacy, H over HTTP, C
// with authorization contexts of its own, Q its changed tools are held, P lists by
// pages, K its payloads are kept, S shows modern behaviour early, N is never ready.
var crew = []struct{ name, traits string }{
	{"archive", "L"}, {"books", "M"}, {"calc", "M"}, {"crm", "LH"}, {"docs", "MP"}, {"fax", "LH"}, {"files", "MK"},
	{"geo", "M"}, {"ghost", "N"}, {"ledger", "L"}, {"mail", "MHCQ"}, {"notes", "M"}, {"payroll", "L"}, {"search", "MH"},
	{"stray", "N"}, {"tape", "L"}, {"tickets", "MHC"}, {"vault", "MQ"}, {"weather", "MH"}, {"wiki", "MS"},
}

var (
	verbs  = []string{"get", "find", "list", "add", "put", "drop"}
	shared = []string{"search", "status", "lookup", "export", "Search", "look_up"}
)

func millionCrew(m *million) []*member {
	var out []*member
	for i, c := range crew {
		has := func(trait string) bool { return strings.Contains(c.traits, trait) }
		p := &member{name: c.name, number: i, legacy: has("L"), Peer: &Peer{Modern: has("M"), HTTP: has("H"), Stray: has("S"),
			Announces: true, Grants: map[string]string{"": `"toolsListChanged":true`, "alice": `"toolsListChanged":true`}}}
		switch {
		case has("P"):
			p.Pages = [][]string{{"docs_get", "search"}, {"docs_find", "docs_list"}, {"docs_add"}}
		default:
			p.Lists = func(context string, _ int) string { return p.tools(context) }
		}
		if c.name == "calc" { // which says that it tells, and does not
			p.Grants = map[string]string{"": ``}
		}
		out = append(out, p)
	}
	return out
}

// tools is the list of a peer as it is now: some of its own, some that others have as
// well, and with each version one that is not what it was.
func (p *member) tools(context string) string {
	if p.broken {
		p.broken = false
		return `"resultType":"complete","tools":"none"`
	}
	var list []string
	for i, verb := range verbs {
		text := fmt.Sprintf("Lets %s %s what it holds.", p.name, verb)
		if i == p.version%len(verbs) {
			text += fmt.Sprintf(" As of version %d.", p.version)
		}
		list = append(list, millionTool(p.name+"_"+verb, text))
	}
	for i, name := range shared {
		if (p.number+i+p.version/3)%5 == 0 {
			list = append(list, millionTool(name, "Does what others do, too."))
		}
	}
	if p.number%3 == p.version%2 {
		list = append(list, millionTool("roaming", "Moves on."))
	}
	if p.version%4 == 3 {
		list = append(list, fmt.Sprintf(`{"name":"bad name %d"}`, p.version), millionTool("hidden", fmt.Sprintf("Look\u200b it up, %d.", p.version)))
	}
	if context != "" {
		list = append(list, millionTool(context+"_only", "Theirs."))
	}
	cache := private
	switch {
	case p.legacy:
		cache = ""
	case p.number%2 == 0:
		cache = `"resultType":"complete","ttlMs":60000,"cacheScope":"public",`
	}
	return cache + `"tools":[` + strings.Join(list, ",") + `]`
}

func millionTool(name, text string) string {
	return fmt.Sprintf(`{"name":%q,"description":%q,"inputSchema":{"type":"object","properties":{"query":{"type":"string"},"limit":{"type":"integer"}},"required":["query"]}}`, name, text)
}

// hosts of the long log, with their contexts.
var millionHosts = []domain.HostConfig{
	{Name: "agent", Context: domain.DefaultContext},
	{Name: "ben", Context: "bob"},
	{Name: "ci", Context: "alice", Peers: []string{"books", "docs", "files", "mail", "notes", "tickets"}},
	{Name: "local", Context: "alice"},
}

// config is the configuration of the n-th life.
func (m *million) config(n int64) domain.Config {
	var names []string
	for _, p := range m.crew {
		names = append(names, p.name)
	}
	c := Config(domain.PrefixOnCollision, names...)
	c.Partial, c.Moved, c.Hosts, c.Retention = true, 20_000+n%2, millionHosts, 3_600_000
	for i := range c.Peers {
		p := &c.Peers[i]
		traits := crew[i].traits
		p.AllowLegacy = strings.Contains(traits, "L")
		p.Capabilities = jsontext.Value(`{"elicitation":{}}`)
		p.ListTimeout, p.CallLimit, p.IdleTimeout = 7_000, 120_000, 20_000
		p.Resends, p.InputRounds, p.InputWindow, p.Inflight = 2, 2, 600_000, 8
		p.HungAfter, p.HealthEvery, p.HealthWithin = 2, 30_000, 5_000
		p.Attempts, p.Quarantine = 3, 120_000
		p.Repeatable = []string{p.Name + "_get"}
		p.Keep = strings.Contains(traits, "K")
		p.Lists = &domain.ListRules{Interval: 1_000, Stale: 60_000, Listen: 5_000, Hold: strings.Contains(traits, "Q")}
		if strings.Contains(traits, "H") {
			p.Transport, p.Command, p.Endpoint = domain.TransportHTTP, "", "https://"+p.Name+".example/mcp"
		}
		if strings.Contains(traits, "C") {
			p.Contexts = []string{"alice", "bob"}
			p.Credentials = map[string]string{"alice": "alice-token", "bob": "bob-token"}
		}
	}
	return c
}

// up returns a peer whose era is known, over HTTP or not; nil where none was met.
func (m *million) up(http bool) *member {
	for range 40 {
		p := pick(&m.chance, m.crew)
		if s := m.State.Peer(p.name); p.HTTP == http && s.Era != domain.EraUnknown {
			return p
		}
	}
	return nil
}

// any is up of either kind.
func (m *million) any() *member { return m.up(m.chance.below(3) == 0) }
