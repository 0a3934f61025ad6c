// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/mps/namespace_plan.h"

#include <gtest/gtest.h>

#include "noderuntime/mps/name_book.h"

namespace sluice::mps {
namespace {

// As NVIDIA's manual shows them.
constexpr char kServers[] =
    "training,1000,48201,Ready,/run/nvidia-mps/training,GPU-abcd-1234,-\n"
    "s1,0,48202,Ready,/run/nvidia-mps/s1,-,-\n";
constexpr char kNamespaces[] =
    "default,s1,Ready,-,100,0,/run/nvidia-mps/s1/default\n"
    "j1,s1,Ready,-,100,0,/run/nvidia-mps/s1/j1\n"
    "j2,training,Ready,-,100,0,/run/nvidia-mps/training/j2\n";

TEST(MpsNamespacePlan, TheListsAreAskedForAsTheManualHasThem) {
  EXPECT_EQ(ListServers(), (Arguments{"server", "list", "--format=csv,noheader"}));
  EXPECT_EQ(ListNamespaces(), (Arguments{"namespace", "list", "--format=csv,noheader"}));
}

TEST(MpsNamespacePlan, NamesStandInFront) {
  EXPECT_EQ(ServersIn(kServers), (std::set<std::string>{"s1", "training"}));
  EXPECT_EQ(NamespacesIn(kNamespaces),
            (Places{{"s1", "default"}, {"s1", "j1"}, {"training", "j2"}}));
}

TEST(MpsNamespacePlan, WhatIsNoNameIsNoRow) {
  EXPECT_TRUE(ServersIn("").empty());
  EXPECT_TRUE(ServersIn("No servers\n\n,,\n" + std::string(65, 'a') + ",0\n").empty());
  EXPECT_TRUE(NamespacesIn("j1\nNAME,SERVER\nj1,../s1,Ready\n").empty());
  EXPECT_EQ(NamespacesIn(" j1 , s1 ,Ready\r\n"), (Places{{"s1", "j1"}}));
}

TEST(MpsNamespacePlan, AServerComesBeforeItsNamespaces) {
  EXPECT_EQ(Steps({{"s1", "j1"}, {"s1", "j2"}, {"s2", "j3"}}, {}),
            (std::vector<Arguments>{{"server", "create", "s1", "--uid=0"},
                                    {"server", "create", "s2", "--uid=0"},
                                    {"namespace", "create", "j1", "--server=s1"},
                                    {"namespace", "create", "j2", "--server=s1"},
                                    {"namespace", "create", "j3", "--server=s2"}}));
}

TEST(MpsNamespacePlan, WhatIsThereIsLeftAlone) {
  const Listed listed = {ServersIn(kServers), NamespacesIn(kNamespaces)};
  EXPECT_TRUE(Steps({{"s1", "j1"}}, listed).empty());
}

TEST(MpsNamespacePlan, WhatIsOverGoesAndOthersStay) {
  const Listed listed = {{"s1", "s2", "s", "shared", "training"},
                         {{"s1", "default"},
                          {"s1", "j1"},
                          {"s1", "other"},
                          {"s2", "j2"},
                          {"s2", "default"},
                          {"training", "j3"}}};
  EXPECT_EQ(Steps({{"s1", "j4"}}, listed),
            (std::vector<Arguments>{{"namespace", "delete", "j1", "--server=s1"},
                                    {"namespace", "delete", "j2", "--server=s2"},
                                    {"server", "delete", "s2"},
                                    {"namespace", "create", "j4", "--server=s1"}}));
}

TEST(MpsNamespacePlan, AServerThatIsGoneIsMadeAgainWithAllOfItsNamespaces) {
  // Whatever the list of namespaces still shows of it.
  const Listed listed = {{"s2"}, {{"s1", "j1"}, {"s2", "j2"}}};
  EXPECT_EQ(Steps({{"s1", "j1"}, {"s2", "j2"}}, listed),
            (std::vector<Arguments>{{"server", "create", "s1", "--uid=0"},
                                    {"namespace", "create", "j1", "--server=s1"}}));
}

TEST(MpsNameBook, AGroupHasAServerAndAGrantANamespace) {
  NameBook book;
  EXPECT_EQ(book.PlaceOf("a", "x"), (Place{"s1", "j1"}));
  EXPECT_EQ(book.PlaceOf("b", "x"), (Place{"s1", "j2"}));
  EXPECT_EQ(book.PlaceOf("c", "y"), (Place{"s2", "j3"}));
  EXPECT_EQ(book.PlaceOf("a", "x"), (Place{"s1", "j1"}));
}

TEST(MpsNameBook, NoNameComesTwice) {
  NameBook book;
  book.PlaceOf("a", "x");
  EXPECT_EQ(book.PlaceOf("a", "y"), (Place{"s2", "j2"})) << "another group is another server";
  EXPECT_EQ(book.PlaceOf("a", "x"), (Place{"s1", "j3"}));
  book.Forget("a");
  EXPECT_EQ(book.PlaceOf("a", "x"), (Place{"s1", "j4"}));
}

}  // namespace
}  // namespace sluice::mps
