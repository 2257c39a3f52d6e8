#!/bin/sh
# Lists the tools and calls one, with the nats command line.
#   NATS_URL       where the server is
#   WAYBILL_KEY    the seed of the host, as waybill init or waybill host add wrote it
#   WAYBILL_HOST   the name of the host, local if unset
set -eu
host=${WAYBILL_HOST:-local}

# ask VERB BODY sends one request. The reply goes to the inbox of the host: any other is dropped unanswered.
ask() {
	nats --server "$NATS_URL" --nkey "$WAYBILL_KEY" --inbox-prefix "_INBOX.$host" \
		request --timeout 1m --header "traceparent:00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01" \
		"waybill.v1.$1.$host" "$2"
}

ask tools ''
# With the key the call can be sent again when no answer came: the tool runs once.
ask call '{"tool": "search", "arguments": {"query": "tea"}, "idempotency_key": "order 17"}'

# What cannot be done is said in the body, and in the headers Nats-Service-Error and Nats-Service-Error-Code.
ask call '{"tool": "no such tool"}'
