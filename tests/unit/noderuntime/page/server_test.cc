// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/page/server.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <cstring>
#include <nlohmann/json.hpp>

#include "common/unique_fd.h"
#include "noderuntime/page/static_files.h"
#include "tests/support/http_peer.h"
#include "tests/unit/noderuntime/page/fake_source.h"

namespace sluice::page {
namespace {

using Json = nlohmann::json;
using namespace std::chrono_literals;

constexpr char kToken[] = "0123456789abcdef";

struct Answer {
  int status = 0;
  std::string head;
  std::string body;
};

/// A client that can do what no browser would.
class Client {
 public:
  explicit Client(const Listen& listen, int receive_buffer = 0)
      : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    if (receive_buffer > 0) {
      ::setsockopt(fd_.get(), SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof receive_buffer);
    }
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_port = htons(listen.port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(fd_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  }

  void Send(const std::string& text) {
    EXPECT_EQ(::send(fd_.get(), text.data(), text.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(text.size()));
  }

  /// False: the server has closed.
  bool Receive() {
    char buffer[65536];
    const ssize_t count = ::recv(fd_.get(), buffer, sizeof buffer, 0);
    if (count > 0) text_.append(buffer, static_cast<size_t>(count));
    return count > 0;
  }
  const std::string& Until(const std::string& part) {
    while (text_.find(part) == std::string::npos && Receive()) {
    }
    return text_;
  }
  /// To the end of the connection.
  Answer All() {
    while (Receive()) {
    }
    Answer answer;
    const size_t end = text_.find("\r\n\r\n");
    if (end == std::string::npos) return answer;
    answer.head = text_.substr(0, end);
    answer.body = text_.substr(end + 4);
    answer.status = std::stoi(text_.substr(9, 3));
    return answer;
  }

 private:
  UniqueFd fd_;
  std::string text_;
};

class ServerTest : public testing::Test {
 protected:
  void Start(int max_viewers = 16) {
    ServerOptions options;
    options.listen = {"127.0.0.1", 0};
    options.token = kToken;
    options.max_viewers = max_viewers;
    options.pace = {1ms, 1ms, 9000ms};
    options.write_time = write_time_;
    auto started = Server::Start(options, &source_);
    ASSERT_TRUE(started.ok()) << started.status().message();
    server_ = std::move(*started);
  }

  Answer Ask(const std::string& line, const std::string& headers = "Host: localhost\r\n",
             const std::string& body = "") {
    Client client(server_->listen());
    const std::string length =
        body.empty() ? "" : "Content-Length: " + std::to_string(body.size()) + "\r\n";
    client.Send(line + " HTTP/1.1\r\n" + headers + length + "\r\n" + body);
    return client.All();
  }
  Answer Order(const std::string& body, const std::string& token = kToken) {
    return Ask("POST /api/policy", "Host: 127.0.0.1\r\nX-Sluice-Token: " + token + "\r\n", body);
  }

  FakeSource source_;
  std::chrono::milliseconds write_time_{5000};
  std::unique_ptr<Server> server_;
};

TEST_F(ServerTest, ServesEachFileWithItsType) {
  Start();
  for (const StaticFile& file : StaticFiles()) {
    const Answer answer = Ask("GET " + std::string(file.path));
    EXPECT_EQ(answer.status, 200) << file.path;
    EXPECT_EQ(answer.body, file.text) << file.path;
    EXPECT_NE(answer.head.find("Content-Type: " + std::string(file.type)), std::string::npos);
    const Answer again =
        Ask("GET " + std::string(file.path),
            "Host: localhost\r\nIf-None-Match: " + std::string(file.etag) + "\r\n");
    EXPECT_EQ(again.status, 304) << file.path;
    EXPECT_EQ(again.body, "");
  }
}

TEST_F(ServerTest, EachAnswerKeepsOthersOut) {
  Start();
  for (const char* path : {"/", "/main.js", "/api/gpus", "/api/jobs/4", "/api/jobs/5", "/none"}) {
    const Answer answer = Ask(std::string("GET ") + path);
    for (const char* header :
         {"Content-Security-Policy: default-src 'none';", "frame-ancestors 'none'",
          "X-Content-Type-Options: nosniff", "Referrer-Policy: no-referrer",
          "Cross-Origin-Resource-Policy: same-origin"}) {
      EXPECT_NE(answer.head.find(header), std::string::npos) << path << " lacks " << header;
    }
    EXPECT_EQ(answer.head.find("unsafe"), std::string::npos);
    EXPECT_EQ(answer.head.find("Access-Control"), std::string::npos) << path;
  }
}

TEST_F(ServerTest, AnswersThisMachinesNamesAlone) {
  Start();
  for (const char* host : {"evil.example", "localhost.evil.example:80", "10.0.0.1", ""}) {
    const Answer answer = Ask("GET /api/gpus", std::string("Host: ") + host + "\r\n");
    EXPECT_EQ(answer.status, 421) << host;
    EXPECT_NE(Json::parse(answer.body)["error"].get<std::string>().find("localhost"),
              std::string::npos);
  }
  EXPECT_EQ(Ask("GET /api/gpus", "").status, 421) << "no Host";
  EXPECT_EQ(Ask("GET /api/gpus", "Host: [::1]:9\r\n").status, 200);
  EXPECT_EQ(Ask("GET /api/live", "Host: evil.example\r\n").status, 421);
}

TEST_F(ServerTest, SaysWhichGpusThereAreAndWhatMayBeChosen) {
  source_.gpus = {0, 3};
  Start();
  const Json json = Json::parse(Ask("GET /api/gpus").body);
  EXPECT_EQ(json["gpus"].size(), 2u);
  EXPECT_EQ(json["gpus"][1]["gpu"], 3);
  EXPECT_EQ(json["gpus"][0]["name"], "Fake");
  EXPECT_EQ(json["may_change"], false);
  EXPECT_GE(json["policies"].size(), 5u);
  const Answer known =
      Ask("GET /api/gpus", std::string("Host: localhost\r\nX-Sluice-Token: ") + kToken + "\r\n");
  EXPECT_EQ(Json::parse(known.body)["may_change"], true);
}

// One that hangs takes as long as it is waited for, and not so long for each.
TEST_F(ServerTest, AsksAllGpusAtOnce) {
  source_.gpus = {0, 1, 2};
  source_.ask_at_once = 3;
  Start();
  const Json json = Json::parse(Ask("GET /api/gpus").body);
  ASSERT_EQ(json["gpus"].size(), 3u);
  for (const Json& gpu : json["gpus"]) EXPECT_EQ(gpu["name"], "Fake");
}

TEST_F(ServerTest, ShowsAJob) {
  Start();
  EXPECT_EQ(Json::parse(Ask("GET /api/jobs/4?gpu=0").body)["job"]["phase"], "running");
  EXPECT_EQ(Ask("GET /api/jobs/5").status, 404);
  EXPECT_EQ(Ask("GET /api/jobs/x").status, 400);
  EXPECT_EQ(Ask("GET /api/jobs/4?gpu=7").status, 404);
  EXPECT_EQ(Ask("GET /api/jobs/4?gpu=-1").status, 400);
  source_.SetDown(true);
  EXPECT_EQ(Ask("GET /api/jobs/4").status, 503);
}

TEST_F(ServerTest, ChangesThePolicyForWhoHasTheToken) {
  Start();
  const Answer answer = Order(R"({"gpu": 0, "policy": "temporal", "lanes": 1})");
  EXPECT_EQ(answer.status, 200) << answer.body;
  EXPECT_EQ(answer.body, R"({"policy":"temporal","lanes":1})");
  EXPECT_EQ(source_.orders(), std::vector<std::string>{"0 temporal 1"});
  EXPECT_EQ(Order(R"({"policy": "best"})").status, 400);
}

TEST_F(ServerTest, ChangesNothingForAnybodyElse) {
  Start();
  const char kOrder[] = R"({"gpu": 0, "policy": "temporal", "lanes": 1})";
  for (const char* token : {"", "0123456789abcde", "0123456789abcdeF", "0123456789abcdef0"}) {
    EXPECT_EQ(Order(kOrder, token).status, 403) << token;
  }
  EXPECT_EQ(Ask("POST /api/policy", "Host: localhost\r\n", kOrder).status, 403);
  EXPECT_EQ(
      Ask(std::string("POST /api/policy?token=") + kToken, "Host: localhost\r\n", kOrder).status,
      403)
      << "a header alone: a page elsewhere cannot set it";
  EXPECT_NE(Ask("GET /api/policy").status, 200);
  EXPECT_NE(Ask("PUT /api/policy", "Host: localhost\r\n", kOrder).status, 200);
  EXPECT_NE(Ask("OPTIONS /api/policy").status, 200) << "no other origin is let in";
  EXPECT_TRUE(source_.orders().empty());
}

TEST_F(ServerTest, StreamsWhatTheDaemonSays) {
  Start();
  Client client(server_->listen());
  client.Send("GET /api/live?gpu=0 HTTP/1.1\r\nHost: localhost\r\n\r\n");
  const std::string text = client.Until("event: live");
  EXPECT_NE(text.find("Content-Type: text/event-stream"), std::string::npos);
  EXPECT_NE(text.find("Cache-Control: no-store"), std::string::npos);
  const size_t start = text.find("event: start\ndata: ");
  ASSERT_NE(start, std::string::npos) << text;
  const size_t from = start + std::strlen("event: start\ndata: ");
  const Json first = Json::parse(text.substr(from, text.find("\n\n", from) - from));
  EXPECT_EQ(first["frames"][0][1], Json::parse("[4, 1]"));
  EXPECT_EQ(server_->viewers(), 1);
  EXPECT_EQ(server_->quiet_for().count(), 0);
}

TEST_F(ServerTest, TakesNoMoreViewersThanItMay) {
  Start(/*max_viewers=*/2);
  {
    Client one(server_->listen());
    Client two(server_->listen());
    for (Client* client : {&one, &two}) {
      client->Send("GET /api/live HTTP/1.1\r\nHost: localhost\r\n\r\n");
      client->Until("event: start");
    }
    const Answer refused = Ask("GET /api/live");
    EXPECT_EQ(refused.status, 429);
    EXPECT_NE(Json::parse(refused.body)["error"].get<std::string>().find("close one of them"),
              std::string::npos);
    EXPECT_EQ(Ask("GET /").status, 200) << "the page itself is served";
  }
  // Those who left are noticed by what is written to them; then nobody asks the daemon any more.
  source_.AwaitNoneOpen();
  Client again(server_->listen());
  again.Send("GET /api/live HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_NE(again.Until("event: start").find("event: start"), std::string::npos);
}

TEST_F(ServerTest, DropsWhoDoesNotReadWhatItAskedFor) {
  source_.padding = 1u << 20;
  write_time_ = 50ms;
  Start(/*max_viewers=*/1);
  Client idle(server_->listen(), 4096);
  idle.Send("GET /api/live HTTP/1.1\r\nHost: localhost\r\n\r\n");
  source_.AwaitFetches(1);
  source_.AwaitNoneOpen();
  EXPECT_EQ(server_->viewers(), 0);
}

TEST_F(ServerTest, RefusesRequestsThatAreTooLarge) {
  Start();
  const Answer body = Order(std::string(20'000, ' '));
  EXPECT_TRUE(body.status == 413 || body.status == 0) << body.status;
  Client client(server_->listen());
  client.Send("GET / HTTP/1.1\r\nHost: localhost\r\n");
  // Headers without an end: the connection is closed instead of filling the memory.
  std::string header = "X-Filler: " + std::string(1000, 'x') + "\r\n";
  for (int i = 0; i < 15; ++i) client.Send(header);
  client.Send(header + header);
  EXPECT_NE(client.All().status, 200);
  EXPECT_EQ(Ask("GET /").status, 200) << "others notice nothing";
}

// Whoever holds connections open keeps nobody from the page.
TEST_F(ServerTest, AnswersWhileOthersHoldHalfOpenConnections) {
  Start();
  const std::vector<UniqueFd> half = loopback::HalfOpen(server_->listen().port, 300);
  const std::string answer =
      loopback::Ask(server_->listen().port, "GET /api/gpus HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_EQ(answer.rfind("HTTP/1.1 200", 0), 0u) << answer;
}

TEST_F(ServerTest, EndsWhileSomebodyLooks) {
  Start();
  Client client(server_->listen());
  client.Send("GET /api/live HTTP/1.1\r\nHost: localhost\r\n\r\n");
  client.Until("event: start");
  server_.reset();
  client.All();
}

TEST(Server, SaysWhereItCannotListen) {
  FakeSource source;
  ServerOptions options;
  options.listen = {"127.0.0.1", 0};
  const auto first = Server::Start(options, &source);
  ASSERT_TRUE(first.ok());
  options.listen = (*first)->listen();
  const auto second = Server::Start(options, &source);
  EXPECT_EQ(second.status().code(), StatusCode::kUnavailable);
  EXPECT_NE(second.status().message().find(Authority(options.listen)), std::string::npos);
}

}  // namespace
}  // namespace sluice::page
