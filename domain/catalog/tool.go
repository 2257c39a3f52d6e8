package catalog

// Tool returns the tool of a local name; false if it is not listed.
func (c Catalog) Tool(local string) (Tool, bool) {
	i, ok := c.index[local]
	if !ok {
		return Tool{}, false
	}
	return c.Tools[i], true
}
