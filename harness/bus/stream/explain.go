package stream

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Codes of JetStream's API that the client library has no name for.
const (
	codeAccountLimit    jetstream.ErrorCode = 10002
	codeNoPeers         jetstream.ErrorCode = 10005
	codeNoLeader        jetstream.ErrorCode = 10008
	codeNotLeader       jetstream.ErrorCode = 10009
	codeResources       jetstream.ErrorCode = 10023
	codeMemory          jetstream.ErrorCode = 10028
	codeStorage         jetstream.ErrorCode = 10047
	codeSubjectsOverlap jetstream.ErrorCode = 10065
	codeReplicas        jetstream.ErrorCode = 10074
	codeStore           jetstream.ErrorCode = 10077
	codeNoLimits        jetstream.ErrorCode = 10120
	codeStreamLimit     jetstream.ErrorCode = 10122
)

// explain puts what is wrong, and what a person can do, before the words of NATS for
// it. It returns an error that wraps err, and err itself where there is no more to
// say.
func explain(err error, want jetstream.StreamConfig) error {
	if err == nil {
		return nil
	}
	words := ofConnection(err)
	var api *jetstream.APIError
	if errors.As(err, &api) {
		words = ofJetStream(api, want)
	}
	if words == "" {
		return err
	}
	return fmt.Errorf("%s: %w", words, err)
}

func ofConnection(err error) string {
	switch {
	case errors.Is(err, nats.ErrNoResponders):
		return "nobody answers for JetStream: it is not enabled on the server (jetstream in its configuration), or the cluster has no leader just now"
	case errors.Is(err, nats.ErrMaxPayload):
		return "the server takes no message as large as this: its max_payload must be 1MB"
	case errors.Is(err, nats.ErrReconnectBufExceeded), errors.Is(err, nats.ErrConnectionReconnecting), errors.Is(err, nats.ErrDisconnected):
		return "the connection to NATS is away and tried again"
	case errors.Is(err, nats.ErrTimeout), errors.Is(err, context.DeadlineExceeded):
		return "NATS gives no answer in time: it cannot be reached, a cluster has no leader, or the server's accounts are not those of nats-accounts.conf"
	}
	return ""
}

func ofJetStream(err *jetstream.APIError, want jetstream.StreamConfig) string {
	switch err.ErrorCode {
	case jetstream.JSErrCodeJetStreamNotEnabled:
		return "JetStream is not enabled on the server: set jetstream in its configuration"
	case jetstream.JSErrCodeJetStreamNotEnabledForAccount, codeNoLimits:
		return "JetStream is not enabled for the account of the service: include nats-accounts.conf as waybill init wrote it"
	case codeReplicas:
		return fmt.Sprintf("nats.replicas is %d, and the server is not a cluster of that many", want.Replicas)
	case codeNoPeers:
		return fmt.Sprintf("nats.replicas is %d, and the server is not a cluster of that many, with room on each", want.Replicas)
	case codeNoLeader, codeNotLeader:
		return "the JetStream cluster has no leader just now: too few of its servers are up"
	case codeStore:
		if want.MaxBytes > 0 && strings.Contains(err.Description, "maximum bytes") {
			return fmt.Sprintf("the stream is full: nats.max_bytes is %d; enlarge it there and in the stream (nats stream edit)", want.MaxBytes)
		}
		return "the server cannot store the message: look at its disk and its limits"
	case codeStorage, codeStreamLimit:
		return fmt.Sprintf("the server or the account has no room for a stream of %d bytes: lower nats.max_bytes, or raise max_file_store there", want.MaxBytes)
	case codeResources, codeMemory:
		return "JetStream has no room left: raise max_file_store of the server, or give it a larger disk"
	case codeAccountLimit:
		return "the account of the service has no room left in JetStream: raise its limits on the server"
	}
	return ""
}
