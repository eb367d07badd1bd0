// Self-signed certificates for tests, made on the spot: keys in a repository expire or alarm
// people.
#pragma once

#include <string>

namespace longview::testing {

struct Certificate {
  std::string chain;  // PEM; also a CA that vouches for itself.
  std::string key;    // PEM, P-256.
};

// For localhost and 127.0.0.1, valid from an hour ago for a day.
Certificate MakeCertificate(const std::string& common_name);

// The key, under a passphrase.
std::string Encrypted(const std::string& key, const std::string& passphrase);

}  // namespace longview::testing
