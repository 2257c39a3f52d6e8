#!/bin/sh
# Reads events that were published before, with the nats command line.
#   NATS_URL       where the server is
#   WAYBILL_KEY    the seed, auditor.nk or dashboard.nk
#   WAYBILL_USER   auditor or dashboard
#   WAYBILL_LOG    the id of the log
set -eu
user() { nats --server "$NATS_URL" --nkey "$WAYBILL_KEY" --inbox-prefix "_INBOX.$WAYBILL_USER" "$@"; }

case $WAYBILL_USER in
dashboard)
	# All of the public stream. Without --terminate-at-end it goes on with what comes.
	user sub --stream "WAYBILL_${WAYBILL_LOG}_PUBLIC" --all --terminate-at-end --raw
	;;
auditor)
	# One event by its seq, with its headers; from a seq on; of a time, and of peers only; the newest signed head.
	user stream get "WAYBILL_$WAYBILL_LOG" 1
	user sub --stream "WAYBILL_$WAYBILL_LOG" --start-sequence 3 --terminate-at-end --raw
	user sub --stream "WAYBILL_$WAYBILL_LOG" --since 1h --terminate-at-end --raw "waybill.v1.events.$WAYBILL_LOG.peer.>"
	user stream get "WAYBILL_${WAYBILL_LOG}_CHECKPOINTS" --last-for "waybill.v1.checkpoint.$WAYBILL_LOG"
	;;
esac
