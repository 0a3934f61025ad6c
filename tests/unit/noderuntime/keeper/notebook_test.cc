// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/keeper/notebook.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <string>

namespace sluice::keeper {
namespace {

constexpr size_t kFirstPage = 4096;

std::span<const std::byte> Bytes(const std::string& text) { return std::as_bytes(std::span(text)); }

std::string Text(const Notebook& notebook) {
  const auto bytes = notebook.Read();
  if (!bytes.has_value()) return "nothing";
  return std::string(reinterpret_cast<const char*>(bytes->data()), bytes->size());
}

class NotebookTest : public ::testing::Test {
 protected:
  static Notebook Make() {
    Result<Notebook> made = Notebook::Create();
    EXPECT_TRUE(made.ok()) << made.status().message();
    return std::move(*made);
  }
  static Result<Notebook> Again(const Notebook& notebook) {
    return Notebook::Open(UniqueFd(::dup(notebook.fd())));
  }
  /// Overwrites a byte of the `page`-th of the two pages.
  static void Damage(const Notebook& notebook, size_t page) {
    const char other = '#';
    ASSERT_EQ(::pwrite(notebook.fd(), &other, 1,
                       static_cast<off_t>(kFirstPage + page * Notebook::kMaxBytes)),
              1);
  }
};

TEST_F(NotebookTest, AnotherOneReadsWhatWasWrittenLast) {
  Notebook notebook = Make();
  EXPECT_EQ(Text(notebook), "nothing");
  for (const std::string text : {"first", "", "third"}) {
    ASSERT_TRUE(notebook.Write(Bytes(text)));
    Result<Notebook> again = Again(notebook);
    ASSERT_TRUE(again.ok());
    EXPECT_EQ(Text(*again), text);
  }
  Result<Notebook> again = Again(notebook);
  ASSERT_TRUE(again.ok() && again->Write(Bytes("of the next writer")));
  EXPECT_EQ(Text(notebook), "of the next writer");
}

// The pages go by turns: a writer that is killed in the middle leaves the one before.
TEST_F(NotebookTest, ABrokenPageLeavesTheOneBefore) {
  Notebook notebook = Make();
  ASSERT_TRUE(notebook.Write(Bytes("first")));
  ASSERT_TRUE(notebook.Write(Bytes("second")));
  Damage(notebook, 1);
  EXPECT_EQ(Text(notebook), "first");
  Damage(notebook, 0);
  EXPECT_EQ(Text(notebook), "nothing");
  ASSERT_TRUE(notebook.Write(Bytes("third")));
  EXPECT_EQ(Text(notebook), "third");
}

TEST_F(NotebookTest, WhatIsTooLargeLeavesNothing) {
  Notebook notebook = Make();
  ASSERT_TRUE(notebook.Write(Bytes("small")));
  EXPECT_FALSE(notebook.Write(Bytes(std::string(Notebook::kMaxBytes + 1, 'x'))));
  EXPECT_FALSE(notebook.Read().has_value()) << "it is not true any more";
  ASSERT_TRUE(notebook.Write(Bytes("smaller")));
  EXPECT_EQ(Text(notebook), "smaller");
}

TEST_F(NotebookTest, AFileOfAnotherKindIsRefused) {
  UniqueFd file(::memfd_create("other", MFD_CLOEXEC));
  ASSERT_EQ(::ftruncate(file.get(), 4096), 0);
  EXPECT_FALSE(Notebook::Open(std::move(file)).ok());
  UniqueFd empty(::memfd_create("other", MFD_CLOEXEC));
  ASSERT_EQ(::ftruncate(empty.get(), static_cast<off_t>(kFirstPage + 2 * Notebook::kMaxBytes)), 0);
  EXPECT_FALSE(Notebook::Open(std::move(empty)).ok());
}

}  // namespace
}  // namespace sluice::keeper
