#include "server/security/file_watch.h"

#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <deque>
#include <filesystem>
#include <mutex>

#include "tests/support/temp_directory.h"

namespace longview::server {
namespace {

// Reports of a watch, to be taken one by one.
class Reports {
 public:
  FileWatch::Changed Recorder() {
    return [this](const absl::StatusOr<FileContents>& contents) {
      std::lock_guard lock(mutex_);
      reports_.push_back(contents);
      changed_.notify_all();
    };
  }
  absl::StatusOr<FileContents> Next() {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, std::chrono::seconds(60), [this] { return !reports_.empty(); })) {
      return absl::DeadlineExceededError("nothing was reported");
    }
    auto next = reports_.front();
    reports_.pop_front();
    return next;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<absl::StatusOr<FileContents>> reports_;
};

// At once: a watch must not see the moment in which a file is being written.
void Exchange(const testing::TempDirectory& folder, const std::string& name,
              std::string_view content) {
  std::filesystem::rename(folder.Write("new", content), folder.Path(name));
}

constexpr absl::Duration kInterval = absl::Milliseconds(2);

TEST(FileWatch, ReportsWhatFilesHoldAfterAChange) {
  const testing::TempDirectory folder;
  const std::string a = folder.Write("a", "1"), b = folder.Write("b", "2");
  Reports reports;
  FileWatch watch(kInterval);
  const auto first = watch.Add({a, b}, reports.Recorder());
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(*first, (FileContents{"1", "2"}));
  watch.Start();
  Exchange(folder, "b", "3");
  EXPECT_EQ(*reports.Next(), (FileContents{"1", "3"}));
  // Equal in length, time stamp as it was: only the content tells.
  const auto stamp = std::filesystem::last_write_time(b);
  std::filesystem::last_write_time(folder.Write("new", "4"), stamp);
  std::filesystem::rename(folder.Path("new"), b);
  EXPECT_EQ(*reports.Next(), (FileContents{"1", "4"}));
}

TEST(FileWatch, FollowsASwappedLink) {
  const testing::TempDirectory folder;
  folder.Write("v1/key", "old");
  folder.Write("v2/key", "new");
  std::filesystem::create_directory_symlink("v1", folder.Path("current"));
  Reports reports;
  FileWatch watch(kInterval);
  ASSERT_TRUE(watch.Add({folder.Path("current/key")}, reports.Recorder()).ok());
  watch.Start();
  std::filesystem::create_directory_symlink("v2", folder.Path("next"));
  std::filesystem::rename(folder.Path("next"), folder.Path("current"));
  EXPECT_EQ(*reports.Next(), (FileContents{"new"}));
}

TEST(FileWatch, ReportsAMissingFileOnceAndItsReturn) {
  const testing::TempDirectory folder;
  const std::string file = folder.Write("file", "1");
  Reports reports;
  FileWatch watch(kInterval);
  ASSERT_TRUE(watch.Add({file}, reports.Recorder()).ok());
  watch.Start();
  std::filesystem::remove(file);
  const auto missing = reports.Next();
  EXPECT_EQ(missing.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_NE(missing.status().message().find(file), std::string::npos);
  Exchange(folder, "file", "2");
  EXPECT_EQ(*reports.Next(), (FileContents{"2"}));
}

TEST(ReadFiles, RefusesWhatIsTooLargeToBeAKey) {
  const testing::TempDirectory folder;
  const auto read = ReadFiles({folder.Write("big", std::string((1 << 20) + 1, 'x'))});
  EXPECT_NE(read.status().message().find("1 MiB"), std::string::npos) << read.status();
  EXPECT_TRUE(ReadFiles({folder.Write("fits", std::string(1 << 20, 'x'))}).ok());
  EXPECT_FALSE(ReadFiles({folder.path()}).ok()) << "a folder";
}

}  // namespace
}  // namespace longview::server
