package main

import (
	"context"
	"errors"
	"net/http"
	"sync"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	ctrlv1 "github.com/krane-agent/krane/tests/connect-go/gen/ctrl/v1"
	"github.com/krane-agent/krane/tests/connect-go/gen/ctrl/v1/ctrlv1connect"
)

// controlPlane serves what it was told to.
type controlPlane struct {
	ctrlv1connect.UnimplementedClusterServiceHandler

	token string
	tell  func(event)

	mu       sync.Mutex
	desired  *ctrlv1.DeploymentState
	refusals map[string]error
	streams  map[*subscription]struct{}
}

// subscription is one open stream.
type subscription struct {
	states chan *ctrlv1.DeploymentState
	end    chan error
}

func newControlPlane(token string, tell func(event)) *controlPlane {
	return &controlPlane{
		token:    token,
		tell:     tell,
		refusals: map[string]error{},
		streams:  map[*subscription]struct{}{},
	}
}

func failure(code uint32, text string) error {
	if code == 0 {
		return nil
	}
	return connect.NewError(connect.Code(code), errors.New(text))
}

// push sends a state to every open stream.
func (p *controlPlane) push(message []byte) error {
	state := &ctrlv1.DeploymentState{}
	if err := proto.Unmarshal(message, state); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for stream := range p.streams {
		stream.states <- state
	}
	return nil
}

// answer sets what GetDesiredDeploymentState answers.
func (p *controlPlane) answer(message []byte) error {
	state := &ctrlv1.DeploymentState{}
	if err := proto.Unmarshal(message, state); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.desired = state
	return nil
}

// refuse makes a method fail from now on.
func (p *controlPlane) refuse(method string, code uint32, text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refusals[method] = failure(code, text)
}

// end ends every open stream.
func (p *controlPlane) end(code uint32, text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for stream := range p.streams {
		stream.end <- failure(code, text)
	}
}

// call records a request and says whether it is refused.
func (p *controlPlane) call(request connect.AnyRequest, call event) error {
	call.Event = "call"
	call.Authorization = request.Header().Get("Authorization")
	call.UserAgent = request.Header().Get("User-Agent")
	call.Protocol = request.Peer().Protocol
	call.Peer = request.Peer().Addr
	p.tell(call)
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.refusals[call.Method]
}

func (p *controlPlane) WatchDeployments(
	ctx context.Context,
	request *connect.Request[ctrlv1.WatchDeploymentsRequest],
	stream *connect.ServerStream[ctrlv1.DeploymentState],
) error {
	mine := &subscription{states: make(chan *ctrlv1.DeploymentState, 1000), end: make(chan error, 1)}
	p.mu.Lock()
	p.streams[mine] = struct{}{}
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		delete(p.streams, mine)
		p.mu.Unlock()
	}()
	err := p.call(request, event{
		Method:   "WatchDeployments",
		Platform: request.Msg.GetRegion().GetPlatform(),
		Region:   request.Msg.GetRegion().GetName(),
		Version:  request.Msg.GetVersionLastSeen(),
	})
	if err != nil {
		return err
	}
	for {
		select {
		case state := <-mine.states:
			if err := stream.Send(state); err != nil {
				return err
			}
		case err := <-mine.end:
			return err
		case <-ctx.Done():
			p.tell(event{Event: "gone", Method: "WatchDeployments"})
			return ctx.Err()
		}
	}
}

func (p *controlPlane) GetDesiredDeploymentState(
	_ context.Context,
	request *connect.Request[ctrlv1.GetDesiredDeploymentStateRequest],
) (*connect.Response[ctrlv1.DeploymentState], error) {
	err := p.call(request, event{
		Method:   "GetDesiredDeploymentState",
		Platform: request.Msg.GetRegion().GetPlatform(),
		Region:   request.Msg.GetRegion().GetName(),
		ID:       request.Msg.GetDeploymentId(),
	})
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.desired == nil {
		return nil, connect.NewError(connect.CodeNotFound, errors.New("no such deployment"))
	}
	return connect.NewResponse(p.desired), nil
}

func (p *controlPlane) ReportDeploymentStatus(
	_ context.Context,
	request *connect.Request[ctrlv1.ReportDeploymentStatusRequest],
) (*connect.Response[ctrlv1.ReportDeploymentStatusResponse], error) {
	name := request.Msg.GetUpdate().GetK8SName()
	if name == "" {
		name = request.Msg.GetDelete().GetK8SName()
	}
	err := p.call(request, event{
		Method:   "ReportDeploymentStatus",
		Platform: request.Msg.GetRegion().GetPlatform(),
		Region:   request.Msg.GetRegion().GetName(),
		ID:       name,
	})
	return connect.NewResponse(&ctrlv1.ReportDeploymentStatusResponse{}), err
}

func (p *controlPlane) Heartbeat(
	_ context.Context,
	request *connect.Request[ctrlv1.HeartbeatRequest],
) (*connect.Response[ctrlv1.HeartbeatResponse], error) {
	err := p.call(request, event{
		Method:   "Heartbeat",
		Platform: request.Msg.GetRegion().GetPlatform(),
		Region:   request.Msg.GetRegion().GetName(),
	})
	return connect.NewResponse(&ctrlv1.HeartbeatResponse{}), err
}

// options check the bearer token, as an interceptor of the original does.
func (p *controlPlane) options() []connect.HandlerOption {
	return []connect.HandlerOption{connect.WithInterceptors(bearer("Bearer " + p.token))}
}

// bearer refuses every request that does not carry it.
type bearer string

var errBearer = connect.NewError(connect.CodeUnauthenticated, errors.New("invalid bearer token"))

func (b bearer) check(header http.Header) error {
	if header.Get("Authorization") != string(b) {
		return errBearer
	}
	return nil
}

func (b bearer) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, request connect.AnyRequest) (connect.AnyResponse, error) {
		if err := b.check(request.Header()); err != nil {
			return nil, err
		}
		return next(ctx, request)
	}
}

func (b bearer) WrapStreamingClient(next connect.StreamingClientFunc) connect.StreamingClientFunc {
	return next
}

func (b bearer) WrapStreamingHandler(
	next connect.StreamingHandlerFunc,
) connect.StreamingHandlerFunc {
	return func(ctx context.Context, conn connect.StreamingHandlerConn) error {
		if err := b.check(conn.RequestHeader()); err != nil {
			return err
		}
		return next(ctx, conn)
	}
}
