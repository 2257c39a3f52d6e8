package config

// badNATS are the mistakes of the section nats.
var badNATS = []mistake{
	{"nats is no mapping", "nats: here\n" + peers, 1, "nats", "must be a mapping, not text"},
	{"nats url", "nats: {url: 'http://x'}\n" + peers, 1, "nats.url", "must be like nats://"},
	{"nats url with a password", "nats: {url: 'nats://u:p@x:1'}\n" + peers, 1, "nats.url", "use nats.credentials"},
	{"replicas of the embedded server", "nats: {replicas: 3}\n" + peers, 1, "nats.replicas", "nats.url"},
	{"too many replicas", "nats: {url: 'nats://x:1', replicas: 6}\n" + peers, 1, "nats.replicas", "from 1 to 5"},
	{"max_bytes below a message", "nats: {max_bytes: 4KiB}\n" + peers, 1, "nats.max_bytes", "at least 1MiB"},
	{"max_age of a moment", "nats: {max_age: 1s}\n" + peers, 1, "nats.max_age", "or 0 for none"},
	{"max_lag below zero", "nats: {max_lag: -1}\n" + peers, 1, "nats.max_lag", "must be a whole number"},
	{"listen without port", "nats:\n  listen: 127.0.0.1\n" + peers, 2, "nats.listen", "HOST:PORT"},
	{"listen with a bad port", "nats: {listen: 'localhost:70000'}\n" + peers, 1, "nats.listen", "HOST:PORT"},
	{"listen with a bad address", "nats: {listen: '127.0.0.300:1'}\n" + peers, 1, "nats.listen", "HOST:PORT"},
}
