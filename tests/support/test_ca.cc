// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "tests/support/test_ca.h"

#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <atomic>
#include <stdexcept>

namespace sluice::testing {
namespace {

using Key = std::shared_ptr<EVP_PKEY>;
using Certificate = std::shared_ptr<X509>;

void Require(bool good, const char* what) {
  if (!good) throw std::runtime_error(what);
}

Key NewKey() {
  Key key(EVP_EC_gen("P-256"), &::EVP_PKEY_free);
  Require(key != nullptr, "a key");
  return key;
}

template <typename Write>
std::string Pem(const Write& write) {
  const std::unique_ptr<BIO, decltype(&::BIO_free)> memory(::BIO_new(::BIO_s_mem()), &::BIO_free);
  Require(memory != nullptr && write(memory.get()) == 1, "PEM");
  char* text = nullptr;
  const long size = BIO_get_mem_data(memory.get(), &text);
  return {text, static_cast<size_t>(size)};
}
std::string PemOf(const Certificate& certificate) {
  return Pem([&](BIO* bio) { return ::PEM_write_bio_X509(bio, certificate.get()); });
}

void Extend(const Certificate& certificate, const Certificate& issuer, int what,
            const std::string& value) {
  X509V3_CTX context;
  ::X509V3_set_ctx(&context, issuer.get(), certificate.get(), nullptr, nullptr, 0);
  const std::unique_ptr<X509_EXTENSION, decltype(&::X509_EXTENSION_free)> extension(
      ::X509V3_EXT_conf_nid(nullptr, &context, what, value.c_str()), &::X509_EXTENSION_free);
  Require(extension != nullptr, value.c_str());
  Require(::X509_add_ext(certificate.get(), extension.get(), -1) == 1, value.c_str());
}

/// By which nobody's name is another's, and no certificate.
long NextNumber() {
  static std::atomic<long> last = 0;
  return ++last;
}

/// Not signed yet. `issuer` null: itself.
Certificate NewCertificate(const Key& key, const std::string& name, const Certificate& issuer) {
  constexpr long kHourS = 3600;
  Certificate made(::X509_new(), &::X509_free);
  Require(made != nullptr, "a certificate");
  ::X509_set_version(made.get(), X509_VERSION_3);
  ::ASN1_INTEGER_set(::X509_get_serialNumber(made.get()), NextNumber());
  ::X509_gmtime_adj(::X509_getm_notBefore(made.get()), -kHourS);
  ::X509_gmtime_adj(::X509_getm_notAfter(made.get()), kHourS);
  ::X509_set_pubkey(made.get(), key.get());
  X509_NAME* const subject = ::X509_get_subject_name(made.get());
  ::X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC,
                               reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1, 0);
  const X509* const by = issuer != nullptr ? issuer.get() : made.get();
  ::X509_set_issuer_name(made.get(), ::X509_get_subject_name(by));
  return made;
}

void Sign(const Certificate& certificate, const Key& key) {
  Require(::X509_sign(certificate.get(), key.get(), ::EVP_sha256()) > 0, "a signature");
}

}  // namespace

TestCa::TestCa(const TestCa* above)
    : key_(NewKey()),
      certificate_(NewCertificate(key_, "test-ca-" + std::to_string(NextNumber()),
                                  above != nullptr ? above->certificate_ : nullptr)) {
  Extend(certificate_, certificate_, NID_basic_constraints, "critical,CA:TRUE");
  Extend(certificate_, certificate_, NID_subject_key_identifier, "hash");
  Sign(certificate_, above != nullptr ? above->key_ : key_);
  pem_ = PemOf(certificate_);
}

TestCa::~TestCa() = default;

ServerIdentity TestCa::Issue(const std::string& names, const std::string& usage,
                             long valid_s) const {
  const Key key = NewKey();
  // A name that some would take for the host's, were there no other.
  const Certificate certificate = NewCertificate(key, "localhost", certificate_);
  ::X509_gmtime_adj(::X509_getm_notAfter(certificate.get()), valid_s);
  Extend(certificate, certificate_, NID_subject_alt_name, names);
  if (!usage.empty()) Extend(certificate, certificate_, NID_ext_key_usage, usage);
  Extend(certificate, certificate_, NID_authority_key_identifier, "keyid:always");
  Sign(certificate, key_);
  return {PemOf(certificate), Pem([&](BIO* bio) {
            return ::PEM_write_bio_PrivateKey(bio, key.get(), nullptr, nullptr, 0, nullptr,
                                              nullptr);
          })};
}

}  // namespace sluice::testing
