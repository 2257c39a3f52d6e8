package harness

import "waybill/domain"

// Refused is the reply to a call that never reached the loop: nothing was
// recorded for it and nothing ran.
func Refused(code domain.Code, reason, log string) Reply {
	return Reply{Status: domain.StatusRefused, Code: code, Ran: domain.RanNo, Reason: reason, Seqs: []int64{}, Log: log}
}
