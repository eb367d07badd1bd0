// Vectors in every form, and documents of several inputs.
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "server/errors.h"
#include "server/http/json/body_error.h"
#include "server/http/v1/embeddings_request.h"
#include "server/http/vector_form.h"

namespace longview::server {
namespace {

using longview::v1::EmbedRequest;

std::string Written(const std::vector<float>& values, VectorForm form) {
  std::string out;
  AppendVector(values, form, &out);
  return out;
}

TEST(VectorForm, EveryForm) {
  const std::vector<float> values = {0.5F, -1, 0, 0.25F, 2, -0.125F, 1, -2, 1};
  EXPECT_EQ(Written(values, VectorForm::kFloat), "[0.5,-1,0,0.25,2,-0.125,1,-2,1]");
  EXPECT_EQ(Written(values, VectorForm::kInt8), "[32,-64,0,16,127,-8,64,-127,64]");
  EXPECT_EQ(Written(values, VectorForm::kUint8), "[160,64,128,144,255,120,192,1,192]");
  // 1001 1010, and one bit more.
  EXPECT_EQ(Written(values, VectorForm::kUbinary), "[154,128]");
  EXPECT_EQ(Written(values, VectorForm::kBinary), "[26,0]");
  EXPECT_EQ(Written({1, -2}, VectorForm::kBase64), "\"AACAPwAAAMA=\"");
  EXPECT_EQ(Written({0, 0}, VectorForm::kInt8), "[0,0]");
}

std::vector<EmbedRequest> Texts(const std::vector<std::string>& texts) {
  std::vector<EmbedRequest> out;
  for (const std::string& text : texts) out.emplace_back().set_text(text);
  return out;
}

TEST(LateChunking, TextsBecomeOneDocument) {
  const auto document = JoinToDocument(Texts({"Größe. ", "Two", "three", "\nFour"}));
  ASSERT_TRUE(document.ok());
  EXPECT_EQ(document->text(), "Größe. Two three\nFour");
  ASSERT_EQ(document->chunks_size(), 4);
  const int ends[][2] = {{0, 7}, {7, 10}, {11, 16}, {16, 21}};
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(document->chunks(i).start(), ends[i][0]);
    EXPECT_EQ(document->chunks(i).end(), ends[i][1]);
  }
  std::vector<EmbedRequest> ids(1);
  ids[0].add_token_ids(5);
  EXPECT_FALSE(JoinToDocument(ids).ok());
}

TEST(LateChunking, ErrorsNameTheInput) {
  const absl::Status named = OfLateInputs(FieldError("chunks[3]", "no token ends in it"));
  EXPECT_EQ(named.message(), "input[3]: no token ends in it");
  EXPECT_EQ(GetErrorDetail(named).param, "input");
  EXPECT_EQ(OfLateInputs(FieldError("chunks", "does not go with truncate")).message(),
            "late_chunking: does not go with truncate");
  EXPECT_EQ(OfLateInputs(FieldError("text", "is odd")).message(), "text: is odd");
}

}  // namespace
}  // namespace longview::server
