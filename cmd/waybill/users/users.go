package users

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"text/tabwriter"

	"waybill/cmd/waybill/config"
	"waybill/domain"
	"waybill/harness/bus/access"
)

// Wanted is a user to be made.
type Wanted struct {
	File    *config.File
	Dir     string // of the credentials
	Prefix  string
	Log     string // id
	Role    access.Role
	Name    string
	Context string // authorization context of a host; empty where nothing is wanted
	Running bool   // the service runs
}

// Added is what has been made. Its JSON form is a contract.
type Added struct {
	access.UserInfo
	Made []string `json:"made"` // files, nats-accounts.conf where it was written anew
	Next []string `json:"next"` // what is still to be done, in words
}

// Check says what is wrong with the names.
func (w Wanted) Check() error {
	return errors.Join(access.CheckUser(w.Role, w.Name), checkContext(w.File, w.Context))
}

// Add makes what is missing of the user's key, its context of the nats command line and
// the configuration of outside servers. An error that wraps access.ErrStaleAccounts is
// beside what was made, any other instead of it.
func (w Wanted) Add() (Added, error) {
	made, stale := access.AddUser(w.Dir, w.Prefix, w.Log, w.Role, w.Name)
	if stale != nil && !errors.Is(stale, access.ErrStaleAccounts) {
		return Added{}, stale
	}
	contexts, err := access.WriteContexts(w.Dir, Reach(w.File))
	if err != nil {
		return Added{}, err
	}
	user, err := find(w.Dir, w.Role, w.Name)
	if err != nil {
		return Added{}, err
	}
	return Added{user, append(append([]string{}, made...), contexts...), w.next(len(made) > 0 && stale == nil)}, stale
}

// Print tells people what has been made.
func (d Added) Print(out io.Writer) error {
	var b strings.Builder
	for _, m := range d.Made {
		fmt.Fprintf(&b, "made %s\n", m)
	}
	if len(d.Made) == 0 {
		b.WriteString("nothing was missing\n")
	}
	fmt.Fprintf(&b, "%s %s\npublic key %s\ninbox prefix %s\n", d.Role, d.Name, d.PublicKey, d.Inbox)
	for _, n := range d.Next {
		fmt.Fprintf(&b, "next: %s\n", n)
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// next says what is to be done before the user can do anything.
func (w Wanted) next(fresh bool) []string {
	list := []string{}
	if w.Role == access.RoleHost {
		list = append(list, hostStep(w.File, w.Name, w.Context)...)
	}
	switch {
	case !fresh:
	case w.File.NATS.URL != "" && w.Role != access.RoleHost:
		list = append(list, "have the NATS server load "+filepath.Join(w.Dir, access.AccountsFile)+" again, twice (nats-server --signal reload): what the new account may read is linked the second time; or restart it")
	case w.File.NATS.URL != "":
		list = append(list, "have the NATS server load "+filepath.Join(w.Dir, access.AccountsFile)+" again (nats-server --signal reload)")
	case w.Running:
		list = append(list, "restart the service: its server knows the users that there were when it was started")
	}
	return list
}

// hostStep says what is missing in the section hosts.
func hostStep(f *config.File, name, context string) []string {
	line := fmt.Sprintf("%s: {}", name)
	if context != "" {
		line = fmt.Sprintf("%s: {context: %s}", name, context)
	}
	for _, h := range f.Hosts {
		if h.Name == name && (context == "" || h.Context == context) {
			return nil
		}
		if h.Name == name {
			return []string{fmt.Sprintf("under hosts in the configuration, change the context of %s from %s to %s", name, h.Context, context)}
		}
	}
	switch {
	case len(f.Hosts) > 0:
		return []string{"under hosts in the configuration, add " + line + "; a host that is not named there may use nothing"}
	case context != "" && context != domain.DefaultContext:
		return []string{fmt.Sprintf("in the configuration, write hosts: {%s: {}, %s}; from then on hosts that are not named there may use nothing", access.LocalHost, line)}
	}
	return nil
}

// checkContext refuses a context that no peer knows.
func checkContext(f *config.File, context string) error {
	if context == "" || context == domain.DefaultContext {
		return nil
	}
	for _, p := range f.Peers {
		if p.HTTP == nil {
			continue
		}
		for _, c := range p.HTTP.Contexts {
			if c == context {
				return nil
			}
		}
	}
	return fmt.Errorf("--context %q: no peer has an authorization for it", context)
}

// PrintList tells people which users there are, one a line.
func PrintList(out io.Writer, list []access.UserInfo) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, u := range list {
		fmt.Fprintf(w, "%s\t%s\t%s\n", u.Name, u.PublicKey, u.Seed)
	}
	return w.Flush()
}

// find finds a user by the name it was made with.
func find(dir string, role access.Role, name string) (access.UserInfo, error) {
	list, err := access.ListUsers(dir, role)
	for _, u := range list {
		if strings.TrimSuffix(filepath.Base(u.Seed), ".nk") == access.UserFile(role, name) {
			return u, nil
		}
	}
	return access.UserInfo{}, errors.Join(err, fmt.Errorf("the credentials of the %s %q are gone again", role, name))
}

// Reach says how clients on this machine reach NATS.
func Reach(f *config.File) access.Reach {
	if f.NATS.URL != "" {
		return access.Reach{URL: f.NATS.URL, CA: f.NATS.TLS.CA, Cert: f.NATS.TLS.Cert, Key: f.NATS.TLS.Key}
	}
	return access.ReachOf(f.NATS.Listen, f.NATS.TLS.Cert)
}
