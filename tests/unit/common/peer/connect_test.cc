// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "common/peer/connect.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>

#include "tests/support/other_user.h"
#include "tests/support/temp_folder.h"

namespace sluice::peer {
namespace {

using sluice::testing::AsUser;
using sluice::testing::Container;
using sluice::testing::Heard;
using sluice::testing::InContainer;
using sluice::testing::kImpostor;
using sluice::testing::kVictim;
using sluice::testing::ListenAs;
using sluice::testing::MakeFolderOf;
using sluice::testing::WhatCame;

/// "" is trusted; else why not, or what failed.
std::string Try(const std::string& path, Reach reach = Reach::kAnybody) {
  const UniqueFd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  const Outcome outcome = Connect(socket.get(), path.c_str(), reach);
  if (outcome.error != 0) return "error " + std::to_string(outcome.error);
  return Why(outcome.verdict);
}
std::string Error(int number) { return "error " + std::to_string(number); }

class WhoseSocket : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(::chmod(folder_.path().c_str(), 0711), 0); }
  /// A listener of one's own.
  UniqueFd Listen(const std::string& name) {
    UniqueFd listener(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    (folder_ / name).copy(address.sun_path, sizeof address.sun_path - 1);
    EXPECT_EQ(::bind(listener.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(::listen(listener.get(), 4), 0);
    return listener;
  }
  sluice::testing::TempFolder folder_;
};

TEST_F(WhoseSocket, OnesOwnIsTrusted) {
  const UniqueFd listener = Listen("s");
  EXPECT_EQ(Try(folder_ / "s"), "");
  EXPECT_EQ(Try(folder_ / "s", Reach::kOwn), "");
  EXPECT_EQ(Try(folder_.path() + "///s"), "");
  EXPECT_EQ(WhatCame(listener).connections, 3);
  ASSERT_EQ(::chdir(folder_.path().c_str()), 0);
  EXPECT_EQ(Try("s"), "") << "a path without a folder is in this one";
  ASSERT_EQ(::chdir("/"), 0);
}

TEST_F(WhoseSocket, WhatIsNotThereIsSaidAsBefore) {
  EXPECT_EQ(Try(folder_ / "no/s"), Error(ENOENT));
  EXPECT_EQ(Try(folder_ / "s"), Error(ENOENT));
  Listen("s").reset();
  EXPECT_EQ(Try(folder_ / "s"), Error(ECONNREFUSED));
  EXPECT_EQ(Try("/" + std::string(107, 'x')), Error(ENAMETOOLONG));
  EXPECT_EQ(Try("/no-such-socket"), Error(ENOENT));
}

TEST_F(WhoseSocket, ALinkIsNoFolder) {
  std::filesystem::create_directory(folder_ / "run");
  const UniqueFd listener = Listen("run/s");
  std::filesystem::create_directory_symlink("run", folder_ / "link");
  std::ofstream(folder_ / "file") << "";
  const std::string why = Why(Verdict::kNoFolder);
  EXPECT_EQ(Try(folder_ / "link/s"), why);
  EXPECT_EQ(Try(folder_ / "link//s"), why);
  EXPECT_EQ(Try(folder_ / "file/s"), why);
  EXPECT_EQ(WhatCame(listener).connections, 0);
  EXPECT_EQ(LookAt((folder_ / "link").c_str(), Reach::kAnybody, Use::kSockets).verdict,
            Verdict::kNoFolder);
}

TEST_F(WhoseSocket, AFolderOfAnothersIsNotEvenConnectedTo) {
  SLUICE_NEEDS_OTHER_USERS();
  MakeFolderOf(kImpostor, folder_ / "run");
  const UniqueFd listener = ListenAs(kImpostor, folder_ / "run/s");
  const std::string why = Why(Verdict::kOthersFolder);
  EXPECT_EQ(AsUser(kVictim, [&] { return Try(folder_ / "run/s"); }), why);
  EXPECT_EQ(Try(folder_ / "run/s", Reach::kOwn), why);
  EXPECT_EQ(WhatCame(listener).connections, 0);
  EXPECT_EQ(Try(folder_ / "run/s"), "") << "root may look at any user's";
  EXPECT_EQ(AsUser(kImpostor, [&] { return Try(folder_ / "run/s"); }), "");
}

TEST_F(WhoseSocket, AnotherInOnesOwnFolderIsSentNothing) {
  SLUICE_NEEDS_OTHER_USERS();
  MakeFolderOf(kVictim, folder_ / "run");
  const UniqueFd listener = ListenAs(kImpostor, folder_ / "run/s");
  const std::string why = Why(Verdict::kOthersListener);
  EXPECT_EQ(AsUser(kVictim, [&] { return Try(folder_ / "run/s"); }), why);
  EXPECT_EQ(Try(folder_ / "run/s"), why);
  const Heard heard = WhatCame(listener);
  EXPECT_EQ(heard.connections, 2);
  EXPECT_EQ(heard.bytes, 0u);
}

TEST_F(WhoseSocket, RootsIsTrustedByAll) {
  SLUICE_NEEDS_OTHER_USERS();
  MakeFolderOf(0, folder_ / "run");
  const UniqueFd listener = ListenAs(0, folder_ / "run/s");
  EXPECT_EQ(AsUser(kVictim, [&] { return Try(folder_ / "run/s"); }), "");
}

TEST_F(WhoseSocket, FilesOfAFolderThatOthersWriteToAreNotBelieved) {
  const char* folder = folder_.path().c_str();
  EXPECT_TRUE(LookAt(folder, Reach::kAnybody, Use::kFiles).ok());
  ASSERT_EQ(::chmod(folder, 01777), 0);
  EXPECT_EQ(LookAt(folder, Reach::kAnybody, Use::kFiles).verdict, Verdict::kOpenFolder);
  EXPECT_TRUE(LookAt(folder, Reach::kAnybody, Use::kSockets).ok()) << "who listens is asked";
  EXPECT_EQ(LookAt((folder_ / "no").c_str(), Reach::kAnybody, Use::kFiles).error, ENOENT);
}

/// Root's grant in the node's folder, and a container that has it at `mount`.
class WhoseGrant : public WhoseSocket {
 protected:
  void SetUp() override {
    WhoseSocket::SetUp();
    SLUICE_NEEDS_OTHER_USERS();
    MakeFolderOf(0, folder_ / "grant");
    MakeFolderOf(0, folder_ / "mount");
    listener_ = ListenAs(0, folder_ / "grant/s");
    container_.source = folder_ / "grant";
    container_.target = folder_ / "mount";
  }
  std::string TryInside(const std::string& socket) {
    return InContainer(container_, [&] { return Try(folder_ / socket); });
  }
  Container container_;
  UniqueFd listener_;
};

TEST_F(WhoseGrant, TheMountIsTheCredential) {
  EXPECT_EQ(TryInside("mount/s"), "");
  container_.user = 1000;
  EXPECT_EQ(TryInside("mount/s"), "");
  container_.user = kNobody;
  EXPECT_EQ(TryInside("mount/s"), "") << "a user of the container may have nobody's number";
}

TEST_F(WhoseGrant, APathIsNone) {
  const std::string why = Why(Verdict::kNoMount);
  EXPECT_EQ(TryInside("grant/s"), why) << "the folder itself, of which the mount is a view";
  container_.user = kNobody;
  EXPECT_EQ(TryInside("grant/s"), why) << "and its owner only seems to be this user";
  container_.is_mounted = false;
  EXPECT_EQ(TryInside("grant/s"), why);
  EXPECT_EQ(WhatCame(listener_).connections, 0);
}

TEST_F(WhoseGrant, AWritableMountIsNone) {
  container_.read_only = false;
  EXPECT_EQ(TryInside("mount/s"), Why(Verdict::kWritableMount));
}

TEST_F(WhoseGrant, AMountThatThisUserCanHaveMadeIsNone) {
  const std::string why = Why(Verdict::kOwnMount);
  container_.may_mount = true;
  EXPECT_EQ(TryInside("mount/s"), why);
  container_.user = 1000;
  EXPECT_EQ(TryInside("mount/s"), why) << "a program that it executes may get the right";
  container_ = {container_.source, container_.target};
  container_.maker = kVictim;
  EXPECT_EQ(TryInside("mount/s"), why) << "its maker has given the right up, and had it";
  EXPECT_EQ(WhatCame(listener_).connections, 0);
}

TEST_F(WhoseGrant, AUserNamespaceAmidMountsOfOthersChangesNothing) {
  container_.mounts_inside = false;
  container_.may_mount = true;
  container_.maker = kVictim;
  EXPECT_EQ(TryInside("mount/s"), "");
  EXPECT_EQ(TryInside("grant/s"), Why(Verdict::kNoMount));
}

/// An impostor outside of the container cannot be told from root; but nobody mounts its folder.
TEST_F(WhoseGrant, AnImpostorsFolderIsNoGrant) {
  MakeFolderOf(kImpostor, folder_ / "run");
  const UniqueFd impostor = ListenAs(kImpostor, folder_ / "run/s");
  EXPECT_EQ(TryInside("run/s"), Why(Verdict::kNoMount));
  EXPECT_EQ(WhatCame(impostor).connections, 0);
}

TEST_F(WhoseGrant, AUserOfTheContainerIsNotItsDaemon) {
  const std::string why = InContainer(container_, [&] {
    const std::string path = folder_ / "grant/t";  // no right to make one in there
    return std::string(std::ofstream(path).is_open() ? "open" : "closed");
  });
  EXPECT_EQ(why, "closed");
  const UniqueFd own = ListenAs(200'000, folder_ / "grant/t");
  EXPECT_EQ(TryInside("mount/t"), Why(Verdict::kOthersListener));
  EXPECT_EQ(WhatCame(own).bytes, 0u);
}

}  // namespace
}  // namespace sluice::peer
