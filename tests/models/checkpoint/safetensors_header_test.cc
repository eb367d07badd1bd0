#include "models/checkpoint/safetensors_header.h"

#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "gtest/gtest.h"
#include "tests/models/checkpoint/safetensors_file.h"

namespace longview::models {
namespace {

absl::StatusOr<std::vector<TensorEntry>> Parse(std::string_view bytes) {
  return ParseSafetensorsHeader(std::as_bytes(std::span(bytes)), bytes.size(), "file");
}

constexpr std::string_view kGood = R"({"__metadata__":{"format":"pt"},)"
                                   R"("b":{"dtype":"F32","shape":[2,1],"data_offsets":[4,12]},)"
                                   R"("a":{"dtype":"BF16","shape":[2],"data_offsets":[0,4]},)"
                                   R"("none":{"dtype":"I64","shape":[0,7],"data_offsets":[12,12]},)"
                                   R"("one":{"dtype":"F16","shape":[],"data_offsets":[12,14]}}   )";
const std::string kGoodData(14, 'x');

TEST(SafetensorsHeader, ReadsEntriesInFileOrder) {
  const auto entries = Parse(SafetensorsBytes(kGood, kGoodData));
  ASSERT_TRUE(entries.ok()) << entries.status();
  ASSERT_EQ(entries->size(), 4u);
  EXPECT_EQ((*entries)[0].name, "a");
  EXPECT_EQ((*entries)[0].dtype, DType::kBF16);
  EXPECT_EQ((*entries)[1].name, "b");
  EXPECT_EQ((*entries)[1].shape, (std::vector<int64_t>{2, 1}));
  EXPECT_EQ((*entries)[1].begin, 8 + kGood.size() + 4);
  EXPECT_EQ((*entries)[1].end, 8 + kGood.size() + 12);
  EXPECT_EQ((*entries)[2].name, "none");
  EXPECT_TRUE((*entries)[3].shape.empty());
}

TEST(SafetensorsHeader, AcceptsAFileWithoutTensors) {
  const auto entries = Parse(SafetensorsBytes("{}", ""));
  ASSERT_TRUE(entries.ok()) << entries.status();
  EXPECT_TRUE(entries->empty());
}

struct Broken {
  const char* name;
  std::string bytes;
  std::string message;  // Must be part of the error.
};

void PrintTo(const Broken& broken, std::ostream* out) { *out << broken.name; }

std::string One(std::string_view tensor, size_t data_bytes) {
  return SafetensorsBytes("{\"t\":" + std::string(tensor) + "}", std::string(data_bytes, 'x'));
}

std::vector<Broken> BrokenFiles() {
  const std::string a = R"("a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]})";
  const auto two = [&](const std::string& second, size_t bytes) {
    return SafetensorsBytes("{" + a + "," + second + "}", std::string(bytes, 'x'));
  };
  return {
      {"Empty", "", "has 0 bytes"},
      {"SevenBytes", "1234567", "has 7 bytes"},
      {"HeaderOver100MB", SafetensorsBytes("{}", "", 100'000'001), "over the limit of 100000000"},
      {"HeaderLength64Bit", SafetensorsBytes("{}", "", ~uint64_t{0}), "over the limit"},
      {"HeaderPastTheEnd", SafetensorsBytes("{}", "", 3), "truncated"},
      {"HeaderLengthZero", SafetensorsBytes("", "{}"), "begin with '{'"},
      {"SpaceBeforeTheBrace", SafetensorsBytes(" {}", ""), "begin with '{'"},
      {"NotAnObject", SafetensorsBytes("[]", ""), "begin with '{'"},
      {"CutJson", SafetensorsBytes(R"({"a":{"dtype":"F3)", ""), "not valid JSON"},
      {"TrailingGarbage", SafetensorsBytes("{}}", ""), "not valid JSON"},
      {"NulPadding", SafetensorsBytes(std::string("{}\0\0", 4), ""), "NUL byte"},
      {"InvalidUtf8", SafetensorsBytes("{\"\xff\":{}}", ""), "not valid JSON"},
      {"DuplicateTensor", two(a, 4), "\"a\" appears twice"},
      {"DuplicateEscapedName",
       two(R"("\u0061":{"dtype":"F32","shape":[1],"data_offsets":[4,8]})", 8),
       "\"a\" appears twice"},
      {"DuplicateMetadata", SafetensorsBytes(R"({"__metadata__":{},"__metadata__":{}})", ""),
       "appears twice"},
      {"DuplicateMetadataKey", SafetensorsBytes(R"({"__metadata__":{"x":"1","x":"2"}})", ""),
       "metadata key \"x\" twice"},
      {"MetadataNumber", SafetensorsBytes(R"({"__metadata__":{"x":1}})", ""), "unexpected number"},
      {"MetadataNested", SafetensorsBytes(R"({"__metadata__":{"x":{}}})", ""), "unexpected object"},
      {"DuplicateMember",
       One(R"({"dtype":"F32","dtype":"F32","shape":[1],"data_offsets":[0,4]})", 4),
       "\"dtype\" twice"},
      {"UnknownMember", One(R"({"dtype":"F32","shape":[1],"data_offsets":[0,4],"x":1})", 4),
       "unknown member \"x\""},
      {"NoDtype", One(R"({"shape":[1],"data_offsets":[0,4]})", 4), "tensor \"t\": needs dtype"},
      {"NoShape", One(R"({"dtype":"F32","data_offsets":[0,4]})", 4), "needs dtype, shape"},
      {"NoOffsets", One(R"({"dtype":"F32","shape":[1]})", 4), "needs dtype, shape"},
      {"TensorIsAString", One(R"("x")", 0), "unexpected string"},
      {"TensorIsAList", One("[]", 0), "unexpected list"},
      {"UnknownDtype", One(R"({"dtype":"F33","shape":[1],"data_offsets":[0,4]})", 4),
       "tensor \"t\": unknown dtype \"F33\""},
      {"LowerCaseDtype", One(R"({"dtype":"f32","shape":[1],"data_offsets":[0,4]})", 4),
       "unknown dtype"},
      {"DtypeIsANumber", One(R"({"dtype":32,"shape":[1],"data_offsets":[0,4]})", 4),
       "unexpected number"},
      {"NegativeExtent", One(R"({"dtype":"F32","shape":[-1],"data_offsets":[0,4]})", 4),
       "negative"},
      {"FractionalExtent", One(R"({"dtype":"F32","shape":[1.0],"data_offsets":[0,4]})", 4),
       "not a whole number"},
      {"NestedShape", One(R"({"dtype":"F32","shape":[[1]],"data_offsets":[0,4]})", 4),
       "unexpected list"},
      {"ShapeIsANumber", One(R"({"dtype":"F32","shape":1,"data_offsets":[0,4]})", 4),
       "unexpected number"},
      {"HugeExtent",
       One(R"({"dtype":"F32","shape":[18446744073709551615],"data_offsets":[0,4]})", 4),
       "too large"},
      {"ExtentOver64Bit",
       One(R"({"dtype":"F32","shape":[99999999999999999999],"data_offsets":[0,4]})", 4),
       "not a whole number"},
      // 2^32 * 2^32 elements wrap to 0 bytes.
      {"ProductWraps",
       One(R"({"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0]})", 0),
       "no byte size"},
      {"ByteSizeWraps",
       One(R"({"dtype":"F32","shape":[4611686018427387904],"data_offsets":[0,0]})", 0),
       "no byte size"},
      {"HalfAByte", One(R"({"dtype":"F4","shape":[3],"data_offsets":[0,1]})", 1), "no byte size"},
      {"ThreeOffsets", One(R"({"dtype":"F32","shape":[1],"data_offsets":[0,4,4]})", 4),
       "two numbers"},
      {"OffsetsReversed", One(R"({"dtype":"F32","shape":[1],"data_offsets":[4,0]})", 4),
       "do not lie in"},
      {"OffsetsPastTheEnd", One(R"({"dtype":"F32","shape":[2],"data_offsets":[0,8]})", 4),
       "do not lie in the 4 bytes"},
      {"OffsetsHuge",
       One(R"({"dtype":"F32","shape":[1],"data_offsets":[18446744073709551612,18446744073709551615]})",
           4),
       "do not lie in"},
      {"SizeDiffersFromShape", One(R"({"dtype":"F32","shape":[2],"data_offsets":[0,4]})", 4),
       "shape [2] needs 8 bytes, data_offsets give 4"},
      {"WrongDtypeForSize", One(R"({"dtype":"F16","shape":[1],"data_offsets":[0,4]})", 4),
       "needs 2 bytes"},
      {"HoleAtTheStart", One(R"({"dtype":"F32","shape":[1],"data_offsets":[4,8]})", 8), "hole"},
      {"HoleBetween", two(R"("b":{"dtype":"F32","shape":[1],"data_offsets":[8,12]})", 12),
       "tensor \"b\": leaves a hole"},
      {"Overlap", two(R"("b":{"dtype":"F32","shape":[1],"data_offsets":[2,6]})", 6),
       "tensor \"b\": overlaps"},
      {"SameRange", two(R"("b":{"dtype":"F32","shape":[1],"data_offsets":[0,4]})", 4), "overlaps"},
      {"BytesAfterTheLast", SafetensorsBytes("{" + a + "}", "xxxxx"), "end at byte 4"},
      {"DataTruncated", SafetensorsBytes("{" + a + "}", "xxx"), "do not lie in the 3 bytes"},
      {"DeepNesting", SafetensorsBytes("{\"a\":" + std::string(100'000, '['), ""),
       "unexpected list"},
  };
}

class BrokenHeader : public testing::TestWithParam<Broken> {};

TEST_P(BrokenHeader, IsRefusedWithAReason) {
  const auto entries = Parse(GetParam().bytes);
  ASSERT_FALSE(entries.ok());
  EXPECT_EQ(entries.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(entries.status().message().find(GetParam().message), std::string::npos)
      << entries.status();
}

INSTANTIATE_TEST_SUITE_P(All, BrokenHeader, testing::ValuesIn(BrokenFiles()),
                         [](const auto& info) { return info.param.name; });

// Whatever bytes come in, the answer is an error or entries that tile the data.
TEST(SafetensorsHeader, MutatedFilesNeverEscapeTheFile) {
  const std::string good = SafetensorsBytes(kGood, kGoodData);
  constexpr std::string_view kBytes = "{}[]\",:0123456789-eE.ntf\\u \xff\x80";
  std::mt19937 random(20240711);
  int refused = 0;
  for (int round = 0; round < 20'000; ++round) {
    std::string bytes = good;
    for (int edits = 1 + static_cast<int>(random() % 4); edits > 0 && !bytes.empty(); --edits) {
      const size_t at = random() % bytes.size();
      switch (random() % 4) {
        case 0:
          bytes[at] = kBytes[random() % kBytes.size()];
          break;
        case 1:
          bytes.erase(at, 1 + random() % 8);
          break;
        case 2:
          bytes.insert(at, bytes.substr(random() % bytes.size(), random() % 16));
          break;
        default:
          bytes[at] = static_cast<char>(random());
          break;
      }
    }
    const auto entries = Parse(bytes);
    if (!entries.ok()) {
      ++refused;
      EXPECT_FALSE(entries.status().message().empty());
      continue;
    }
    uint64_t end = entries->empty() ? bytes.size() : entries->front().begin;
    for (const TensorEntry& entry : *entries) {
      ASSERT_EQ(entry.begin, end);
      end = entry.end;
    }
    ASSERT_EQ(end, bytes.size());
  }
  EXPECT_GT(refused, 10'000);
}

}  // namespace
}  // namespace longview::models
