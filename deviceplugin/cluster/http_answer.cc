// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "deviceplugin/cluster/http_answer.h"

#include <strings.h>

#include <algorithm>
#include <charconv>
#include <optional>

namespace sluice::deviceplugin {
namespace {

constexpr size_t kMostShown = 80;
constexpr uint64_t kMostBytes = uint64_t{1} << 48;  // more is a mistake, not a body

Status Bad(const std::string& text) { return Status(StatusCode::kUnavailable, text); }
/// With what it is about, as far as it can be shown.
Status Bad(const std::string& text, std::string_view what) {
  std::string shown(what.substr(0, kMostShown));
  std::replace_if(
      shown.begin(), shown.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
  return Bad(text + ": '" + shown + "'");
}

std::string_view Trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

bool IsWord(std::string_view text, std::string_view word) {
  return text.size() == word.size() && ::strncasecmp(text.data(), word.data(), word.size()) == 0;
}

/// Digits and nothing else. None: it is no number, or none that is meant.
std::optional<uint64_t> BytesFrom(std::string_view digits, int base) {
  uint64_t value = 0;
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
  const bool whole = error == std::errc() && end == digits.data() + digits.size();
  return whole && value <= kMostBytes ? std::optional(value) : std::nullopt;
}

}  // namespace

Status HttpAnswer::Take(std::string_view bytes, std::string* body) {
  while (failed_.ok() && !bytes.empty() && state_ != State::kDone) {
    failed_ = TakeSome(&bytes, body);
  }
  return failed_;
}

Status HttpAnswer::Close() {
  if (failed_.ok() && state_ == State::kToClose) state_ = State::kDone;
  if (failed_.ok() && state_ != State::kDone) {
    failed_ = code_ == 0 ? Bad("the connection was closed without an answer")
                         : Bad("the connection was closed in the middle of an answer");
  }
  return failed_;
}

/// A part of the body, or as much of a line as is there.
Status HttpAnswer::TakeSome(std::string_view* bytes, std::string* body) {
  if (state_ == State::kToClose) {
    body->append(*bytes);
    *bytes = {};
    return {};
  }
  if (state_ == State::kSized || state_ == State::kChunk) {
    const size_t count = static_cast<size_t>(std::min<uint64_t>(left_, bytes->size()));
    body->append(bytes->substr(0, count));
    bytes->remove_prefix(count);
    left_ -= count;
    if (left_ == 0) state_ = state_ == State::kSized ? State::kDone : State::kChunkEnd;
    return {};
  }
  const bool ended = TakeLine(bytes);
  if (line_.size() > kMaxLine) return Bad("a line of the answer's head is too long", line_);
  if (!ended) return {};
  // What frames chunks is no head, and there may be any number of them.
  const bool of_head = state_ != State::kChunkSize && state_ != State::kChunkEnd;
  if (of_head) head_bytes_ += line_.size() + 1;
  if (head_bytes_ > kMaxHead) return Bad("the answer's head is too long");
  if (line_.ends_with('\r')) line_.pop_back();
  Status taken = OnLine();
  line_.clear();
  return taken;
}

/// True: the line is whole. It is then without what ends it.
bool HttpAnswer::TakeLine(std::string_view* bytes) {
  const size_t end = bytes->find('\n');
  // No more than shows that it is too long.
  const size_t most = kMaxLine + 1 - line_.size();
  line_.append(bytes->substr(0, std::min(end, most)));
  bytes->remove_prefix(end == std::string_view::npos ? bytes->size() : end + 1);
  return end != std::string_view::npos;
}

Status HttpAnswer::OnLine() {
  switch (state_) {
    case State::kStatusLine:
      return OnStatusLine();
    case State::kHeader:
      return line_.empty() ? OnHeadEnd() : OnHeader();
    case State::kChunkSize:
      return OnChunkSize();
    case State::kChunkEnd:
      if (!line_.empty()) return Bad("a chunk is longer than it says", line_);
      state_ = State::kChunkSize;
      return {};
    default:  // kTrailer: nothing in it is of interest
      if (line_.empty()) state_ = State::kDone;
      return {};
  }
}

Status HttpAnswer::OnStatusLine() {
  const std::string_view line = line_;
  constexpr size_t kCodeAt = 9;
  const bool known = line.starts_with("HTTP/1.1 ") || line.starts_with("HTTP/1.0 ");
  const uint64_t code = known ? BytesFrom(line.substr(kCodeAt, 3), 10).value_or(0) : 0;
  const bool ends = line.size() == kCodeAt + 3 || line.substr(0, kCodeAt + 4).ends_with(' ');
  if (!ends || code < 100 || code > 599) return Bad("no answer of HTTP/1.1", line);
  // It would go on in another protocol, which nobody asked for.
  if (code == 101) return Bad("an unexpected answer", line);
  status_ = static_cast<int>(code);
  state_ = State::kHeader;
  return {};
}

Status HttpAnswer::OnHeader() {
  const size_t colon = line_.find(':');
  const std::string_view name = std::string_view(line_).substr(0, colon);
  // A name with a space in it is a line that was folded, or none of a head.
  if (colon == std::string::npos || name.empty() ||
      name.find_first_of(" \t") != std::string_view::npos) {
    return Bad("a line of the answer's head is no header", line_);
  }
  const std::string_view value = Trimmed(std::string_view(line_).substr(colon + 1));
  if (IsWord(name, "content-length")) return OnLength(value);
  if (IsWord(name, "transfer-encoding")) return OnEncoding(value);
  return {};
}

Status HttpAnswer::OnLength(std::string_view value) {
  const std::optional<uint64_t> length = BytesFrom(value, 10);
  if (!length.has_value() || (sized_ && *length != left_)) {
    return Bad("the answer's length is none", value);
  }
  sized_ = true;
  left_ = *length;
  return {};
}

Status HttpAnswer::OnEncoding(std::string_view value) {
  if (chunked_ || !IsWord(value, "chunked")) {
    return Bad("the answer is encoded in an unknown way", value);
  }
  chunked_ = true;
  return {};
}

Status HttpAnswer::OnHeadEnd() {
  if (status_ < 200) {
    // An interim answer: that to the request comes behind it.
    sized_ = chunked_ = false;
    left_ = 0;
    state_ = State::kStatusLine;
    return {};
  }
  code_ = status_;
  const bool bodiless = code_ == 204 || code_ == 304;
  if (bodiless || (sized_ && !chunked_ && left_ == 0)) {
    state_ = State::kDone;
  } else if (chunked_) {
    // Of a length beside it RFC 9112 says that it does not count.
    state_ = State::kChunkSize;
  } else {
    state_ = sized_ ? State::kSized : State::kToClose;
  }
  return {};
}

Status HttpAnswer::OnChunkSize() {
  const std::string_view line = line_;
  // Behind a semicolon is what nobody understands.
  const std::optional<uint64_t> size = BytesFrom(Trimmed(line.substr(0, line.find(';'))), 16);
  if (!size.has_value()) return Bad("a chunk's size is none", line);
  left_ = *size;
  state_ = left_ == 0 ? State::kTrailer : State::kChunk;
  return {};
}

}  // namespace sluice::deviceplugin
