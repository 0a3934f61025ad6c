// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "simgpu/nvrtc/scanner.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>

namespace sluice::simgpu::nvrtc {
namespace {

/// What the device header implements with a barrier; a kernel that reaches none of these runs as a
/// plain loop over its threads.
constexpr std::array<std::string_view, 12> kBarriers = {
    "__syncthreads",   "__syncthreads_count", "__syncthreads_or", "__syncthreads_and",
    "__syncwarp",      "__shfl_sync",         "__shfl_up_sync",   "__shfl_down_sync",
    "__shfl_xor_sync", "__ballot_sync",       "__any_sync",       "__all_sync",
};

enum class ScopeKind { kNamespace, kLinkage, kClass };

struct Scope {
  ScopeKind kind;
  std::string name;
};

class Scanner {
 public:
  explicit Scanner(std::string_view source) : tokens_(Tokenize(source)) {}

  Scan Run() {
    FindShared();
    size_t begin = 0;  // of the declaration being read
    for (size_t i = 0; i < tokens_.size() && scan_.error.empty(); ++i) {
      if (Is(i, ";")) {
        NoteDeclaration(begin, i);
        begin = i + 1;
      } else if (Is(i, "}")) {
        if (!scopes_.empty()) scopes_.pop_back();
        begin = i + 1;
      } else if (Is(i, "{")) {
        i = OpenBrace(begin, i);
        begin = i + 1;
      } else if (Is(i, "(") || Is(i, "[")) {
        i = Matching(i);
      }
    }
    MarkBarriers();
    return std::move(scan_);
  }

 private:
  bool Is(size_t i, std::string_view text) const {
    return i < tokens_.size() && tokens_[i].text == text && tokens_[i].kind != TokenKind::kString;
  }
  bool IsName(size_t i) const {
    return i < tokens_.size() && tokens_[i].kind == TokenKind::kIdentifier;
  }

  /// The bracket that closes the one at `open`; the last token when there is none.
  size_t Matching(size_t open) const {
    const std::string_view opening = tokens_[open].text;
    const std::string_view closing = opening == "(" ? ")" : opening == "[" ? "]" : "}";
    size_t depth = 0;
    for (size_t i = open; i < tokens_.size(); ++i) {
      if (Is(i, opening)) ++depth;
      if (Is(i, closing) && --depth == 0) return i;
    }
    return tokens_.size() - 1;
  }

  size_t FindBetween(size_t begin, size_t end, std::string_view text) const {
    for (size_t i = begin; i < end; ++i) {
      if (Is(i, text)) return i;
    }
    return end;
  }

  /// The index of the parenthesis that opens the parameter list of the declaration, or `end`.
  /// Attributes and launch bounds have parentheses of their own.
  size_t ParameterList(size_t begin, size_t end) const {
    for (size_t i = begin; i < end; ++i) {
      if (Is(i, "__attribute__") || Is(i, "__launch_bounds__") || Is(i, "decltype") ||
          Is(i, "alignas") || Is(i, "__align__") || Is(i, "__declspec") || Is(i, "noexcept")) {
        if (Is(i + 1, "(")) i = Matching(i + 1);
      } else if (Is(i, "<")) {
        i = SkipAngles(i, end);
      } else if (Is(i, "(")) {
        return i;
      } else if (Is(i, "[")) {
        i = Matching(i);
      }
    }
    return end;
  }

  size_t SkipAngles(size_t open, size_t end) const {
    size_t depth = 0;
    for (size_t i = open; i < end; ++i) {
      if (Is(i, "(")) i = Matching(i);
      if (Is(i, "<")) ++depth;
      if (Is(i, ">") && --depth == 0) return i;
    }
    return open;
  }

  std::string Qualify(const std::string& name) const {
    std::string qualified;
    for (const Scope& scope : scopes_) {
      if (scope.kind != ScopeKind::kLinkage && !scope.name.empty()) qualified += scope.name + "::";
    }
    return qualified + name;
  }

  bool CLinkage(size_t begin, size_t end) const {
    for (size_t i = begin; i + 1 < end; ++i) {
      if (Is(i, "extern") && tokens_[i + 1].text == "\"C\"") return true;
    }
    return std::any_of(scopes_.begin(), scopes_.end(), [](const Scope& scope) {
      return scope.kind == ScopeKind::kLinkage && scope.name == "\"C\"";
    });
  }

  void NoteDeclaration(size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      if (Is(i, "__global__")) scan_.global_markers.push_back(tokens_[i].offset);
    }
  }

