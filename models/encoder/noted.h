// A part of a model that has something to say about what it was loaded from.
#pragma once

#include <string>
#include <vector>

namespace longview::models {

class Noted {
 public:
  virtual ~Noted() = default;

  // For logs and --check, a line each.
  virtual std::vector<std::string> notes() const = 0;
};

}  // namespace longview::models
