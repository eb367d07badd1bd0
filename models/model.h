// The one interface between the server and the models.
//
// Names no LibTorch, JSON, gRPC or protobuf type: the server includes this and nothing else
// of models/. A request goes Prepare -> (queue) -> Begin -> Advance... -> Take.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "models/generation.h"

namespace longview::kernels {
class CacheMemory;
}

namespace longview::models {

class Int8Observer;  // dense/weight_format.h
class SharedText;    // tokenizing.h
struct RunTimes;     // cost/stopwatch.h

// Element types of host tensors; names as in the Open Inference Protocol.
enum class TensorType { kFp32, kInt64, kInt32, kBool, kBytes };

// An answer's tensor, of one item: shapes have no leading item dimension (logits [labels],
// last_hidden_state [T, d], multiple choice [c]). kBytes keeps its elements in `strings`, all
// others in `data` (row-major, little-endian).
struct HostTensor {
  std::string name;
  TensorType type = TensorType::kFp32;
  std::vector<int64_t> shape;
  std::vector<std::byte> data;
  std::vector<std::string> strings;

  std::span<const float> floats() const {
    return {reinterpret_cast<const float*>(data.data()), data.size() / sizeof(float)};
  }
};

enum class Task {
  kTextClassification,
  kTextPairClassification,
  kMultipleChoice,
  kTokenClassification,
  kQuestionAnswering,
  kFillMask,
  kEmbedding,
  kMultiVector,
  kRerank,
  kTextGeneration,
  kText2TextGeneration,
  kImageClassification,
  kObjectDetection,
  kImageFeatures,
};

std::string_view TaskName(Task task);  // "text-classification", ...
std::optional<Task> ParseTask(std::string_view name);

// A tensor a model takes or gives under the Open Inference Protocol; -1 = any extent.
struct TensorSpec {
  std::string name;
  TensorType type;
  std::vector<int64_t> shape;
  bool by_default = true;  // Outputs: answered when a request names none.
};

// Payload type URL of an INTERNAL error after which the device that the model computes on answers
// no more: whatever is on it is lost.
inline constexpr std::string_view kDeviceLost = "type.longview/device-lost";

// How classification scores become probabilities.
enum class ProblemType { kSingleLabel, kMultiLabel, kRegression };

// Payload type URL of an INVALID_ARGUMENT that means "these bytes are no picture".
inline constexpr std::string_view kUndecodableImage = "type.longview/undecodable-image";

// Facts of a loaded model, constant after load.
struct ModelInfo {
  std::string family;        // "longformer"
  std::string architecture;  // "LongformerForSequenceClassification"
  Task task = Task::kEmbedding;
  std::vector<Task> tasks;          // `task` first.
  std::vector<std::string> labels;  // By id.
  ProblemType problem_type = ProblemType::kSingleLabel;
  int max_tokens = 0;  // Specials included; 0 = not a text model.
  int64_t max_pixels = 0;
  int embedding_width = 0;
  bool has_tokenizer = false;
  std::string dtype;   // "fp32", "bf16", "fp16", "int8"
  std::string device;  // "cpu"
  double parameters = 0;
  double memory_bytes = 0;  // Resident weights, packed ones counted once.
  // Prompts of a generator are read in chunks of multiples of this many tokens (chunked prefill),
  // so a grant of prefill is a multiple of it, or all that is left. Of encoder-decoder models it is
  // a share of the encoder's work on the document.
  int prefill_alignment = 0;  // 0 = not a generator.
  int sequences = 1;          // Answered where a request does not say how many.
  int32_t pad_token = 0;      // Fills rows of token_ids: pad, else the end's, else 0.
  // Everything clients may send and name under the Open Inference Protocol, what the server
  // derives included: attention_mask, text_pair, ...; probabilities, label, entities, top, ...
  // Other names are refused before the model sees the request.
  std::vector<TensorSpec> inputs;
  std::vector<TensorSpec> outputs;
  // Unexpected choices of loading, for the log ("bf16 is not available: fp32").
  std::vector<std::string> notes;
};

// One sequence as token ids, special tokens included by the caller.
struct TokenInput {
  std::vector<int32_t> ids;
  std::vector<uint8_t> attention_mask;              // 0/1 per token; empty = all 1.
  std::vector<int32_t> token_type_ids;              // Empty = 0.
  std::optional<std::vector<uint8_t>> global_mask;  // 0/1; unset = the task's default.
};

// An image as a model reads it: [3, height, width], normalised.
struct PixelInput {
  int height = 0;
  int width = 0;
  std::vector<float> values;
  // Stands for any picture of this size as seen: no values; its item has the cost and never runs.
  bool outline = false;
};

// A text read once, whose state later requests continue. Opaque outside of its model; it must
// not outlive the model. Only the executor's thread changes it.
class Document {
 public:
  virtual ~Document() = default;
  virtual int tokens() const = 0;          // Read so far.
  virtual double state_bytes() const = 0;  // Held, the closed form of tokens().
};

// A picture cut into overlapping squares, each detected in as a picture of its own. Pixels of the
// picture as seen.
struct TileGrid {
  int size = 0;     // Pixels of a side.
  int overlap = 0;  // Least overlap of neighbouring squares; below `size`.
};

// Code points of a text, end exclusive.
struct TextRange {
  int start = 0, end = 0;
};

// Elements [begin, end) of a list.
struct TokenRange {
  int32_t begin = 0, end = 0;
};

// Tokens of a sequence that are pooled into several vectors.
struct TokenChunks {
  std::vector<int32_t> positions;  // In the sequence.
  std::vector<TokenRange> chunks;  // Ranges of `positions`, a vector each.
};

// One item that a client asks of a model. Fields a task does not use stay empty; a
// field that is set but means nothing to the model is an error of Prepare.
struct Request {
  Task task = Task::kTextClassification;

