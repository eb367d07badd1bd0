#include "models/encoder/chunk_windows.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <utility>

namespace longview::models {
namespace {

constexpr int32_t kNone = -1;

class Layout {
 public:
  Layout(int32_t tokens, int32_t length, int32_t overlap, std::span<const TokenRange> chunks)
      : tokens_(tokens), length_(length), stride_(length - overlap), chunks_(chunks) {
    for (int32_t begin = 0;; begin += stride_) {
      windows_.push_back({begin, std::min(begin + length, tokens)});
      if (windows_.back().end == tokens) break;
    }
    window_of_.assign(chunks.size(), kNone);
  }

  WindowLayout Lay() {
    for (size_t i = 0; i < chunks_.size(); ++i) window_of_[i] = Deepest(chunks_[i]);
    AddForOthers();
    return Used();
  }

 private:
  // Tokens between the chunk and the nearer end of the window that is not the text's.
  int32_t Depth(const TokenRange& window, const TokenRange& chunk) const {
    constexpr int32_t kFar = std::numeric_limits<int32_t>::max();
    const int32_t before = window.begin == 0 ? kFar : chunk.begin - window.begin;
    const int32_t behind = window.end == tokens_ ? kFar : window.end - chunk.end;
    return std::min(before, behind);
  }

  // The window with the chunk in it, the earlier of two that are alike; kNone: there is none.
  int32_t Deepest(const TokenRange& chunk) const {
    int32_t best = kNone, deepest = 0;
    const auto last = std::min(chunk.begin / stride_, static_cast<int32_t>(windows_.size()) - 1);
    for (int32_t i = last; i >= 0; --i) {
      const TokenRange& window = windows_[static_cast<size_t>(i)];
      if (window.end < chunk.end) break;
      const int32_t depth = Depth(window, chunk);
      if (best == kNone || depth >= deepest) {
        best = i;
        deepest = depth;
      }
    }
    return best;
  }

  // In the order of the text, as many chunks a window as fit.
  void AddForOthers() {
    std::vector<size_t> others;
    for (size_t i = 0; i < chunks_.size(); ++i) {
      if (window_of_[i] == kNone) others.push_back(i);
    }
    std::ranges::stable_sort(others, {}, [&](size_t i) { return chunks_[i].begin; });
    for (size_t from = 0; from < others.size();) {
      TokenRange held = chunks_[others[from]];
      size_t to = from + 1;
      for (; to < others.size(); ++to) {
        const int32_t end = std::max(held.end, chunks_[others[to]].end);
        if (end - held.begin > length_) break;
        held.end = end;
      }
      const int32_t spare = length_ - (held.end - held.begin);
      const int32_t begin = std::clamp(held.begin - spare / 2, 0, tokens_ - length_);
      for (; from < to; ++from) window_of_[others[from]] = static_cast<int32_t>(windows_.size());
      windows_.push_back({begin, begin + length_});
    }
  }

  // Only windows with a chunk, in the order of the text.
  WindowLayout Used() {
    std::vector<int32_t> order;
    for (const int32_t window : window_of_) order.push_back(window);
    const auto place = [&](int32_t i) {
      return std::pair(windows_[static_cast<size_t>(i)].begin, i);
    };
    std::ranges::sort(order, {}, place);
    order.erase(std::unique(order.begin(), order.end()), order.end());
    WindowLayout layout;
    std::vector<int32_t> renamed(windows_.size(), kNone);
    for (const int32_t window : order) {
      renamed[static_cast<size_t>(window)] = static_cast<int32_t>(layout.windows.size());
      layout.windows.push_back(windows_[static_cast<size_t>(window)]);
    }
    for (const int32_t window : window_of_) {
      layout.window_of.push_back(renamed[static_cast<size_t>(window)]);
    }
    return layout;
  }

  const int32_t tokens_, length_, stride_;
  const std::span<const TokenRange> chunks_;
  std::vector<TokenRange> windows_;
  std::vector<int32_t> window_of_;
};

}  // namespace

WindowLayout LayWindows(int32_t tokens, int32_t length, int32_t overlap,
                        std::span<const TokenRange> chunks) {
  return Layout(tokens, length, overlap, chunks).Lay();
}

}  // namespace longview::models
