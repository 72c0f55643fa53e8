// Command generate writes the Go code of the .proto files of krane into gen/.
//
// Run it in the folder of this module: go run ./generate
// With -check it writes nothing and fails when a file is not what it would write.
package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"log"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bufbuild/protocompile"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/types/pluginpb"
)

const module = "github.com/krane-agent/krane/tests/connect-go/gen"

var packages = map[string]string{
	"ctrl/v1/cluster.proto":    "ctrl/v1;ctrlv1",
	"ctrl/v1/deployment.proto": "ctrl/v1;ctrlv1",
	"ctrl/v1/secrets.proto":    "ctrl/v1;ctrlv1",
	"krane/v1/scheduler.proto": "krane/v1;kranev1",
	"krane/v1/secrets.proto":   "krane/v1;kranev1",
	"vault/v1/object.proto":    "vault/v1;vaultv1",
	"vault/v1/service.proto":   "vault/v1;vaultv1",
}

var check = flag.Bool("check", false, "compare instead of writing")

func main() {
	log.SetFlags(0)
	flag.Parse()
	if err := generate(); err != nil {
		log.Fatal(err)
	}
}

func generate() error {
	compiler := protocompile.Compiler{
		Resolver:       &protocompile.SourceResolver{ImportPaths: []string{"../../proto"}},
		SourceInfoMode: protocompile.SourceInfoStandard,
	}
	request := &pluginpb.CodeGeneratorRequest{}
	parameters := []string{"module=" + module}
	for _, file := range slices.Sorted(maps.Keys(packages)) {
		request.FileToGenerate = append(request.FileToGenerate, file)
		parameters = append(parameters, "M"+file+"="+module+"/"+packages[file])
	}
	request.Parameter = proto.String(strings.Join(parameters, ","))
	files, err := compiler.Compile(context.Background(), request.FileToGenerate...)
	if err != nil {
		return fmt.Errorf("compile: %w", err)
	}
	// Imports come before their importers.
	seen := map[string]bool{}
	for _, file := range files {
		imports := file.Imports()
		for i := range imports.Len() {
			imported := imports.Get(i).FileDescriptor
			if !seen[imported.Path()] {
				seen[imported.Path()] = true
				request.ProtoFile = append(request.ProtoFile, protodesc.ToFileDescriptorProto(imported))
			}
		}
	}
	for _, file := range files {
		if !seen[file.Path()] {
			seen[file.Path()] = true
			request.ProtoFile = append(request.ProtoFile, protodesc.ToFileDescriptorProto(file))
		}
	}
	for _, plugin := range []string{"protoc-gen-go", "protoc-gen-connect-go"} {
		if err := run(plugin, request); err != nil {
			return fmt.Errorf("%s: %w", plugin, err)
		}
	}
	return nil
}

func run(plugin string, request *pluginpb.CodeGeneratorRequest) error {
	input, err := proto.Marshal(request)
	if err != nil {
		return err
	}
	command := exec.Command("go", "tool", plugin)
	command.Stdin = bytes.NewReader(input)
	command.Stderr = os.Stderr
	output, err := command.Output()
	if err != nil {
		return err
	}
	response := &pluginpb.CodeGeneratorResponse{}
	if err := proto.Unmarshal(output, response); err != nil {
		return err
	}
	if response.Error != nil {
		return fmt.Errorf("%s", response.GetError())
	}
	for _, file := range response.GetFile() {
		path := filepath.Join("gen", file.GetName())
		if *check {
			have, err := os.ReadFile(path)
			if err != nil || string(have) != file.GetContent() {
				return fmt.Errorf("%s is out of date: go run ./generate", path)
			}
			continue
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(file.GetContent()), 0o644); err != nil {
			return err
		}
	}
	return nil
}
