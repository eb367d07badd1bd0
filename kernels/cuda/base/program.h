// Block programs: the text of a kernel, written so that a device runs it in parallel and the host
// runs the same text thread by thread.
//
// A program is a struct of static functions:
//
//   using Args = ...;                       plain data, pointers into the device's memory
//   static constexpr int kThreads = ...;    threads of a block
//   struct Thread {...};                    what a thread keeps between phases
//   struct Shared {...};                    what the block shares; trivial, at most 48 KB
//   Grid GridOf(const Args&);               blocks
//   int Phases(const Args&, Block);         the same for all threads of a block
//   void Phase(const Args&, Block, int phase, int thread, Thread&, Shared&);
//
// Between two phases the block waits for all its threads: within one, a thread must not read what
// another writes. RunOnHost finds out: it runs the threads of a phase in rising or falling order,
// and results that differ tell of a missing phase.
//
// program.cuh runs programs on a device.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

namespace longview::kernels::cuda {

struct Grid {
  int64_t x = 0;  // Up to 2^31 - 1.
  int y = 1;      // Up to 65535.
};

struct Block {
  int64_t x = 0;
  int y = 0;
};

enum class ThreadOrder { kRising, kFalling };

// Runs all blocks of a program, one after the other. Device memory is the host's here.
template <typename Program>
void RunOnHost(const typename Program::Args& args, ThreadOrder order = ThreadOrder::kRising) {
  const Grid grid = Program::GridOf(args);
  const auto shared = std::make_unique<typename Program::Shared>();
  std::vector<typename Program::Thread> threads(Program::kThreads);
  for (int y = 0; y < grid.y; ++y) {
    for (int64_t x = 0; x < grid.x; ++x) {
      const Block block = {x, y};
      // Shared memory begins as whatever was there: numbers that spoil a sum.
      std::memset(static_cast<void*>(shared.get()), 0x7f, sizeof(*shared));
      const int phases = Program::Phases(args, block);
      for (int phase = 0; phase < phases; ++phase) {
        for (int i = 0; i < Program::kThreads; ++i) {
          const int thread = order == ThreadOrder::kRising ? i : Program::kThreads - 1 - i;
          Program::Phase(args, block, phase, thread, threads[thread], *shared);
        }
      }
    }
  }
}

}  // namespace longview::kernels::cuda
