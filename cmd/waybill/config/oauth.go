package config

import (
	"fmt"
	"slices"
	"strings"

	"waybill/cmd/waybill/config/yamldoc"
)

const noOAuth = "obtaining tokens is the work of another program: have it provide a token as a file, a variable or a command, " +
	"name that under authorizations with token_file, token_env or token_command, and take this block out"

// refuseOAuth reports such a block at the top, and anywhere in a peer or an
// authorization, and takes it out. What is only called so is none.
func refuseOAuth(d *yamldoc.Document, root *yamldoc.Node) {
	if root == nil {
		return
	}
	dropOAuth(d, root, "")
	for _, top := range root.Entries {
		if top.Key != "peers" && top.Key != "authorizations" {
			continue
		}
		for _, e := range top.Value.Entries {
			searchOAuth(d, e.Value, yamldoc.Join(top.Key, e.Key))
		}
		if top.Key == "authorizations" {
			top.Value.Entries = slices.DeleteFunc(top.Value.Entries, func(e yamldoc.Entry) bool {
				return isOAuth(e.Key) && !authorizes(e.Value) && failOAuth(d, e, top.Key)
			})
		}
	}
}

// authorizes reports a mapping that says where a token or a header comes from.
func authorizes(n *yamldoc.Node) bool {
	return slices.ContainsFunc(n.Entries, func(e yamldoc.Entry) bool {
		return e.Key == "headers" || slices.Contains(tokenKeys, e.Key)
	})
}

func isOAuth(key string) bool {
	return strings.EqualFold(key, "oauth") || strings.EqualFold(key, "oauth2")
}

func failOAuth(d *yamldoc.Document, e yamldoc.Entry, key string) bool {
	d.Fail(e.Line, e.Column, yamldoc.Join(key, e.Key), "%s", noOAuth)
	return true
}

func dropOAuth(d *yamldoc.Document, n *yamldoc.Node, key string) {
	n.Entries = slices.DeleteFunc(n.Entries, func(e yamldoc.Entry) bool { return isOAuth(e.Key) && failOAuth(d, e, key) })
}

// searchOAuth looks everywhere but among the names that are somebody else's: of
// variables, headers and contexts.
func searchOAuth(d *yamldoc.Document, n *yamldoc.Node, key string) {
	for i, item := range n.Items {
		searchOAuth(d, item, fmt.Sprintf("%s[%d]", key, i))
	}
	dropOAuth(d, n, key)
	for _, e := range n.Entries {
		if e.Key != "set" && e.Key != "headers" && e.Key != "authorizations" {
			searchOAuth(d, e.Value, yamldoc.Join(key, e.Key))
		}
	}
}
