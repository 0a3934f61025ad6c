// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/mps/namespace_plan.h"

#include <algorithm>
#include <sstream>

namespace sluice::mps {
namespace {

constexpr char kCsv[] = "--format=csv,noheader";
constexpr size_t kMaxName = 64;

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

bool IsName(const std::string& text) {
  return !text.empty() && text.size() <= kMaxName &&
         std::all_of(text.begin(), text.end(),
                     [](char c) { return (c >= 'a' && c <= 'z') || IsDigit(c) || c == '_'; });
}

bool IsOurs(const std::string& name, char kind) {
  return name.size() > 1 && name[0] == kind && std::all_of(name.begin() + 1, name.end(), IsDigit);
}

std::string Trimmed(const std::string& text) {
  const size_t begin = text.find_first_not_of(" \t\r");
  if (begin == std::string::npos) return "";
  return text.substr(begin, text.find_last_not_of(" \t\r") - begin + 1);
}

/// The first two fields of each line.
std::vector<Place> Rows(const std::string& csv) {
  std::vector<Place> rows;
  std::istringstream lines(csv);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream fields(line);
    std::string first;
    std::string second;
    std::getline(fields, first, ',');
    std::getline(fields, second, ',');
    rows.push_back({Trimmed(second), Trimmed(first)});
  }
  return rows;
}

std::string Of(const Place& place) { return "--server=" + place.server; }

}  // namespace

Arguments ListServers() { return {"server", "list", kCsv}; }
Arguments ListNamespaces() { return {"namespace", "list", kCsv}; }

std::set<std::string> ServersIn(const std::string& csv) {
  std::set<std::string> servers;
  for (const Place& row : Rows(csv)) {
    if (IsName(row.name)) servers.insert(row.name);
  }
  return servers;
}

Places NamespacesIn(const std::string& csv) {
  Places places;
  for (const Place& row : Rows(csv)) {
    if (IsName(row.name) && IsName(row.server)) places.insert(row);
  }
  return places;
}

std::vector<Arguments> Steps(const Places& wanted, const Listed& listed) {
  std::set<std::string> servers;
  for (const Place& place : wanted) servers.insert(place.server);
  std::vector<Arguments> steps;
  for (const Place& place : listed.namespaces) {
    const bool ours = IsOurs(place.server, 's') && IsOurs(place.name, 'j');
    if (!ours || wanted.contains(place)) continue;
    steps.push_back({"namespace", "delete", place.name, Of(place)});
  }
  for (const std::string& server : listed.servers) {
    if (IsOurs(server, 's') && !servers.contains(server)) {
      steps.push_back({"server", "delete", server});
    }
  }
  for (const std::string& server : servers) {
    // With many users (-m) a server can only be root's, and serves all of them.
    if (!listed.servers.contains(server)) steps.push_back({"server", "create", server, "--uid=0"});
  }
  for (const Place& place : wanted) {
    if (listed.servers.contains(place.server) && listed.namespaces.contains(place)) continue;
    steps.push_back({"namespace", "create", place.name, Of(place)});
  }
  return steps;
}

std::string ServerName(unsigned number) { return "s" + std::to_string(number); }
std::string NamespaceName(unsigned number) { return "j" + std::to_string(number); }

}  // namespace sluice::mps
