// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "scheduler/trace/snapshot/values.h"

#include <gtest/gtest.h>

#include <utility>

namespace sluice::scheduler::trace {
namespace {

TEST(Values, AreOfOneKind) {
  Values values;
  const ValueId none = values.AddNone();
  const ValueId yes = values.AddBool(true);
  const ValueId number = values.AddInteger(-7);
  const ValueId real = values.AddFloat(-1.5);
  const ValueId text = values.AddText(ValueKind::kText, "text");
  const ValueId bytes = values.AddText(ValueKind::kBytes, "bytes");
  EXPECT_EQ(values.Bool(yes), true);
  EXPECT_EQ(values.Integer(number), -7);
  EXPECT_EQ(values.Float(real), -1.5);
  EXPECT_EQ(values.Text(text), "text");
  EXPECT_EQ(values.Text(bytes), "bytes");
  EXPECT_EQ(values.Integer(yes), std::nullopt) << "Python would say 1";
  EXPECT_EQ(values.Bool(number), std::nullopt);
  EXPECT_EQ(values.Float(number), std::nullopt);
  EXPECT_EQ(values.Text(none), std::nullopt);
  EXPECT_EQ(values.Integer(values.AddLargeInteger()), std::nullopt);
  EXPECT_TRUE(values.Items(text).empty());
  EXPECT_EQ(ValueKindName(values.kind(none)), "None");
  EXPECT_EQ(ValueKindName(ValueKind::kDict), "dict");
}

TEST(Values, ADictGivesTheLastValueOfATextKey) {
  Values values;
  const ValueId one = values.AddInteger(1);
  const ValueId two = values.AddInteger(2);
  const ValueId key = values.AddText(ValueKind::kText, "key");
  const ValueId bytes = values.AddText(ValueKind::kBytes, "bytes");
  const ValueId items[] = {key, one, key, two, bytes, one, one, two};
  const ValueId dict = values.AddContainer(ValueKind::kDict, items);
  EXPECT_EQ(values.Get(dict, "key"), two);
  EXPECT_EQ(values.Get(dict, "bytes"), std::nullopt);
  EXPECT_EQ(values.Get(dict, "ke"), std::nullopt);
  EXPECT_EQ(values.Get(values.AddContainer(ValueKind::kList, items), "key"), std::nullopt);
  EXPECT_EQ(values.Get(one, "key"), std::nullopt);
}

TEST(Values, CountTheirDepth) {
  Values values;
  const ValueId number = values.AddInteger(1);
  EXPECT_EQ(values.depth(number), 0u);
  ValueId list = values.AddContainer(ValueKind::kList, {});
  EXPECT_EQ(values.depth(list), 1u);
  values.Append(list, std::vector<ValueId>{number});
  EXPECT_EQ(values.depth(list), 1u);
  for (int i = 0; i < 400; ++i) {
    list = values.AddContainer(ValueKind::kTuple, std::vector<ValueId>{list});
  }
  EXPECT_EQ(values.depth(list), 255u) << "and no further";
}

TEST(Values, KeepTheirOwnTextsWhenMoved) {
  Values values;
  std::vector<ValueId> ids;
  ids.reserve(1000);
  for (int i = 0; i < 1000; ++i) ids.push_back(values.AddOwnText(std::to_string(i)));
  const Values moved = std::move(values);
  for (int i = 0; i < 1000; ++i) {
    EXPECT_EQ(moved.Text(ids[static_cast<size_t>(i)]), std::to_string(i));
  }
}

}  // namespace
}  // namespace sluice::scheduler::trace
