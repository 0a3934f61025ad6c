// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "deviceplugin/cluster/pod_json.h"

#include <time.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "common/printable.h"
#include "common/quantity.h"
#include "deviceplugin/granule/hash.h"

namespace sluice::deviceplugin {
namespace {

using nlohmann::json;

constexpr size_t kMaxMessage = 1000;  // of an event
/// Where events about what has no namespace are.
constexpr char kSpaceOfNodes[] = "default";

Status Bad(const std::string& text) { return Status(StatusCode::kInvalidArgument, text); }

std::string TextAt(const json& object, const char* key) {
  const auto found = object.is_object() ? object.find(key) : object.end();
  return object.is_object() && found != object.end() && found->is_string()
             ? found->get<std::string>()
             : "";
}

const json& At(const json& object, const char* key) {
  static const json kNothing = json::object();
  if (!object.is_object()) return kNothing;
  const auto found = object.find(key);
  return found == object.end() ? kNothing : *found;
}

uint64_t SecondsOf(const std::string& time) {
  tm parts = {};
  if (::strptime(time.c_str(), "%Y-%m-%dT%H:%M:%SZ", &parts) == nullptr) return 0;
  const time_t seconds = ::timegm(&parts);
  return seconds > 0 ? static_cast<uint64_t>(seconds) : 0;
}

std::string TimeText(uint64_t ns) {
  const auto seconds = static_cast<time_t>(ns / 1'000'000'000);
  tm parts = {};
  ::gmtime_r(&seconds, &parts);
  char text[32];
  ::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

void AddParts(const json& containers, bool first, const std::string& resource, pods::Pod* pod) {
  if (!containers.is_array()) return;
  for (const json& container : containers) {
    pods::Pod::Part part;
    part.name = TextAt(container, "name");
    // A sidecar begins with the others and stays.
    part.init = first && TextAt(container, "restartPolicy") != "Always";
    const std::string asks = TextAt(At(At(container, "resources"), "limits"), resource.c_str());
    const Result<uint64_t> granules = ParseQuantity(asks, resource);
    if (granules.ok()) part.granules = *granules;
    pod->parts.push_back(std::move(part));
  }
}

/// A pod from a file of the node's is in the API as a mirror with a UID of its own; kubelet knows
/// it by a hash. Anybody can write annotations: these can name no pod that has a UID from the API.
std::string UidOnNode(const json& meta) {
  constexpr size_t kDigits = 32;
  const json& annotations = At(meta, "annotations");
  const std::string hash = TextAt(annotations, "kubernetes.io/config.hash");
  const bool is_hash =
      hash.size() == kDigits && hash.find_first_not_of("0123456789abcdef") == std::string::npos;
  const bool mirror = TextAt(annotations, "kubernetes.io/config.mirror") == hash;
  return is_hash && mirror ? hash : TextAt(meta, "uid");
}

/// `mpsd` and `fractiond` of NVIDIA's GPU fractions, by the labels that their operator puts on what
/// it runs. Anybody can write labels; a volume of the host's only those have who may do anything to
/// the node, so nobody else keeps its GPUs from others with them.
std::string ManagerOfGpus(const json& meta, const json& spec) {
  const json& labels = At(meta, "labels");
  const std::string component = TextAt(labels, "app.kubernetes.io/component");
  if (TextAt(labels, "app.kubernetes.io/managed-by") != "gpu-fractioning") return "";
  if (component != "mpsd" && component != "fractiond") return "";
  const json& volumes = At(spec, "volumes");
  const bool of_host =
      volumes.is_array() && std::any_of(volumes.begin(), volumes.end(), [](const json& volume) {
        return volume.is_object() && volume.contains("hostPath");
      });
  return of_host ? component : "";
}

Result<pods::Pod> PodOf(const json& object, const std::string& resource) {
  const json& meta = At(object, "metadata");
  pods::Pod pod;
  pod.space = TextAt(meta, "namespace");
  pod.name = TextAt(meta, "name");
  pod.object = TextAt(meta, "uid");
  pod.uid = UidOnNode(meta);
  if (pod.name.empty() || pod.object.empty()) return Bad("a pod without name or uid");
  pod.created_s = SecondsOf(TextAt(meta, "creationTimestamp"));
  for (const auto& [key, value] : At(meta, "annotations").items()) {
    if (value.is_string()) pod.annotations[key] = value.get<std::string>();
  }
  const json& spec = At(object, "spec");
  AddParts(At(spec, "initContainers"), true, resource, &pod);
  AddParts(At(spec, "containers"), false, resource, &pod);
  pod.manages_gpus = ManagerOfGpus(meta, spec);
  const json& state = At(object, "status");
  pod.begun = !TextAt(state, "startTime").empty();
  const std::string phase = TextAt(state, "phase");
  pod.over = phase == "Succeeded" || phase == "Failed";
  return pod;
}

/// `mark`: what makes its name its own.
std::string Warning(const json& object, const std::string& space, const std::string& mark,
                    const std::string& reason, const std::string& message, const std::string& node,
                    uint64_t now_ns) {
  const std::string time = TimeText(now_ns);
  json event;
  event["apiVersion"] = "v1";
  event["kind"] = "Event";
  event["metadata"] = {{"namespace", space}, {"name", TextAt(object, "name") + ".sluice-" + mark}};
  event["involvedObject"] = object;
  event["type"] = "Warning";
  event["reason"] = reason;
  event["message"] = CutText(PrintableLines(message), kMaxMessage);
  event["source"] = {{"component", "sluice-device-plugin"}, {"host", node}};
  event["firstTimestamp"] = time;
  event["lastTimestamp"] = time;
  event["count"] = 1;
  return event.dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace

Result<PodList> ParsePodList(std::string_view text, const std::string& resource) {
  const json list = json::parse(text, nullptr, /*allow_exceptions=*/false);
  const json& items = At(list, "items");
  if (!items.is_array()) return Bad("the API server's answer is no list of pods");
  PodList result;
  result.version = TextAt(At(list, "metadata"), "resourceVersion");
  for (const json& item : items) {
    Result<pods::Pod> pod = PodOf(item, resource);
    if (pod.ok()) result.pods.push_back(std::move(*pod));
  }
  return result;
}

Result<PodEvent> ParsePodEvent(std::string_view text, const std::string& resource) {
  const json line = json::parse(text, nullptr, /*allow_exceptions=*/false);
  const std::string type = TextAt(line, "type");
  const json& object = At(line, "object");
  PodEvent event;
  event.version = TextAt(At(object, "metadata"), "resourceVersion");
  if (type == "ERROR") {
    event.error = TextAt(object, "message");
    return event;
  }
  if (type == "BOOKMARK") {
    event.kind = PodEvent::Kind::kVersion;
    return event;
  }
  if (type != "ADDED" && type != "MODIFIED" && type != "DELETED") {
    return Bad("a line of a watch of an unknown type '" + type + "'");
  }
  event.kind = type == "DELETED" ? PodEvent::Kind::kGone : PodEvent::Kind::kThere;
  Result<pods::Pod> pod = PodOf(object, resource);
  if (!pod.ok()) return pod.status();
  event.pod = std::move(*pod);
  return event;
}

std::string WarningOn(const pods::Pod& pod, const std::string& reason, const std::string& message,
                      const std::string& node, uint64_t now_ns) {
  const json object = {{"apiVersion", "v1"},
                       {"kind", "Pod"},
                       {"namespace", pod.space},
                       {"name", pod.name},
                       {"uid", pod.object}};
  return Warning(object, pod.space, Hex(Hash(pod.uid + "\n" + reason + "\n" + message), 16), reason,
                 message, node, now_ns);
}

std::string WarningOnNode(const std::string& node, const std::string& reason,
                          const std::string& message, uint64_t now_ns) {
  // As kubelet does it: a node has no namespace, and its name stands for its UID.
  const json object = {{"apiVersion", "v1"}, {"kind", "Node"}, {"name", node}, {"uid", node}};
  return Warning(object, kSpaceOfNodes, std::to_string(now_ns), reason, message, node, now_ns);
}

}  // namespace sluice::deviceplugin
