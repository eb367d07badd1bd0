// A vocabulary of SentencePiece: refused, or a tokenizer whose tokens are in it.
#include <string>

#include "models/text/tokenizer.h"
#include "tests/fuzz/fuzz.h"
#include "tests/support/temp_directory.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace longview;
  static const testing::TempDirectory directory;
  directory.Write("config.json", R"({"model_type": "xlm-roberta"})");
  directory.Write("sentencepiece.bpe.model",
                  std::string(reinterpret_cast<const char*>(data), size));
  const auto tokenizer = models::Tokenizer::Load(directory.path());
  if (!tokenizer.ok()) {
    FUZZ_PROMISE(tokenizer.status().message().size() < 2000);
    return 0;
  }
  if (const auto text = tokenizer->Encode("some words, 你好", {}); text.ok()) {
    for (const int32_t id : text->encoding.ids) FUZZ_PROMISE(id >= 0 && id <= tokenizer->max_id());
  }
  return 0;
}
