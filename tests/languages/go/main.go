// Calls a server with Go's stock clients at their defaults:
//
//	clients CLIENT ADDRESS [CASE] <inputs.json
//
// ADDRESS is a URL for clients of HTTP and host:port for gRPC. Prints an object: the answer of
// each case, or {"error": {"status", "message"}}.
package main

import (
	"encoding/json"
	"fmt"
	"os"
)

// Inputs of the calls, the same in every language.
type Inputs struct {
	Texts      []string `json:"texts"`
	Query      string   `json:"query"`
	Documents  []string `json:"documents"`
	Sources    []string `json:"sources"`
	Prompt     string   `json:"prompt"`
	MaxTokens  int64    `json:"max_tokens"`
	Dimensions int64    `json:"dimensions"`
}

// A Case is a call with its name.
type Case struct {
	Name string
	Call func() (any, error)
}

// A Pair is the place of a document and its score.
type Pair [2]float64

// Refused is what a client's error says: HTTP's status, or 0, and the text.
type Refused struct {
	Status  int    `json:"status"`
	Message string `json:"message"`
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// answer makes a call; a fault inside the client is an error, too.
func answer(call func() (any, error)) (result any, err error) {
	defer func() {
		if fault := recover(); fault != nil {
			err = fmt.Errorf("the client: %v", fault)
		}
	}()
	return call()
}

func main() {
	var inputs Inputs
	if err := json.NewDecoder(os.Stdin).Decode(&inputs); err != nil {
		fail(err)
	}
	clients := map[string]func(string, Inputs) ([]Case, func(error) Refused, error){
		"openai": openaiCases, "sashabaranov": sashabaranovCases, "cohere": cohereCases, "grpc": grpcCases,
	}
	cases, refused, err := clients[os.Args[1]](os.Args[2], inputs)
	if err != nil {
		fail(err)
	}
	answers := map[string]any{}
	for _, one := range cases {
		if len(os.Args) > 3 && os.Args[3] != one.Name {
			continue
		}
		if result, err := answer(one.Call); err != nil {
			answers[one.Name] = map[string]any{"error": refused(err)}
		} else {
			answers[one.Name] = result
		}
	}
	if err := json.NewEncoder(os.Stdout).Encode(answers); err != nil {
		fail(err)
	}
}
