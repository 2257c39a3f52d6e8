package bus

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"waybill/harness/bus/access"
	"waybill/harness/bus/secure"
)

const (
	startPatience  = 10 * time.Second
	memoryLimit    = 64 << 20
	defaultStorage = 1 << 40
)

// ServerConfig describes the embedded NATS server.
type ServerConfig struct {
	// Listen is host:port; port 0 takes any free one. Beyond loopback it needs
	// TLSCert and TLSKey. Empty means that only connections inside the process
	// are served.
	Listen string

	// TLSCert and TLSKey are the files of a certificate, with those that lead to
	// its authority, and of its key, in PEM. With them, connections over the
	// network must be encrypted; those inside the process are not.
	TLSCert, TLSKey string

	// StoreDir is where the server makes its folder "jetstream". The folder
	// may be deleted while the server is down: the log fills it again.
	StoreDir string

	// Credentials are the users; only their public keys are used.
	Credentials Credentials

	Prefix string
	LogID  string

	// MaxPayload is the largest message in bytes, MaxMessage if 0; more is
	// refused.
	MaxPayload int32

	// MaxStorage is the limit of JetStream's files in bytes, 1 TiB if 0. At
	// the limit publishing stops and is tried again; the log goes on.
	MaxStorage int64

	// Logger receives the server's warnings and errors; slog.Default if nil.
	Logger *slog.Logger
}

// Server is a NATS server with JetStream inside this process. Its methods may
// be called at once.
type Server struct {
	ns        *server.Server
	encrypted bool
	once      sync.Once
}

// StartServer starts a server and returns when it takes connections. Every
// connection must prove that it holds the key of one of the users. It
// installs no signal handlers.
func StartServer(cfg ServerConfig) (*Server, error) {
	opts, err := serverOptions(cfg)
	if err != nil {
		return nil, err
	}
	ns, err := server.NewServer(opts)
	if err != nil {
		return nil, fmt.Errorf("embedded NATS server: %w", err)
	}
	log := &serverLog{to: logger(cfg.Logger)}
	ns.SetLoggerV2(log, false, false, false)
	ns.Start()
	s := &Server{ns: ns, encrypted: opts.TLSConfig != nil}
	// A fatal fault returns from Start after it was logged, so there is
	// nothing to wait for if there was one.
	if err := log.fatal(); err != nil {
		s.Close()
		return nil, fmt.Errorf("embedded NATS server on %q: %w", cfg.Listen, err)
	}
	if !ns.ReadyForConnections(startPatience) {
		s.Close()
		return nil, fmt.Errorf("embedded NATS server on %q was not ready within %v", cfg.Listen, startPatience)
	}
	return s, nil
}

func serverOptions(cfg ServerConfig) (*server.Options, error) {
	if err := checkServer(cfg); err != nil {
		return nil, err
	}
	opts := &server.Options{
		ServerName:             "waybill-" + cfg.LogID,
		DontListen:             cfg.Listen == "",
		NoSigs:                 true,
		MaxPayload:             cmp.Or(cfg.MaxPayload, MaxMessage),
		JetStream:              true,
		JetStreamMaxMemory:     memoryLimit,
		JetStreamMaxStore:      cmp.Or(cfg.MaxStorage, defaultStorage),
		StoreDir:               cfg.StoreDir,
		DisableJetStreamBanner: true,
		NoFastProducerStall:    true, // a host that reads slowly is cut off, and holds up no other
	}
	if cfg.Listen != "" {
		if err := errors.Join(setListen(opts, cfg.Listen), setTLS(opts, cfg)); err != nil {
			return nil, err
		}
	}
	if err := opts.ProcessConfigString(string(access.Config(cfg.Prefix, cfg.LogID, cfg.Credentials))); err != nil {
		return nil, fmt.Errorf("embedded NATS server: the accounts: %w", err)
	}
	return opts, nil
}

