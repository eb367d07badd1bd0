#include "server/security/security.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <thread>

#include "tests/support/certificates.h"
#include "tests/support/temp_directory.h"

namespace longview::server {
namespace {

using testing::Certificate;
using ::testing::HasSubstr;
using testing::MakeCertificate;

class SecurityTest : public ::testing::Test {
 protected:
  SecurityTest() {
    folder_.Write("cert.pem", own_.chain);
    folder_.Write("key.pem", own_.key);
    folder_.Write("keys", "search:first");
    options_ = {.tls_cert = folder_.Path("cert.pem"),
                .tls_key = folder_.Path("key.pem"),
                .tls_client_ca = "",
                .api_keys_file = folder_.Path("keys"),
                .interval = absl::Milliseconds(2)};
  }

  std::string Problem() { return std::string(Security::Open(options_, log_).status().message()); }

  static bool Eventually(const std::function<bool()>& condition) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (std::chrono::steady_clock::now() < end) {
      if (condition()) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return false;
  }

  const Certificate own_ = MakeCertificate("own");
  const testing::TempDirectory folder_;
  Log log_{LogFormat::kJson, LogLevel::kError};
  SecurityOptions options_;
};

TEST_F(SecurityTest, NothingAskedForIsNothingChecked) {
  const auto security = Security::Open({}, log_);
  ASSERT_TRUE(security.ok()) << security.status();
  EXPECT_EQ((*security)->keys(), nullptr);
  EXPECT_EQ((*security)->tls(), nullptr);
}

TEST_F(SecurityTest, BadFilesStopTheStartAndAreNamed) {
  folder_.Write("keys", "# nobody\n");
  EXPECT_THAT(Problem(), HasSubstr(folder_.Path("keys")));
  options_.api_keys_file = folder_.Path("missing");
  EXPECT_THAT(Problem(), HasSubstr(folder_.Path("missing")));
  folder_.Write("key.pem", MakeCertificate("other").key);
  EXPECT_THAT(Problem(), HasSubstr(folder_.Path("key.pem")));
  options_.tls_key = folder_.Path("no-key");
  EXPECT_THAT(Problem(), HasSubstr(folder_.Path("no-key")));
  options_.tls_key = folder_.Path("key.pem");
  options_.tls_client_ca = folder_.Write("ca.pem", "");
  folder_.Write("key.pem", own_.key);
  EXPECT_THAT(Problem(), HasSubstr("tls_client_ca"));
}

TEST_F(SecurityTest, NewKeysCountAndBadOnesDoNot) {
  const auto security = Security::Open(options_, log_);
  ASSERT_TRUE(security.ok()) << security.status();
  const ApiKeys& keys = *(*security)->keys();
  EXPECT_TRUE(keys.Authenticate("Bearer first").ok());
  folder_.Write("keys", "search:second");
  EXPECT_TRUE(Eventually([&] { return keys.Authenticate("Bearer second").ok(); }));
  EXPECT_FALSE(keys.Authenticate("Bearer first").ok());
  // The good file behind the bad ones shows that these have been read, and were passed over.
  for (const char* bad : {"no colon", ""}) {
    folder_.Write("keys", bad);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    EXPECT_TRUE(keys.Authenticate("Bearer second").ok());
  }
  std::filesystem::remove(folder_.Path("keys"));
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_TRUE(keys.Authenticate("Bearer second").ok());
  folder_.Write("keys", "search:third");
  EXPECT_TRUE(Eventually([&] { return keys.Authenticate("Bearer third").ok(); }));
}

TEST_F(SecurityTest, ACertificateIsTakenOnlyWithItsKey) {
  const auto security = Security::Open(options_, log_);
  ASSERT_TRUE(security.ok()) << security.status();
  const TlsSource& tls = *(*security)->tls();
  const Certificate next = MakeCertificate("next");
  folder_.Write("cert.pem", next.chain);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(tls.Current()->certificate_chain, own_.chain);
  folder_.Write("key.pem", next.key);
  EXPECT_TRUE(Eventually([&] { return tls.Current()->certificate_chain == next.chain; }));
  EXPECT_EQ(tls.Current()->private_key, next.key);
}

}  // namespace
}  // namespace longview::server
