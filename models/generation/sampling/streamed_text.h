// The text of one sequence, token by token: stop strings across token borders, and how much may be
// shown already. Everything is bytes; only what is shown is made of whole characters.
// Belongs to one thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace longview::models {

class StreamedText {
 public:
  // `stops` is borrowed; none is empty.
  explicit StreamedText(const std::vector<std::string>& stops) : stops_(&stops) {}

  // Adds a token's bytes. True if a stop string ends inside them: the text is then cut where the
  // one that ends first begins (among those that end there, the longest). Nothing may be added
  // after.
  bool Append(std::string_view bytes);

  // Adds to `text` what is safe to show: all but the longest end that may become a stop string, and
  // but a character whose rest may still come. Bytes that are no UTF-8 become U+FFFD.
  void Release(std::string& text);

  // Adds all the rest.
  void Finish(std::string& text);

 private:
  bool CutAtStop();
  size_t HeldBytes() const;

  const std::vector<std::string>* stops_;
  std::string pending_;  // Not shown yet. A stop string can only begin in it.
};

}  // namespace longview::models
