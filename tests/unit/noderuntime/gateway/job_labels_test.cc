// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/gateway/job_labels.h"

#include <gtest/gtest.h>

namespace sluice::gateway {
namespace {

TEST(LabelsOf, SplitsWhatKubernetesNamed) {
  EXPECT_EQ(LabelsOf("team-a/train-7f.1/main"), (JobLabels{"team-a", "train-7f.1", "main"}));
}

TEST(LabelsOf, AnythingElseIsThePodInOnePiece) {
  for (const char* name :
       {"train --model small-a", "cat a/b/c", "a/b", "a/b/c/d", "a//c", "/b/c", "A/b/c", ""}) {
    EXPECT_EQ(LabelsOf(name), (JobLabels{"", name, ""})) << name;
  }
  EXPECT_EQ(LabelsOf("a\xFF/b/c").pod, "a\uFFFD/b/c");
  EXPECT_EQ(LabelsOf("a/" + std::string(1000, 'b') + "/c").pod.size(), 253u);
}

}  // namespace
}  // namespace sluice::gateway
