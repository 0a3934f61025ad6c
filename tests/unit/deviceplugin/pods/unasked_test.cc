// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "deviceplugin/pods/unasked.h"

#include <gtest/gtest.h>

namespace sluice::pods {
namespace {

std::string Of(Annotations annotations, uint64_t granules) {
  Pod pod;
  pod.annotations = std::move(annotations);
  pod.parts = {{"main", granules, false}, {"helper", 0, false}};
  return Unasked(pod, "sluice.dev/gpu-memory");
}

TEST(Unasked, APodThatAsksForNothingIsToldOfEachOfItsAnnotations) {
  EXPECT_EQ(
      Of({{"sluice.dev/memory-limit", "4Gi"},
          {"sluice.dev/container.main.priority", "5"},
          {"sluice.dev/container.trainer.class", "burst"}},
         0),
      "sluice.dev/container.main.priority '5': allowed where container 'main' asks for "
      "sluice.dev/gpu-memory\n"
      "sluice.dev/container.trainer.class 'burst': allowed where container 'trainer' asks for "
      "sluice.dev/gpu-memory\n"
      "sluice.dev/memory-limit '4Gi': allowed where a container of the pod asks for "
      "sluice.dev/gpu-memory");
}

TEST(Unasked, AContainerThatAsksForNothingBesideOneThatDoes) {
  EXPECT_EQ(Of({{"sluice.dev/memory-limit", "4Gi"},
                {"sluice.dev/container.main.priority", "5"},
                {"sluice.dev/container.helper.memory-limit", "4Gi"}},
               8),
            "sluice.dev/container.helper.memory-limit '4Gi': allowed where container 'helper' asks "
            "for sluice.dev/gpu-memory");
}

TEST(Unasked, WhatOthersWriteIsNotOurs) {
  EXPECT_EQ(Of({{"nvidia.com/container.main.gpu-memory.limit", "4Gi"},
                {"sluice.dev/namespaces-checksum", "1"},
                {"sluice.dev/container.class", "burst"},
                {"example.com/priority", "5"}},
               0),
            "");
}

}  // namespace
}  // namespace sluice::pods
