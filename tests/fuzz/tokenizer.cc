// A tokenizer.json, a NUL byte and a text: the file is refused, or the text becomes tokens whose
// offsets lie in it.
#include <string>

#include "models/text/tokenizer.h"
#include "models/text/utf8.h"
#include "tests/fuzz/fuzz.h"
#include "tests/support/temp_directory.h"

namespace longview::models {
namespace {

void CheckEncoding(const Tokenizer& tokenizer, const Encoding& encoding, int64_t code_points) {
  const size_t tokens = encoding.ids.size();
  FUZZ_PROMISE(encoding.type_ids.size() == tokens && encoding.offsets.size() == tokens);
  FUZZ_PROMISE(encoding.words.size() == tokens && encoding.sequences.size() == tokens);
  FUZZ_PROMISE(encoding.special_mask.size() == tokens);
  for (size_t t = 0; t < tokens; ++t) {
    const Encoding::Range range = encoding.offsets[t];
    FUZZ_PROMISE(range.begin >= 0 && range.begin <= range.end && range.end <= code_points);
    FUZZ_PROMISE(encoding.ids[t] >= 0 && encoding.ids[t] <= tokenizer.max_id());
  }
}

void Use(const Tokenizer& tokenizer, std::string_view text) {
  EncodeOptions options;
  const auto whole = tokenizer.Encode(text, options);
  if (!whole.ok()) return;
  CheckEncoding(tokenizer, whole->encoding, CodePoints(text));
  // Decoded text is UTF-8, whatever the tokens are.
  if (const auto decoded = tokenizer.Decode(whole->encoding.ids, false); decoded.ok()) {
    FUZZ_PROMISE(ReplaceInvalidUtf8(*decoded) == *decoded);
  }
  options.max_length = 5;
  if (const auto cut = tokenizer.Encode(text, options); cut.ok()) {
    FUZZ_PROMISE(cut->encoding.ids.size() <= 5);
    CheckEncoding(tokenizer, cut->encoding, CodePoints(text));
  }
}

}  // namespace
}  // namespace longview::models

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace longview;
  static const testing::TempDirectory directory;
  const auto [file, text] = fuzz::SplitAtNul(fuzz::AsText(data, size));
  directory.Write("tokenizer.json", file);
  const auto tokenizer = models::Tokenizer::Load(directory.path());
  if (tokenizer.ok()) {
    models::Use(*tokenizer, text);
  } else {
    FUZZ_PROMISE(!tokenizer.status().message().empty());
  }
  return 0;
}
