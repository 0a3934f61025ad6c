// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "deviceplugin/cluster/http_answer.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <ostream>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace sluice::deviceplugin {
namespace {

struct Outcome {
  std::string body;
  int code = 0;
  bool complete = false;
  std::string error;
  bool operator==(const Outcome&) const = default;
};
void PrintTo(const Outcome& outcome, std::ostream* out) {
  *out << outcome.code << (outcome.complete ? " complete" : " incomplete") << " '" << outcome.body
       << "' error '" << outcome.error << "'";
}

/// In these pieces; `close`: and no more.
Outcome Heard(const std::vector<std::string>& pieces, bool close = true) {
  HttpAnswer answer;
  Outcome outcome;
  for (const std::string& piece : pieces) (void)answer.Take(piece, &outcome.body).ok();
  const Status status = close ? answer.Close() : answer.Take("", &outcome.body);
  EXPECT_TRUE(status.ok() || status.code() == StatusCode::kUnavailable);
  outcome.error = status.message();
  outcome.code = answer.code();
  outcome.complete = answer.complete();
  return outcome;
}

std::vector<std::string> Bytes(const std::string& text) {
  std::vector<std::string> bytes;
  for (const char c : text) bytes.emplace_back(1, c);
  return bytes;
}

const std::string kChunks = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n";
const std::string kSized = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
const std::string kChunked =
    kChunks +
    "\r\n"
    "5\r\nhello\r\n1;name=value\r\n \r\nA\r\nworld12345\r\n0\r\nTrailer: x\r\n\r\n";
const std::string kToClose = "HTTP/1.1 200 OK\r\n\r\nhello";

/// Of every kind, and faults of every kind.
const std::vector<std::string>& Examples() {
  static const std::vector<std::string> all = {
      kSized,
      kChunked,
      kToClose,
      kSized + "more",
      "HTTP/1.0 404 Not Found\r\nConnection: close\r\n\r\n{}",
      "HTTP/1.1 409 Conflict\r\ncontent-LENGTH:\t2 \r\n\r\n{}",
      "HTTP/1.1 100 Continue\r\nContent-Length: 7\r\n\r\n" + kSized,
      "HTTP/1.1 204 No Content\r\n\r\n",
      "HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n",
      "HTTP/1.1 200 OK\nContent-Length: 5\n\nhello",
      "HTTP/1.1 200\r\nContent-Length: 1\r\nTransfer-Encoding: Chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n",
      "HTTP/2 200 OK\r\n\r\n",
      "HTTP/1.1 20 OK\r\n\r\n",
      "HTTP/1.1 2000 OK\r\n\r\n",
      "HTTP/1.1 600 OK\r\n\r\n",
      "HTTP/1.1 101 Switching Protocols\r\n\r\n",
      "SSH-2.0-OpenSSH_9.2\r\n",
      "HTTP/1.1 200 OK\r\nno header\r\n\r\n",
      "HTTP/1.1 200 OK\r\nA: b\r\n folded: c\r\n\r\n",
      "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
      "HTTP/1.1 200 OK\r\nContent-Length: 5, 5\r\n\r\nhello",
      "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
      "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n",
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
      kChunks + "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
      kChunks + "\r\n2\r\nabc\r\n0\r\n\r\n",
      kChunks + "\r\n0x2\r\nab\r\n0\r\n\r\n",
      kChunks + "\r\n\r\nab\r\n0\r\n\r\n",
      kChunks + "\r\nfffffffffffffffff\r\n",
  };
  return all;
}

TEST(HttpAnswer, ABodyHasTheLengthThatItSays) {
  EXPECT_EQ(Heard({kSized}, false), (Outcome{"hello", 200, true, ""}));
  EXPECT_EQ(Heard({kSized + "more"}, false), (Outcome{"hello", 200, true, ""}));
  EXPECT_EQ(Heard({"HTTP/1.1 201 \r\nContent-Length: 0\r\n\r\n"}, false),
            (Outcome{"", 201, true, ""}));
  EXPECT_EQ(Heard({"HTTP/1.1 200 OK\r\ncontent-LENGTH:\t2 \r\nContent-Length: 2\r\n\r\n{}"}, false),
            (Outcome{"{}", 200, true, ""}));
}

TEST(HttpAnswer, ABodyIsWhatIsInItsChunks) {
  EXPECT_EQ(Heard({kChunked}, false), (Outcome{"hello world12345", 200, true, ""}));
  // As they come: of a watch nobody waits for the last one.
  EXPECT_EQ(Heard({kChunked.substr(0, kChunked.find("hello") + 3)}, false),
            (Outcome{"hel", 200, false, ""}));
}

TEST(HttpAnswer, ABodyWithoutALengthLastsAsLongAsItsConnection) {
  EXPECT_EQ(Heard({kToClose}, false), (Outcome{"hello", 200, false, ""}));
  EXPECT_EQ(Heard({kToClose}, true), (Outcome{"hello", 200, true, ""}));
}

TEST(HttpAnswer, SomeHaveNone) {
  EXPECT_EQ(Heard({"HTTP/1.1 204 No Content\r\n\r\n"}, false), (Outcome{"", 204, true, ""}));
  EXPECT_EQ(Heard({"HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n"}, false),
            (Outcome{"", 304, true, ""}));
}

TEST(HttpAnswer, AnInterimAnswerIsNotTheAnswer) {
  const std::string interim = "HTTP/1.1 100 Continue\r\nContent-Length: 7\r\n\r\n";
  EXPECT_EQ(Heard({interim}, false), (Outcome{"", 0, false, ""}));
  EXPECT_EQ(Heard({interim + kSized}, false), (Outcome{"hello", 200, true, ""}));
}

TEST(HttpAnswer, WhatIsCutOffIsAnError) {
  for (const std::string& whole : {kSized, kChunked}) {
    for (size_t size = 0; size < whole.size(); ++size) {
      const Outcome outcome = Heard({whole.substr(0, size)});
      EXPECT_FALSE(outcome.complete) << size;
      EXPECT_TRUE(outcome.error.starts_with("the connection was closed")) << size;
    }
  }
  const std::string head = kToClose.substr(0, kToClose.find("hello") - 1);
  EXPECT_EQ(Heard({head}).error, "the connection was closed without an answer");
}

TEST(HttpAnswer, FaultsAreNamed) {
  const std::vector<std::pair<std::string, std::string>> faults = {
      {"HTTP/2 200 OK\r\n", "no answer of HTTP/1.1: 'HTTP/2 200 OK'"},
      {"\x16#\n", "no answer of HTTP/1.1: '?#'"},
      {"HTTP/1.1 20\r\n", "no answer of HTTP/1.1: 'HTTP/1.1 20'"},
      {"HTTP/1.1 2000\r\n", "no answer of HTTP/1.1: 'HTTP/1.1 2000'"},
      {"HTTP/1.1 600 \r\n", "no answer of HTTP/1.1: 'HTTP/1.1 600 '"},
      {"HTTP/1.1 101 x\r\n", "an unexpected answer: 'HTTP/1.1 101 x'"},
      {"HTTP/1.1 200 OK\r\nx\r\n", "a line of the answer's head is no header: 'x'"},
      {"HTTP/1.1 200 OK\r\n a: b\r\n", "a line of the answer's head is no header: ' a: b'"},
      {"HTTP/1.1 200 OK\r\nContent-Length: 1x\r\n", "the answer's length is none: '1x'"},
      {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n",
       "the answer's length is none: '6'"},
      {"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n",
       "the answer is encoded in an unknown way: 'gzip'"},
      {kChunks + "Transfer-Encoding: chunked\r\n",
       "the answer is encoded in an unknown way: 'chunked'"},
      {kChunks + "\r\nxyz\r\n", "a chunk's size is none: 'xyz'"},
      {kChunks + "\r\n1\r\nab\r\n", "a chunk is longer than it says: 'b'"},
  };
  for (const auto& [text, error] : faults) {
    EXPECT_EQ(Heard({text}, false).error, error);
    // It stays.
    EXPECT_EQ(Heard({text, kSized}, false).error, error);
  }
}

TEST(HttpAnswer, NoHeadIsWithoutEnd) {
  const std::string status = "HTTP/1.1 200 OK\r\n";
  const std::string just = "A: " + std::string(HttpAnswer::kMaxLine - 4, 'x') + "\r\n";
  EXPECT_EQ(Heard({status + just + "\r\n"}).error, "");
  EXPECT_TRUE(Heard({status + "x" + just}).error.starts_with("a line of the answer's head is too"));
  // Without waiting for its end.
  EXPECT_TRUE(Heard({std::string(HttpAnswer::kMaxLine + 1, 'x')}, false)
                  .error.starts_with("a line of the answer's head is too long"));
  std::string many = status;
  while (many.size() <= HttpAnswer::kMaxHead) many += "A: b\r\n";
  EXPECT_EQ(Heard({many}, false).error, "the answer's head is too long");
  std::string interim;
  while (interim.size() <= HttpAnswer::kMaxHead) interim += "HTTP/1.1 100 Continue\r\n\r\n";
  EXPECT_EQ(Heard({interim}, false).error, "the answer's head is too long");
  std::string trailers = kChunks + "\r\n0\r\n";
  for (size_t i = 0; i <= HttpAnswer::kMaxHead / 6; ++i) trailers += "A: b\r\n";
  EXPECT_EQ(Heard({trailers}, false).error, "the answer's head is too long");
}

TEST(HttpAnswer, ABodyHasAnyNumberOfChunks) {
  std::string text = kChunks + "\r\n";
  const size_t count = HttpAnswer::kMaxHead;
  for (size_t i = 0; i < count; ++i) text += "1\r\nx\r\n";
  EXPECT_EQ(Heard({text + "0\r\n\r\n"}), (Outcome{std::string(count, 'x'), 200, true, ""}));
}

TEST(HttpAnswer, InWhichPiecesItComesMakesNoDifference) {
  for (const std::string& text : Examples()) {
    for (const bool close : {false, true}) {
      const Outcome whole = Heard({text}, close);
      EXPECT_EQ(Heard(Bytes(text), close), whole) << text;
      for (size_t at = 0; at <= text.size(); ++at) {
        EXPECT_EQ(Heard({text.substr(0, at), text.substr(at)}, close), whole) << text << at;
      }
    }
  }
}

/// Pieces of random sizes, some of them empty.
std::vector<std::string> Torn(const std::string& text, std::mt19937* random) {
  std::vector<std::string> pieces;
  for (size_t at = 0; at < text.size();) {
    const size_t size = std::uniform_int_distribution<size_t>(0, 1 + text.size() / 3)(*random);
    pieces.push_back(text.substr(at, size));
    at += pieces.back().size();
  }
  return pieces;
}

TEST(HttpAnswer, WhatAServerPutsIntoChunksComesOut) {
  std::mt19937 random(7);
  for (int round = 0; round < 500; ++round) {
    std::string body;
    std::string text = kChunks + "\r\n";
    for (auto chunks = random() % 8; chunks > 0; --chunks) {
      std::string chunk(1 + random() % 40, ' ');
      for (char& c : chunk) c = static_cast<char>(random() % 256);
      char size[16];
      std::snprintf(size, sizeof size, random() % 2 == 0 ? "%zx" : "%04zX", chunk.size());
      text += size + std::string("\r\n") + chunk + "\r\n";
      body += chunk;
    }
    text += "0\r\n\r\n";
    EXPECT_EQ(Heard(Torn(text, &random), false), (Outcome{body, 200, true, ""})) << text;
  }
}

TEST(HttpAnswer, ADamagedAnswerIsTakenAlikeInAnyPieces) {
  std::mt19937 random(11);
  for (int round = 0; round < 4000; ++round) {
    std::string text = Examples()[random() % Examples().size()];
    for (auto damages = 1 + random() % 3; damages > 0; --damages) {
      const size_t at = random() % text.size();
      const auto byte = static_cast<char>(random() % 256);
      switch (random() % 3) {
        case 0:
          text[at] = byte;
          break;
        case 1:
          text.insert(at, 1, byte);
          break;
        default:
          text.erase(at, 1);
      }
    }
    const Outcome whole = Heard({text});
    EXPECT_LE(whole.body.size(), text.size());
    EXPECT_EQ(whole.complete, whole.error.empty()) << text;
    EXPECT_EQ(Heard(Torn(text, &random)), whole) << text;
  }
}

}  // namespace
}  // namespace sluice::deviceplugin
