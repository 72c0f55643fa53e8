package main

import (
	"fmt"
	"net/http"

	"connectrpc.com/connect"
)

// transport speaks one version of HTTP without TLS: 1 or 2.
func transport(version int) *http.Transport {
	protocols := &http.Protocols{}
	protocols.SetHTTP1(version == 1)
	protocols.SetUnencryptedHTTP2(version == 2)
	return &http.Transport{Protocols: protocols}
}

// options are those of a client that speaks connect or grpc, in protobuf or JSON.
func options(protocol string, json bool) ([]connect.ClientOption, error) {
	var options []connect.ClientOption
	switch protocol {
	case "connect":
	case "grpc":
		options = append(options, connect.WithGRPC())
	default:
		return nil, fmt.Errorf("unknown protocol %q", protocol)
	}
	if json {
		options = append(options, connect.WithProtoJSON())
	}
	return options, nil
}
