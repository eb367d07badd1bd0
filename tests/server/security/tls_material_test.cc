#include "server/security/tls_material.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/certificates.h"

namespace longview::server {
namespace {

using testing::Encrypted;
using ::testing::HasSubstr;
using testing::MakeCertificate;

std::string Problem(const TlsMaterial& material) {
  return std::string(CheckTlsMaterial(material).message());
}

TEST(TlsMaterial, AcceptsAPairAndAChain) {
  const auto own = MakeCertificate("server"), other = MakeCertificate("other");
  EXPECT_TRUE(CheckTlsMaterial({own.chain, own.key, ""}).ok());
  EXPECT_TRUE(CheckTlsMaterial({own.chain + other.chain, own.key, other.chain}).ok());
  // One file with both, as some tools write it.
  const std::string both = own.key + own.chain;
  EXPECT_TRUE(CheckTlsMaterial({both, both, ""}).ok());
  EXPECT_THAT(ExpiryOf({own.chain, own.key, ""}), HasSubstr("GMT"));
}

TEST(TlsMaterial, SaysWhatIsWrong) {
  const auto own = MakeCertificate("server"), other = MakeCertificate("other");
  EXPECT_THAT(Problem({"", own.key, ""}), HasSubstr("tls_cert"));
  EXPECT_THAT(Problem({"hello", own.key, ""}), HasSubstr("tls_cert"));
  const std::string damaged = own.chain.substr(0, 200) + own.chain.substr(260);
  EXPECT_THAT(Problem({damaged, own.key, ""}), HasSubstr("tls_cert"));
  EXPECT_THAT(Problem({own.chain + damaged, own.key, ""}), HasSubstr("tls_cert"));
  EXPECT_THAT(Problem({own.chain, "", ""}), HasSubstr("tls_key"));
  EXPECT_THAT(Problem({own.chain, own.chain, ""}), HasSubstr("tls_key"));
  EXPECT_THAT(Problem({own.chain, other.key, ""}), HasSubstr("not the key of"));
  EXPECT_THAT(Problem({other.chain + own.chain, own.key, ""}), HasSubstr("first certificate"));
  EXPECT_THAT(Problem({own.chain, Encrypted(own.key, "word"), ""}), HasSubstr("passphrase"));
  EXPECT_THAT(Problem({own.chain, own.key, "nobody"}), HasSubstr("tls_client_ca"));
}

TEST(TlsSource, HandsOutTheNewestAndKeepsTheOld) {
  const auto old = MakeCertificate("old"), next = MakeCertificate("next");
  TlsSource source({old.chain, old.key, ""});
  const auto held = source.Current();
  EXPECT_EQ(source.Current(), held);
  source.Replace({next.chain, next.key, ""});
  EXPECT_NE(source.Current(), held);
  EXPECT_EQ(source.Current()->certificate_chain, next.chain);
  EXPECT_EQ(held->certificate_chain, old.chain);
}

}  // namespace
}  // namespace longview::server
