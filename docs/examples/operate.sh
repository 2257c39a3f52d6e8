#!/bin/sh
# What an operator does with the nats command line: looks at the service, and orders.
#   NATS_URL       where the server is
#   WAYBILL_KEY    the seed of the operator, operator.nk
set -eu
op() { nats --server "$NATS_URL" --nkey "$WAYBILL_KEY" --inbox-prefix _INBOX.operator "$@"; }

op micro ls
op micro ping waybill
op micro info waybill
op micro stats waybill

# An order is recorded under the name at the end of its subject. This one changes nothing: the peer is up.
op request --raw --timeout 1m waybill.v1.op.revive.ann '{"peer": "notes"}'
