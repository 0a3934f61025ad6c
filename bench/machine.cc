// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "bench/machine.h"

#include <sys/utsname.h>

#include <ctime>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>

namespace sluice::bench {
namespace {

std::string CpuModel() {
  std::ifstream file("/proc/cpuinfo");
  std::string line;
  while (std::getline(file, line)) {
    if (line.rfind("model name", 0) == 0) return line.substr(line.find(": ") + 2);
  }
  return "unknown";
}

}  // namespace

nlohmann::json DescribeMachine() {
  utsname system{};
  ::uname(&system);
  char date[32] = "";
  const time_t now = ::time(nullptr);
  tm utc{};
  ::gmtime_r(&now, &utc);
  ::strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%SZ", &utc);
  return {{"date", date},
          {"processor", CpuModel()},
          {"cores", std::thread::hardware_concurrency()},
          {"kernel", std::string(system.sysname) + ' ' + system.release},
          {"compiler", "g++ " __VERSION__},
          {"build", SLUICE_BUILD_TYPE},
          {"gpu", "simulated"}};
}

std::string MachineLine() {
  const nlohmann::json machine = DescribeMachine();
  const auto word = [&](const char* key) { return machine[key].get<std::string>(); };
  return std::to_string(machine["cores"].get<unsigned>()) + " x " + word("processor") + ", " +
         word("kernel") + ", " + word("compiler") + ", " + word("build");
}

}  // namespace sluice::bench
