// --quantize: the quality gate of int8 (models/quantize) on the command line.
#pragma once

#include <ostream>
#include <string>

#include "absl/status/statusor.h"
#include "models/model.h"

namespace longview::server {

struct QuantizeCommand {
  std::string directory;  // A model's.
  std::string texts;      // A file of lines or a folder of files; empty = none.
  std::string pictures;   // A folder; empty = none.
  bool dry_run = false;
};

// Prints the report on `out` and progress on `err`: a bar that is drawn anew where it `draws`, else
// a line a step. The error's message says why nothing was written; FAILED_PRECONDITION: int8 gains
// nothing.
absl::Status RunQuantize(const QuantizeCommand& command, const models::LoadOptions& load,
                         std::ostream& out, std::ostream& err, bool draws);

}  // namespace longview::server
