#include "server/engine/request_bytes.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "server/engine/image_header.h"

namespace longview::server {
namespace {

// Bytes that values hold outside of themselves. Structs that hold such values are taken apart into
// all of their members: one that gets a further member does not compile until it is counted.
struct Held {
  // Numbers, and structs of numbers alone.
  template <typename T>
  requires(std::is_trivially_copyable_v<T>) static size_t By(const T&) { return 0; }
  static size_t By(const std::string& text) { return text.size(); }
  template <typename T>
  static size_t By(const std::optional<T>& value) {
    return value ? By(*value) : 0;
  }
  template <typename T>
  static size_t By(const std::vector<T>& values) {
    size_t bytes = sizeof(T) * values.size();
    if constexpr (!std::is_trivially_copyable_v<T>) {
      for (const T& value : values) bytes += By(value);
    }
    return bytes;
  }
  static size_t By(const std::map<std::string, std::string>& values) {
    size_t bytes = 0;
    for (const auto& [name, value] : values) {
      bytes += sizeof(name) + sizeof(value) + By(name) + By(value);
    }
    return bytes;
  }
  static size_t By(const models::TokenInput& input) {
    const auto& [ids, mask, types, global] = input;
    return Sum(ids, mask, types, global);
  }
  static size_t By(const models::PixelInput& input) {
    const auto& [height, width, values, outline] = input;
    return Sum(height, width, values, outline);
  }
  static size_t By(const models::TokenChunks& chunks) {
    const auto& [positions, ranges] = chunks;
    return Sum(positions, ranges);
  }
  static size_t By(const models::GenerationOptions& options) {
    const auto& [defaults, max_new_tokens, min_new_tokens, do_sample, temperature, top_p, top_k,
                 repetition_penalty, seed, stop, ignore_eos, sequences, beams, length_penalty,
                 ngram, early_stopping, logprobs, echo, others] = options;
    return Sum(defaults, max_new_tokens, min_new_tokens, do_sample, temperature, top_p, top_k,
               repetition_penalty, seed, stop, ignore_eos, sequences, beams, length_penalty, ngram,
               early_stopping, logprobs, echo, others);
  }
  // One of many requests' prompt, which is read with each of them.
  static size_t By(const std::shared_ptr<const std::string>& text) { return text ? By(*text) : 0; }
  // Tokens of one of a call's texts, as many as the model reads.
  static size_t By(const std::shared_ptr<const models::SharedText>&) { return 0; }
  // Documents count against the memory of their device.
  static size_t By(const std::shared_ptr<models::Document>&) { return 0; }

  template <typename... Values>
  static size_t Sum(const Values&... values) {
    return (By(values) + ... + 0);
  }
};

}  // namespace

size_t RequestBytes(const models::Request& request) {
  const auto& [task, text, tokens, text_pair, tokens_pair, shared_text, question, choices,
               choice_tokens, truncate, truncate_tokens, direction, pair_tokens, global_positions,
               global_tokens, image, pixel_values, score_threshold, max_detections, masks, tiles,
               aggregation, pooling, normalize, prompt, prompt_name, prompt_choices, shared_prompt,
               dimensions, chunks, chunk_tokens, chunk_overlap, window_overlap, token_chunks, top_k,
               max_answer_tokens, generation, decoder_tokens, document, extend_document, tensors,
               typed, cache_space] = request;
  return sizeof(request) + Held::Sum(task, text, tokens, text_pair, tokens_pair, shared_text,
                                     question, choices, choice_tokens, truncate, truncate_tokens,
                                     direction, pair_tokens, global_positions, global_tokens, image,
                                     pixel_values, score_threshold, max_detections, masks, tiles,
                                     aggregation, pooling, normalize, prompt, prompt_name,
                                     prompt_choices, shared_prompt, dimensions, chunks,
                                     chunk_tokens, chunk_overlap, window_overlap, token_chunks,
                                     top_k, max_answer_tokens, generation, decoder_tokens, document,
                                     extend_document, tensors, typed, cache_space);
}

size_t PrepareScratch(const models::Request& request) {
  // A tokenizer's memory for each byte that it reads at once.
  constexpr size_t kBytesOfByte = 192, kMostAtOnce = size_t{1} << 20;
  // Memory of the tokens of a text in chunks, all of which are kept, for each byte.
  constexpr size_t kBytesOfKept = 32;
  // Memory of a picture's decoded forms for each pixel.
  constexpr size_t kBytesOfPixel = 8;
  if (request.image) return kBytesOfPixel * HeaderPixels(*request.image);
  size_t longest = 0;
  for (const auto& text : {&request.text, &request.text_pair, &request.question}) {
    if (*text) longest = std::max(longest, (*text)->size());
  }
  for (const std::string& choice : request.choices) longest = std::max(longest, choice.size());
  const size_t kept = request.wants_chunks() ? kBytesOfKept * longest : 0;
  return kBytesOfByte * std::min(longest, kMostAtOnce) + kept;
}

}  // namespace longview::server
