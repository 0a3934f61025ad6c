// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
// page_stand [JOBS]: the live page of a daemon that there is none of, for tests in a browser. Says
// its address in the first line of standard output; goes by words on standard input ("jobs N",
// "down", "up") and ends with it.
#include <cstdio>
#include <iostream>
#include <sstream>

#include "noderuntime/page/page_file.h"
#include "noderuntime/page/server.h"
#include "tests/observe/stand/made_up_source.h"

int main(int argc, char** argv) {
  sluice::testing::MadeUpSource source(argc > 1 ? static_cast<unsigned>(std::stoul(argv[1])) : 4);
  const auto token = sluice::page::MakeToken();
  if (!token.ok()) return 1;
  sluice::page::ServerOptions options;
  options.listen = {"127.0.0.1", 0};
  options.token = *token;
  const auto server = sluice::page::Server::Start(options, &source);
  if (!server.ok()) {
    std::fprintf(stderr, "page_stand: %s\n", server.status().message().c_str());
    return 1;
  }
  const std::string authority = sluice::page::Authority((*server)->listen());
  std::printf("%s\n", sluice::page::PageUrl({authority, *token}, -1).c_str());
  std::fflush(stdout);
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream words(line);
    std::string word;
    unsigned number = 0;
    words >> word >> number;
    if (word == "jobs") source.SetJobs(number);
    if (word == "down" || word == "up") source.SetDown(word == "down");
  }
  return 0;
}
