// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
// A kubelet for programs that are no tests in C++: FakeKubelet, told by lines what to do. Each is
// answered by one: what was asked for, or "error" and why.
//
//   observe_kubelet FOLDER
//   devices           the ids that are offered and healthy, as soon as there are any
//   allocate ID...    grants them to one container: the folder that it gets at /run/sluice
//   refuse [TEXT]     what is said to who registers from now on; nothing: welcome
//   calls N           as soon as so many registrations have come
#include <algorithm>
#include <cstdio>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/fake_kubelet.h"

namespace {

using sluice::testing::FakeKubelet;

std::string Devices(FakeKubelet& kubelet) {
  const auto healthy = [](const auto& entry) { return entry.second; };
  const auto devices = kubelet.AwaitDevices([&](const FakeKubelet::Devices& list) {
    return std::any_of(list.healthy.begin(), list.healthy.end(), healthy);
  });
  if (!devices.has_value()) return "error nothing is offered";
  std::string text;
  for (const auto& [id, good] : devices->healthy) {
    if (good) text += (text.empty() ? "" : " ") + id;
  }
  return text;
}

std::string Allocate(FakeKubelet& kubelet, const std::vector<std::string>& ids) {
  const auto given = kubelet.Allocate({ids});
  if (!given.ok()) return "error " + given.status().message();
  for (const auto& [host, container] : given->front().mounts) {
    if (container == "/run/sluice") return host;
  }
  return "error no grant is mounted";
}

std::string Answer(FakeKubelet& kubelet, const std::string& line) {
  std::istringstream words(line);
  std::string what;
  words >> what;
  std::vector<std::string> arguments;
  for (std::string word; words >> word;) arguments.push_back(word);
  if (what == "devices") return Devices(kubelet);
  if (what == "allocate") return Allocate(kubelet, arguments);
  if (what == "refuse") {
    kubelet.Refuse(line.size() > 7 ? line.substr(7) : "");
    return "ok";
  }
  if (what == "calls" && arguments.size() == 1) {
    return kubelet.AwaitCalls(std::stoul(arguments.front())) ? "ok" : "error they did not come";
  }
  return "error '" + line + "': allowed: devices, allocate ID..., refuse [TEXT], calls N";
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("observe_kubelet: allowed: observe_kubelet FOLDER\n", stderr);
    return 2;
  }
  FakeKubelet kubelet(argv[1]);
  std::cout << "ready" << std::endl;  // NOLINT: each answer is waited for
  for (std::string line; std::getline(std::cin, line);) {
    std::cout << Answer(kubelet, line) << std::endl;  // NOLINT: as above
  }
  return 0;
}
