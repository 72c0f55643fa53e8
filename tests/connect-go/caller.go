package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"

	"connectrpc.com/connect"

	kranev1 "github.com/krane-agent/krane/tests/connect-go/gen/krane/v1"
	"github.com/krane-agent/krane/tests/connect-go/gen/krane/v1/kranev1connect"
)

// order is one line of standard input of the caller: a request for secrets, and how to send it.
type order struct {
	// Protocol is connect or grpc.
	Protocol string `json:"protocol"`
	// HTTP is 1 for HTTP/1.1, or 2 for HTTP/2 without TLS.
	HTTP int `json:"http"`
	// JSON sends JSON instead of protobuf.
	JSON bool `json:"json"`
	// Gzip compresses the request.
	Gzip bool `json:"gzip"`
	// TimeoutMs is the deadline of the call; 0 for none.
	TimeoutMs int `json:"timeout_ms"`

	Blob        []byte `json:"blob"`
	Environment string `json:"environment"`
	Token       string `json:"token"`
	Deployment  string `json:"deployment"`
}

// told is what the call led to, one line of standard output.
type told struct {
	Code      string            `json:"code"`
	Message   string            `json:"message"`
	Variables map[string]string `json:"variables"`
	// Protocol is the version of HTTP of the answer.
	Protocol string `json:"protocol"`
}

// versions notes the version of HTTP of the last answer.
type versions struct {
	next http.RoundTripper
	last string
}

func (v *versions) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := v.next.RoundTrip(request)
	if err == nil {
		v.last = response.Proto
	}
	return response, err
}

// call asks the secrets service at url for what its standard input says, until that ends. It is
// made as the client in the pods of the original platform is.
func call(url string) error {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 64<<20)
	say := json.NewEncoder(os.Stdout)
	transports := map[int]*versions{}
	for version := 1; version <= 2; version++ {
		transports[version] = &versions{next: transport(version)}
	}
	for lines.Scan() {
		var it order
		if err := json.Unmarshal(lines.Bytes(), &it); err != nil {
			return err
		}
		transport, known := transports[it.HTTP]
		if !known {
			return fmt.Errorf("unknown version of HTTP %d", it.HTTP)
		}
		answer, err := it.send(url, transport)
		if err != nil {
			return err
		}
		if err := say.Encode(answer); err != nil {
			return err
		}
	}
	return lines.Err()
}

func (it *order) send(url string, transport *versions) (*told, error) {
	options, err := options(it.Protocol, it.JSON)
	if err != nil {
		return nil, err
	}
	if it.Gzip {
		options = append(options, connect.WithSendGzip())
	}
	httpClient := &http.Client{Transport: transport, Timeout: 30 * time.Second}
	client := kranev1connect.NewSecretsServiceClient(httpClient, strings.TrimSuffix(url, "/"), options...)
	ctx := context.Background()
	if it.TimeoutMs != 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Duration(it.TimeoutMs)*time.Millisecond)
		defer cancel()
	}
	transport.last = ""
	response, err := client.DecryptSecretsBlob(ctx, connect.NewRequest(&kranev1.DecryptSecretsBlobRequest{
		EncryptedBlob: it.Blob,
		EnvironmentId: it.Environment,
		Token:         it.Token,
		DeploymentId:  it.Deployment,
	}))
	if err != nil {
		answer := &told{Code: connect.CodeOf(err).String(), Protocol: transport.last}
		var failure *connect.Error
		if errors.As(err, &failure) {
			answer.Message = failure.Message()
		}
		return answer, nil
	}
	return &told{Code: "ok", Variables: response.Msg.GetEnvVars(), Protocol: transport.last}, nil
}