  // The document: text, or tokens (exactly one).
  std::optional<std::string> text;
  std::optional<TokenInput> tokens;
  // The second text of a pair, or the question (QA: `text` is the document).
  std::optional<std::string> text_pair;
  std::optional<TokenInput> tokens_pair;
  // Pairs that have the same `text` may share this, for its tokens to be found once.
  std::shared_ptr<const SharedText> shared_text;
  std::optional<std::string> question;
  // Multiple choice: each is paired with `text`; or whole sequences.
  std::vector<std::string> choices;
  std::vector<TokenInput> choice_tokens;

  // Whether a text that is too long is cut; unset: as the model's directory or LoadOptions say.
  std::optional<bool> truncate;
  // Cut to so many tokens, at most the model's limit; -1: to that.
  std::optional<int> truncate_tokens;
  std::string truncation_direction;  // Cut end of the text: "right" (or "") or "left".
  // Rerank: `text_pair` is cut to so many tokens of its own, before anything else.
  std::optional<int> pair_tokens;
  std::optional<std::vector<int32_t>> global_positions;  // Token positions.
  std::vector<std::string> global_tokens;  // Every occurrence of these becomes global.

  // Images: encoded bytes (JPEG, PNG, WebP), or pixels as the model reads them (exactly one).
  std::optional<std::string> image;
  std::optional<PixelInput> pixel_values;

  // Detection. Unset or 0: the model's own.
  std::optional<float> score_threshold;  // Detections score above it; in [0, 1].
  int max_detections = 0;
  bool masks = false;  // Whether Detection::mask_runs are wanted.
  std::optional<TileGrid> tiles;

  std::string aggregation;  // "" = simple.
  std::string pooling;      // "" = the model's.
  std::optional<bool> normalize;
  // Embeddings, multi-vector: a text put in front, or the name of one of the directory's; neither:
  // its default one.
  std::optional<std::string> prompt, prompt_name;
  // Without these, the first of these names that the directory has; none of them: its default one.
  std::vector<std::string> prompt_choices;
  // Put in front instead of all these; only in requests that PlanChunks made, which share it.
  std::shared_ptr<const std::string> shared_prompt;
  std::optional<int64_t> dimensions;  // The first numbers of an embedding; unset: the directory's.
  // Chunks of the text without its prompt, an embedding each. For Model::PlanChunks alone, like the
  // next three.
  std::vector<TextRange> chunks;
  std::optional<int> chunk_tokens;  // Without `chunks`: a chunk of every so many tokens.
  int chunk_overlap = 0;            // Tokens of a chunk that belong to the next one too.
  // Tokens that neighbouring windows share in a text longer than the model reads at once; unset: an
  // eighth of the model's limit.
  std::optional<int> window_overlap;
  bool wants_chunks() const {
    return !chunks.empty() || chunk_tokens || chunk_overlap != 0 || window_overlap;
  }
  // Chunks of `tokens` that are a vector of the embedding each; only in requests that PlanChunks
  // made.
  std::optional<TokenChunks> token_chunks;
  int top_k = 0;              // 0 = the task's default.
  int max_answer_tokens = 0;  // 0 = 30.

