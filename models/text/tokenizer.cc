#include "models/text/tokenizer.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "models/status_macros.h"
#include "models/stop_scope.h"
#include "models/text/tokenizer_directory.h"
#include "models/text/tokenizer_ffi/tokenizer_ffi.h"
#include "models/tokenizing.h"

namespace longview::models {

namespace {

// Texts of more than four times that are tokenised in pieces, with the same result: memory is then
// of a piece and of the tokens that truncation leaves.
constexpr uint32_t kPieceBytes = 64 << 10;

struct FreeEncoding {
  void operator()(LvtEncoding* encoding) const { lvt_encoding_free(encoding); }
};

struct FreeString {
  void operator()(LvtString* string) const { lvt_string_free(string); }
};

const LvtSharedText* KeptBy(const SharedText* shared) {
  if (shared == nullptr) return nullptr;
  return static_cast<const LvtSharedText*>(shared->Tokens([] {
    return std::shared_ptr<void>(lvt_shared_text(), [](void* kept) {
      lvt_shared_text_free(static_cast<LvtSharedText*>(kept));
    });
  }));
}

LvtText ToText(std::string_view text) { return {text.data(), text.size()}; }

std::string TakeString(LvtString* owned) {
  const std::unique_ptr<LvtString, FreeString> string(owned);
  const LvtText text = lvt_string_text(string.get());
  return std::string(text.data, text.size);
}

class ErrorText {
 public:
  LvtError* get() { return &error_; }
  absl::Status status(std::string_view prefix) const {
    const std::string message = absl::StrCat(absl::string_view(prefix.data(), prefix.size()),
                                             absl::string_view(error_.data, error_.size));
    if (error_.code == kLvtPanic) return absl::InternalError(message);
    if (error_.code == kLvtStopped) return absl::CancelledError(message);
    return absl::InvalidArgumentError(message);
  }

 private:
  std::array<char, 512> buffer_{};
  LvtError error_{buffer_.data(), buffer_.size(), 0, kLvtOk};
};

Encoding CopyWindow(const LvtWindow& window) {
  const size_t n = window.length;
  Encoding encoding;
  encoding.ids.assign(window.ids, window.ids + n);
  encoding.type_ids.assign(window.type_ids, window.type_ids + n);
  encoding.words.assign(window.words, window.words + n);
  encoding.sequences.assign(window.sequences, window.sequences + n);
  encoding.special_mask.assign(window.special, window.special + n);
  encoding.offsets.reserve(n);
  for (size_t i = 0; i < n; ++i) {
    encoding.offsets.push_back({static_cast<int32_t>(window.offsets[2 * i]),
                                static_cast<int32_t>(window.offsets[2 * i + 1])});
  }
  return encoding;
}

bool BeginsCharacter(std::string_view text, size_t at) {
  return at >= text.size() || (static_cast<unsigned char>(text[at]) & 0xC0) != 0x80;
}

}  // namespace

void Tokenizer::Free::operator()(LvtTokenizer* tokenizer) const { lvt_tokenizer_free(tokenizer); }

Tokenizer::Tokenizer(Tokenizer&&) noexcept = default;
Tokenizer& Tokenizer::operator=(Tokenizer&&) noexcept = default;
Tokenizer::~Tokenizer() = default;

absl::StatusOr<Tokenizer> Tokenizer::Load(const std::string& directory, bool lower_case) {
  ASSIGN_OR_RETURN(TokenizerSource source, ReadTokenizerDirectory(directory));
  source.lower_case = lower_case;
  return Create(source);
}

absl::StatusOr<Tokenizer> Tokenizer::Create(const TokenizerSource& source) {
  ErrorText error;
  Tokenizer tokenizer;
  tokenizer.handle_.reset(lvt_tokenizer_from_json(ToText(source.json), error.get()));
  if (tokenizer.handle_ == nullptr) return error.status(source.origin + ": ");
  if (tokenizer.max_id() == std::numeric_limits<int32_t>::max()) {
    return absl::InvalidArgumentError(source.origin + ": token ids do not fit in 31 bits");
  }
  RETURN_IF_ERROR(tokenizer.CheckClaims(source));

  tokenizer.model_max_length_ = source.model_max_length;
  tokenizer.cuts_left_ = source.cuts_left;
  tokenizer.gives_types_ = source.gives_types;
  tokenizer.marks_continuations_ = source.marks_continuations;
  tokenizer.lower_case_ = source.lower_case;
  const std::pair<std::string_view, std::optional<int32_t>*> roles[] = {
      {"bos_token", &tokenizer.special_.bos},  {"eos_token", &tokenizer.special_.eos},
      {"unk_token", &tokenizer.special_.unk},  {"sep_token", &tokenizer.special_.sep},
      {"pad_token", &tokenizer.special_.pad},  {"cls_token", &tokenizer.special_.cls},
      {"mask_token", &tokenizer.special_.mask}};
  for (const auto& [role, id] : roles) {
    const auto name = source.roles.find(role);
    if (name != source.roles.end()) *id = tokenizer.TokenToId(name->second);
  }
  return tokenizer;
}

absl::Status Tokenizer::CheckClaims(const TokenizerSource& source) const {
  for (const TokenClaim& claim : source.claims) {
    const std::optional<int32_t> id = TokenToId(claim.token);
    if (id && *id == claim.id) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        source.origin, ": ", claim.where, " gives token \"", claim.token, "\" the id ", claim.id,
        ", the vocabulary ", id ? absl::StrCat("gives it ", *id) : "lacks it"));
  }
  return absl::OkStatus();
}

