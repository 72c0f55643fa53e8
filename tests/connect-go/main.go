// Command connect-go is a control plane made with connect-go, the library of the original one; with
// -call it is a pod's client of the secrets service instead (see caller.go), with -schedule a
// scheduler (see scheduler.go).
//
// It listens on a free port of 127.0.0.1 for HTTP/2 without TLS and obeys the JSON lines on its
// standard input; each line is answered by {"event":"done"} on its standard output, and each
// request by {"event":"call", ...} as it comes in. It ends with its standard input.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/krane-agent/krane/tests/connect-go/gen/ctrl/v1/ctrlv1connect"
)

// command is one line of standard input.
type command struct {
	// Do is push, answer, refuse, end, goaway or exit.
	Do string `json:"do"`
	// Message is a serialized DeploymentState, for push and answer.
	Message []byte `json:"message"`
	// Method is the method that refuse is about.
	Method string `json:"method"`
	// Code is a gRPC code, for refuse and end; 0 accepts again, or ends without an error.
	Code uint32 `json:"code"`
	// Text is the message of the error.
	Text string `json:"text"`
}

// event is one line of standard output.
type event struct {
	Event string `json:"event"`
	// Address is where the server listens, with event listening.
	Address string `json:"address,omitempty"`
	// The others come with event call.
	Method        string `json:"method,omitempty"`
	Platform      string `json:"platform,omitempty"`
	Region        string `json:"region,omitempty"`
	Version       uint64 `json:"version,omitempty"`
	ID            string `json:"id,omitempty"`
	Authorization string `json:"authorization,omitempty"`
	UserAgent     string `json:"user_agent,omitempty"`
	Protocol      string `json:"protocol,omitempty"`
	Peer          string `json:"peer,omitempty"`
}

func main() {
	log.SetFlags(0)
	token := flag.String("token", "", "bearer token that every request must carry")
	url := flag.String("call", "", "address of a secrets service to call instead of serving")
	flag.Parse()
	var err error
	switch {
	case *url != "":
		err = call(*url)
	case *scheduleAt != "":
		err = schedule(*scheduleAt)
	case *vaultMode:
		err = runVault(*token)
	default:
		err = run(*token)
	}
	if err != nil {
		log.Fatal(err)
	}
}

func run(token string) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	say := json.NewEncoder(os.Stdout)
	events := make(chan event, 1024)
	plane := newControlPlane(token, func(call event) { events <- call })
	server := serve(listener, plane)
	if err := say.Encode(event{Event: "listening", Address: listener.Addr().String()}); err != nil {
		return err
	}
	done := make(chan error, 1)
	go func() { done <- obey(plane, server, events) }()
	for {
		select {
		case line := <-events:
			if err := say.Encode(line); err != nil {
				return err
			}
		case err := <-done:
			return err
		}
	}
}

func serve(listener net.Listener, plane *controlPlane) *http.Server {
	mux := http.NewServeMux()
	mux.Handle(ctrlv1connect.NewClusterServiceHandler(plane, plane.options()...))
	protocols := &http.Protocols{}
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true)
	server := &http.Server{Handler: mux, Protocols: protocols}
	go func() { _ = server.Serve(listener) }()
	return server
}

func obey(plane *controlPlane, server *http.Server, events chan<- event) error {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 256<<20)
	for lines.Scan() {
		var order command
		if err := json.Unmarshal(lines.Bytes(), &order); err != nil {
			return err
		}
		switch order.Do {
		case "push":
			if err := plane.push(order.Message); err != nil {
				return err
			}
		case "answer":
			if err := plane.answer(order.Message); err != nil {
				return err
			}
		case "refuse":
			plane.refuse(order.Method, order.Code, order.Text)
		case "end":
			plane.end(order.Code, order.Text)
		case "goaway":
			// Sends GOAWAY, waits for what runs, and closes; nobody listens any more.
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			_ = server.Shutdown(ctx)
			cancel()
			_ = server.Close()
		case "exit":
			os.Exit(0)
		default:
			return fmt.Errorf("unknown command %q", order.Do)
		}
		events <- event{Event: "done"}
	}
	return lines.Err()
}
