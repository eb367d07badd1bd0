// Contracts between a plan and a call, checked before every run.
#pragma once

#include "kernels/span/executor.h"
#include "kernels/span/plan.h"

namespace longview::kernels {

// Aborts when an index, size or pointer cannot be right. Linear in tiles and spans, reads no
// tensor. Thread-safe.
void CheckPlan(const Plan& plan, const Call& call, Isa isa);

}  // namespace longview::kernels
