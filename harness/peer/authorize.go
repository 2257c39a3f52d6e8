package peer

import (
	"context"

	"waybill/domain"
	"waybill/harness/peer/credential"
	"waybill/harness/peer/web"
)

// credentials are the headers that authorize a request of a context, "" for the default one.
func (c *endpoint) credentials(ctx context.Context, authorization string) ([]web.Header, error) {
	k := c.lane.credential(authorization)
	if k == nil {
		return nil, nil
	}
	return k.Header(ctx)
}

// credential returns that of a context; nil for none. What it knows lasts as long as the lane.
func (l *lane) credential(authorization string) *credential.Source {
	if authorization == "" {
		authorization = domain.DefaultContext
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.credentials[authorization]
}

// noteCredential tells the credential of a context how a request fared that was made with it.
func (c *endpoint) noteCredential(authorization string, sent []web.Header, status int) {
	if k := c.lane.credential(authorization); k != nil {
		k.Judge(sent, status)
	}
}
