#include "models/text/compose_unigram.h"

#include <cstdint>
#include <initializer_list>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "models/text/sentence_piece.h"

namespace longview::models {
namespace {

using nlohmann::json;

json Special(const std::string& token, int64_t id) {
  return {{"id", token}, {"ids", json::array({id})}, {"tokens", json::array({token})}};
}

// "$A" and tokens, all of type 0.
json Template(std::initializer_list<const char*> parts) {
  json list = json::array();
  for (const std::string part : parts) {
    const bool text = part == "A" || part == "B";
    list.push_back({{text ? "Sequence" : "SpecialToken", {{"id", part}, {"type_id", 0}}}});
  }
  return list;
}

json Normalizer(const std::string& charsmap) {
  json steps = json::array();
  if (!charsmap.empty()) {
    steps.push_back(
        {{"type", "Precompiled"}, {"precompiled_charsmap", absl::Base64Escape(charsmap)}});
  }
  steps.push_back({{"type", "Strip"}, {"strip_left", false}, {"strip_right", true}});
  steps.push_back({{"type", "Replace"}, {"pattern", {{"Regex", " {2,}"}}}, {"content", "\u2581"}});
  return {{"type", "Sequence"}, {"normalizers", std::move(steps)}};
}

absl::string_view ToAbsl(std::string_view text) { return {text.data(), text.size()}; }

absl::Status NotKnown(std::string_view name, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(
      ToAbsl(name), ": texts need a tokenizer.json: ", what,
      "; AutoTokenizer.from_pretrained(DIR).save_pretrained(DIR) of transformers writes one"));
}

}  // namespace

absl::StatusOr<json> ComposeUnigramTokenizer(const std::string& bytes, std::string_view name,
                                             const TokenizerClass& tokenizer_class) {
  if (tokenizer_class.kind != TokenizerKind::kXlmRoberta) {
    return NotKnown(name, absl::StrCat("tokenizer_class \"", tokenizer_class.name,
                                       "\" is not XLMRobertaTokenizer"));
  }
  absl::StatusOr<SentencePieceModel> model = ParseSentencePiece(bytes);
  if (!model.ok()) return NotKnown(name, model.status().message());
  if (model->kind != SentencePieceModel::kUnigram || model->byte_fallback) {
    return NotKnown(name, "the vocabulary is not a Unigram one without bytes");
  }
  constexpr size_t kOwn = 3;  // <unk>, <s>, </s>
  json vocab = json::array({{"<s>", 0.0}, {"<pad>", 0.0}, {"</s>", 0.0}, {"<unk>", 0.0}});
  json added = json::array();
  for (size_t i = kOwn; i < model->pieces.size(); ++i) {
    const SentencePieceModel::Piece& piece = model->pieces[i];
    const bool control = piece.type == SentencePieceModel::kControl;
    if (control || piece.type == SentencePieceModel::kUserDefined) {
      added.push_back({{"id", vocab.size()},
                       {"content", piece.text},
                       {"single_word", false},
                       {"lstrip", false},
                       {"rstrip", false},
                       {"normalized", false},
                       {"special", control}});
    }
    vocab.push_back({piece.text, static_cast<double>(piece.score)});
  }
  vocab.push_back({"<mask>", 0.0});
  const json metaspace = {{"type", "Metaspace"},
                          {"replacement", "\u2581"},
                          {"prepend_scheme", "always"},
                          {"split", true}};
  return json{
      {"version", "1.0"},
      {"added_tokens", std::move(added)},
      {"normalizer", Normalizer(model->charsmap)},
      {"pre_tokenizer", metaspace},
      {"decoder", metaspace},
      {"post_processor",
       {{"type", "TemplateProcessing"},
        {"single", Template({"<s>", "A", "</s>"})},
        {"pair", Template({"<s>", "A", "</s>", "</s>", "B", "</s>"})},
        {"special_tokens", {{"<s>", Special("<s>", 0)}, {"</s>", Special("</s>", 2)}}}}},
      {"model", {{"type", "Unigram"}, {"unk_id", 3}, {"byte_fallback", false}, {"vocab", vocab}}}};
}

}  // namespace longview::models