absl::StatusOr<EncodeResult> Tokenizer::Encode(std::string_view text,
                                               const EncodeOptions& options) const {
  return Run(text, nullptr, options);
}

absl::StatusOr<EncodeResult> Tokenizer::EncodePair(std::string_view text, std::string_view pair,
                                                   const EncodeOptions& options) const {
  return Run(text, &pair, options);
}

absl::StatusOr<EncodeResult> Tokenizer::Run(std::string_view text, const std::string_view* pair,
                                            const EncodeOptions& options) const {
  constexpr size_t kMaxBytes = std::numeric_limits<int32_t>::max();
  if (text.size() > kMaxBytes || (pair != nullptr && pair->size() > kMaxBytes)) {
    return absl::InvalidArgumentError(absl::StrCat("text has more than ", kMaxBytes, " bytes"));
  }
  if (options.max_length < 0 || options.stride < 0 || options.keep_first < 0) {
    return absl::InvalidArgumentError(absl::StrCat("max_length ", options.max_length, ", stride ",
                                                   options.stride, ", keep_first ",
                                                   options.keep_first, ": must not be negative"));
  }
  const LvtEncodeOptions raw = {
      .stop = StopFlag(),
      .first = KeptBy(options.shared),
      .piece_bytes = kPieceBytes,
      .most_tokens = 0,
      .max_length = static_cast<uint32_t>(options.max_length),
      .stride = options.windows ? static_cast<uint32_t>(options.stride) : 0,
      .keep_first = static_cast<uint32_t>(options.keep_first),
      .strategy = static_cast<uint8_t>(options.strategy),
      .cut_left = options.cut_left,
      .add_special = options.add_special_tokens,
      .match_special = options.match_special_tokens,
      .byte_offsets = options.offsets == OffsetUnit::kBytes,
      .windows = options.windows,
      .lower_case = lower_case_};
  const LvtText first = ToText(text);
  const LvtText second = pair == nullptr ? LvtText{} : ToText(*pair);

  ErrorText error;
  const std::unique_ptr<LvtEncoding, FreeEncoding> encoding(
      lvt_encode(handle_.get(), first, pair == nullptr ? nullptr : &second, &raw, error.get()));
  if (encoding == nullptr) return error.status("");

  EncodeResult result;
  result.encoding = CopyWindow(lvt_encoding_window(encoding.get(), 0));
  for (size_t i = 1; i < lvt_encoding_windows(encoding.get()); ++i) {
    result.windows.push_back(CopyWindow(lvt_encoding_window(encoding.get(), i)));
  }
  result.tokens_cut = static_cast<int>(lvt_encoding_tokens_cut(encoding.get()));
  result.counted = lvt_encoding_counted(encoding.get()) != 0;
  return result;
}

absl::StatusOr<std::string> Tokenizer::Decode(std::span<const int32_t> ids,
                                              bool skip_special) const {
  // A negative id is unknown, and so is the large number that it becomes.
  const std::vector<uint32_t> raw(ids.begin(), ids.end());
  ErrorText error;
  LvtString* text = lvt_decode(handle_.get(), raw.data(), raw.size(), skip_special, error.get());
  if (text == nullptr) return error.status("");
  return TakeString(text);
}

std::optional<int32_t> Tokenizer::TokenToId(std::string_view token) const {
  const int64_t id = lvt_token_to_id(handle_.get(), ToText(token));
  return id < 0 ? std::nullopt : std::optional<int32_t>(static_cast<int32_t>(id));
}

std::optional<std::string> Tokenizer::IdToToken(int32_t id) const {
  LvtString* token = id < 0 ? nullptr : lvt_id_to_token(handle_.get(), static_cast<uint32_t>(id));
  if (token == nullptr) return std::nullopt;
  return TakeString(token);
}

int Tokenizer::vocab_size() const { return static_cast<int>(lvt_vocab_size(handle_.get())); }

int32_t Tokenizer::max_id() const {
  constexpr int64_t kMax = std::numeric_limits<int32_t>::max();
  return static_cast<int32_t>(std::min(lvt_max_id(handle_.get()), kMax));
}

absl::StatusOr<TextCut> CutText(const Tokenizer& tokenizer, std::string_view text, int tokens,
                                bool left) {
  const EncodeOptions options = {.add_special_tokens = false,
                                 .max_length = tokens,
                                 .cut_left = left,
                                 .offsets = OffsetUnit::kBytes};
  ASSIGN_OR_RETURN(const EncodeResult result, tokenizer.Encode(text, options));
  TextCut cut = {text, result.tokens_cut};
  if (cut.tokens_cut == 0) return cut;
  size_t begin = text.size(), end = 0;
  for (const Encoding::Range& range : result.encoding.offsets) {
    begin = std::min(begin, static_cast<size_t>(range.begin));
    end = std::max(end, static_cast<size_t>(range.end));
  }
  if (left) {
    while (!BeginsCharacter(text, begin)) ++begin;
    cut.kept = text.substr(std::min(begin, text.size()));
  } else {
    end = std::min(end, text.size());
    while (!BeginsCharacter(text, end)) --end;
    cut.kept = text.substr(0, end);
  }
  return cut;
}

}  // namespace longview::models
