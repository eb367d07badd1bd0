package main

import (
	"context"
	"errors"

	cohere "github.com/cohere-ai/cohere-go/v2"
	"github.com/cohere-ai/cohere-go/v2/client"
	"github.com/cohere-ai/cohere-go/v2/core"
	"github.com/cohere-ai/cohere-go/v2/option"
)

func cohereCases(url string, inputs Inputs) ([]Case, func(error) Refused, error) {
	ctx := context.Background()
	calls := client.NewClient(option.WithBaseURL(url), option.WithToken("-"))
	// The id is read as its users read it: without asking whether one is there.
	rerank := func(request *cohere.V2RerankRequest) func() (any, error) {
		request.Query, request.Documents = inputs.Query, inputs.Documents
		return func() (any, error) {
			answer, err := calls.V2.Rerank(ctx, request)
			if err != nil {
				return nil, err
			}
			pairs := []Pair{}
			for _, entry := range answer.Results {
				pairs = append(pairs, Pair{float64(entry.Index), entry.RelevanceScore})
			}
			_ = *answer.Id
			return pairs, nil
		}
	}
	first := func() (any, error) {
		request := &cohere.RerankRequest{Model: cohere.String("reranker"), Query: inputs.Query}
		for _, text := range inputs.Documents {
			request.Documents = append(request.Documents, &cohere.RerankRequestDocumentsItem{String: text})
		}
		answer, err := calls.Rerank(ctx, request)
		if err != nil {
			return nil, err
		}
		pairs := []Pair{}
		for _, entry := range answer.Results {
			pairs = append(pairs, Pair{float64(entry.Index), entry.RelevanceScore})
		}
		return pairs, nil
	}
	embed := func(kind cohere.EmbedInputType) func() (any, error) {
		return func() (any, error) {
			answer, err := calls.V2.Embed(ctx, &cohere.V2EmbedRequest{
				Model: "embedder", Texts: inputs.Texts, InputType: kind,
				EmbeddingTypes: []cohere.EmbeddingType{cohere.EmbeddingTypeFloat},
			})
			if err != nil {
				return nil, err
			}
			return answer.Embeddings.Float, nil
		}
	}
	refused := func(err error) Refused {
		var answer *core.APIError
		if errors.As(err, &answer) {
			return Refused{answer.StatusCode, err.Error()}
		}
		return Refused{0, err.Error()}
	}
	return []Case{
		{"rerank", rerank(&cohere.V2RerankRequest{Model: "reranker"})},
		{"rerank_first", first},
		{"rerank_settings", rerank(&cohere.V2RerankRequest{
			Model: "reranker", TopN: cohere.Int(2), MaxTokensPerDoc: cohere.Int(4096)})},
		{"embed", embed(cohere.EmbedInputTypeSearchDocument)},
		{"embed_query", embed(cohere.EmbedInputTypeSearchQuery)},
		{"unknown_model", rerank(&cohere.V2RerankRequest{Model: "nobody"})},
		{"lacking_task", rerank(&cohere.V2RerankRequest{Model: "code-lm"})},
	}, refused, nil
}