  /// Handles the brace at `open` after the declaration that starts at `begin`; returns the last
  /// index that is dealt with.
  size_t OpenBrace(size_t begin, size_t open) {
    if (const size_t at = FindBetween(begin, open, "namespace"); at != open) {
      std::string name;
      for (size_t i = at + 1; i < open; ++i) {
        if (IsName(i) && !Is(i, "__attribute__")) name += std::string(tokens_[i].text);
        if (Is(i, "::")) name += "::";
        if (Is(i, "(")) i = Matching(i);
      }
      scopes_.push_back({ScopeKind::kNamespace, name});
      return open;
    }
    if (open == begin + 2 && Is(begin, "extern")) {
      scopes_.push_back({ScopeKind::kLinkage, std::string(tokens_[begin + 1].text)});
      return open;
    }
    const size_t list = ParameterList(begin, open);
    const bool assigned = FindBetween(begin, std::min(list, open), "=") != std::min(list, open) &&
                          !Is(begin, "template") && FindBetween(begin, list, "operator") == list;
    if (list == open || assigned) {
      for (std::string_view keyword : {"struct", "class", "union"}) {
        const size_t at = FindBetween(begin, open, keyword);
        if (at == open || assigned) continue;
        scopes_.push_back(
            {ScopeKind::kClass, IsName(at + 1) ? std::string(tokens_[at + 1].text) : ""});
        return open;
      }
      // An enumeration or an initialiser. What follows (a name, a semicolon) is no declaration of
      // ours.
      return Matching(open);
    }
    const size_t close = Matching(open);
    NoteFunction(begin, list, open, close);
    return close;
  }

  void NoteFunction(size_t begin, size_t list, size_t open, size_t close) {
    if (list == begin || !IsName(list - 1)) return;  // an operator: nothing calls it by a name
    const std::string name(tokens_[list - 1].text);
    auto& called = calls_[name];
    for (size_t i = open; i < close; ++i) {
      if (IsName(i)) called.insert(tokens_[i].text);
    }
    const size_t marker = FindBetween(begin, open, "__global__");
    if (marker == open) return;
    Kernel kernel;
    kernel.name = name;
    kernel.qualified = Qualify(name);
    kernel.c_linkage = CLinkage(begin, open);
    kernel.is_template = FindBetween(begin, open, "template") != open;
    kernel.marker = tokens_[marker].offset;
    kernel.says_inline = FindBetween(begin, list, "inline") != list ||
                         FindBetween(begin, list, "__inline__") != list ||
                         FindBetween(begin, list, "__inline") != list;
    if (std::any_of(scopes_.begin(), scopes_.end(),
                    [](const Scope& scope) { return scope.kind == ScopeKind::kClass; })) {
      scan_.error = "kernel '" + name + "' is a member of a class, which CUDA does not allow";
    }
    scan_.kernels.push_back(std::move(kernel));
  }

  void FindShared() {
    for (size_t i = 0; i < tokens_.size(); ++i) {
      if (!Is(i, "__shared__")) continue;
      // `extern` may stand on either side and apart: extern "__attribute__((...))" __shared__ float
      // x[];
      size_t first = i;
      while (first > 0 && !Is(first - 1, ";") && !Is(first - 1, "{") && !Is(first - 1, "}"))
        --first;
      size_t last = i;
      while (last < tokens_.size() && !Is(last, ";") && !Is(last, "{") && !Is(last, "=")) ++last;
      if (FindBetween(first, last, "extern") == last) {
        scan_.shared_markers.push_back(tokens_[i].offset);
        continue;
      }
      AddDynamic(first, last);
    }
  }

  void AddDynamic(size_t first, size_t last) {
    size_t bracket = last;
    for (size_t i = first; i + 1 < last; ++i) {
      if (Is(i, "[") && Is(i + 1, "]")) bracket = i;
    }
    if (!Is(last, ";") || bracket + 2 != last || bracket == first || !IsName(bracket - 1)) {
      scan_.error = "dynamic shared memory must be declared as `extern __shared__ TYPE NAME[];`";
      return;
    }
    DynamicShared shared;
    shared.begin = tokens_[first].offset;
    shared.end = tokens_[last].offset + 1;
    shared.name = std::string(tokens_[bracket - 1].text);
    for (size_t i = first; i + 1 < bracket; ++i) {
      if (Is(i, "extern") || Is(i, "__shared__")) continue;
      shared.type += std::string(tokens_[i].text) + " ";
    }
    scan_.dynamic_shared.push_back(std::move(shared));
  }

  /// A name waits if its body mentions a name that waits. Overloads share a name: at worst a kernel
  /// runs on fibers that need not.
  void MarkBarriers() {
    std::set<std::string_view> waits(kBarriers.begin(), kBarriers.end());
    for (bool grown = true; grown;) {
      grown = false;
      for (const auto& [name, called] : calls_) {
        if (waits.contains(name)) continue;
        if (std::none_of(called.begin(), called.end(),
                         [&](std::string_view callee) { return waits.contains(callee); })) {
          continue;
        }
        waits.insert(name);
        grown = true;
      }
    }
    for (Kernel& kernel : scan_.kernels) kernel.barriers = waits.contains(kernel.name);
  }

  std::vector<Token> tokens_;
  std::vector<Scope> scopes_;
  std::map<std::string, std::set<std::string_view>> calls_;
  Scan scan_;
};

}  // namespace

Scan ScanSource(std::string_view source) { return Scanner(source).Run(); }

}  // namespace sluice::simgpu::nvrtc
