#include "models/generation/sampling/streamed_text.h"

#include <algorithm>

#include "models/text/utf8.h"

namespace longview::models {

bool StreamedText::Append(std::string_view bytes) {
  pending_.append(bytes);
  return !stops_->empty() && CutAtStop();
}

bool StreamedText::CutAtStop() {
  size_t end = std::string::npos, begin = 0;
  for (const std::string& stop : *stops_) {
    const size_t found = pending_.find(stop);
    if (found == std::string::npos) continue;
    const size_t found_end = found + stop.size();
    if (found_end < end || (found_end == end && found < begin)) {
      end = found_end;
      begin = found;
    }
  }
  if (end == std::string::npos) return false;
  pending_.resize(begin);
  return true;
}

// The longest end of the text that is a proper beginning of a stop string.
size_t StreamedText::HeldBytes() const {
  size_t held = 0;
  const std::string_view pending = pending_;
  for (const std::string& stop : *stops_) {
    for (size_t size = std::min(stop.size() - 1, pending.size()); size > held; --size) {
      if (pending.ends_with(std::string_view(stop).substr(0, size))) held = size;
    }
  }
  return held;
}

void StreamedText::Release(std::string& text) {
  if (pending_.empty()) return;
  const std::string_view free(pending_.data(), pending_.size() - HeldBytes());
  const size_t shown = free.size() - IncompleteUtf8Suffix(free);
  if (shown == 0) return;
  text += ReplaceInvalidUtf8(free.substr(0, shown));
  pending_.erase(0, shown);
}

void StreamedText::Finish(std::string& text) {
  text += ReplaceInvalidUtf8(pending_);
  pending_.clear();
}

}  // namespace longview::models
