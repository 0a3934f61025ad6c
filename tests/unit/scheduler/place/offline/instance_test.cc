// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "scheduler/place/offline/instance.h"

#include <gtest/gtest.h>

namespace sluice::scheduler {
namespace {

TEST(InstanceTest, ColumnsComeInAnyOrder) {
  const auto read = ParseInstance("size,id,upper,lower\n10,a,4,2\n7,b,9,4\n");
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(read->ids, (std::vector<std::string>{"a", "b"}));
  ASSERT_EQ(read->buffers.size(), 2u);
  EXPECT_EQ(read->buffers[1].lower, 4u);
  EXPECT_EQ(read->buffers[1].upper, 9u);
  EXPECT_EQ(read->buffers[1].size, 7u);
}

TEST(InstanceTest, WhatIsWrittenIsReadAgain) {
  const auto read = ParseInstance("id,lower,upper,size\na,2,4,10\nb,4,9,7\n");
  ASSERT_TRUE(read.ok());
  const std::string text = WriteInstance(*read, {0, 3});
  EXPECT_EQ(text, "id,lower,upper,size,offset\na,2,4,10,0\nb,4,9,7,3\n");
  const auto again = ParseInstance(text);
  ASSERT_TRUE(again.ok()) << again.status().message();
  EXPECT_EQ(WriteInstance(*again, {0, 3}), text);
}

TEST(InstanceTest, FaultsNameLineAndField) {
  const auto why = [](const std::string& text) { return ParseInstance(text).status().message(); };
  const std::string heading = "id,lower,upper,size\n";
  EXPECT_EQ(why(""), "line 1: heading: missing; it names id, lower, upper and size");
  EXPECT_EQ(why("id,lower,upper\n"), "line 1: heading: the column 'size' is missing");
  EXPECT_EQ(why("id,lower,id,upper\n"), "line 1: heading: \"id\" is there twice");
  EXPECT_EQ(why("id,begin,upper,size\n"),
            "line 1: heading: \"begin\" is no column; there are id, lower, upper, size and offset");
  EXPECT_EQ(why(heading + "a,1,2\n"), "line 2: 3 fields, but the heading has 4");
  EXPECT_EQ(why(heading + "a,1,2,3,4\n"), "line 2: 5 fields, but the heading has 4");
  EXPECT_EQ(why(heading + ",1,2,3\n"), "line 2: id: must not be empty");
  EXPECT_EQ(why(heading + "a,1,2,3\na,1,2,3\n"), "line 3: id: \"a\" came before");
  EXPECT_EQ(why(heading + "a,2,2,3\n"), "line 2: upper: is 2, but must be above lower (2)");
  EXPECT_EQ(why(heading + "a,1,2,0\n"), "line 2: size: is 0, but must be at least 1");
  for (const char* wrong : {"a,-1,2,3\n", "a, 1,2,3\n", "a,x,2,3\n", "a,,2,3\n",
                            "a,99999999999999999999,2,3\n", "a,1.5,2,3\n"}) {
    EXPECT_EQ(why(heading + wrong).substr(0, 15), "line 2: lower: ") << wrong;
  }
  EXPECT_EQ(why(heading + "a,1\t,2,3\n"),
            "line 2: byte 0x09 in column 4, must be a printable ASCII character");
}

TEST(InstanceTest, LinesEndAsOtherProgramsEndThem) {
  const auto plain = ParseInstance("id,lower,upper,size\na,2,4,10\nb,4,9,7\n");
  ASSERT_TRUE(plain.ok());
  for (const char* text :
       {"id,lower,upper,size\r\na,2,4,10\r\nb,4,9,7\r\n", "id,lower,upper,size\na,2,4,10\nb,4,9,7",
        "id,lower,upper,size\r\na,2,4,10\r\nb,4,9,7"}) {
    const auto read = ParseInstance(text);
    ASSERT_TRUE(read.ok()) << read.status().message();
    EXPECT_EQ(WriteInstance(*read, {0, 3}), WriteInstance(*plain, {0, 3}));
  }
}

}  // namespace
}  // namespace sluice::scheduler
