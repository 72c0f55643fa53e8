package main

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	kranev1 "github.com/krane-agent/krane/tests/connect-go/gen/krane/v1"
	"github.com/krane-agent/krane/tests/connect-go/gen/krane/v1/kranev1connect"
)

// With -schedule the program is a scheduler instead: its orders are wish lines, and each leads to
// one outcome line, or to one for every state of a watch and one for its end.
var scheduleAt = flag.String("schedule", "", "address of a scheduler service to call instead of serving")

// wish is one line of standard input of the scheduler.
type wish struct {
	// Protocol is connect or grpc.
	Protocol string `json:"protocol"`
	// HTTP is 1 for HTTP/1.1, or 2 for HTTP/2 without TLS.
	HTTP int `json:"http"`
	// JSON sends JSON instead of protobuf.
	JSON bool `json:"json"`
	// Token is sent as a bearer; empty for none.
	Token string `json:"token"`
	// Method is the name of a method of the service.
	Method string `json:"method"`
	// Message is the request, in the JSON of protobuf.
	Message json.RawMessage `json:"message"`
}

// outcome is one line of standard output of the scheduler.
type outcome struct {
	// Code is "state" for one state of a watch, else how the call ended.
	Code    string `json:"code"`
	Message string `json:"message"`
	// State is a serialized State, in base64.
	State string `json:"state,omitempty"`
}

// schedule has the scheduler service at url do what its standard input says, until that ends.
func schedule(url string) error {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 64<<20)
	say := json.NewEncoder(os.Stdout)
	clients := map[int]*http.Client{}
	for version := 1; version <= 2; version++ {
		clients[version] = &http.Client{Transport: transport(version)}
	}
	for lines.Scan() {
		var it wish
		if err := json.Unmarshal(lines.Bytes(), &it); err != nil {
			return err
		}
		client, known := clients[it.HTTP]
		if !known {
			return fmt.Errorf("unknown version of HTTP %d", it.HTTP)
		}
		if err := it.send(strings.TrimSuffix(url, "/"), client, say); err != nil {
			return err
		}
	}
	return lines.Err()
}

func (it *wish) send(url string, httpClient *http.Client, say *json.Encoder) error {
	options, err := options(it.Protocol, it.JSON)
	if err != nil {
		return err
	}
	client := kranev1connect.NewSchedulerServiceClient(httpClient, url, options...)
	ctx := context.Background()
	if it.Method != "Watch" {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, 45*time.Second)
		defer cancel()
	}
	switch it.Method {
	case "ApplyDeployment":
		err = unary(ctx, it, client.ApplyDeployment, &kranev1.ApplyDeploymentRequest{})
	case "DeleteDeployment":
		err = unary(ctx, it, client.DeleteDeployment, &kranev1.DeleteDeploymentRequest{})
	case "ApplySentinel":
		err = unary(ctx, it, client.ApplySentinel, &kranev1.ApplySentinelRequest{})
	case "DeleteSentinel":
		err = unary(ctx, it, client.DeleteSentinel, &kranev1.DeleteSentinelRequest{})
	case "ScrapeOpenApiSchema":
		err = unary(ctx, it, client.ScrapeOpenApiSchema, &kranev1.ScrapeOpenApiSchemaRequest{})
	case "Watch":
		err = it.follow(ctx, client, say)
	default:
		return fmt.Errorf("unknown method %q", it.Method)
	}
	end := outcome{Code: "ok"}
	if err != nil {
		end.Code = connect.CodeOf(err).String()
		var failure *connect.Error
		if errors.As(err, &failure) {
			end.Message = failure.Message()
		}
	}
	return say.Encode(end)
}

func (it *wish) follow(ctx context.Context, client kranev1connect.SchedulerServiceClient, say *json.Encoder) error {
	states, err := client.Watch(ctx, signed(it, &kranev1.WatchRequest{}))
	if err != nil {
		return err
	}
	defer states.Close()
	for states.Receive() {
		bytes, err := proto.Marshal(states.Msg())
		if err != nil {
			return err
		}
		state := base64.StdEncoding.EncodeToString(bytes)
		if err := say.Encode(outcome{Code: "state", State: state}); err != nil {
			return err
		}
	}
	return states.Err()
}

// unary sends one call with one answer.
func unary[Q, A any, P interface {
	*Q
	proto.Message
}](
	ctx context.Context,
	it *wish,
	method func(context.Context, *connect.Request[Q]) (*connect.Response[A], error),
	request P,
) error {
	if len(it.Message) > 0 {
		if err := protojson.Unmarshal(it.Message, request); err != nil {
			return err
		}
	}
	_, err := method(ctx, signed(it, (*Q)(request)))
	return err
}

func signed[Q any](it *wish, message *Q) *connect.Request[Q] {
	request := connect.NewRequest(message)
	if it.Token != "" {
		request.Header().Set("Authorization", "Bearer "+it.Token)
	}
	return request
}