  // Text generation: a prompt as above (or none after a document), and how to go on.
  std::optional<GenerationOptions> generation;
  // Encoder-decoder models, whose prompt is what the encoder reads: the start of the output.
  std::optional<TokenInput> decoder_tokens;
  std::shared_ptr<Document> document;  // The prompt continues a fork of it.
  bool extend_document = false;        // Read the prompt into `document`, generate nothing.

  // Names of tensors wanted in Answer::tensors ("logits", "embedding", "last_hidden_state",
  // "start_logits", "end_logits", "mask_logits"); work that none of them needs is not done.
  std::vector<std::string> tensors;
  // Whether the typed results below are wanted (labels, entities, answers, masks).
  bool typed = true;

  // Prefixes that a prompt leaves in the cache are found by requests of the same space alone.
  uint64_t cache_space = 0;
};

struct LabelScore {
  int id = 0;
  std::string name;
  float score = 0;
};

// Positions: code points of the text, or tokens if the request had tokens; end exclusive.
struct EntitySpan {
  std::string label;
  float score = 0;
  std::string text;
  int start = 0, end = 0;
};

struct AnswerSpan {
  std::string text;
  float score = 0, probability = 0;
  int start = 0, end = 0;
};

struct MaskFill {
  struct Candidate {
    int token_id = 0;
    std::string token;
    float logprob = 0;
  };
  int position = 0;
  std::vector<Candidate> candidates;
};

// How well a document answers a query.
struct PairScore {
  float score = 0;  // The model's activation of `raw`.
  float raw = 0;    // The logit.
};

// One found object. The box is in pixels of the picture as seen, x0 < x1, y0 < y1.
struct Detection {
  int id = 0;
  std::string name;
  float score = 0;
  float x0 = 0, y0 = 0, x1 = 0, y1 = 0;
  // Runs over the whole picture, column after column: pixels outside the object, then inside.
  std::vector<uint32_t> mask_runs;
};

struct ItemUsage {
  int input_tokens = 0;
  int output_tokens = 0;
  int cached_tokens = 0;
  int truncated_tokens = 0;
  int width = 0, height = 0;
};

// The result of one item.
struct Answer {
  // In the order of Request::tensors, without the item dimension: logits [labels], [choices]
  // or [T, labels]; embedding [d], with chunks [chunks, d]; last_hidden_state [T, d];
  // start_logits [T]; mask_logits [M, V], the rows of [T, V] where `masks` are, in their order.
  std::vector<HostTensor> tensors;
  std::vector<LabelScore> labels;  // Best first; regression: raw outputs by id.
  std::vector<EntitySpan> entities;
  std::vector<AnswerSpan> answers;  // Best first.
  std::vector<MaskFill> masks;
  PairScore pair_score;               // Rerank: `text` is the query, `text_pair` the document.
  std::vector<Detection> detections;  // Best first.
  // Generation: every sequence whole, best first where beams were searched; the prompt apart.
  std::vector<Piece> sequences;
  std::optional<Piece> prompt;  // With GenerationOptions::echo, unless TakePieces gave it.
  ItemUsage usage;

  const HostTensor* Find(std::string_view name) const;

