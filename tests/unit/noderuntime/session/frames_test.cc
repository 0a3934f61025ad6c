// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/session/frames.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

namespace sluice::session {
namespace {

using protocol::FrameType;

template <typename T>
std::vector<std::byte> Bytes(const T& frame, size_t size = sizeof(T)) {
  std::vector<std::byte> bytes(size);
  std::memcpy(bytes.data(), &frame, std::min(size, sizeof(T)));
  return bytes;
}

protocol::Release MakeRelease(uint32_t terms, uint32_t extents) {
  protocol::Release release = {};
  release.terms = terms;
  release.extents = extents;
  for (protocol::Extent& extent : release.extent) extent = {0, 1};
  release.header = MakeHeader(FrameType::kRelease, offsetof(protocol::Release, extent) +
                                                       8 * size_t{std::min(extents, 480u)});
  return release;
}

std::string Error(const std::vector<std::byte>& bytes) {
  return ParseFrame(bytes).status().message();
}

TEST(Frames, ReadsALease) {
  protocol::Lease lease = {};
  lease.header = MakeHeader(FrameType::kLease, sizeof lease, 7);
  lease.units = 5;
  lease.contiguous = 3;
  const auto frame = ParseFrame(Bytes(lease));
  ASSERT_TRUE(frame.ok());
  EXPECT_EQ(std::get<protocol::Lease>(*frame).header.seq, 7u);
  EXPECT_EQ(std::get<protocol::Lease>(*frame).contiguous, 3u);
}

TEST(Frames, ReadsOnlyTheExtentsThatWereSent) {
  protocol::Release release = MakeRelease(1, 2);
  release.fence[0] = {9, 0, 77};
  release.extent[1] = {40, 8};
  for (const size_t size : {size_t{release.header.bytes}, sizeof release}) {
    release.header.bytes = static_cast<uint32_t>(size);
    const auto frame = ParseFrame(Bytes(release, size));
    ASSERT_TRUE(frame.ok()) << frame.status().message();
    const auto& read = std::get<ReleaseFrame>(*frame);
    ASSERT_EQ(read.fence.size(), 1u);
    EXPECT_EQ(read.fence[0].value, 77u);
    ASSERT_EQ(read.extents.size(), 2u);
    EXPECT_EQ(read.extents[1].offset, 40u);
  }
}

TEST(Frames, AResumeListsWhatItHasRoomFor) {
  protocol::Resume resume = {};
  constexpr size_t kFixed = offsetof(protocol::Resume, extent);
  for (protocol::Extent& extent : resume.extent) extent = {0, 1};
  const auto sent = [&resume](uint32_t part, uint32_t count, size_t bytes) {
    resume.part = static_cast<protocol::ResumePart>(part);
    resume.count = count;
    resume.header = MakeHeader(FrameType::kResume, kFixed + bytes, 0, protocol::kLastFrame);
    return Bytes(resume, kFixed + bytes);
  };
  const auto frame = ParseFrame(sent(0, 2, 16));
  ASSERT_TRUE(frame.ok()) << frame.status().message();
  EXPECT_TRUE(std::get<ResumeFrame>(*frame).last);
  EXPECT_EQ(std::get<ResumeFrame>(*frame).extents.size(), 2u);
  EXPECT_EQ(Error(sent(0, 3, 16)), "Resume with 3 entries has " + std::to_string(kFixed + 16) +
                                       " bytes; allowed: " + std::to_string(kFixed + 24));
  EXPECT_NE(Error(sent(0, 1, 16)), "") << "more than it lists";
  EXPECT_NE(Error(sent(2, 2, 16)), "") << "a term is larger";
  EXPECT_EQ(Error(sent(0, 481, 8)), "Resume lists 481 entries; allowed: up to 480");
  EXPECT_EQ(Error(sent(3, 0, 0)), "Resume has the part 3; allowed: 0 to 2");
}

TEST(Frames, RefusesWhatIsNotAFrame) {
  EXPECT_EQ(Error({}), "a frame of 0 bytes; allowed: 16 to 8192");
  EXPECT_EQ(Error(std::vector<std::byte>(15)), "a frame of 15 bytes; allowed: 16 to 8192");
  EXPECT_EQ(Error(std::vector<std::byte>(16)), "a frame that is not of this protocol");
  protocol::Ready ready = {MakeHeader(FrameType::kReady, 24)};
  EXPECT_EQ(Error(Bytes(ready)), "a frame says it has 24 bytes and has 16");
  ready.header = MakeHeader(static_cast<FrameType>(999), 16);
  EXPECT_EQ(Error(Bytes(ready)), "a frame of type 999, which nobody sends to the daemon");
  // What only the daemon sends is as foreign as an unknown number.
  ready.header = MakeHeader(FrameType::kGrant, 16);
  EXPECT_FALSE(ParseFrame(Bytes(ready)).ok());
}

TEST(Frames, RefusesWrongSizes) {
  protocol::Gate gate = {};
  for (const size_t size : {sizeof gate - 4, sizeof gate + 4}) {
    gate.header = MakeHeader(FrameType::kGate, size);
    EXPECT_NE(Error(Bytes(gate, size)).find("allowed: 40"), std::string::npos);
  }
  std::vector<std::byte> oversize(protocol::kMaxFrameBytes + 1);
  const protocol::Header header = MakeHeader(FrameType::kRelease, oversize.size());
  std::memcpy(oversize.data(), &header, sizeof header);
  EXPECT_FALSE(ParseFrame(oversize).ok());
}

TEST(Frames, RefusesHostileCounts) {
  const protocol::Release terms = MakeRelease(9, 1);
  EXPECT_NE(Error(Bytes(terms, terms.header.bytes)).find("9 terms; allowed: 8"), std::string::npos);
  for (const uint32_t extents : {0u, 481u, 0xffffffffu}) {
    protocol::Release release = MakeRelease(0, extents);
    release.header.bytes = sizeof release;
    EXPECT_NE(Error(Bytes(release)).find("allowed: 1 to 480"), std::string::npos) << extents;
  }
  // More extents than bytes: must not be read from beyond the datagram.
  protocol::Release release = MakeRelease(0, 400);
  release.header.bytes = 200;
  EXPECT_NE(Error(Bytes(release, 200)).find("allowed: 3352"), std::string::npos);
  release = MakeRelease(1, 1);
  release.fence[0].slot = 256;
  EXPECT_NE(Error(Bytes(release, release.header.bytes)).find("slot 256"), std::string::npos);
}

TEST(Frames, RefusesExtentsThatWrapOrAreEmpty) {
  for (const protocol::Extent extent :
       {protocol::Extent{4, 0}, protocol::Extent{0xfffffff0, 0x20}}) {
    protocol::Release release = MakeRelease(0, 1);
    release.extent[0] = extent;
    EXPECT_FALSE(ParseFrame(Bytes(release, release.header.bytes)).ok());
  }
}

TEST(Frames, RefusesALeaseOfNothingOrOfALongerRunThanItself) {
  protocol::Lease lease = {};
  lease.header = MakeHeader(FrameType::kLease, sizeof lease);
  EXPECT_FALSE(ParseFrame(Bytes(lease)).ok());
  lease.units = 2;
  lease.contiguous = 3;
  EXPECT_FALSE(ParseFrame(Bytes(lease)).ok());
}

TEST(Frames, RefusesAReasonThatNobodyHas) {
  protocol::Quiet quiet{};
  quiet.header = MakeHeader(protocol::FrameType::kQuiet, sizeof quiet, 7);
  quiet.reason = static_cast<uint32_t>(protocol::QuietReason::kDebugging);
  const auto good = ParseFrame(std::as_bytes(std::span(&quiet, 1)));
  ASSERT_TRUE(good.ok()) << good.status().message();
  EXPECT_EQ(std::get<protocol::Quiet>(*good).header.seq, 7u);
  ++quiet.reason;
  const auto bad = ParseFrame(std::as_bytes(std::span(&quiet, 1)));
  ASSERT_FALSE(bad.ok());
  EXPECT_NE(bad.status().message().find("allowed: 0 to 3"), std::string::npos)
      << bad.status().message();
}

TEST(Frames, ReadsAnotherPolicysName) {
  protocol::SetPolicy wanted{};
  wanted.header = MakeHeader(protocol::FrameType::kSetPolicy, sizeof wanted, 7);
  wanted.lanes = 3;
  std::memset(wanted.policy, 'x', sizeof wanted.policy);  // without an end
  const auto frame = ParseFrame(std::as_bytes(std::span(&wanted, 1)));
  ASSERT_TRUE(frame.ok()) << frame.status().message();
  EXPECT_EQ(std::get<SetPolicyFrame>(*frame).policy, std::string(32, 'x'));
  EXPECT_EQ(std::get<SetPolicyFrame>(*frame).lanes, 3u);
  wanted.header.bytes -= 4;
  EXPECT_FALSE(ParseFrame(std::as_bytes(std::span(&wanted, 1)).first(sizeof wanted - 4)).ok());
}

TEST(Frames, ReadsALimit) {
  protocol::SetLimit wanted{};
  wanted.header = MakeHeader(protocol::FrameType::kSetLimit, sizeof wanted, 7);
  wanted.job = 3;
  wanted.bytes = 5;
  const Result<Frame> frame = ParseFrame(std::as_bytes(std::span(&wanted, 1)));
  ASSERT_TRUE(frame.ok()) << frame.status().message();
  EXPECT_EQ(std::get<protocol::SetLimit>(*frame).job, 3u);
  EXPECT_EQ(std::get<protocol::SetLimit>(*frame).bytes, 5u);
}

TEST(Frames, ReadsABudget) {
  protocol::SetBudget wanted{};
  wanted.header = MakeHeader(protocol::FrameType::kSetBudget, sizeof wanted, 7);
  wanted.bytes = 5;
  const auto frame = ParseFrame(std::as_bytes(std::span(&wanted, 1)));
  ASSERT_TRUE(frame.ok()) << frame.status().message();
  EXPECT_EQ(std::get<protocol::SetBudget>(*frame).bytes, 5u);
  wanted.header.bytes -= 4;
  EXPECT_FALSE(ParseFrame(std::as_bytes(std::span(&wanted, 1)).first(sizeof wanted - 4)).ok());
}

TEST(Frames, CleansNamesAndSurvivesUnterminatedOnes) {
  protocol::Register wanted = {};
  wanted.header = MakeHeader(FrameType::kRegister, sizeof wanted);
  std::memset(wanted.name, 'x', sizeof wanted.name);
  wanted.name[1] = '\n';
  wanted.name[2] = '\x1b';
  const auto frame = ParseFrame(Bytes(wanted));
  ASSERT_TRUE(frame.ok());
  const std::string& name = std::get<RegisterFrame>(*frame).name;
  EXPECT_EQ(name, "x\\u000a\\u001b" + std::string(sizeof wanted.name - 3, 'x'));
}

TEST(Frames, ANameTurnsNoTerminalAndKeepsItsLetters) {
  protocol::Register wanted = {};
  wanted.header = MakeHeader(FrameType::kRegister, sizeof wanted);
  CopyText("猫\u009b2J\u202Egnp.\xff", wanted.name);
  EXPECT_EQ(std::get<RegisterFrame>(*ParseFrame(Bytes(wanted))).name,
            "猫\\u009b2J\\u202egnp.\\xff");
  // Cut to fit, and no character in two.
  std::string wide = "x";
  for (int i = 0; i < 60; ++i) wide += "猫";
  CopyText(wide, wanted.name);
  EXPECT_EQ(std::get<RegisterFrame>(*ParseFrame(Bytes(wanted))).name, wide.substr(0, 1 + 3 * 42));
}

TEST(Frames, ARegistrationMayAskToObserve) {
  protocol::Register wanted = {};
  wanted.header = MakeHeader(FrameType::kRegister, sizeof wanted);
  EXPECT_FALSE(std::get<RegisterFrame>(*ParseFrame(Bytes(wanted))).observe);
  wanted.flags = ~uint32_t{protocol::kObserve};
  EXPECT_FALSE(std::get<RegisterFrame>(*ParseFrame(Bytes(wanted))).observe)
      << "what is not known is ignored";
  wanted.flags = protocol::kObserve;
  EXPECT_TRUE(std::get<RegisterFrame>(*ParseFrame(Bytes(wanted))).observe);

  protocol::Recording question = {};
  question.header = MakeHeader(FrameType::kRecording, sizeof question);
  EXPECT_TRUE(std::holds_alternative<protocol::Recording>(*ParseFrame(Bytes(question))));
}

TEST(Frames, TextIsCutAndTerminated) {
  char field[8];
  CopyText("long enough to be cut", field);
  EXPECT_STREQ(field, "long en");
  CopyText("ab", field);
  EXPECT_STREQ(field, "ab");
}

TEST(Frames, RandomBytesNeverDoMoreThanFail) {
  std::mt19937 random(1);
  for (int i = 0; i < 20000; ++i) {
    std::vector<std::byte> bytes(random() % 600);
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
    // Half of them with a header that passes, so that the rest is looked at.
    if (bytes.size() >= sizeof(protocol::Header) && i % 2 == 0) {
      const protocol::Header header =
          MakeHeader(static_cast<FrameType>(random() % 72), bytes.size());
      std::memcpy(bytes.data(), &header, sizeof header);
    }
    const auto frame = ParseFrame(bytes);
    EXPECT_EQ(frame.ok(), frame.status().message().empty());
  }
}

}  // namespace
}  // namespace sluice::session
