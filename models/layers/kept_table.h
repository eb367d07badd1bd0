// Tables that are read row by row for as long as a model serves, such as word embeddings.
//
// The pages of a mapped file change when somebody writes into the file, and end the process
// (SIGBUS) when somebody shortens it. Whatever is read after a load must therefore not be the
// file's any more: everything else of a checkpoint is copied or packed, tables are kept.
#pragma once

#include "absl/status/status.h"
#include "models/layers/weight_loader.h"

namespace longview::models {

// Puts pages of the process's own in the place of the tensor's, at the same address and with the
// same bytes. FAILED_PRECONDITION if the file ends before them. While a model loads, by its
// thread. REQUIRES: `tensor` is a checkpoint's.
absl::Status OwnPages(const TensorView& tensor);

// OwnPages where the loader reads weights, and the bytes counted as the model's. Nothing for null,
// which a getter returns after an error.
void KeepTable(const TensorView* table, WeightLoader& load);

}  // namespace longview::models
