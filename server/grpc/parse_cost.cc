#include "server/grpc/parse_cost.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>

#include <algorithm>
#include <cstring>

namespace longview::server {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedInputStream;

constexpr int kMostDepth = 100;  // The recursion limit of protobuf's parser.

// Sizes of protobuf 3.21 on 64-bit systems, rounded up.
constexpr uint64_t kString = 56;     // The object and its place in a list.
constexpr uint64_t kMapNode = 96;    // Beside key and value.
constexpr uint64_t kUnknown = 64;    // A field nobody knows is kept.
constexpr uint64_t kListGrowth = 3;  // Lists double, and arenas keep what they outgrew.

uint64_t SizeOf(const Descriptor& type) {
  return 96 + 24 * static_cast<uint64_t>(type.field_count());
}

uint64_t ElementBytes(const FieldDescriptor& field) {
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT64:
    case FieldDescriptor::CPPTYPE_UINT64:
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return 8;
    case FieldDescriptor::CPPTYPE_BOOL:
      return 1;
    default:
      return 4;
  }
}

bool IsFixed(const FieldDescriptor& field) {
  switch (field.type()) {
    case FieldDescriptor::TYPE_DOUBLE:
    case FieldDescriptor::TYPE_FLOAT:
    case FieldDescriptor::TYPE_FIXED32:
    case FieldDescriptor::TYPE_FIXED64:
    case FieldDescriptor::TYPE_SFIXED32:
    case FieldDescriptor::TYPE_SFIXED64:
      return true;
    default:
      return false;
  }
}

// How many numbers end within `size` bytes: the last byte of each has its high bit clear. Eight
// bytes at a time, each with a sum of its own.
uint64_t NumbersIn(const uint8_t* bytes, size_t size) {
  constexpr uint64_t kOnes = 0x0101010101010101;
  constexpr size_t kMostSteps = 255;  // Sums of one byte hold no more.
  uint64_t numbers = 0;
  while (size >= 8) {
    const size_t steps = std::min(size / 8, kMostSteps);
    uint64_t sums = 0;
    for (size_t i = 0; i < steps; ++i) {
      uint64_t word = 0;
      std::memcpy(&word, bytes + 8 * i, 8);
      sums += (~word >> 7) & kOnes;
    }
    const uint64_t pairs = (sums & 0x00FF00FF00FF00FF) + ((sums >> 8) & 0x00FF00FF00FF00FF);
    numbers += (pairs * 0x0001000100010001) >> 48;
    bytes += 8 * steps;
    size -= 8 * steps;
  }
  for (size_t i = 0; i < size; ++i) numbers += bytes[i] < 0x80 ? 1 : 0;
  return numbers;
}

class Counter {
 public:
  Counter(CodedInputStream& in, uint64_t most) : in_(in), most_(most) {}

  // Reads to the end of the stream or its limit; false stops everything.
  bool Message(const Descriptor& type, int depth) {
    Add(SizeOf(type));
    while (bytes_ <= most_) {
      const uint32_t tag = in_.ReadTag();
      if (tag == 0) return in_.ConsumedEntireMessage();
      if (!Field(type.FindFieldByNumber(WireFormatLite::GetTagFieldNumber(tag)), tag, depth)) {
        return false;
      }
    }
    return false;
  }

  uint64_t bytes() const { return bytes_; }

 private:
  void Add(uint64_t bytes) { bytes_ += bytes; }

  bool Field(const FieldDescriptor* field, uint32_t tag, int depth) {
    const auto wire = WireFormatLite::GetTagWireType(tag);
    if (wire == WireFormatLite::WIRETYPE_LENGTH_DELIMITED) return Delimited(field, depth);
    if (field == nullptr) {
      Add(kUnknown);
    } else if (field->is_repeated()) {
      Add(kListGrowth * ElementBytes(*field));
    }
    if (wire == WireFormatLite::WIRETYPE_VARINT) {
      uint64_t value = 0;
      return in_.ReadVarint64(&value);
    }
    if (wire == WireFormatLite::WIRETYPE_FIXED64) return in_.Skip(8);
    if (wire == WireFormatLite::WIRETYPE_FIXED32) return in_.Skip(4);
    // Groups are in none of our messages: each of their fields is an unknown one.
    if (wire == WireFormatLite::WIRETYPE_START_GROUP) Add(kUnknown);
    return wire == WireFormatLite::WIRETYPE_START_GROUP ||
           wire == WireFormatLite::WIRETYPE_END_GROUP;
  }

  bool Delimited(const FieldDescriptor* field, int depth) {
    uint32_t length = 0;
    if (!in_.ReadVarint32(&length) || length > INT32_MAX) return false;
    if (field == nullptr) {
      Add(kUnknown + length);
      return in_.Skip(static_cast<int>(length));
    }
    if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      if (depth >= kMostDepth) return false;
      if (field->is_map()) Add(kMapNode);
      const CodedInputStream::Limit outer = in_.PushLimit(static_cast<int>(length));
      const bool read = Message(*field->message_type(), depth + 1);
      in_.PopLimit(outer);
      return read;
    }
    if (field->cpp_type() == FieldDescriptor::CPPTYPE_STRING) {
      Add(kString + (length > 15 ? length : 0));
      return in_.Skip(static_cast<int>(length));
    }
    return Packed(*field, length);
  }

  bool Packed(const FieldDescriptor& field, uint32_t length) {
    if (IsFixed(field)) {
      Add(length);
      return in_.Skip(static_cast<int>(length));
    }
    uint64_t elements = 0;
    for (uint32_t left = length; left > 0;) {
      const void* data = nullptr;
      int size = 0;
      if (!in_.GetDirectBufferPointer(&data, &size)) return false;
      const auto* bytes = static_cast<const uint8_t*>(data);
      const int take = static_cast<int>(std::min<uint32_t>(left, static_cast<uint32_t>(size)));
      elements += NumbersIn(bytes, static_cast<size_t>(take));
      if (!in_.Skip(take)) return false;
      left -= static_cast<uint32_t>(take);
    }
    Add(kListGrowth * elements * ElementBytes(field));
    return true;
  }

  CodedInputStream& in_;
  const uint64_t most_;
  uint64_t bytes_ = 0;
};

}  // namespace

uint64_t EstimateParsedBytes(const Descriptor& type,
                             google::protobuf::io::ZeroCopyInputStream& wire, uint64_t most) {
  CodedInputStream in(&wire);
  Counter counter(in, most);
  counter.Message(type, 0);
  return counter.bytes();
}

}  // namespace longview::server
