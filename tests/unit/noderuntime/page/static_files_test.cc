// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/page/static_files.h"

#include <gtest/gtest.h>

#include <regex>
#include <set>
#include <string>

namespace sluice::page {
namespace {

std::vector<std::string> Matches(const StaticFile& file, const std::string& pattern) {
  const std::string text(file.text);
  const std::regex regex(pattern);
  std::vector<std::string> found;
  for (std::sregex_iterator at(text.begin(), text.end(), regex), end; at != end; ++at) {
    found.push_back((*at)[1].str());
  }
  return found;
}

TEST(StaticFiles, AreThereAndSayWhatTheyAre) {
  std::set<std::string_view> paths;
  std::set<std::string_view> etags;
  for (const StaticFile& file : StaticFiles()) {
    EXPECT_FALSE(file.text.empty()) << file.path;
    EXPECT_FALSE(file.type.empty()) << file.path;
    EXPECT_TRUE(paths.insert(file.path).second) << file.path;
    EXPECT_TRUE(etags.insert(file.etag).second) << file.path;
  }
  for (const char* path : {"/", "/base.css", "/page.css", "/main.js", "/theme.js", "/icon.svg"}) {
    EXPECT_TRUE(paths.contains(path)) << path;
  }
}

TEST(StaticFiles, HaveAllThatTheyName) {
  std::set<std::string> paths;
  for (const StaticFile& file : StaticFiles()) paths.emplace(file.path);
  size_t named = 0;
  for (const StaticFile& file : StaticFiles()) {
    std::vector<std::string> names;
    if (file.path == "/") names = Matches(file, R"re((?:src|href)="([^"#]+)")re");
    if (file.path.ends_with(".js")) {
      for (const std::string& name : Matches(file, R"re(from '\./([^']+)')re")) {
        names.push_back(name);
      }
    }
    for (const std::string& name : names) {
      EXPECT_TRUE(paths.contains("/" + name)) << file.path << " names " << name;
      ++named;
    }
  }
  EXPECT_GT(named, 20u);
}

// What the Content-Security-Policy forbids would only be seen in a browser's console.
TEST(StaticFiles, KeepTheContentSecurityPolicy) {
  for (const StaticFile& file : StaticFiles()) {
    if (file.path == "/") {
      EXPECT_TRUE(Matches(file, R"re((<script(?![^>]*src=)))re").empty()) << "a script in the page";
      EXPECT_TRUE(Matches(file, R"re(\s(style=|on[a-z]+=))re").empty());
      EXPECT_TRUE(Matches(file, R"re((<style|<form|<base))re").empty());
    }
    if (file.path.ends_with(".js")) {
      EXPECT_TRUE(
          Matches(
              file,
              R"re(\b(eval\(|new Function|innerHTML|outerHTML|insertAdjacentHTML|document\.write))re")
              .empty())
          << file.path;
      EXPECT_TRUE(Matches(file, R"re(('style'))re").empty()) << file.path << " writes a style";
    }
    if (file.path.ends_with(".css")) {
      EXPECT_TRUE(Matches(file, R"re((@import|url\())re").empty()) << file.path;
    }
  }
}

TEST(StaticFiles, NameNoOtherHost) {
  for (const StaticFile& file : StaticFiles()) {
    for (const std::string& url : Matches(file, R"re(((?:https?:)?//[a-z][a-z0-9.-]+))re")) {
      EXPECT_EQ(url, "http://www.w3.org") << file.path << ": " << url;
    }
  }
}

TEST(StaticFiles, DeclareEachElementThatScriptsLookFor) {
  std::set<std::string> ids;
  for (const StaticFile& file : StaticFiles()) {
    if (file.path != "/") continue;
    for (const std::string& id : Matches(file, R"re(\sid="([^"]+)")re")) {
      EXPECT_TRUE(ids.insert(id).second) << id << " is there twice";
    }
  }
  for (const StaticFile& file : StaticFiles()) {
    if (!file.path.ends_with(".js")) continue;
    for (const std::string& id : Matches(file, R"re(byId\('([^']+)'\))re")) {
      EXPECT_TRUE(ids.contains(id)) << file.path << " looks for " << id;
    }
  }
}

}  // namespace
}  // namespace sluice::page
