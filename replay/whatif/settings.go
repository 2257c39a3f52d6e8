package whatif

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"waybill/domain"
)

// A Setting is one key of the configuration with another value.
type Setting struct {
	Key   string
	Peer  string // "" for all peers, or where the key is none of a peer
	Value string
}

// setter changes a configuration; an error says what the value must be.
type setter struct {
	about string
	all   func(c *domain.Config, value string) error
	peer  func(p *domain.PeerConfig, value string) error
}

var setters = map[string]setter{
	"collision": {about: "prefix-on-collision, reject-on-collision or prefix-always", all: func(c *domain.Config, v string) error {
		if !slices.Contains([]string{domain.PrefixOnCollision, domain.RejectOnCollision, domain.PrefixAlways}, v) {
			return fmt.Errorf("%q is no policy", v)
		}
		c.Collision = v
		return nil
	}},
	"separator": {about: "one to three of / _ . : -", all: func(c *domain.Config, v string) error {
		if v == "" || len(v) > 3 || strings.Trim(v, "/_.:-") != "" {
			return fmt.Errorf("%q is no separator", v)
		}
		c.Separator = v
		return nil
	}},
	"inflight":       {about: "calls at once", all: func(c *domain.Config, v string) error { return number(&c.Inflight, v) }},
	"moved_window":   {about: "a duration", all: func(c *domain.Config, v string) error { return duration(&c.Moved, v) }},
	"allow_legacy":   {about: "true or false", peer: func(p *domain.PeerConfig, v string) error { return boolean(&p.AllowLegacy, v) }},
	"trust_hints":    {about: "true or false", peer: func(p *domain.PeerConfig, v string) error { return boolean(&p.TrustHints, v) }},
	"resends":        {about: "a number", peer: func(p *domain.PeerConfig, v string) error { return number(&p.Resends, v) }},
	"hung_after":     {about: "a number", peer: func(p *domain.PeerConfig, v string) error { return number(&p.HungAfter, v) }},
	"restarts":       {about: "a number", peer: func(p *domain.PeerConfig, v string) error { return number(&p.Attempts, v) }},
	"input_rounds":   {about: "a number", peer: func(p *domain.PeerConfig, v string) error { return number(&p.InputRounds, v) }},
	"call_timeout":   {about: "a duration", peer: func(p *domain.PeerConfig, v string) error { return duration(&p.CallTimeout, v) }},
	"probe_timeout":  {about: "a duration", peer: func(p *domain.PeerConfig, v string) error { return duration(&p.ProbeTimeout, v) }},
	"input_window":   {about: "a duration", peer: func(p *domain.PeerConfig, v string) error { return duration(&p.InputWindow, v) }},
	"output_schema":  {about: "record or refuse", peer: func(p *domain.PeerConfig, v string) error { return word(&p.RefuseOutput, v, "record", "refuse") }},
	"on_tool_change": {about: "record or quarantine", peer: holdChanged},
	"stale_lists":    {about: "a duration", peer: staleLists},
}

// Keys lists what can be set, with what each takes.
func Keys() []string {
	var out []string
	for key, s := range setters {
		if s.peer != nil {
			key += "[.PEER]"
		}
		out = append(out, key+"="+s.about)
	}
	slices.Sort(out)
	return out
}

// Parse reads KEY=VALUE or KEY.PEER=VALUE.
func Parse(s string) (Setting, error) {
	key, value, ok := strings.Cut(s, "=")
	key, peer, named := strings.Cut(key, ".")
	known, found := setters[key]
	switch {
	case !ok:
		return Setting{}, fmt.Errorf("%q is not of the form KEY=VALUE", s)
	case !found:
		return Setting{}, fmt.Errorf("%q cannot be set; what can: %s", key, strings.Join(Keys(), "; "))
	case named && known.peer == nil:
		return Setting{}, fmt.Errorf("%s is none of a peer", key)
	}
	x := Setting{Key: key, Peer: peer, Value: value}
	probe := domain.Config{Peers: []domain.PeerConfig{{Name: peer, Lists: &domain.ListRules{}}}}
	if err := x.apply(&probe); err != nil {
		return Setting{}, fmt.Errorf("%s: %w; it must be %s", key, err, known.about)
	}
	return x, nil
}

// apply changes a configuration.
func (x Setting) apply(c *domain.Config) error {
	s := setters[x.Key]
	if s.all != nil {
		return s.all(c, x.Value)
	}
	for i := range c.Peers {
		if x.Peer != "" && c.Peers[i].Name != x.Peer {
			continue
		}
		if err := s.peer(&c.Peers[i], x.Value); err != nil {
			return err
		}
	}
	return nil
}

func number(to *int, v string) error {
	n, err := strconv.Atoi(v)
	if err != nil || n < 0 {
		return fmt.Errorf("%q is no number", v)
	}
	*to = n
	return nil
}

// duration sets milliseconds.
func duration(to *int64, v string) error {
	d, err := time.ParseDuration(v)
	if err != nil || d < time.Millisecond {
		return fmt.Errorf("%q is no duration of a millisecond or more", v)
	}
	*to = d.Milliseconds()
	return nil
}

func boolean(to *bool, v string) error { return word(to, v, "false", "true") }

func word(to *bool, v, off, on string) error {
	if v != off && v != on {
		return fmt.Errorf("%q is neither %s nor %s", v, off, on)
	}
	*to = v == on
	return nil
}

func holdChanged(p *domain.PeerConfig, v string) error {
	return listRule(p, func(r *domain.ListRules) error { return word(&r.Hold, v, "record", "quarantine") })
}

func staleLists(p *domain.PeerConfig, v string) error {
	return listRule(p, func(r *domain.ListRules) error { return duration(&r.Stale, v) })
}

// listRule changes the rules of a peer's lists, where the log's version had any.
func listRule(p *domain.PeerConfig, f func(*domain.ListRules) error) error {
	rules := domain.ListRules{}
	if p.Lists != nil {
		rules = *p.Lists
	}
	err := f(&rules)
	if p.Lists != nil {
		p.Lists = &rules
	}
	return err
}
