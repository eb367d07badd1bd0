package main

import (
	"context"
	"errors"
	"strings"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
)

func openaiCases(url string, inputs Inputs) ([]Case, func(error) Refused, error) {
	ctx := context.Background()
	client := openai.NewClient(option.WithBaseURL(url+"/v1"), option.WithAPIKey("-"))
	embed := func(params openai.EmbeddingNewParams) func() (any, error) {
		params.Input = openai.EmbeddingNewParamsInputUnion{OfArrayOfStrings: inputs.Texts}
		return func() (any, error) {
			answer, err := client.Embeddings.New(ctx, params)
			if err != nil {
				return nil, err
			}
			vectors := [][]float64{}
			for _, entry := range answer.Data {
				vectors = append(vectors, entry.Embedding)
			}
			return vectors, nil
		}
	}
	prompt := func(model string) openai.CompletionNewParams {
		return openai.CompletionNewParams{
			Model:       openai.CompletionNewParamsModel(model),
			Prompt:      openai.CompletionNewParamsPromptUnion{OfString: openai.String(inputs.Prompt)},
			MaxTokens:   openai.Int(inputs.MaxTokens),
			Temperature: openai.Float(0),
		}
	}
	complete := func(model string) func() (any, error) {
		return func() (any, error) {
			answer, err := client.Completions.New(ctx, prompt(model))
			if err != nil {
				return nil, err
			}
			return answer.Choices[0].Text, nil
		}
	}
	stream := func() (any, error) {
		var text strings.Builder
		pieces := client.Completions.NewStreaming(ctx, prompt("code-lm"))
		for pieces.Next() {
			text.WriteString(pieces.Current().Choices[0].Text)
		}
		return text.String(), pieces.Err()
	}
	models := func() (any, error) {
		ids := []string{}
		pages := client.Models.ListAutoPaging(ctx)
		for pages.Next() {
			ids = append(ids, pages.Current().ID)
		}
		return ids, pages.Err()
	}
	refused := func(err error) Refused {
		var answer *openai.Error
		if errors.As(err, &answer) {
			return Refused{answer.StatusCode, answer.Message}
		}
		return Refused{0, err.Error()}
	}
	return []Case{
		{"embed", embed(openai.EmbeddingNewParams{Model: "embedder"})},
		{"embed_short", embed(openai.EmbeddingNewParams{
			Model: "embedder", Dimensions: openai.Int(inputs.Dimensions)})},
		{"complete", complete("code-lm")},
		{"stream", stream},
		{"models", models},
		{"unknown_model", embed(openai.EmbeddingNewParams{Model: "nobody"})},
		{"lacking_task", complete("embedder")},
	}, refused, nil
}