func checkServer(cfg ServerConfig) error {
	if err := CheckSpace(cfg.Prefix, cfg.LogID); err != nil {
		return fmt.Errorf("embedded NATS server: %w", err)
	}
	if cfg.MaxPayload < 0 || cfg.MaxPayload > MaxMessage {
		return fmt.Errorf("embedded NATS server: largest message of %d bytes: want at most %d", cfg.MaxPayload, MaxMessage)
	}
	if cfg.StoreDir == "" {
		return errors.New("embedded NATS server: no directory for JetStream's files")
	}
	if !cfg.Credentials.Service().Valid() || !cfg.Credentials.Replier().Valid() {
		return errors.New("embedded NATS server: no credentials: run waybill init")
	}
	return nil
}

func setListen(opts *server.Options, listen string) error {
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return fmt.Errorf("embedded NATS server: listen %q: want host:port: %w", listen, err)
	}
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return fmt.Errorf("embedded NATS server: listen %q: port %q is not a number up to 65535", listen, port)
	}
	opts.Host, opts.Port = host, int(number)
	if number == 0 {
		opts.Port = server.RANDOM_PORT
	}
	return nil
}

// setTLS encrypts what comes over the network, and insists on it where that can be
// read on the way.
func setTLS(opts *server.Options, cfg ServerConfig) error {
	if cfg.TLSCert == "" && cfg.TLSKey == "" {
		if secure.Loopback(opts.Host) {
			return nil
		}
		return fmt.Errorf("embedded NATS server: listen %q is not a loopback address, and without TLS whoever is on the way could read everything: "+
			"name a certificate and its key (nats.tls.cert, nats.tls.key), or listen on 127.0.0.1", cfg.Listen)
	}
	cert, err := tls.LoadX509KeyPair(cfg.TLSCert, cfg.TLSKey)
	if err != nil {
		return fmt.Errorf("embedded NATS server: certificate %q with key %q: %w", cfg.TLSCert, cfg.TLSKey, err)
	}
	opts.TLS, opts.TLSTimeout = true, connectPatience.Seconds()
	opts.TLSConfig = &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12}
	return nil
}

// ClientURL is the address for clients on this machine, with the port that was
// taken; empty if the server does not listen.
func (s *Server) ClientURL() string {
	addr, ok := s.ns.Addr().(*net.TCPAddr)
	if !ok {
		return ""
	}
	host := addr.IP.String()
	if addr.IP.IsUnspecified() {
		host = "127.0.0.1"
	}
	scheme := "nats://"
	if s.encrypted {
		scheme = "tls://"
	}
	return scheme + net.JoinHostPort(host, strconv.Itoa(addr.Port))
}

// InProcess makes a client connect without a socket. Permissions hold as they
// do on a socket.
func (s *Server) InProcess() nats.Option { return nats.InProcessServer(inProcess{s.ns}) }

// Close stops the server and returns when it is down and its files are closed.
// It may be called again.
func (s *Server) Close() {
	s.once.Do(s.ns.Shutdown)
	s.ns.WaitForShutdown()
}

// serverLog passes the server's warnings and errors on and drops the rest.
type serverLog struct {
	to    *slog.Logger
	mu    sync.Mutex
	cause error
}

func (l *serverLog) fatal() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.cause
}

// Fatalf keeps the cause for StartServer. Unlike the logger the server comes
// with, it does not end the process.
func (l *serverLog) Fatalf(format string, v ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cause == nil {
		l.cause = fmt.Errorf(format, v...)
	}
}

func (l *serverLog) Errorf(format string, v ...any) {
	l.to.Error("nats server", "message", fmt.Sprintf(format, v...))
}

func (l *serverLog) Warnf(format string, v ...any) {
	l.to.Warn("nats server", "message", fmt.Sprintf(format, v...))
}

func (l *serverLog) Noticef(string, ...any) {}
func (l *serverLog) Debugf(string, ...any)  {}
func (l *serverLog) Tracef(string, ...any)  {}

func logger(l *slog.Logger) *slog.Logger {
	if l == nil {
		return slog.Default()
	}
	return l
}
