// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <memory>
#include <string>

struct evp_pkey_st;
struct x509_st;

namespace sluice::testing {

/// What a server shows and signs with, as PEM.
struct ServerIdentity {
  std::string certificate;
  std::string key;
};

/// A CA that nobody else knows, made anew each time, and what it issues: since an hour, for an
/// hour.
/// Throws std::runtime_error where OpenSSL fails.
class TestCa {
 public:
  /// `above`: the CA that vouches for it; null: none, as of most clusters.
  explicit TestCa(const TestCa* above = nullptr);
  ~TestCa();

  /// For a server with these names, as X.509 has them: "DNS:localhost", "IP:::1", with commas.
  /// `usage`: what it is for, as X.509 has it; empty: anything. `valid_s`: from now; below 0 it has
  /// ended.
  ServerIdentity Issue(const std::string& names, const std::string& usage = "",
                       long valid_s = 3600) const;
  const std::string& pem() const { return pem_; }

 private:
  std::shared_ptr<evp_pkey_st> key_;
  std::shared_ptr<x509_st> certificate_;
  std::string pem_;
};

}  // namespace sluice::testing
