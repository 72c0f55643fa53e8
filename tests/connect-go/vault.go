package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"connectrpc.com/connect"

	vaultv1 "github.com/krane-agent/krane/tests/connect-go/gen/vault/v1"
	"github.com/krane-agent/krane/tests/connect-go/gen/vault/v1/vaultv1connect"
)

// With -vault the program is a vault instead: HTTP/1.1 only, as the original one, with a table for
// cryptography. Its orders are vaultOrder lines; each is answered by a vaultAnswer line.
var (
	vaultMode = flag.Bool("vault", false, "be a vault instead of a control plane")
	vaultBulk = flag.String("bulk", "yes", "DecryptBulk: yes, unimplemented, or absent (a bare 404)")
	vaultAt   = flag.String("listen", "127.0.0.1:0", "where the vault listens")
)

// vaultOrder is one line of standard input.
type vaultOrder struct {
	// Do is learn, latency, refuse or calls.
	Do string `json:"do"`
	// KeyRing and Items, ciphertext to plaintext, are what learn adds to the table.
	KeyRing string            `json:"key_ring"`
	Items   map[string]string `json:"items"`
	// Millis is how long each call takes from now on.
	Millis int `json:"millis"`
	// Code is a Connect code that every call is refused with from now on; 0 for none.
	Code uint32 `json:"code"`
}

// vaultAnswer is one line of standard output.
type vaultAnswer struct {
	Event string `json:"event"`
	// Address is where the server listens, with event listening.
	Address string `json:"address,omitempty"`
	// The others are since the last such order.
	Calls       map[string]int `json:"calls,omitempty"`
	Protocols   map[string]int `json:"protocols,omitempty"`
	Connections int            `json:"connections,omitempty"`
}

// vault decrypts what it was told.
type vault struct {
	vaultv1connect.UnimplementedVaultServiceHandler

	bulk bool

	mu          sync.Mutex
	table       map[string]map[string]string
	latency     time.Duration
	refusal     error
	calls       map[string]int
	protocols   map[string]int
	connections int
}

func runVault(token string) error {
	listener, err := net.Listen("tcp", *vaultAt)
	if err != nil {
		return err
	}
	v := &vault{
		bulk:      *vaultBulk == "yes",
		table:     map[string]map[string]string{},
		calls:     map[string]int{},
		protocols: map[string]int{},
	}
	options := connect.WithInterceptors(vaultBearer("Bearer " + token))
	path, handler := vaultv1connect.NewVaultServiceHandler(v, options)
	mux := http.NewServeMux()
	mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
		if *vaultBulk == "absent" && strings.HasSuffix(r.URL.Path, "/DecryptBulk") {
			v.count("DecryptBulk", r.Proto)
			http.NotFound(w, r)
			return
		}
		v.count(strings.TrimPrefix(r.URL.Path, path), r.Proto)
		handler.ServeHTTP(w, r)
	})
	server := &http.Server{Handler: mux, ConnState: v.connected}
	go func() { _ = server.Serve(listener) }()
	say := json.NewEncoder(os.Stdout)
	if err := say.Encode(vaultAnswer{Event: "listening", Address: listener.Addr().String()}); err != nil {
		return err
	}
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 256<<20)
	for lines.Scan() {
		var order vaultOrder
		if err := json.Unmarshal(lines.Bytes(), &order); err != nil {
			return err
		}
		answer, err := v.obey(order)
		if err != nil {
			return err
		}
		if err := say.Encode(answer); err != nil {
			return err
		}
	}
	return lines.Err()
}

func (v *vault) obey(order vaultOrder) (vaultAnswer, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	answer := vaultAnswer{Event: "done"}
	switch order.Do {
	case "learn":
		if v.table[order.KeyRing] == nil {
			v.table[order.KeyRing] = map[string]string{}
		}
		for encrypted, plaintext := range order.Items {
			v.table[order.KeyRing][encrypted] = plaintext
		}
	case "latency":
		v.latency = time.Duration(order.Millis) * time.Millisecond
	case "refuse":
		v.refusal = failure(order.Code, "refused as ordered")
	case "calls":
		answer.Calls, answer.Protocols, answer.Connections = v.calls, v.protocols, v.connections
		v.calls, v.protocols, v.connections = map[string]int{}, map[string]int{}, 0
	default:
		return answer, fmt.Errorf("unknown command %q", order.Do)
	}
	return answer, nil
}

func (v *vault) count(method, protocol string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.calls[method]++
	v.protocols[protocol]++
}

func (v *vault) connected(_ net.Conn, state http.ConnState) {
	if state == http.StateNew {
		v.mu.Lock()
		defer v.mu.Unlock()
		v.connections++
	}
}

// begin waits as long as calls take, and says whether they are refused.
func (v *vault) begin(ctx context.Context) error {
	v.mu.Lock()
	latency, refusal := v.latency, v.refusal
	v.mu.Unlock()
	select {
	case <-time.After(latency):
		return refusal
	case <-ctx.Done():
		return ctx.Err()
	}
}

// open looks a value up. Its error repeats the ciphertext: clients must not.
func (v *vault) open(keyRing, encrypted string) (string, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	plaintext, ok := v.table[keyRing][encrypted]
	if !ok {
		return "", fmt.Errorf("cannot decrypt %q", encrypted)
	}
	return plaintext, nil
}

func (v *vault) Liveness(
	context.Context, *connect.Request[vaultv1.LivenessRequest],
) (*connect.Response[vaultv1.LivenessResponse], error) {
	return connect.NewResponse(&vaultv1.LivenessResponse{Status: "ok"}), nil
}

func (v *vault) Decrypt(
	ctx context.Context, request *connect.Request[vaultv1.DecryptRequest],
) (*connect.Response[vaultv1.DecryptResponse], error) {
	if err := v.begin(ctx); err != nil {
		return nil, err
	}
	plaintext, err := v.open(request.Msg.GetKeyring(), request.Msg.GetEncrypted())
	if err != nil {
		return nil, connect.NewError(connect.CodeInvalidArgument, err)
	}
	return connect.NewResponse(&vaultv1.DecryptResponse{Plaintext: plaintext}), nil
}

func (v *vault) DecryptBulk(
	ctx context.Context, request *connect.Request[vaultv1.DecryptBulkRequest],
) (*connect.Response[vaultv1.DecryptBulkResponse], error) {
	if !v.bulk {
		return v.UnimplementedVaultServiceHandler.DecryptBulk(ctx, request)
	}
	if err := v.begin(ctx); err != nil {
		return nil, err
	}
	answer := &vaultv1.DecryptBulkResponse{Items: map[string]string{}}
	for name, encrypted := range request.Msg.GetItems() {
		plaintext, err := v.open(request.Msg.GetKeyring(), encrypted)
		if err != nil {
			return nil, connect.NewError(connect.CodeInternal, fmt.Errorf("%s: %w", name, err))
		}
		answer.Items[name] = plaintext
	}
	return connect.NewResponse(answer), nil
}

// vaultBearer refuses every call but Liveness without the token.
func vaultBearer(expected string) connect.UnaryInterceptorFunc {
	return func(next connect.UnaryFunc) connect.UnaryFunc {
		return func(ctx context.Context, request connect.AnyRequest) (connect.AnyResponse, error) {
			isOpen := request.Spec().Procedure == vaultv1connect.VaultServiceLivenessProcedure
			if !isOpen && request.Header().Get("Authorization") != expected {
				return nil, connect.NewError(connect.CodeUnauthenticated, errors.New("invalid bearer token"))
			}
			return next(ctx, request)
		}
	}
}
