// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <algorithm>
#include <cctype>

#include "simgpu/nvrtc/scanner.h"

namespace sluice::simgpu::nvrtc {
namespace {

bool IsNameStart(char c) {
  return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '$';
}
bool IsNameChar(char c) {
  return IsNameStart(c) || std::isdigit(static_cast<unsigned char>(c)) != 0;
}

/// The end of a quoted literal whose quote stands at `at`.
size_t QuotedEnd(std::string_view s, size_t at) {
  const char quote = s[at];
  for (size_t i = at + 1; i < s.size(); ++i) {
    if (s[i] == '\\') {
      ++i;
    } else if (s[i] == quote || s[i] == '\n') {
      return i + 1;
    }
  }
  return s.size();
}

/// The end of R"tag( ... )tag" whose quote stands at `at`.
size_t RawStringEnd(std::string_view s, size_t at) {
  const size_t open = s.find('(', at);
  if (open == std::string_view::npos) return s.size();
  const std::string closing = ")" + std::string(s.substr(at + 1, open - at - 1)) + "\"";
  const size_t end = s.find(closing, open);
  return end == std::string_view::npos ? s.size() : end + closing.size();
}

size_t LineEnd(std::string_view s, size_t at) {
  size_t end = at;
  while (end < s.size() && s[end] != '\n') {
    end += s[end] == '\\' ? size_t{2} : size_t{1};
  }
  return std::min(end, s.size());
}

}  // namespace

std::vector<Token> Tokenize(std::string_view s) {
  std::vector<Token> tokens;
  bool line_start = true;
  for (size_t i = 0; i < s.size();) {
    const char c = s[i];
    if (c == '\n') {
      line_start = true;
      ++i;
      continue;
    }
    if (std::isspace(static_cast<unsigned char>(c)) != 0) {
      ++i;
      continue;
    }
    if ((c == '#' && line_start) || s.substr(i, 2) == "//") {
      i = LineEnd(s, i);
      continue;
    }
    if (s.substr(i, 2) == "/*") {
      const size_t end = s.find("*/", i + 2);
      i = end == std::string_view::npos ? s.size() : end + 2;
      continue;
    }
    line_start = false;
    TokenKind kind = TokenKind::kPunctuation;
    size_t end = i + 1;
    if (IsNameStart(c)) {
      kind = TokenKind::kIdentifier;
      while (end < s.size() && IsNameChar(s[end])) ++end;
      if (end < s.size() && s[end] == '"' && s[end - 1] == 'R') {
        kind = TokenKind::kString;
        end = RawStringEnd(s, end);
      }
    } else if (std::isdigit(static_cast<unsigned char>(c)) != 0) {
      kind = TokenKind::kNumber;
      // A digit separator is a quote that must not open a literal.
      while (end < s.size() && (IsNameChar(s[end]) || s[end] == '.' || s[end] == '\'')) ++end;
    } else if (c == '"' || c == '\'') {
      kind = TokenKind::kString;
      end = QuotedEnd(s, i);
    } else if (s.substr(i, 2) == "::") {
      end = i + 2;
    }
    tokens.push_back({kind, s.substr(i, end - i), i});
    i = end;
  }
  return tokens;
}

}  // namespace sluice::simgpu::nvrtc
