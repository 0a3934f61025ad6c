// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "common/grant/record.h"

#include <gtest/gtest.h>

namespace sluice {
namespace {

GrantRecord Example() {
  return {"0123456789abcdef0123456789abcdef",
          "GPU-8b4db97b-9231-b75b-b1de-e4c9b0990411",
          uint64_t{24} << 30,
          1'800'000'000'000'000'000,
          {"5f3a0c1e-0", "5f3a0c1e-2s"}};
}

std::string ErrorOf(const std::string& text) {
  const Result<GrantRecord> parsed = ParseGrant(text);
  EXPECT_FALSE(parsed.ok()) << text;
  return parsed.status().message();
}

/// The example with one line exchanged.
std::string With(const std::string& line, const std::string& other) {
  std::string text = GrantText(Example());
  const size_t at = text.find(line);
  EXPECT_NE(at, std::string::npos) << line;
  return text.replace(at, line.size(), other);
}

TEST(Grant, ComesBackAsItWasWritten) {
  const Result<GrantRecord> parsed = ParseGrant(GrantText(Example()));
  ASSERT_TRUE(parsed.ok()) << parsed.status().message();
  EXPECT_EQ(*parsed, Example());
}

TEST(Grant, NamesTheLineThatIsWrong) {
  EXPECT_EQ(ErrorOf(With("sluice-grant 1", "sluice-grant 2")),
            "grant record, line 1: 'sluice-grant 2': allowed: 'sluice-grant 1'");
  EXPECT_EQ(ErrorOf(With("bytes = 25769803776", "bytes = 24GiB")),
            "grant record, line 4: 'bytes' '24GiB': allowed: a number from 1");
  EXPECT_EQ(ErrorOf(With("bytes = 25769803776", "bytes = 0")),
            "grant record, line 4: 'bytes' '0': allowed: a number from 1");
  EXPECT_EQ(ErrorOf(With("created_ns = ", "made_at = ")),
            "grant record, line 5: 'made_at' '1800000000000000000': allowed keys: id, gpu, bytes, "
            "created_ns, device");
  EXPECT_EQ(ErrorOf(With("gpu = ", "gpu=")),
            "grant record, line 3: 'gpu=GPU-8b4db97b-9231-b75b-b1de-e4c9b0990411': allowed: key = "
            "value");
  EXPECT_EQ(ErrorOf(With("gpu = GPU-8b4db97b-9231-b75b-b1de-e4c9b0990411", "gpu = a b")),
            "grant record, line 3: 'gpu' 'a b': allowed: a UUID as NVML writes it");
}

TEST(Grant, WhatIsMissingOrTwiceIsAnError) {
  EXPECT_EQ(ErrorOf(With("bytes = 25769803776\n", "")), "grant record: bytes is missing");
  EXPECT_EQ(ErrorOf(With("device = 5f3a0c1e-0\ndevice = 5f3a0c1e-2s\n", "")),
            "grant record: device is missing");
  EXPECT_EQ(ErrorOf(GrantText(Example()) + "bytes = 1\n"),
            "grant record, line 8: bytes comes twice");
  EXPECT_EQ(ErrorOf(""), "grant record: id is missing");
}

TEST(Grant, ARecordThatIsCutOffIsNone) {
  const std::string text = GrantText(Example());
  const size_t first_device = text.find("device");
  for (size_t size = 0; size < text.size(); ++size) {
    // Only behind a whole line of a device there is a record, of fewer devices.
    const bool whole = size > first_device && text[size - 1] == '\n';
    EXPECT_EQ(ParseGrant(text.substr(0, size)).ok(), whole) << text.substr(0, size);
  }
}

TEST(Grant, AnIdIsNoPath) {
  EXPECT_TRUE(IsGrantId(Example().id));
  for (const char* id :
       {"", "..", "0123456789abcdef0123456789abcde", "0123456789ABCDEF0123456789abcdef",
        "../../../../../../../../../../etc", "0123456789abcdef0123456789abcdef0"}) {
    EXPECT_FALSE(IsGrantId(id)) << id;
    EXPECT_FALSE(ParseGrant(With("0123456789abcdef0123456789abcdef", id)).ok()) << id;
  }
}

}  // namespace
}  // namespace sluice
