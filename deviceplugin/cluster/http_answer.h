// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "common/status.h"

namespace sluice::deviceplugin {

/// One answer of HTTP/1.1 to a GET or a POST, taken apart as its bytes come, in pieces of any size.
/// Knows bodies of a length that is told, in chunks, and up to the end of the connection. Pure: no
/// clock, no socket. Every error is kUnavailable, for whoever answers so is no API server, or is
/// lost; after one, all that comes is answered with it.
class HttpAnswer {
 public:
  static constexpr size_t kMaxLine = size_t{16} << 10;  // of a status, a header, a chunk's size
  static constexpr size_t kMaxHead = size_t{64} << 10;  // of all lines before and after the body

  /// Takes these bytes. What of the body is in them is added to `body`, also before an error.
  Status Take(std::string_view bytes, std::string* body);
  /// No more come. An error when there should have.
  Status Close();

  /// As the status line has it; 0: it has not come. Those of interim answers (1xx) do not count.
  int code() const { return code_; }
  /// Nothing is missing. What may come after that is no part of it, and is left alone.
  bool complete() const { return state_ == State::kDone; }

 private:
  enum class State {
    kStatusLine,
    kHeader,
    kSized,    // the body, `left_` bytes of it
    kToClose,  // the body, up to the end of the connection
    kChunkSize,
    kChunk,  // `left_` bytes of it
    kChunkEnd,
    kTrailer,
    kDone
  };

  Status TakeSome(std::string_view* bytes, std::string* body);
  bool TakeLine(std::string_view* bytes);
  Status OnLine();
  Status OnStatusLine();
  Status OnHeader();
  Status OnLength(std::string_view value);
  Status OnEncoding(std::string_view value);
  Status OnHeadEnd();
  Status OnChunkSize();

  State state_ = State::kStatusLine;
  Status failed_;
  std::string line_;  // as much of it as has come
  size_t head_bytes_ = 0;
  int code_ = 0;
  int status_ = 0;  // of an interim answer, too
  bool sized_ = false;
  bool chunked_ = false;
  uint64_t left_ = 0;
};

}  // namespace sluice::deviceplugin
