// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "deviceplugin/pods/terms.h"

#include <gtest/gtest.h>

#include "common/bytes.h"

namespace sluice::pods {
namespace {

Pod PodWith(Annotations annotations) {
  Pod pod;
  pod.space = "team";
  pod.name = "train-0";
  pod.uid = "uid";
  pod.annotations = std::move(annotations);
  pod.parts = {{"main", 8, false}, {"side", 0, false}};
  return pod;
}
GrantTerms Of(Annotations annotations, Trust trust = Trust::kNamespace) {
  return TermsFor(PodWith(std::move(annotations)), "main", 8 * kMiB, trust);
}

TEST(TermsFor, WithoutAnnotationsAGrantIsWorthItsGranules) {
  EXPECT_EQ(Of({}), (GrantTerms{"team/train-0/main", "uid", 8 * kMiB, 0, "team", ""}));
}

TEST(TermsFor, AnnotationsSayMore) {
  EXPECT_EQ(Of({{"sluice.dev/memory-limit", "12Mi"},
                {"sluice.dev/priority", "-5"},
                {"sluice.dev/share-group", "a"}}),
            (GrantTerms{"team/train-0/main", "uid", 12 * kMiB, -5, "team/a", ""}));
}

TEST(TermsFor, OnANodeOfOneTrustThereAreNoGroups) {
  EXPECT_EQ(Of({{"sluice.dev/share-group", "a"}}, Trust::kNode).group, "");
  EXPECT_EQ(Of({}, Trust::kNode).group, "");
}

TEST(TermsFor, WhatIsWrongRefusesTheGrantInItsOwnWords) {
  const GrantTerms terms =
      Of({{"sluice.dev/priority", "high"}, {"sluice.dev/memory-limit", "1Mi"}});
  EXPECT_EQ(terms.refusal,
            "sluice.dev/memory-limit '1Mi': allowed: from what was granted (8.0 MiB)\n"
            "sluice.dev/priority 'high': allowed: -1000 to 1000");
  EXPECT_EQ(terms.limit_bytes, 8 * kMiB);
  EXPECT_EQ(terms.group, "team");
}

TEST(TermsFor, ANamespacesCeilingRefusesWhatGoesBeyondIt) {
  const Ceilings ceilings = {{"team", {10 * kMiB, 5, false}}, {"*", {}}};
  const auto refusal = [&](Annotations annotations, const Ceilings& all) {
    return TermsFor(PodWith(std::move(annotations)), "main", 8 * kMiB, Trust::kNamespace, all)
        .refusal;
  };
  EXPECT_EQ(refusal({}, ceilings), "");
  EXPECT_EQ(refusal({{"sluice.dev/memory-limit", "10Mi"}, {"sluice.dev/priority", "5"}}, ceilings),
            "");
  const Annotations much = {{"sluice.dev/memory-limit", "12Mi"},
                            {"sluice.dev/priority", "6"},
                            {"sluice.dev/share-group", "a"}};
  EXPECT_EQ(refusal(much, ceilings),
            "sluice.dev/memory-limit 12.0 MiB: allowed: up to 10.0 MiB for pods of namespace "
            "'team'\n"
            "sluice.dev/priority 6: allowed: up to 5 for pods of namespace 'team'\n"
            "sluice.dev/share-group 'a': allowed: none for pods of namespace 'team'");
  EXPECT_EQ(refusal(much, {{"other", {0, 0, false}}}), "");
  EXPECT_NE(refusal(much, {{"*", {0, 0, false}}}), "");
  EXPECT_EQ(refusal({}, {{"*", {0, 0, false}}}), "") << "what was granted is allowed";
}

TEST(TermsFor, WhatACeilingRefusesIsWorthItsGranules) {
  const Ceilings ceilings = {{"team", {10 * kMiB, 5, false}}};
  const auto limit = [&](Annotations annotations) {
    return TermsFor(PodWith(std::move(annotations)), "main", 8 * kMiB, Trust::kNamespace, ceilings)
        .limit_bytes;
  };
  EXPECT_EQ(limit({{"sluice.dev/memory-limit", "12Mi"}}), 8 * kMiB);
  EXPECT_EQ(limit({{"sluice.dev/memory-limit", "10Mi"}}), 10 * kMiB);
  EXPECT_EQ(limit({{"sluice.dev/memory-limit", "10Mi"}, {"sluice.dev/priority", "6"}}), 8 * kMiB);
}

/// Whether the node can keep it is the daemon's to say.
TEST(TermsFor, WhatIsForTheDaemonIsPassedOn) {
  EXPECT_EQ(Of({{"sluice.dev/host-memory", "3Mi"}}).host_memory_bytes, 3 * kMiB);
  EXPECT_EQ(Of({}).host_memory_bytes, std::nullopt);
  EXPECT_FALSE(Of({{"sluice.dev/inject", "false"}}).inject);
  EXPECT_TRUE(Of({{"sluice.dev/inject", "true"}}).inject);
  EXPECT_EQ(Of({{"sluice.dev/inject", "false"}, {"sluice.dev/host-memory", "0"}}).refusal, "");
}

}  // namespace
}  // namespace sluice::pods
