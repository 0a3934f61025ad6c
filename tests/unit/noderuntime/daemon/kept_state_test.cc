// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/daemon/kept_state.h"

#include <gtest/gtest.h>

namespace sluice::noded {
namespace {

KeptState Example() {
  KeptState state;
  state.unit_bytes = 256;
  state.handle_bytes = 1024;
  state.handles = 3;
  state.gpu = 1;
  state.device_uuid = {1, 2, 3};
  state.daemon_pid = 77;
  state.own_context = true;
  state.next_job = 9;
  state.policy = "temporal";
  state.lanes = 3;
  state.draining = true;
  state.jobs = {{2, "first", 100, 50, 10, 5, 11, 4, 1, "a grant", "a pod"},
                {8, "", 0, 0, 0, 0, 0, 0, 0, "", ""}};
  state.flow = {std::byte{5}, std::byte{6}};
  return state;
}

std::vector<std::byte> Bytes(const KeptState& state) {
  ByteWriter out;
  WriteRegistry(state, &out);
  out.PutBytes(state.flow);
  return {out.bytes().begin(), out.bytes().end()};
}

TEST(KeptState, ComesBackAsItWas) {
  const Result<KeptState> again = ReadKeptState(Bytes(Example()));
  ASSERT_TRUE(again.ok()) << again.status().message();
  EXPECT_EQ(Bytes(*again), Bytes(Example()));
  ASSERT_EQ(again->jobs.size(), 2u);
  EXPECT_EQ(again->jobs[0].name, "first");
  EXPECT_EQ(again->jobs[0].minor, 1);
  EXPECT_EQ(again->jobs[0].grant, "a grant");
  EXPECT_EQ(again->jobs[0].pod, "a pod");
  EXPECT_EQ(again->flow.size(), 2u);
  EXPECT_EQ(again->policy, "temporal");
  EXPECT_EQ(again->lanes, 3u);
  EXPECT_TRUE(again->draining);
}

TEST(KeptState, AnotherVersionSaysSo) {
  std::vector<std::byte> bytes = Bytes(Example());
  bytes[4] = std::byte{99};
  EXPECT_EQ(ReadKeptState(bytes).status().message(),
            "the kept state has version 99; this daemon reads version 8");
}

TEST(KeptState, WhatIsCutOrTooLongIsAnError) {
  std::vector<std::byte> bytes = Bytes(Example());
  for (size_t count = 0; count < bytes.size(); ++count) {
    EXPECT_FALSE(ReadKeptState(std::span<const std::byte>(bytes).first(count)).ok()) << count;
  }
  bytes.push_back(std::byte{});
  EXPECT_FALSE(ReadKeptState(bytes).ok());
}

TEST(KeptState, APoolOrJobsThatCannotBeAreAnError) {
  const auto spoilt = [](auto spoil) {
    KeptState state = Example();
    spoil(&state);
    return !ReadKeptState(Bytes(state)).ok();
  };
  EXPECT_TRUE(spoilt([](KeptState* s) { s->unit_bytes = 0; }));
  EXPECT_TRUE(spoilt([](KeptState* s) { s->handle_bytes = 1025; }));
  EXPECT_TRUE(spoilt([](KeptState* s) { s->handles = 0; }));
  EXPECT_TRUE(spoilt([](KeptState* s) { std::swap(s->jobs[0], s->jobs[1]); }));
  EXPECT_TRUE(spoilt([](KeptState* s) { s->jobs[1].id = 9; })) << "not given out yet";
}

}  // namespace
}  // namespace sluice::noded
