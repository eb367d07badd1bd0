package main

import (
	"context"
	"errors"
	"io"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	longviewv1 "longview.internal/proto/longview/v1"
)

func grpcCases(address string, inputs Inputs) ([]Case, func(error) Refused, error) {
	ctx := context.Background()
	channel, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, nil, err
	}
	texts := longviewv1.NewTextServiceClient(channel)
	embed := func(model string) func() (any, error) {
		return func() (any, error) {
			vectors := [][]float32{}
			for _, text := range inputs.Texts {
				answer, err := texts.Embed(ctx, &longviewv1.EmbedRequest{Model: model, Text: proto.String(text)})
				if err != nil {
					return nil, err
				}
				vectors = append(vectors, answer.Embedding)
			}
			return vectors, nil
		}
	}
	rerank := func() (any, error) {
		answer, err := texts.Rerank(ctx, &longviewv1.RerankRequest{
			Model: "reranker", Query: inputs.Query, Documents: inputs.Documents})
		if err != nil {
			return nil, err
		}
		pairs := []Pair{}
		for _, entry := range answer.Results {
			pairs = append(pairs, Pair{float64(entry.Index), float64(entry.RelevanceScore)})
		}
		return pairs, nil
	}
	classify := func() (any, error) {
		answer, err := texts.Classify(ctx, &longviewv1.ClassifyRequest{
			Model: "code-language", Text: proto.String(inputs.Sources[0])})
		if err != nil {
			return nil, err
		}
		labels := []map[string]any{}
		for _, label := range answer.Labels {
			labels = append(labels, map[string]any{"label": label.Name, "score": label.Score})
		}
		return labels, nil
	}
	stream := func() (any, error) {
		pieces, err := texts.Generate(ctx, &longviewv1.GenerateRequest{
			Model: "code-lm", Text: proto.String(inputs.Prompt),
			MaxTokens: proto.Int32(int32(inputs.MaxTokens)), Temperature: proto.Float32(0)})
		if err != nil {
			return nil, err
		}
		var text strings.Builder
		for {
			piece, err := pieces.Recv()
			if errors.Is(err, io.EOF) {
				return text.String(), nil
			} else if err != nil {
				return nil, err
			}
			text.WriteString(piece.Text)
		}
	}
	models := func() (any, error) {
		answer, err := longviewv1.NewModelServiceClient(channel).ListModels(ctx, &longviewv1.ListModelsRequest{})
		if err != nil {
			return nil, err
		}
		names := []string{}
		for _, model := range answer.Models {
			names = append(names, model.Name)
		}
		return names, nil
	}
	refused := func(err error) Refused {
		answer := status.Convert(err)
		return Refused{int(answer.Code()), answer.Message()}
	}
	return []Case{
		{"embed", embed("embedder")},
		{"rerank", rerank},
		{"classify", classify},
		{"stream", stream},
		{"models", models},
		{"unknown_model", embed("nobody")},
		{"lacking_task", embed("code-lm")},
	}, refused, nil
}
