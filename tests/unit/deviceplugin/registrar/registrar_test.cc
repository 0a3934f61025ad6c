// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "deviceplugin/registrar/registrar.h"

#include <gtest/gtest.h>

namespace sluice::deviceplugin {
namespace {

using Do = Registrar::Do;

constexpr uint64_t kSecond = 1'000'000'000;

Registrar Registered() {
  Registrar registrar;
  registrar.OnKubelet(true);
  registrar.OnServed(true, 0);
  registrar.OnRegistered(true, 0);
  EXPECT_TRUE(registrar.registered());
  EXPECT_EQ(registrar.next().what, Do::kWait);
  return registrar;
}

TEST(Registrar, ServesBeforeItRegisters) {
  Registrar registrar;
  registrar.OnKubelet(true);
  EXPECT_EQ(registrar.next().what, Do::kServe) << "kubelet connects as soon as it knows";
  registrar.OnServed(true, 0);
  EXPECT_EQ(registrar.next().what, Do::kRegister);
}

TEST(Registrar, WaitsForKubelet) {
  Registrar registrar;
  registrar.OnServed(true, 0);
  EXPECT_EQ(registrar.next().what, Do::kWait);
  registrar.OnKubelet(true);
  EXPECT_EQ(registrar.next().what, Do::kRegister);
}

TEST(Registrar, RegistersWithEachNewKubelet) {
  Registrar registrar = Registered();
  registrar.OnKubelet(false);
  EXPECT_EQ(registrar.next().what, Do::kWait);
  registrar.OnKubelet(true);
  EXPECT_EQ(registrar.next().what, Do::kRegister);
}

TEST(Registrar, ANewKubeletRemovesTheSocketFirst) {
  Registrar registrar = Registered();
  registrar.OnSocketLost();
  EXPECT_EQ(registrar.next().what, Do::kServe);
  EXPECT_EQ(registrar.next().at_ns, 0u) << "at once";
  registrar.OnServed(true, 0);
  EXPECT_EQ(registrar.next().what, Do::kRegister);
}

TEST(Registrar, TriesAgainSoonAndNeverWaitsLong) {
  Registrar registrar;
  registrar.OnKubelet(true);
  registrar.OnServed(true, 0);
  uint64_t now = 0;
  uint64_t longest = 0;
  for (int i = 0; i < 20; ++i) {
    registrar.OnRegistered(false, now);
    ASSERT_EQ(registrar.next().what, Do::kRegister);
    const uint64_t wait = registrar.next().at_ns - now;
    EXPECT_GT(wait, 0u);
    longest = std::max(longest, wait);
    now += wait;
  }
  EXPECT_LE(longest, kSecond / 2) << "a kubelet is told within a second";
  EXPECT_GT(longest, kSecond / 10) << "one that says no is not flooded";
  registrar.OnKubelet(true);
  EXPECT_EQ(registrar.next().at_ns, 0u) << "a new one may say yes";
}

TEST(Registrar, ASocketThatCannotBeMadeIsTriedAgain) {
  Registrar registrar;
  registrar.OnServed(false, 7 * kSecond);
  EXPECT_EQ(registrar.next().what, Do::kServe);
  EXPECT_GT(registrar.next().at_ns, 7 * kSecond);
}

}  // namespace
}  // namespace sluice::deviceplugin
