// Many slices of one UTF-8 text by code points, the unit of every position in answers.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace longview::models {

// Starts of a text's code points. Thread-safe once made.
class CodePointIndex {
 public:
  // REQUIRES: `text` is UTF-8 and outlives this.
  explicit CodePointIndex(std::string_view text) : text_(text) {
    for (size_t i = 0; i < text.size(); ++i) {
      if ((static_cast<unsigned char>(text[i]) & 0xc0) != 0x80) {
        starts_.push_back(static_cast<uint32_t>(i));
      }
    }
    starts_.push_back(static_cast<uint32_t>(text.size()));
  }

  int size() const { return static_cast<int>(starts_.size()) - 1; }

  // Code points [begin, end), clipped to the text.
  std::string Slice(int begin, int end) const {
    begin = Clip(begin);
    end = Clip(end);
    if (begin >= end) return {};
    return std::string(text_.substr(starts_[begin], starts_[end] - starts_[begin]));
  }

 private:
  int Clip(int at) const { return at < 0 ? 0 : at > size() ? size() : at; }

  std::string_view text_;
  std::vector<uint32_t> starts_;
};

}  // namespace longview::models
