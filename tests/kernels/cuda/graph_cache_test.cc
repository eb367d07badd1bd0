// Recorded steps: handed over at first, recorded once, launched ever after, thrown away in order of
// use.
#include "kernels/cuda/graph_cache.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>

namespace longview::kernels::cuda {

// A graph is what was recorded: the letters that `record` wrote.
struct Graph {
  std::string recorded;
};

struct Stream {
  bool recording = false;
  std::string work;  // Names of the work that ran.
  std::string pending;
  int synchronized = 0;
};

namespace {

int graphs_alive = 0;

PluginApi FakeApi() {
  PluginApi api = {};
  api.synchronize = [](Stream* stream) -> Status {
    ++stream->synchronized;
    return 0;
  };
  api.begin_recording = [](Stream* stream) -> Status {
    EXPECT_FALSE(stream->recording);
    stream->recording = true;
    stream->pending.clear();
    return 0;
  };
  api.end_recording = [](Stream* stream, Graph** graph) -> Status {
    EXPECT_TRUE(stream->recording);
    stream->recording = false;
    *graph = new Graph{stream->pending};
    ++graphs_alive;
    return 0;
  };
  api.launch_graph = [](Stream* stream, Graph* graph) -> Status {
    stream->work += graph->recorded;
    return 0;
  };
  api.destroy_graph = [](Graph* graph) -> Status {
    delete graph;
    --graphs_alive;
    return 0;
  };
  return api;
}

GraphKey Key(int rows, int tiles = 0) { return {rows, tiles}; }

// Hands over one letter, as a stream that records or runs takes it.
std::function<Status()> HandOver(Stream& stream, const std::string& work, std::string& log) {
  return [&stream, &log, work]() -> Status {
    log += work;
    (stream.recording ? stream.pending : stream.work) += work;
    return 0;
  };
}

TEST(GraphCacheTest, RunsAtOnceThenRecordsThenLaunches) {
  const PluginApi api = FakeApi();
  Stream stream;
  std::string handed_over;
  {
    GraphCache cache(api, 4);
    const auto step = [&](const GraphKey& key, const char* work) {
      EXPECT_EQ(cache.Run(&stream, key, HandOver(stream, work, handed_over)), 0);
    };
    step(Key(1), "a");
    EXPECT_EQ(graphs_alive, 0);
    step(Key(1), "A");
    EXPECT_EQ(graphs_alive, 1);
    step(Key(1), "never handed over");
    step(Key(2), "b");
    step(Key(1, 8), "c");
    step(Key(1), "never handed over");
    step(Key(1, 8), "C");
    EXPECT_EQ(cache.sizes(), 3u);
  }
  EXPECT_EQ(stream.work, "aAAbcAC");
  EXPECT_EQ(handed_over, "aAbcC");
  EXPECT_EQ(graphs_alive, 0);
}

TEST(GraphCacheTest, ForgetsTheOneUnusedForLongest) {
  const PluginApi api = FakeApi();
  Stream stream;
  std::string handed_over;
  GraphCache cache(api, 2);
  for (const int rows : {1, 1, 2, 2, 1, 3, 3, 1, 2}) {
    ASSERT_EQ(cache.Run(&stream, Key(rows), HandOver(stream, std::to_string(rows), handed_over)),
              0);
  }
  EXPECT_EQ(stream.work, "112213312");
  EXPECT_EQ(handed_over, "1122332");
  EXPECT_EQ(cache.sizes(), 2u);
  EXPECT_EQ(graphs_alive, 1) << "the last one ran once";
  EXPECT_EQ(stream.synchronized, 2) << "a graph may still run when it is thrown away";
}

TEST(GraphCacheTest, AFailedStepIsNotRemembered) {
  const PluginApi api = FakeApi();
  Stream stream;
  GraphCache cache(api, 2);
  EXPECT_EQ(cache.Run(&stream, Key(1), []() -> Status { return 700; }), 700);
  EXPECT_EQ(cache.sizes(), 0u);
}

TEST(GraphCacheTest, AFailedRecordingLeavesTheStreamUsable) {
  const PluginApi api = FakeApi();
  Stream stream;
  std::string handed_over;
  GraphCache cache(api, 2);
  EXPECT_EQ(cache.Run(&stream, Key(1), HandOver(stream, "a", handed_over)), 0);
  EXPECT_EQ(cache.Run(&stream, Key(1), []() -> Status { return 700; }), 700);
  EXPECT_FALSE(stream.recording);
  EXPECT_EQ(graphs_alive, 0);
  EXPECT_EQ(cache.Run(&stream, Key(1), HandOver(stream, "b", handed_over)), 0);
  EXPECT_EQ(stream.work, "ab");
}

}  // namespace
}  // namespace longview::kernels::cuda
