// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "deviceplugin/daemon/ceilings_file.h"

#include <yaml-cpp/yaml.h>

#include <charconv>
#include <fstream>
#include <sstream>

#include "common/quantity.h"

namespace sluice::deviceplugin {
namespace {

constexpr int32_t kMostPriority = 1000;

class Reader {
 public:
  pods::Ceilings Read(const YAML::Node& root) {
    pods::Ceilings ceilings;
    if (root.IsNull()) return ceilings;
    if (!root.IsMap()) {
      Add("the file", "a map of namespaces, or \"*\", to what their pods may say");
      return ceilings;
    }
    for (const auto& entry : root) {
      const std::string space = entry.first.Scalar();
      const bool is_new = ceilings.try_emplace(space, Of(space, entry.second)).second;
      if (!is_new) Add(space, "each namespace once");
    }
    return ceilings;
  }
  const std::string& errors() const { return errors_; }

 private:
  void Add(const std::string& field, const std::string& allowed) {
    errors_ += (errors_.empty() ? "" : "\n") + field + ": allowed: " + allowed;
  }
  void AddValue(const std::string& field, const YAML::Node& value, const std::string& allowed) {
    Add(field + " '" + (value.IsScalar() ? value.Scalar() : "...") + "'", allowed);
  }

  pods::Ceiling Of(const std::string& space, const YAML::Node& node) {
    pods::Ceiling ceiling;
    if (node.IsNull()) return ceiling;
    if (!node.IsMap()) {
      AddValue(space, node, "a map");
      return ceiling;
    }
    for (const auto& entry : node) {
      const std::string key = entry.first.Scalar();
      const std::string field = space + "." + key;
      if (key == "maxMemoryLimit") {
        TakeBytes(field, entry.second, &ceiling);
      } else if (key == "maxPriority") {
        TakePriority(field, entry.second, &ceiling);
      } else if (key == "shareGroups") {
        const std::string text = entry.second.IsScalar() ? entry.second.Scalar() : "";
        ceiling.share_groups = text == "true";
        if (text != "true" && text != "false") AddValue(field, entry.second, "true, false");
      } else {
        Add(field, "maxMemoryLimit, maxPriority, shareGroups");
      }
    }
    return ceiling;
  }
  void TakeBytes(const std::string& field, const YAML::Node& value, pods::Ceiling* ceiling) {
    const Result<uint64_t> bytes = ParseQuantity(value.IsScalar() ? value.Scalar() : "", field);
    if (bytes.ok()) {
      ceiling->limit_bytes = *bytes;
    } else {
      errors_ += (errors_.empty() ? "" : "\n") + bytes.status().message();
    }
  }
  void TakePriority(const std::string& field, const YAML::Node& value, pods::Ceiling* ceiling) {
    const std::string text = value.IsScalar() ? value.Scalar() : "";
    int32_t priority = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), priority);
    const bool good = error == std::errc() && end == text.data() + text.size() &&
                      priority >= -kMostPriority && priority <= kMostPriority;
    if (!good) return AddValue(field, value, "-1000 to 1000");
    ceiling->priority = priority;
  }

  std::string errors_;
};

}  // namespace

Result<pods::Ceilings> ParseCeilings(const std::string& yaml) {
  YAML::Node root;
  try {
    root = YAML::Load(yaml);
  } catch (const YAML::Exception& error) {
    return Status(StatusCode::kInvalidArgument, error.what());
  }
  Reader reader;
  pods::Ceilings ceilings = reader.Read(root);
  if (!reader.errors().empty()) return Status(StatusCode::kInvalidArgument, reader.errors());
  return ceilings;
}

Result<pods::Ceilings> ReadCeilings(const std::string& path) {
  std::ifstream file(path);
  if (!file) return Status(StatusCode::kNotFound, path + ": cannot be read");
  std::ostringstream text;
  text << file.rdbuf();
  return ParseCeilings(text.str());
}

}  // namespace sluice::deviceplugin