  // The name of a tensor, or "scores", that holds a NaN or an infinity; empty if all are numbers.
  std::string_view NotFinite() const;
};

// The cost of an item. Bytes are exact, seconds a calibrated prediction.
struct Cost {
  double seconds = 0;
  double prompt_seconds = 0;  // The part for reading the prompt, if it generates.
  // Held from admission to the end (generation). Continuing a document: beside what the document
  // holds itself; reading into one: what it grows by.
  double state_bytes = 0;
  // Scratch while it runs alone, and tables that a model makes for the first text of its length.
  double workspace_bytes = 0;
  // Multiply-adds of linears and of attention's scores and sums: useful pairs of queries and keys,
  // rows that an answer needs. A generator's logits are not in it.
  double multiply_adds = 0;
  double answer_bytes = 0;  // The echoed prompt with its scores; in state_bytes.
  double token_bytes = 0;   // Answer bytes of each generated token; not in state_bytes.
};

// How the chunks of a text are read: the whole text at once, in windows that overlap, or each as
// a text of its own.
enum class Chunking { kLate, kWindows, kSeparate };

// The requests that together answer one for chunks.
struct ChunkPlan {
  Chunking chunking = Chunking::kLate;
  std::vector<Request> items;
  std::vector<TextRange> ranges;  // Each chunk's, in the text without its prompt.
  // A chunk's embedding: one of the vectors of an item's.
  struct Source {
    int item = 0, vector = 0;
  };
  std::vector<Source> sources;  // One for each chunk.
};

// A prepared request: tokens or pixels with a known cost. Immutable, owned by the caller;
// must not outlive its model. Any other model that was loaded from the same directory onto a device
// of the same kind takes it as its own, unless it has a document.
class Item {
 public:
  virtual ~Item() = default;
  const Cost& cost() const { return cost_; }
  const ItemUsage& usage() const { return usage_; }

 protected:
  Cost cost_;
  ItemUsage usage_;
};

// A batch in flight. Used by one executor thread; not thread-safe.
class Run {
 public:
  virtual ~Run() = default;
  // Does the next layer for all items not dropped; returns whether work is left.
  virtual bool Advance() = 0;
  // Nobody waits for item i any more; later layers skip it where that saves work.
  virtual void Drop(int i) = 0;
  // The answer of item i, once Advance returned false. Each i at most once.
  virtual absl::StatusOr<Answer> Take(int i) = 0;
};

// A generating request at work: its sequences, what they have read, sampling and stopping.
// Used by the executor's thread only. Destroying it gives its memory back, at any time between
// two steps.
class Generation {
 public:
  virtual ~Generation() = default;

  // Work of its next step, and its cost beside others.
  struct Need {
    int prefill = 0;  // Tokens to read before the next token can be sampled.
    // Sequences that take one token each: in the next step, or once the prompt is read.
    int sequences = 0;
    double prefill_seconds = 0;  // Predicted, per token read.
    double decode_seconds = 0;   // Predicted, of one token for each sequence.
    double prompt_seconds = 0;   // Predicted, of all of `prefill`.
  };
  virtual Need need() const = 0;
  virtual bool done() const = 0;

  // Output since the last call.
  virtual std::vector<Piece> TakePieces() = 0;

  // The whole answer. REQUIRES: done(). Once.
  virtual absl::StatusOr<Answer> Take() = 0;
};

// A request's share of a step: `prefill` tokens of its prompt, or 0: its sequences' next tokens.
struct StepGrant {
  Generation* generation = nullptr;
  int prefill = 0;
};

// A loaded model. const methods are thread-safe; Begin and the Run it returns belong to the
// device's executor thread.
class Model {
 public:
  virtual ~Model() = default;

  virtual const ModelInfo& info() const = 0;

  // Tokenises and checks. INVALID_ARGUMENT names field, value and limit; UNIMPLEMENTED if the
  // model lacks the task.
  virtual absl::StatusOr<std::unique_ptr<Item>> Prepare(const Request& request) const = 0;

  // The items of a request for chunks, tokenised. Errors as Prepare.
  virtual absl::StatusOr<ChunkPlan> PlanChunks(const Request& request) const;

  // The cost of a document of `tokens` tokens, without a document.
  virtual absl::StatusOr<Cost> EstimateTokens(int tokens) const = 0;

  // Adds its seconds by part to `times`, unless null: on a device, each part is then waited for.
  // REQUIRES: items are this model's; they and `times` outlive the run.
  virtual std::unique_ptr<Run> Begin(std::span<const Item* const> items, RunTimes* times) const = 0;
  std::unique_ptr<Run> Begin(std::span<const Item* const> items) const {
    return Begin(items, nullptr);
  }

  // Runs a few shapes, sets the constants of Cost::seconds; of several calls the best ones count.
  // Before serving, on the executor thread (or any thread while nothing else runs).
  virtual absl::Status WarmUp() = 0;

