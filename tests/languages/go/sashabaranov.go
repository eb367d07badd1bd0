package main

import (
	"context"
	"errors"
	"io"
	"math"
	"strings"

	"github.com/sashabaranov/go-openai"
)

func sashabaranovCases(url string, inputs Inputs) ([]Case, func(error) Refused, error) {
	ctx := context.Background()
	config := openai.DefaultConfig("-")
	config.BaseURL = url + "/v1"
	client := openai.NewClientWithConfig(config)
	embed := func(model string, dimensions int64) func() (any, error) {
		return func() (any, error) {
			answer, err := client.CreateEmbeddings(ctx, openai.EmbeddingRequest{
				Input: inputs.Texts, Model: openai.EmbeddingModel(model), Dimensions: int(dimensions)})
			if err != nil {
				return nil, err
			}
			vectors := [][]float32{}
			for _, entry := range answer.Data {
				vectors = append(vectors, entry.Embedding)
			}
			return vectors, nil
		}
	}
	// This client leaves out a temperature of 0.
	prompt := func(model string) openai.CompletionRequest {
		return openai.CompletionRequest{Model: model, Prompt: inputs.Prompt, MaxTokens: int(inputs.MaxTokens),
			Temperature: math.SmallestNonzeroFloat32}
	}
	complete := func(model string) func() (any, error) {
		return func() (any, error) {
			answer, err := client.CreateCompletion(ctx, prompt(model))
			if err != nil {
				return nil, err
			}
			return answer.Choices[0].Text, nil
		}
	}
	stream := func() (any, error) {
		pieces, err := client.CreateCompletionStream(ctx, prompt("code-lm"))
		if err != nil {
			return nil, err
		}
		defer pieces.Close()
		var text strings.Builder
		for {
			piece, err := pieces.Recv()
			if errors.Is(err, io.EOF) {
				return text.String(), nil
			}
			if err != nil {
				return nil, err
			}
			text.WriteString(piece.Choices[0].Text)
		}
	}
	models := func() (any, error) {
		answer, err := client.ListModels(ctx)
		ids := []string{}
		for _, model := range answer.Models {
			ids = append(ids, model.ID)
		}
		return ids, err
	}
	refused := func(err error) Refused {
		var answer *openai.APIError
		if errors.As(err, &answer) {
			return Refused{answer.HTTPStatusCode, answer.Message}
		}
		return Refused{0, err.Error()}
	}
	return []Case{
		{"embed", embed("embedder", 0)},
		{"embed_short", embed("embedder", inputs.Dimensions)},
		{"complete", complete("code-lm")},
		{"stream", stream},
		{"models", models},
		{"unknown_model", embed("nobody", 0)},
		{"lacking_task", complete("embedder")},
	}, refused, nil
}
