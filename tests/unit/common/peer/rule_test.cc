// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "common/peer/rule.h"

#include <gtest/gtest.h>

#include <cstring>
#include <ostream>

namespace sluice::peer {
namespace {

constexpr uint32_t kAlice = 1000;
constexpr uint32_t kBob = 1001;
constexpr uint32_t kRoot = 0;

struct Case {
  const char* name;
  Folder folder;
  uint32_t self;
  uint32_t peer;
  World world;
  Verdict verdict;
  Reach reach = Reach::kAnybody;
};
std::ostream& operator<<(std::ostream& out, const Case& each) { return out << each.name; }

Folder Of(uint32_t owner, uint32_t mode = 0700) { return {true, mode, owner}; }

/// A container's grant in a user namespace that root has made.
World Grant() {
  World world;
  world.ids_outside = world.mount_root = world.mount_read_only = true;
  world.own_mounts = world.made_outside = true;
  world.may_mount = false;
  return world;
}
template <typename Change>
World GrantBut(Change change) {
  World world = Grant();
  change(&world);
  return world;
}

/// As Connect does it.
Verdict Judge(const Case& each) {
  const Verdict verdict = JudgeFolder(each.folder, each.self, each.world, each.reach);
  return verdict == Verdict::kTrusted ? JudgePeer(each.folder, each.peer, each.world) : verdict;
}

class WhoseDaemon : public testing::TestWithParam<Case> {};

TEST_P(WhoseDaemon, IsJudged) { EXPECT_EQ(Judge(GetParam()), GetParam().verdict); }

using enum Verdict;

INSTANTIATE_TEST_SUITE_P(
    OfUsersWithNumbers, WhoseDaemon,
    testing::Values(
        Case{"own", Of(kAlice), kAlice, kAlice, {}, kTrusted},
        Case{"roots", Of(kRoot, 0755), kAlice, kRoot, {}, kTrusted},
        Case{"anothers", Of(kBob, 0755), kAlice, kBob, {}, kOthersFolder},
        Case{"anothers_with_own_daemon", Of(kBob, 0777), kAlice, kAlice, {}, kOthersFolder},
        Case{"another_in_own", Of(kAlice, 0777), kAlice, kBob, {}, kOthersListener},
        Case{"another_in_roots", Of(kRoot, 01777), kAlice, kBob, {}, kOthersListener},
        Case{"root_in_own", Of(kAlice), kAlice, kRoot, {}, kOthersListener},
        Case{"for_root_anothers", Of(kBob), kRoot, kBob, {}, kTrusted},
        Case{"for_root_a_third_in_anothers", Of(kBob, 0777), kRoot, kAlice, {}, kOthersListener},
        Case{"for_root_in_its_own_place", Of(kBob), kRoot, kBob, {}, kOthersFolder, Reach::kOwn},
        Case{"roots_own", Of(kRoot), kRoot, kRoot, {}, kTrusted, Reach::kOwn},
        Case{"no_folder", {false, 0777, kAlice}, kAlice, kAlice, {}, kNoFolder},
        Case{"nobodys_where_all_have_numbers", Of(kNobody), kNobody, kNobody, {}, kTrusted},
        Case{"nobodys_for_another", Of(kNobody), kAlice, kNobody, {}, kOthersFolder}));

INSTANTIATE_TEST_SUITE_P(
    OfUsersWithout, WhoseDaemon,
    testing::Values(
        Case{"grant", Of(kNobody, 0755), kAlice, kNobody, Grant(), kTrusted},
        Case{"grant_for_its_root", Of(kNobody, 0755), kRoot, kNobody, Grant(), kTrusted},
        Case{"grant_for_nobody", Of(kNobody, 0755), kNobody, kNobody, Grant(), kTrusted},
        Case{"grant_whose_mount_has_numbers", Of(kRoot, 0755), kAlice, kNobody, Grant(), kTrusted},
        Case{"user_in_a_grant", Of(kNobody, 0755), kRoot, kRoot, Grant(), kOthersListener},
        Case{"grant_that_others_write_to", Of(kNobody, 0775), kRoot, kNobody, Grant(), kOpenFolder},
        Case{"no_mount", Of(kNobody, 0755), kRoot, kNobody,
             GrantBut([](World* world) { world->mount_root = false; }), kNoMount},
        Case{"no_mount_for_nobody", Of(kNobody, 0755), kNobody, kNobody,
             GrantBut([](World* world) { world->mount_root = false; }), kNoMount},
        Case{"writable", Of(kNobody, 0755), kRoot, kNobody,
             GrantBut([](World* world) { world->mount_read_only = false; }), kWritableMount},
        Case{"may_mount", Of(kNobody, 0755), kRoot, kNobody,
             GrantBut([](World* world) { world->may_mount = true; }), kOwnMount},
        Case{"namespace_of_its_own", Of(kNobody, 0755), kRoot, kNobody,
             GrantBut([](World* world) { world->made_outside = false; }), kOwnMount},
        Case{"mounts_of_the_namespace_above", Of(kNobody, 0755), kRoot, kNobody,
             GrantBut([](World* world) {
               world->own_mounts = world->made_outside = false;
               world->may_mount = true;
             }),
             kTrusted},
        Case{"no_mount_and_a_listener_outside", Of(kRoot, 0755), kAlice, kNobody,
             GrantBut([](World* world) { world->mount_root = false; }), kOthersListener},
        Case{"another_number_for_nobody", Of(7, 0755), kRoot, 7, GrantBut([](World* world) {
               world->nobody = 7;
               world->mount_root = false;
             }),
             kNoMount},
        Case{"own_in_a_user_namespace", Of(kAlice), kAlice, kAlice, Grant(), kTrusted}));

TEST(WhoseDaemon, ALookAroundIsTakenOnlyWhereNumbersDoNotDecide) {
  EXPECT_FALSE(NeedsWorld(Of(kAlice), kAlice));
  EXPECT_FALSE(NeedsWorld(Of(kRoot), kAlice));
  EXPECT_FALSE(NeedsWorld(Of(kAlice), kAlice, kAlice));
  EXPECT_TRUE(NeedsWorld(Of(kBob), kAlice));
  EXPECT_TRUE(NeedsWorld(Of(kNobody), kNobody)) << "it may be anybody's";
  EXPECT_TRUE(NeedsWorld(Of(kRoot), kAlice, kNobody));
}

/// What was not looked for proves nothing.
TEST(WhoseDaemon, AWorldOfWhichNothingIsKnownTrustsNoMount) {
  World unknown;
  unknown.ids_outside = true;
  EXPECT_NE(JudgeFolder(Of(kNobody, 0755), kAlice, unknown, Reach::kAnybody), kTrusted);
  unknown.mount_root = true;
  EXPECT_EQ(JudgeFolder(Of(kNobody, 0755), kAlice, unknown, Reach::kAnybody), kOwnMount);
}

TEST(WhoseDaemon, FilesAreKeptInAFolderThatNobodyElseEnters) {
  EXPECT_TRUE(IsPrivate(Of(kAlice), kAlice));
  EXPECT_FALSE(IsPrivate(Of(kAlice, 0711), kAlice));
  EXPECT_FALSE(IsPrivate(Of(kBob), kAlice));
  EXPECT_FALSE(IsPrivate(Of(kBob), kRoot));
  EXPECT_FALSE(IsPrivate({false, 0700, kAlice}, kAlice));
}

TEST(WhoseDaemon, EachRefusalSaysWhatIsAllowed) {
  for (const Verdict verdict : {kNoFolder, kOthersFolder, kOpenFolder, kNoMount, kWritableMount,
                                kOwnMount, kOthersListener}) {
    EXPECT_NE(std::strstr(Why(verdict), "; allowed: "), nullptr) << static_cast<int>(verdict);
  }
  EXPECT_STREQ(Why(kTrusted), "");
}

}  // namespace
}  // namespace sluice::peer
