// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <gtest/gtest.h>

#include <cstring>
#include <nlohmann/json.hpp>

#include "noderuntime/cli/daemon_client.h"
#include "tests/support/raw_client.h"
#include "tests/support/test_bed.h"

namespace sluice::testing {
namespace {

/// The frames of protocol 1.0 as libraries in the field send and read them. Frozen: written out
/// here so that a change of intercept/protocol/wire.h cannot change them with it.
namespace v1_0 {
struct Header {
  uint32_t magic;
  uint16_t type;
  uint16_t flags;
  uint32_t bytes;
  uint32_t seq;
};
struct Extent {
  uint32_t offset;
  uint32_t length;
};
struct Hello {
  Header header;
  uint16_t major, minor;
  uint32_t client_page_bytes, daemon_page_bytes, mark_page_bytes;
  uint32_t device_ordinal;
  uint8_t device_uuid[16];
};
struct Welcome {
  Header header;
  uint16_t major, minor;
  uint32_t session;
  uint64_t unit_bytes, handle_bytes;
  uint32_t handle_count, reserved;
  uint64_t limit_bytes, request_bytes;
};
struct Lease {
  Header header;
  uint32_t units, contiguous;
};
struct Grant {
  Header header;
  uint32_t gate, profile;
  uint64_t epoch;
  uint32_t claim_units, extents;
  Extent extent[1];
};
struct Release {
  Header header;
  uint32_t terms, extents;
  uint8_t fence[8 * 16];
  Extent extent[1];
};
constexpr uint32_t kMagic = 0x31434c53;
constexpr uint16_t kHello = 1, kReady = 2, kLease = 3, kRelease = 5, kBye = 7;
constexpr uint16_t kWelcome = 32, kHandles = 33, kGrant = 34, kNotice = 36, kClose = 37;
constexpr uint16_t kLast = 1;
constexpr uint32_t kMarkPageBytes = 8 * 256;
constexpr uint32_t kClientPageBytes = 128 + 16 * (1u << 16);
constexpr uint32_t kDaemonPageBytes = 66'688;
}  // namespace v1_0

class OldLibrary {
 public:
  explicit OldLibrary(const std::string& path) : socket_(path) {}

  template <typename Frame>
  void Send(uint16_t type, Frame frame) {
    frame.header = {v1_0::kMagic, type, 0, sizeof frame, ++seq_};
    ASSERT_TRUE(socket_.Send(&frame, sizeof frame));
  }
  /// The next frame that is no notice. Whatever its type, one of 1.0.
  RawClient::Answer Receive() {
    while (true) {
      std::optional<RawClient::Answer> answer = socket_.Receive(20'000);
      if (!answer.has_value() || answer->bytes.size() < sizeof(v1_0::Header)) {
        ADD_FAILURE() << "no answer";
        return {};
      }
      const auto type = static_cast<uint16_t>(answer->type());
      EXPECT_GE(type, v1_0::kWelcome);
      EXPECT_LE(type, v1_0::kClose) << "a frame that 1.0 does not know";
      if (type == v1_0::kClose) ADD_FAILURE() << answer->text();
      if (type != v1_0::kNotice) return std::move(*answer);
    }
  }
  template <typename Frame>
  Frame Receive(uint16_t type) {
    const RawClient::Answer answer = Receive();
    Frame frame{};
    EXPECT_EQ(static_cast<uint16_t>(answer.type()), type);
    EXPECT_EQ(answer.bytes.size(), sizeof frame);
    std::memcpy(&frame, answer.bytes.data(), std::min(answer.bytes.size(), sizeof frame));
    return frame;
  }

 private:
  RawClient socket_;
  uint32_t seq_ = 0;
};

TEST(ProtocolVersion, ALibraryOfTheFirstVersionIsServed) {
  TestBed bed;
  Result<cli::DaemonClient> launcher =
      cli::DaemonClient::Connect(cli::DaemonSocket(bed.runtime_dir()));
  ASSERT_TRUE(launcher.ok());
  const Result<cli::JobGrant> grant = launcher->Register({4 << 20, 0, 0, "old"});
  ASSERT_TRUE(grant.ok());
  OldLibrary library(grant->socket);

  v1_0::Hello hello{};
  hello.major = 1;
  hello.minor = 0;
  hello.client_page_bytes = v1_0::kClientPageBytes;
  hello.daemon_page_bytes = v1_0::kDaemonPageBytes;
  hello.mark_page_bytes = v1_0::kMarkPageBytes;
  const std::vector<uint8_t> today = HelloBytes(bed.Status().at("gpu_uuid").get<std::string>());
  std::memcpy(hello.device_uuid, today.data() + offsetof(v1_0::Hello, device_uuid),
              sizeof hello.device_uuid);
  library.Send(v1_0::kHello, hello);
  const auto welcome = library.Receive<v1_0::Welcome>(v1_0::kWelcome);
  EXPECT_EQ(welcome.major, 1);
  EXPECT_EQ(welcome.unit_bytes, 256u << 10);
  EXPECT_EQ(welcome.limit_bytes, 4u << 20);
  uint32_t handles = 0;
  while (handles < welcome.handle_count && !::testing::Test::HasFailure()) {
    const RawClient::Answer answer = library.Receive();
    ASSERT_EQ(static_cast<uint16_t>(answer.type()), v1_0::kHandles);
    handles += static_cast<uint32_t>(answer.fds.size());
  }
  struct Bare {
    v1_0::Header header;
  };
  library.Send(v1_0::kReady, Bare{});

  for (int round = 0; round < 3; ++round) {
    library.Send(v1_0::kLease, v1_0::Lease{{}, 2, 2});
    const auto granted = library.Receive<v1_0::Grant>(v1_0::kGrant);
    EXPECT_EQ(granted.header.flags & v1_0::kLast, v1_0::kLast);
    EXPECT_EQ(granted.extents, 1u);
    EXPECT_EQ(granted.extent[0].length, 2u);
    v1_0::Release release{};
    release.extents = 1;
    release.extent[0] = granted.extent[0];
    library.Send(v1_0::kRelease, release);
  }
  library.Send(v1_0::kBye, Bare{});
}

}  // namespace
}  // namespace sluice::testing