  // Bytes kept of what follows from the sizes of pictures; thread-safe.
  virtual double image_plan_bytes() const { return 0; }

  // ---- Generators (prefill_alignment > 0); others refuse with UNIMPLEMENTED. ----

  // A generation for an admitted item, whose state bytes are the caller's to reserve until it is
  // destroyed. Finds what the cache already holds of the prompt. It may be done at once (a short
  // piece of a document). On the executor's thread. FAILED_PRECONDITION if the item's document
  // was read into since Prepare, or a piece of it was not read to its end.
  // REQUIRES: the item is this model's and outlives the generation.
  virtual absl::StatusOr<std::unique_ptr<Generation>> Start(const Item& item);

  // One step of several generations, layer by layer. Drop(i) names a grant; Take is not used:
  // results are taken from the generations once Advance returned false.
  // REQUIRES: none is done; a grant of prefill is at most its need, and a multiple of
  // prefill_alignment or all of it.
  virtual std::unique_ptr<Run> BeginStep(std::span<const StepGrant> grants);

  // Predicted seconds of a step beyond what its grants add up to.
  virtual double StepSeconds() const { return 0; }

  // An empty document, to be extended by requests.
  virtual absl::StatusOr<std::shared_ptr<Document>> NewDocument();

  virtual CacheUse cache() const { return {}; }  // Thread-safe.
};

// Memory for generation state, as much on each device, that all models loaded with it share.
// Thread-safe. Outlives the models.
class CachePool {
 public:
  explicit CachePool(double bytes_per_device);
  ~CachePool();

  // For models: the memory on a device by ModelInfo::device.
  kernels::CacheMemory& On(std::string_view device);

 private:
  struct Devices;
  const std::unique_ptr<Devices> devices_;
};

struct LoadOptions {
  std::string dtype = "auto";  // auto, fp32, bf16, int8, and on devices fp16
  std::string device = "cpu";
  CachePool* cache = nullptr;  // Generation state; borrowed.
  double cache_bytes = 0;      // Without `cache`: the model has so many for itself alone.
  int64_t max_image_pixels = int64_t{1} << 26;    // Limit of an encoded image, by its header.
  int64_t image_plan_bytes = int64_t{128} << 20;  // Kept of what follows from pictures' sizes.
  bool truncate = false;                          // Default of requests and longview.json.
  // Overrides config.json and longview.json: the model is HuggingFace's class with a head for the
  // task. INVALID_ARGUMENT for a family whose classes are not known by task.
  std::optional<Task> task = std::nullopt;
  // Overrides int8_keep of longview.json.
  std::optional<std::vector<std::string>> int8_keep = std::nullopt;
  // With dtype int8: the model computes without it and tells the observer what it would change.
  // Borrowed for the model's life.
  Int8Observer* int8_observer = nullptr;
};

// Reads a model directory. Errors name the file, the tensor or key, and what was expected.
absl::StatusOr<std::unique_ptr<Model>> LoadModel(const std::string& directory,
                                                 const LoadOptions& options);

// A directory's family, tasks and faults, found without loading weights (headers are read).
struct Inspection {
  bool servable = false;
  std::string report;  // Several lines for a person.
  std::string error;   // First problem, one line; empty if servable.
};
// `task` as in LoadOptions.
Inspection InspectDirectory(const std::string& directory, std::optional<Task> task = std::nullopt);

// Devices on which models may run, by a wish: auto, cpu, cuda (every device), or a list such as
// cuda:0,cuda:1. Asks the machine: nothing is loaded where there is no driver.
struct Devices {
  std::vector<std::string> names;  // Best first: "cuda:0", ..., and always "cpu" at the end.
  std::string report;              // One line for logs: what is used, or why there is no CUDA.
};
// INVALID_ARGUMENT: not such a list, or a device twice. NOT_FOUND: a device that was asked for by
// name is not there; the message says why and what is.
absl::StatusOr<Devices> FindDevices(std::string_view wanted);

// Sets the compute threads of the whole process. Call once, before any load.
void SetComputeThreads(int threads);

// One line for logs: library versions, instruction sets chosen.
std::string DescribeBackend();

}  // namespace longview::models
