//! Calls a server with Rust's stock clients at their defaults:
//!
//!     longview-test-clients CLIENT HTTP_URL [CASE] <inputs.json
//!
//! Prints an object: the answer of each case, or {"error": {"status", "message"}}.

use async_openai::config::OpenAIConfig;
use async_openai::error::OpenAIError;
use async_openai::types::completions::{CreateCompletionRequest, CreateCompletionRequestArgs};
use async_openai::types::embeddings::{CreateEmbeddingRequest, CreateEmbeddingRequestArgs};
use async_openai::Client;
use futures::StreamExt;
use serde_json::{json, Map, Value};

const CASES: [&str; 7] = [
    "embed",
    "embed_short",
    "complete",
    "stream",
    "models",
    "unknown_model",
    "lacking_task",
];

fn number(inputs: &Value, name: &str) -> u32 {
    inputs[name].as_u64().expect("a number") as u32
}

fn embedding(
    inputs: &Value,
    model: &str,
    dimensions: Option<u32>,
) -> Result<CreateEmbeddingRequest, OpenAIError> {
    let texts: Vec<String> = serde_json::from_value(inputs["texts"].clone()).expect("texts");
    let mut request = CreateEmbeddingRequestArgs::default();
    request.model(model).input(texts);
    if let Some(dimensions) = dimensions {
        request.dimensions(dimensions);
    }
    request.build()
}

fn completion(inputs: &Value, model: &str) -> Result<CreateCompletionRequest, OpenAIError> {
    CreateCompletionRequestArgs::default()
        .model(model)
        .prompt(inputs["prompt"].as_str().expect("a prompt"))
        .max_tokens(number(inputs, "max_tokens"))
        .temperature(0.0)
        .build()
}

async fn embed(
    client: &Client<OpenAIConfig>,
    request: CreateEmbeddingRequest,
) -> Result<Value, OpenAIError> {
    let answer = client.embeddings().create(request).await?;
    let vectors: Vec<_> = answer
        .data
        .into_iter()
        .map(|entry| entry.embedding)
        .collect();
    Ok(json!(vectors))
}

async fn complete(
    client: &Client<OpenAIConfig>,
    request: CreateCompletionRequest,
) -> Result<Value, OpenAIError> {
    let answer = client.completions().create(request).await?;
    Ok(json!(answer.choices[0].text))
}

async fn stream(
    client: &Client<OpenAIConfig>,
    request: CreateCompletionRequest,
) -> Result<Value, OpenAIError> {
    let mut pieces = client.completions().create_stream(request).await?;
    let mut text = String::new();
    while let Some(piece) = pieces.next().await {
        text += &piece?.choices[0].text;
    }
    Ok(json!(text))
}

async fn call(
    client: &Client<OpenAIConfig>,
    inputs: &Value,
    name: &str,
) -> Result<Value, OpenAIError> {
    match name {
        "embed" => embed(client, embedding(inputs, "embedder", None)?).await,
        "embed_short" => {
            let dimensions = number(inputs, "dimensions");
            embed(client, embedding(inputs, "embedder", Some(dimensions))?).await
        }
        "complete" => complete(client, completion(inputs, "code-lm")?).await,
        "stream" => stream(client, completion(inputs, "code-lm")?).await,
        "models" => {
            let answer = client.models().list().await?;
            let ids: Vec<_> = answer.data.into_iter().map(|model| model.id).collect();
            Ok(json!(ids))
        }
        "unknown_model" => embed(client, embedding(inputs, "nobody", None)?).await,
        "lacking_task" => complete(client, completion(inputs, "embedder")?).await,
        _ => unreachable!("every case has a call"),
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    assert_eq!(arguments[1], "async-openai");
    let inputs: Value = serde_json::from_reader(std::io::stdin()).expect("inputs");
    let config = OpenAIConfig::new()
        .with_api_base(format!("{}/v1", arguments[2]))
        .with_api_key("-");
    let client = Client::with_config(config);
    let mut answers = Map::new();
    for name in CASES {
        if arguments.get(3).is_some_and(|only| only != name) {
            continue;
        }
        let answer = match call(&client, &inputs, name).await {
            Ok(answer) => answer,
            // The client's error has no status of HTTP.
            Err(error) => json!({"error": {"status": null, "message": error.to_string()}}),
        };
        answers.insert(name.to_string(), answer);
    }
    println!("{}", Value::Object(answers));
}
