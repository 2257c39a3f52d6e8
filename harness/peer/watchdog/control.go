package watchdog

import (
	"bytes"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// The service and its watchdog talk over one pair of sequenced-packet sockets: a message arrives whole, with its descriptors.

// Program is what a watchdog is to run. It travels in a memory file beside the order, because an environment may be larger than a
// packet.
type Program struct {
	Path      string   // executed as given, without a shell and without a search
	Argv, Env []string // the complete ones
	Dir       string   // working directory; the service's own where empty
}

// order is a message to the watchdog. Without a signal it starts a program, and four descriptors come with it: the
// program's standard input, output and error, and the memory file.
type order struct {
	Child  int64 // names the process in every later message; never used again
	Signal int   // for the whole group
}

// notice is a message from the watchdog. Each order to start gets one notice that it started or failed, and each start one that the
// process and its group are gone.
type notice struct {
	Child  int64
	What   noticeKind
	PID    int
	Errno  int // of a failed start
	Status int // exit status, or -1 where a signal ended it
	Signal int
}

type noticeKind int

const (
	noticeStarted noticeKind = iota + 1
	noticeFailed
	noticeExited
)

const (
	packetSize = 4 << 10
	orderFiles = 4
)

// socketPair returns the service's end and the watchdog's end.
func socketPair() (*net.UnixConn, *os.File, error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("make a socket for the watchdog: %w", err)
	}
	theirs := os.NewFile(uintptr(fds[1]), "watchdog's end")
	ours, err := packetConn(os.NewFile(uintptr(fds[0]), "service's end"))
	if err != nil {
		return nil, nil, errors.Join(err, theirs.Close())
	}
	return ours, theirs, nil
}

// packetConn takes over a socket.
func packetConn(f *os.File) (*net.UnixConn, error) {
	defer f.Close() // FileConn works on a copy
	c, err := net.FileConn(f)
	if err != nil {
		return nil, fmt.Errorf("use the watchdog's socket: %w", err)
	}
	conn, ok := c.(*net.UnixConn)
	if !ok {
		return nil, errors.Join(errors.New("the watchdog's socket is no unix socket"), c.Close())
	}
	return conn, nil
}

// sendPacket writes one message. The descriptors are copied into it: the sender may close its own when it returns.
func sendPacket(c *net.UnixConn, message any, fds ...int) error {
	var b bytes.Buffer
	if err := gob.NewEncoder(&b).Encode(message); err != nil {
		return err
	}
	var rights []byte
	if len(fds) > 0 {
		rights = unix.UnixRights(fds...)
	}
	_, _, err := c.WriteMsgUnix(b.Bytes(), rights, nil)
	return err
}

// receivePacket reads one message into message. The descriptors that came with it are the caller's, and closed on exec.
func receivePacket(c *net.UnixConn, message any) ([]int, error) {
	b := make([]byte, packetSize)
	rights := make([]byte, unix.CmsgSpace(orderFiles*4))
	n, rn, _, _, err := c.ReadMsgUnix(b, rights)
	if err != nil {
		return nil, err
	}
	fds, err := descriptors(rights[:rn])
	if err != nil {
		return nil, err
	}
	return fds, gob.NewDecoder(bytes.NewReader(b[:n])).Decode(message)
}

func descriptors(rights []byte) ([]int, error) {
	messages, err := unix.ParseSocketControlMessage(rights)
	if err != nil {
		return nil, err
	}
	var fds []int
	for _, m := range messages {
		more, err := unix.ParseUnixRights(&m)
		if err != nil {
			return fds, err
		}
		fds = append(fds, more...)
	}
	return fds, nil
}

// writeProgram puts p into a memory file: it may hold secrets, which have no place on a disk.
func writeProgram(p Program) (*os.File, error) {
	fd, err := unix.MemfdCreate("program", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("make a memory file: %w", err)
	}
	f := os.NewFile(uintptr(fd), "program")
	if err := gob.NewEncoder(f).Encode(p); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// readProgram reads what writeProgram wrote, and closes the file.
func readProgram(fd int) (Program, error) {
	f := os.NewFile(uintptr(fd), "program")
	defer f.Close()
	var p Program
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return p, err
	}
	return p, gob.NewDecoder(f).Decode(&p)
}
