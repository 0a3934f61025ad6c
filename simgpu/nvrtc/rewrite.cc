// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "simgpu/nvrtc/rewrite.h"

#include <algorithm>
#include <cctype>

#include "simgpu/nvrtc/cache.h"

namespace sluice::simgpu::nvrtc {
namespace {

struct Edit {
  size_t begin, end;
  std::string text;
};

constexpr std::string_view kGlobal = "__global__";
constexpr std::string_view kShared = "__shared__";

}  // namespace

std::string BaseName(std::string_view expression) {
  expression = expression.substr(0, expression.find('<'));
  while (!expression.empty() && std::isspace(static_cast<unsigned char>(expression.back())) != 0) {
    expression.remove_suffix(1);
  }
  const size_t at = expression.find_last_of(":& ");
  return std::string(at == std::string_view::npos ? expression : expression.substr(at + 1));
}

std::string LoweredName(const std::string& expression) {
  std::string name = "lowered_";
  for (char c : expression) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0) {
      name += c;
    } else if (name.back() != '_') {
      name += '_';
    }
  }
  return name + "_" + HashParts({expression}).substr(0, 8);
}

std::string RewriteSource(std::string_view source, const Scan& scan) {
  std::vector<Edit> edits;
  for (const Kernel& kernel : scan.kernels) {
    // Inlined into the loop over the threads whatever its size; a second `inline` would be an
    // error.
    edits.push_back({kernel.marker, kernel.marker + kGlobal.size(),
                     kernel.says_inline ? "__attribute__((always_inline))"
                                        : "__attribute__((always_inline)) inline"});
  }
  for (size_t at : scan.global_markers) edits.push_back({at, at + kGlobal.size(), ""});
  for (size_t at : scan.shared_markers) edits.push_back({at, at + kShared.size(), "static"});
  for (const DynamicShared& shared : scan.dynamic_shared) {
    const std::string type = "simgpu_shared_" + shared.name;
    std::string text = "typedef " + shared.type + type + "[]; static " + type + "& " + shared.name +
                       " = *reinterpret_cast<" + type + "*>(simgpu_dynamic_shared);";
    const std::string_view old = source.substr(shared.begin, shared.end - shared.begin);
    text.append(static_cast<size_t>(std::count(old.begin(), old.end(), '\n')), '\n');
    edits.push_back({shared.begin, shared.end, std::move(text)});
  }
  std::sort(edits.begin(), edits.end(),
            [](const Edit& a, const Edit& b) { return a.begin < b.begin; });
  std::string result;
  size_t done = 0;
  for (const Edit& edit : edits) {
    result += source.substr(done, edit.begin - done);
    result += edit.text;
    done = edit.end;
  }
  result += source.substr(done);
  return result;
}

std::string ExportLines(const std::vector<Export>& exports) {
  std::string lines;
  for (const Export& entry : exports) {
    lines += "SIMGPU_EXPORT(" + entry.symbol + ", " + (entry.barriers ? "true" : "false") + ", " +
             entry.expression + ")\n";
  }
  return lines;
}

}  // namespace sluice::simgpu::nvrtc
