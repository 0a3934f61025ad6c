// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
// What a daemon makes of what it finds with a real keeper.
#include "noderuntime/daemon/predecessor.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/mman.h>

#include <filesystem>
#include <string>

namespace sluice::noded {
namespace {

using keeper::KeeperClient;
using keeper::Kind;

constexpr uint64_t kPatienceNs = 50'000'000;

class PredecessorTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char dir[] = "/tmp/sluice-predecessor-XXXXXX";
    ASSERT_NE(::mkdtemp(dir), nullptr);
    options_.runtime_dir = dir;
    options_.keeper = ::getenv("SLUICE_TEST_KEEPER");
    device_.uuid = {1, 2, 3};
    Result<KeeperClient> started = KeeperClient::Start(options_.keeper, dir, 60);
    ASSERT_TRUE(started.ok()) << started.status().message();
    last_.emplace(std::move(*started));
  }
  void TearDown() override {
    last_.reset();
    Result<KeeperClient> keeper = KeeperClient::Connect(options_.runtime_dir);
    if (keeper.ok()) {
      EXPECT_TRUE(keeper->Bye().ok());
    }
    std::filesystem::remove_all(options_.runtime_dir);
  }
  /// A daemon of two handles and one job, number 4, as it stands in the keeper.
  void Leave(uint32_t version = KeptState::kVersion) {
    KeptState state;
    state.unit_bytes = options_.unit_bytes;
    state.handle_bytes = options_.handle_bytes;
    state.handles = 2;
    state.next_job = 5;
    state.device_uuid = device_.uuid;
    state.jobs.resize(1);
    state.jobs[0].id = 4;
    state.jobs[0].name = "job";
    ByteWriter bytes;
    WriteRegistry(state, &bytes);
    bytes.PutBytes({});
    std::vector<std::byte> whole(bytes.bytes().begin(), bytes.bytes().end());
    if (version != KeptState::kVersion) whole.resize(3);
    Result<keeper::Notebook> notebook = keeper::Notebook::Create();
    ASSERT_TRUE(notebook.ok());
    ASSERT_TRUE(notebook->Write(whole));
    const UniqueFd file(::memfd_create("kept", MFD_CLOEXEC));
    const int both[] = {file.get(), file.get()};
    ASSERT_TRUE(last_->Store({Kind::kPoolHandle, 0, 0}, both).ok());
    for (const uint32_t job : {4u, 5u}) {
      ASSERT_TRUE(last_->Store(Kind::kListener, job, file.get()).ok());
      ASSERT_TRUE(last_->Store(Kind::kLauncher, job, file.get()).ok());
    }
    ASSERT_TRUE(last_->Store(Kind::kState, 0, notebook->fd()).ok());
  }
  /// It is given up, its keeper with it, and one line of the log says why.
  void ExpectGivenUp(const std::string& why) {
    last_.reset();
    std::string said;
    const auto found = FindAndListen(&said);
    ASSERT_TRUE(found.ok()) << found.status().message();
    EXPECT_FALSE(found->has_value());
    EXPECT_EQ(KeeperClient::Connect(options_.runtime_dir).status().code(), StatusCode::kNotFound);
    EXPECT_NE(said.find("[error] what the last daemon left cannot be used"), std::string::npos)
        << said;
    EXPECT_NE(said.find(why), std::string::npos) << said;
  }
  Result<std::optional<Predecessor>> Find() {
    return FindPredecessor(&options_, device_, kPatienceNs);
  }
  /// The same, and what it logs.
  Result<std::optional<Predecessor>> FindAndListen(std::string* said) {
    testing::internal::CaptureStdout();
    auto found = Find();
    *said = testing::internal::GetCapturedStdout();
    return found;
  }

  config::Options options_;
  gpu::DeviceInfo device_;
  std::optional<KeeperClient> last_;  // the connection of the daemon that died
};

TEST_F(PredecessorTest, EverythingIsFound) {
  Leave();
  last_.reset();
  const auto found = Find();
  ASSERT_TRUE(found.ok()) << found.status().message();
  ASSERT_TRUE(found->has_value());
  EXPECT_EQ((*found)->found.pool.size(), 2u);
  EXPECT_TRUE((*found)->found.jobs.at(4).listener.valid());
}

// A launcher that registered in the last moment was not answered: it learns that by the hang-up.
TEST_F(PredecessorTest, WhatNoJobOwnsIsDropped) {
  Leave();
  last_.reset();
  auto found = Find();
  ASSERT_TRUE(found.ok() && found->has_value());
  const auto keys = (*found)->keeper.List();
  ASSERT_TRUE(keys.ok());
  for (const keeper::Key& key : *keys) EXPECT_NE(key.id, 5u) << static_cast<uint32_t>(key.kind);
  EXPECT_EQ(keys->size(), 5u);
}

// The kernel closes a dead process's files one by one: the lock may be free before the keeper has
// seen its daemon hang up.
TEST_F(PredecessorTest, AKeeperThatIsBusyJustNowKeepsEverything) {
  Leave();
  const auto refused = Find();
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.status().code(), StatusCode::kUnavailable);
  EXPECT_NE(refused.status().message().find(options_.runtime_dir), std::string::npos);
  last_.reset();
  const auto found = Find();
  ASSERT_TRUE(found.ok()) << found.status().message();
  ASSERT_TRUE(found->has_value());
  EXPECT_EQ((*found)->found.state.jobs.size(), 1u);
}

TEST_F(PredecessorTest, OfAnotherGpuItIsGivenUp) {
  Leave();
  device_.uuid = {9};
  ExpectGivenUp("it is of another GPU");
}

TEST_F(PredecessorTest, AStateThatCannotBeReadIsGivenUp) {
  Leave(KeptState::kVersion + 1);
  ExpectGivenUp("");
}

TEST_F(PredecessorTest, ATornStateIsGivenUp) {
  Leave();
  Result<UniqueFd> file = last_->TakeOne(Kind::kState, 0);
  ASSERT_TRUE(file.ok()) << file.status().message();
  Result<keeper::Notebook> notebook = keeper::Notebook::Open(std::move(*file));
  ASSERT_TRUE(notebook.ok());
  // More than there is room for: what stood there is not true any more.
  ASSERT_FALSE(notebook->Write(std::vector<std::byte>(keeper::Notebook::kMaxBytes + 1)));
  ExpectGivenUp("torn");
}

// The daemon died while it gave everything to a new keeper, in the place of one that was lost.
TEST_F(PredecessorTest, DescriptorsWithoutAStateAreGivenUp) {
  Leave();
  ASSERT_TRUE(last_->Drop(Kind::kState, 0).ok());
  ExpectGivenUp("no state");
}

TEST_F(PredecessorTest, AnEmptyKeeperIsNoPredecessorAndNoError) {
  last_.reset();
  std::string said;
  const auto found = FindAndListen(&said);
  ASSERT_TRUE(found.ok());
  EXPECT_FALSE(found->has_value());
  EXPECT_EQ(said, "");
}

TEST_F(PredecessorTest, WithoutAKeeperThereIsNone) {
  ASSERT_TRUE(last_->Bye().ok());
  last_.reset();
  const auto found = Find();
  ASSERT_TRUE(found.ok()) << found.status().message();
  EXPECT_FALSE(found->has_value());
}

}  // namespace
}  // namespace sluice::noded
