// A folder of files for one test.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace longview::client {

// Made before each test, with a name of its own, and removed with all that is in it.
class TestFolder : public testing::Test {
 protected:
  void SetUp() override {
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    root_ = std::filesystem::path(testing::TempDir()) /
            (std::string(test->test_suite_name()) + "_" + test->name() + std::to_string(getpid()));
    std::filesystem::create_directories(root_);
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  // Returns the path; folders on the way are made.
  std::string Write(const std::string& name, const std::string& content) {
    const std::filesystem::path path = root_ / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << content;
    return path.string();
  }

  std::filesystem::path root_;
};

}  // namespace longview::client
