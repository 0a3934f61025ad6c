// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "deviceplugin/pods/annotations.h"

#include <gtest/gtest.h>

#include "common/bytes.h"

namespace sluice::pods {
namespace {

const std::vector<std::string> kContainers = {"main", "sidecar"};
const Container kMain = {"main", 16 * kGiB};

Terms Good(const Annotations& annotations) {
  const Result<Terms> terms = TermsOf(annotations, kContainers, kMain);
  EXPECT_TRUE(terms.ok()) << terms.status().message();
  return terms.ok() ? *terms : Terms();
}
std::string Errors(const Annotations& annotations) {
  const Result<Terms> terms = TermsOf(annotations, kContainers, kMain);
  EXPECT_FALSE(terms.ok());
  return terms.status().message();
}

TEST(Annotations, WithoutAnyItHasWhatItWasGranted) {
  const Terms terms = Good({});
  EXPECT_EQ(terms.limit_bytes, 16 * kGiB);
  EXPECT_EQ(terms.sharing, Class::kGuaranteed);
  EXPECT_EQ(terms.priority, 0);
  EXPECT_EQ(terms.share_group, "");
  EXPECT_FALSE(terms.host_memory_bytes.has_value());
  EXPECT_TRUE(terms.inject);
}

TEST(Annotations, OfThePodHoldForItsContainers) {
  const Terms terms = Good({{"sluice.dev/memory-limit", "24Gi"},
                            {"sluice.dev/priority", "-7"},
                            {"sluice.dev/share-group", "team-a"},
                            {"sluice.dev/host-memory", "0"},
                            {"sluice.dev/inject", "false"},
                            {"app.kubernetes.io/name", "train"}});
  EXPECT_EQ(terms.limit_bytes, 24 * kGiB);
  EXPECT_EQ(terms.sharing, Class::kBurst) << "more than it was granted";
  EXPECT_EQ(terms.priority, -7);
  EXPECT_EQ(terms.share_group, "team-a");
  EXPECT_EQ(terms.host_memory_bytes, 0u);
  EXPECT_FALSE(terms.inject);
}

TEST(Annotations, TheLeastAndTheMostAreAllowed) {
  EXPECT_EQ(Good({{"sluice.dev/priority", "-1000"}}).priority, -1000);
  EXPECT_EQ(Good({{"sluice.dev/priority", "1000"}}).priority, 1000);
  EXPECT_EQ(Good({{"sluice.dev/memory-limit", "16Gi"}}).limit_bytes, 16 * kGiB);
  const std::string longest(63, 'a');
  EXPECT_EQ(Good({{"sluice.dev/share-group", longest}}).share_group, longest);
  EXPECT_NE(Errors({{"sluice.dev/share-group", longest + "a"}}), "");
}

TEST(Annotations, OfTheContainerGoBefore) {
  const Terms terms = Good({{"sluice.dev/priority", "1"},
                            {"sluice.dev/container.main.priority", "2"},
                            {"sluice.dev/container.sidecar.priority", "3"},
                            {"sluice.dev/memory-limit", "24Gi"},
                            {"sluice.dev/container.sidecar.memory-limit", "nonsense"}});
  EXPECT_EQ(terms.priority, 2);
  EXPECT_EQ(terms.limit_bytes, 24 * kGiB)
      << "what is wrong with another container is not said here";
}

TEST(Annotations, NvidiasNamesMeanTheSame) {
  EXPECT_EQ(Good({{"nvidia.com/container.main.gpu-memory.limit", "24Gi"}}).limit_bytes, 24 * kGiB);
  EXPECT_EQ(Good({{"nvidia.com/container.main.gpu-memory.limit", "24Gi"},
                  {"nvidia.com/container.main.gpu-memory.request", "16Gi"},
                  {"sluice.dev/memory-limit", "24Gi"}})
                .limit_bytes,
            24 * kGiB);
  EXPECT_EQ(Good({{"nvidia.com/container.sidecar.gpu-memory.limit", "1Gi"}}).limit_bytes,
            16 * kGiB);
  EXPECT_EQ(Good({{"nvidia.com/container.main.something-else", "?"}}).limit_bytes, 16 * kGiB);
}

TEST(Annotations, ContradictionsAreRefused) {
  EXPECT_EQ(Errors({{"nvidia.com/container.main.gpu-memory.limit", "20Gi"},
                    {"sluice.dev/memory-limit", "24Gi"}}),
            "nvidia.com/container.main.gpu-memory.limit '20Gi': allowed: what "
            "sluice.dev/memory-limit says ('24Gi')");
  EXPECT_EQ(Errors({{"nvidia.com/container.main.gpu-memory.request", "8Gi"}}),
            "nvidia.com/container.main.gpu-memory.request '8Gi': allowed: what was granted (16.0 "
            "GiB); ask for it by "
            "the resource");
  EXPECT_EQ(Errors({{"sluice.dev/class", "guaranteed"}, {"sluice.dev/memory-limit", "24Gi"}}),
            "sluice.dev/class 'guaranteed': allowed: burst, because the limit of 24.0 GiB is above "
            "what was granted "
            "(16.0 GiB)");
  EXPECT_EQ(Errors({{"sluice.dev/memory-limit", "8Gi"}}),
            "sluice.dev/memory-limit '8Gi': allowed: from what was granted (16.0 GiB)");
}

TEST(Annotations, EachErrorNamesFieldValueAndWhatIsAllowed) {
  EXPECT_EQ(Errors({{"sluice.dev/memory-limit", "24 GB"}}),
            "sluice.dev/memory-limit '24 GB': allowed: a whole number of bytes as Kubernetes "
            "writes quantities, for "
            "example 16Gi, 1500M or 2e9");
  EXPECT_EQ(Errors({{"sluice.dev/priority", "high"}}),
            "sluice.dev/priority 'high': allowed: -1000 to 1000");
  EXPECT_EQ(Errors({{"sluice.dev/priority", "7x"}}),
            "sluice.dev/priority '7x': allowed: -1000 to 1000");
  EXPECT_EQ(Errors({{"sluice.dev/priority", "1001"}}),
            "sluice.dev/priority '1001': allowed: -1000 to 1000");
  EXPECT_EQ(Errors({{"sluice.dev/priority", "-1001"}}),
            "sluice.dev/priority '-1001': allowed: -1000 to 1000");
  EXPECT_EQ(Errors({{"sluice.dev/class", "best"}}),
            "sluice.dev/class 'best': allowed: guaranteed, burst");
  EXPECT_EQ(Errors({{"sluice.dev/inject", "yes"}}),
            "sluice.dev/inject 'yes': allowed: true, false");
  EXPECT_EQ(Errors({{"sluice.dev/share-group", "Team A"}}),
            "sluice.dev/share-group 'Team A': allowed: a DNS label (a-z, 0-9 and -, at most 63 "
            "characters)");
  EXPECT_EQ(Errors({{"sluice.dev/gpumem", "8Gi"}}),
            "sluice.dev/gpumem '8Gi': allowed keys behind sluice.dev/ and behind "
            "sluice.dev/container.NAME.: class, "
            "host-memory, inject, memory-limit, priority, share-group");
  EXPECT_EQ(
      Errors({{"sluice.dev/container.mian.priority", "1"}}),
      "sluice.dev/container.mian.priority '1': the pod has no container 'mian'; allowed: main, "
      "sidecar");
  EXPECT_EQ(
      Errors({{"nvidia.com/container.mian.gpu-memory.limit", "1Gi"}}),
      "nvidia.com/container.mian.gpu-memory.limit '1Gi': the pod has no container 'mian'; allowed: "
      "main, sidecar");
}

TEST(Annotations, AllErrorsAreListedAtOnce) {
  EXPECT_EQ(
      Errors({{"sluice.dev/priority", "x"}, {"sluice.dev/inject", "x"}, {"sluice.dev/class", "x"}}),
      "sluice.dev/class 'x': allowed: guaranteed, burst\n"
      "sluice.dev/inject 'x': allowed: true, false\n"
      "sluice.dev/priority 'x': allowed: -1000 to 1000");
}

}  // namespace
}  // namespace sluice::pods
