package main

import (
	"context"

	"github.com/go-json-experiment/json"

	"waybill/cmd/waybill/text"
	"waybill/domain"
	"waybill/harness/bus"
	"waybill/projections"
)

// toolsReply is the answer to the verb tools, and what waybill tools prints as JSON.
type toolsReply struct {
	Log string `json:"log"`
	toolList
	Next string `json:"next,omitempty"` // there are more after this one
}

// toolList is domain.ToolList with the names of its members.
type toolList struct {
	Context    string             `json:"context"`
	Generation int64              `json:"generation"`
	Digest     string             `json:"digest,omitempty"`
	Tools      []domain.ToolEntry `json:"tools"`
	Stale      []string           `json:"stale"`   // peers whose list is served although it may have changed
	Missing    []string           `json:"missing"` // peers of which there is no list
}

// keep keeps the first n tools and says where to go on.
func (r *toolsReply) keep(n int) {
	r.Tools = r.Tools[:n]
	r.Next = r.Tools[n-1].Canonical
}

// shrink keeps the first half of the tools.
func (r *toolsReply) shrink() bool {
	if len(r.Tools) < 2 {
		return false
	}
	r.keep(len(r.Tools) / 2)
	return true
}

// mostTools bounds the tools of one answer; how many fit depends on their size.
const mostTools = 4096

// fit keeps about as many tools as a message of so many bytes holds: most of what
// is encoded then need not be encoded again.
func (r *toolsReply) fit(most int) {
	size := 0
	for i, e := range r.Tools {
		size += len(e.Definition) + 4*len(e.Canonical) + 256
		if e.Held != nil {
			size += len(e.Held.Definition)
		}
		if i > 0 && size > most || i == mostTools {
			r.keep(i)
			return
		}
	}
}

// tools answers with the tools after the one the request names, as many as fit.
func (s *server) tools(ctx context.Context, req *bus.Request) (any, error) {
	var ask struct {
		After string `json:"after"`
	}
	if len(req.Data) > 0 && json.Unmarshal(req.Data, &ask) != nil {
		ask.After = "" // what cannot be read asks for the beginning
	}
	list, err := s.engine.ReadToolsFor(ctx, req.Host, ask.After, mostTools+1)
	r := &toolsReply{Log: s.log.ID(), toolList: toolList(list)}
	r.fit(s.service.MaxReply())
	return r, err
}

// allTools asks for the tools, page by page. A namespace that changes between
// two pages is read again from the beginning.
func (r *remote) allTools(ctx context.Context, into *toolsReply) error {
	for after := ""; ; {
		page, err := r.toolsAfter(ctx, after)
		if err != nil {
			return err
		}
		if after != "" && page.Digest != into.Digest {
			into.Tools, after = nil, ""
			continue
		}
		page.Tools = append(into.Tools, page.Tools...)
		*into, after = page, page.Next
		if into.Next = ""; after == "" {
			return nil
		}
	}
}

func (r *remote) toolsAfter(ctx context.Context, after string) (page toolsReply, err error) {
	body, err := json.Marshal(map[string]string{"after": after})
	if err != nil {
		return page, err
	}
	err = r.ask(ctx, "tools", body, &page)
	return page, err
}

// tool asks for the tool of a canonical name; nil if there is none. It asks for
// what comes after a name that sorts right before it.
func (r *remote) tool(ctx context.Context, name string) (*domain.ToolEntry, error) {
	last := len(name) - 1
	page, err := r.toolsAfter(ctx, name[:last]+string(rune(name[last]-1))+"\x7f")
	return find(page.Tools, name), err
}

func find(tools []domain.ToolEntry, name string) *domain.ToolEntry {
	for i := range tools {
		if tools[i].Canonical == name {
			return &tools[i]
		}
	}
	return nil
}

// toolsCmd prints the tools where no verb is given.
type toolsCmd struct {
	List    listToolsCmd `cmd:"" default:"withargs" help:"Print the tools that can be called."`
	Diff    diffCmd      `cmd:"" help:"Print what changed in a tool that is in quarantine."`
	Approve approveCmd   `cmd:"" help:"Let a tool be called again whose definition changed: an operator's decision, on record."`
}

// Help is shown under the usage.
func (toolsCmd) Help() string { return listToolsCmd{}.Help() }

type listToolsCmd struct {
	common
	Host string `default:"local" placeholder:"NAME" help:"As whom; its credentials must be there (local)."`
}

// Help is shown under the usage.
func (listToolsCmd) Help() string {
	return "Example:\n  waybill tools -c waybill.yaml --json\n\n" +
		"Each with its owner, since when the name has this owner, the name that model APIs take where it is another one, what else claims the " +
		"name, and whether it is in quarantine. Without a service, what the log says. --json has the definitions, as the peers wrote them."
}

// Run prints the tools.
func (c listToolsCmd) Run(a *app) error {
	f, err := a.load(c.file())
	if err != nil {
		return err
	}
	var r toolsReply
	err = c.readAs(a, f, c.Host, func(svc *remote) error { return svc.allTools(a.ctx, &r) }, func(v *projections.Views, log string) error {
		list, err := v.Tools(a.ctx, "")
		r = toolsReply{Log: log, toolList: toolList(list)}
		return err
	})
	if err != nil {
		return err
	}
	if c.wantJSON() {
		return a.printJSON(r)
	}
	text.Tools(a.out, domain.ToolList(r.toolList))
	return nil
}
