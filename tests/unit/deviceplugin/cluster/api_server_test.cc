// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "deviceplugin/cluster/api_server.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "common/unique_fd.h"
#include "tests/support/api_stand_in.h"
#include "tests/support/temp_folder.h"

namespace sluice::deviceplugin {
namespace {

using std::chrono::milliseconds;
using testing::ApiStandIn;
using Answer = ApiStandIn::Answer;
using Then = ApiStandIn::Then;
using Clock = std::chrono::steady_clock;

constexpr char kV4[] = "127.0.0.1";
constexpr char kV6[] = "::1";
constexpr char kChunked[] = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
const std::function<bool()> kNever = [] { return false; };

bool Has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}
std::string Chunk(const std::string& bytes) { return ApiStandIn::Chunk(bytes); }

/// A service account's folder with the CA that a stand-in's certificate is from.
class ApiServerTest : public ::testing::Test {
 protected:
  ApiServerTest() {
    Put("ca.crt", ca_.pem());
    Put("token", "a.secret.token\n");
  }
  void Put(const std::string& name, const std::string& text) const {
    std::ofstream(account_ / name) << text;
  }
  /// The stand-in whose certificate has these names, under the one with which it is asked.
  void Up(ApiStandIn::Answerer answerer, const std::string& names = "IP:127.0.0.1",
          const std::string& host = kV4) {
    stand_in_.emplace(std::move(answerer), ca_.Issue(names), host == kV6 ? AF_INET6 : AF_INET);
    Ask(Url(host));
  }
  void UpPlain(ApiStandIn::Answerer answerer) {
    stand_in_.emplace(std::move(answerer));
    Ask("http://127.0.0.1:" + stand_in_->port());
  }
  void Ask(const std::string& url, ApiLimits limits = {}) {
    api_.emplace(ApiAccess::At(url, account_.path()), limits);
  }
  std::string Url(const std::string& host) const {
    return "https://" + (host == kV6 ? "[::1]" : host) + ":" + stand_in_->port();
  }
  Result<std::string> Get(const std::string& path) const { return api_->Get(path, kNever); }
  /// Of a Get that has to fail.
  std::string Failure(StatusCode code = StatusCode::kUnavailable) const {
    const Result<std::string> got = Get("/x");
    EXPECT_FALSE(got.ok()) << *got;
    EXPECT_EQ(got.status().code(), code) << got.status().message();
    return got.status().message();
  }

  /// What the call returns that a silent server has heard, and that is stopped then.
  template <typename Call>
  auto StoppedOnceHeard(const Call& call) {
    Up([](const std::string&) -> Answer { return {"", ApiStandIn::Then::kStay}; });
    std::atomic<bool> stop = false;
    std::thread stopper([&] {
      stand_in_->Await(1);
      stop = true;
    });
    const std::function<bool()> stopped = [&] { return stop.load(); };
    auto done = call(stopped);
    EXPECT_TRUE(stop);
    stopper.join();
    return done;
  }

  const testing::TempFolder account_;
  const testing::TestCa ca_;
  std::optional<ApiStandIn> stand_in_;
  std::optional<ApiServer> api_;
};

Answer Hello(const std::string&) { return {ApiStandIn::Ok("hello")}; }

TEST_F(ApiServerTest, AsksAsItIsAskedTo) {
  Up(Hello);
  const Result<std::string> got = Get("/api/v1/pods?limit=1");
  ASSERT_TRUE(got.ok()) << got.status().message();
  EXPECT_EQ(*got, "hello");
  const std::string request = stand_in_->Await(1).at(0);
  EXPECT_TRUE(request.starts_with("GET /api/v1/pods?limit=1 HTTP/1.1\r\n")) << request;
  const std::vector<std::string> lines = {"Host: 127.0.0.1:" + stand_in_->port(),
                                          "Accept: application/json",
                                          "Authorization: Bearer a.secret.token"};
  for (const std::string& line : lines) {
    EXPECT_TRUE(Has(request, "\r\n" + line + "\r\n")) << line << "\n" << request;
  }
}

TEST_F(ApiServerTest, ReadsItsTokenForEachCall) {
  Up(Hello);
  ASSERT_TRUE(Get("/").ok());
  Put("token", " next \r\n");
  ASSERT_TRUE(Get("/").ok());
  EXPECT_TRUE(Has(stand_in_->Await(2).at(1), "\r\nAuthorization: Bearer next\r\n"));
  Put("token", "two\r\nInjected: lines");
  EXPECT_TRUE(Has(Failure(), "/token is no token"));
}

TEST_F(ApiServerTest, TellsNobodyItsTokenWithoutTls) {
  UpPlain(Hello);
  ASSERT_TRUE(Get("/").ok());
  EXPECT_FALSE(Has(stand_in_->Await(1).at(0), "secret"));
  api_.emplace(ApiAccess{"http://127.0.0.1:" + stand_in_->port(), account_.path() + "/token", ""});
  ASSERT_TRUE(Get("/").ok());
  EXPECT_FALSE(Has(stand_in_->Await(2).at(1), "secret")) << "whoever asks for it";
}

TEST_F(ApiServerTest, APathIsOneWordOfTheRequest) {
  Up(Hello);
  for (const char* path : {"", "x", "/x y", "/x HTTP/1.1\r\nInjected: yes\r\nY:", "/\x7f"}) {
    const Result<std::string> got = Get(path);
    ASSERT_FALSE(got.ok()) << path;
    EXPECT_TRUE(Has(got.status().message(), "no path")) << got.status().message();
  }
}

TEST_F(ApiServerTest, AnswersMayComeInChunksOrUpToTheEnd) {
  Up([](const std::string& request) -> Answer {
    if (Has(request, "/chunks")) return {kChunked + Chunk("hel") + Chunk("lo") + "0\r\n\r\n"};
    return {"HTTP/1.1 200 OK\r\n\r\nhello"};
  });
  EXPECT_EQ(Get("/chunks").value(), "hello");
  EXPECT_EQ(Get("/all").value(), "hello");
}

TEST_F(ApiServerTest, AnAnswerOfManyMiBComesWhole) {
  std::string body(5 << 20, 'x');
  for (size_t i = 0; i < body.size(); i += 1000) body[i] = static_cast<char>('a' + i / 1000 % 26);
  Up([&](const std::string&) -> Answer { return {ApiStandIn::Ok(body)}; });
  EXPECT_EQ(Get("/").value(), body);
}

TEST_F(ApiServerTest, AnAnswerWithoutEndIsAnError) {
  const std::string body(ApiServer::kMaxBody + 1, 'x');
  Up([&](const std::string&) -> Answer { return {ApiStandIn::Ok(body)}; });
  EXPECT_TRUE(Has(Failure(), "more than 64 MiB"));
}

TEST_F(ApiServerTest, ARefusalIsKnownBeforeItHasSaidWhy) {
  Up([](const std::string&) -> Answer {
    return {"HTTP/1.1 403 Forbidden\r\nContent-Length: 1000\r\n\r\nbecause", Then::kStay};
  });
  EXPECT_TRUE(Has(Failure(StatusCode::kPermissionDenied), "403: because"));
}

TEST_F(ApiServerTest, RefusalsAreToldApart) {
  std::atomic<int> code = 0;
  UpPlain([&](const std::string&) -> Answer {
    const std::string text(40'000, 'n');
    // Its end is missing: that it is one is known by then.
    return {"HTTP/1.1 " + std::to_string(code) + " No\r\nContent-Length: 40001\r\n\r\n" + text};
  });
  const std::vector<std::pair<int, StatusCode>> codes = {
      {404, StatusCode::kNotFound},           {401, StatusCode::kPermissionDenied},
      {403, StatusCode::kPermissionDenied},   {409, StatusCode::kFailedPrecondition},
      {410, StatusCode::kFailedPrecondition}, {400, StatusCode::kInvalidArgument},
      {413, StatusCode::kInvalidArgument},    {422, StatusCode::kInvalidArgument},
      {302, StatusCode::kUnavailable},        {500, StatusCode::kUnavailable}};
  for (const auto& [number, kind] : codes) {
    code = number;
    EXPECT_EQ(Failure(kind),
              "the API server answers " + std::to_string(number) + ": " + std::string(300, 'n'));
  }
}

TEST_F(ApiServerTest, TheServersNameMayBeANumber) {
  Up(Hello, "DNS:kubernetes,IP:10.96.0.1,IP:127.0.0.1", kV4);
  EXPECT_TRUE(Get("/").ok()) << Failure();
}

TEST_F(ApiServerTest, TheServersNameMayBeALongNumber) {
  if (!UniqueFd(::socket(AF_INET6, SOCK_STREAM, 0)).valid()) GTEST_SKIP() << "no IPv6 here";
  try {
    Up(Hello, "IP:10.96.0.1,IP:0:0:0:0:0:0:0:1", kV6);
  } catch (const std::runtime_error&) {
    GTEST_SKIP() << "no loopback address of IPv6 here";
  }
  EXPECT_TRUE(Get("/").ok()) << Failure();
  Up(Hello, "IP:::2", kV6);
  EXPECT_TRUE(Has(Failure(), "IP address mismatch"));
}

TEST_F(ApiServerTest, TheServersNameMayBeAName) {
  Up(Hello, "DNS:localhost", "localhost");
  EXPECT_TRUE(Get("/").ok()) << Failure();
}

TEST_F(ApiServerTest, AServerOfAnotherNameIsRefused) {
  Up(Hello, "DNS:localhost,IP:127.0.0.2", kV4);
  EXPECT_TRUE(Has(Failure(), "the server's certificate: IP address mismatch"));
  // Its subject is called localhost, which is no name of a server.
  Up(Hello, "IP:127.0.0.1", "localhost");
  EXPECT_TRUE(Has(Failure(), "hostname mismatch"));
  EXPECT_TRUE(stand_in_->Await(0).empty()) << "nobody else hears the token";
}

TEST_F(ApiServerTest, AServerOfAnotherCaIsRefused) {
  Up(Hello);
  Put("ca.crt", testing::TestCa().pem());
  EXPECT_TRUE(Has(Failure(), "the server's certificate: "));
  EXPECT_TRUE(stand_in_->Await(0).empty()) << "nobody else hears the token";
  // It is read for each call, too.
  Put("ca.crt", testing::TestCa().pem() + ca_.pem());
  EXPECT_TRUE(Get("/").ok());
}

TEST_F(ApiServerTest, ACertificateThatIsOverOrForSomethingElseIsRefused) {
  const std::string name = "IP:127.0.0.1";
  stand_in_.emplace(Hello, ca_.Issue(name, "", -60));
  Ask(Url(kV4));
  EXPECT_TRUE(Has(Failure(), "certificate has expired"));
  // Clusters' CAs sign those of clients, too.
  stand_in_.emplace(Hello, ca_.Issue(name, "clientAuth"));
  Ask(Url(kV4));
  EXPECT_TRUE(Has(Failure(), "purpose"));
  stand_in_.emplace(Hello, ca_.Issue(name, "serverAuth"));
  Ask(Url(kV4));
  EXPECT_TRUE(Get("/").ok()) << Failure();
}

TEST_F(ApiServerTest, AClustersCaNeedsNoneAboveIt) {
  const testing::TestCa root;
  const testing::TestCa cluster(&root);
  stand_in_.emplace(Hello, cluster.Issue("IP:127.0.0.1"));
  Put("ca.crt", cluster.pem());
  Ask(Url(kV4));
  EXPECT_TRUE(Get("/").ok()) << Failure();
}

TEST_F(ApiServerTest, WithoutACaNobodyIsAsked) {
  Up(Hello);
  Put("ca.crt", "");
  EXPECT_TRUE(Has(Failure(), "no CA in '" + (account_ / "ca.crt") + "'"));
  api_.emplace(ApiAccess{Url(kV4), "", ""});
  EXPECT_TRUE(Has(Failure(), "no CA in ''")) << "whatever this machine trusts";
}

TEST_F(ApiServerTest, AServerWithoutTlsIsRefused) {
  UpPlain(Hello);
  // It answers nothing before it has heard a request's end, which no handshake has.
  Ask(Url(kV4), {milliseconds(100), milliseconds(60'000), milliseconds(60'000)});
  EXPECT_TRUE(Has(Failure(), "no answer within 100 ms"));
}

TEST_F(ApiServerTest, AnAnswerThatIsCutIsAnError) {
  const std::vector<Answer> cut = {
      {"", Then::kEnd},
      {"HTTP/1.1 200 OK\r\n", Then::kEnd},
      {"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nhello", Then::kEnd},
      {kChunked + Chunk("hello"), Then::kEnd},
      {kChunked + Chunk("hello") + "0\r\n", Then::kEnd}};
  std::atomic<size_t> which = 0;
  const auto answerer = [&](const std::string&) { return cut.at(which); };
  for (const bool tls : {false, true}) {
    tls ? Up(answerer) : UpPlain(answerer);
    for (which = 0; which < cut.size(); ++which) {
      EXPECT_TRUE(Has(Failure(), "the connection was closed ")) << which;
    }
  }
}

TEST_F(ApiServerTest, WithTlsOnlyItsServerMayEndAnAnswer) {
  std::atomic<Then> then = Then::kEnd;
  Up([&](const std::string&) -> Answer { return {"HTTP/1.1 200 OK\r\n\r\nhello", then}; });
  EXPECT_TRUE(Get("/").ok());
  then = Then::kCut;
  EXPECT_TRUE(Has(Failure(), "the connection was cut"));
}

TEST_F(ApiServerTest, NobodyThereIsSaid) {
  Up(Hello);
  const std::string url = Url(kV4);
  stand_in_.reset();
  Ask(url);
  const std::string failure = Failure();
  EXPECT_TRUE(failure.starts_with("the API server: 127.0.0.1:")) << failure;
  EXPECT_TRUE(Has(failure, "Connection refused")) << failure;
}

/// A port on which connections are made by the kernel, up to so many, and nobody sees to them.
class Unattended {
 public:
  explicit Unattended(int backlog) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = ::htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* const to = reinterpret_cast<sockaddr*>(&address);
    EXPECT_EQ(::bind(listener_.get(), to, size), 0);
    EXPECT_EQ(::listen(listener_.get(), backlog), 0);
    EXPECT_EQ(::getsockname(listener_.get(), to, &size), 0);
    port_ = std::to_string(::ntohs(address.sin_port));
    // From then on it does not even say that it is there.
    for (UniqueFd& fd : waiting_) {
      if (backlog > 0) break;
      fd.reset(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
      (void)::connect(fd.get(), to, size);
    }
  }
  std::string url(const std::string& scheme = "https") const {
    return scheme + "://127.0.0.1:" + port_;
  }
  int fd() const { return listener_.get(); }

 private:
  UniqueFd listener_{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  std::array<UniqueFd, 4> waiting_;
  std::string port_;
};

/// Says a byte at a time what is the beginning of an answer, to one who comes, until that one goes.
class Dripping {
 public:
  explicit Dripping(std::string answer)
      : thread_([this, answer = std::move(answer)] { Drip(answer); }) {}
  ~Dripping() {
    ::shutdown(server_.fd(), SHUT_RDWR);
    thread_.join();
  }
  std::string url(const std::string& scheme) const { return server_.url(scheme); }

 private:
  void Drip(const std::string& answer) const {
    const UniqueFd client(::accept4(server_.fd(), nullptr, nullptr, SOCK_CLOEXEC));
    size_t said = 0;
    while (::send(client.get(), &answer[std::min(said, answer.size() - 1)], 1, MSG_NOSIGNAL) == 1) {
      ++said;
      std::this_thread::sleep_for(milliseconds(10));
    }
  }

  const Unattended server_{1};
  std::thread thread_;
};

TEST_F(ApiServerTest, AServerThatIsNotReachedIsGivenUp) {
  for (const int backlog : {0, 4}) {
    const Unattended server(backlog);
    Ask(server.url(), {milliseconds(100), milliseconds(60'000), milliseconds(60'000)});
    EXPECT_TRUE(Has(Failure(), "no answer within 100 ms")) << backlog;
  }
  EXPECT_EQ(ApiLimits().connect, milliseconds(5'000));
}

TEST_F(ApiServerTest, AServerThatDoesNotAnswerIsGivenUp) {
  Up([](const std::string&) -> Answer { return {"HTTP/1.1 200 OK\r\n", Then::kStay}; });
  Ask(Url(kV4), {milliseconds(60'000), milliseconds(100), milliseconds(60'000)});
  EXPECT_TRUE(Has(Failure(), "no answer within 100 ms"));
  EXPECT_EQ(api_->Post("/", "{}", kNever).code(), StatusCode::kUnavailable);
}

TEST_F(ApiServerTest, AServerThatAnswersAByteAtATimeIsGivenUp) {
  const Dripping head("HTTP/1.1 200 OK\r\nX: x");
  Ask(head.url("http"), {milliseconds(60'000), milliseconds(300), milliseconds(60'000)});
  EXPECT_TRUE(Has(Failure(), "no answer within 300 ms"));
  // A record of TLS that would be 16 KiB.
  const Dripping handshake("\x16\x03\x03\x3f\xff\x02");
  Ask(handshake.url("https"), {milliseconds(300), milliseconds(60'000), milliseconds(60'000)});
  EXPECT_TRUE(Has(Failure(), "no answer within 300 ms"));
}

TEST_F(ApiServerTest, PostsABody) {
  Up([](const std::string&) -> Answer { return {"HTTP/1.1 201 Created\r\n\r\n"}; });
  const Status posted = api_->Post("/api/v1/namespaces/ns/events", R"({"a":1})", kNever);
  EXPECT_TRUE(posted.ok()) << posted.message();
  const std::string request = stand_in_->Await(1).at(0);
  EXPECT_TRUE(request.starts_with("POST /api/v1/namespaces/ns/events HTTP/1.1\r\n")) << request;
  EXPECT_TRUE(request.ends_with("\r\n\r\n{\"a\":1}")) << request;
  EXPECT_TRUE(Has(request, "\r\nContent-Type: application/json\r\nContent-Length: 7\r\n"));
}

TEST_F(ApiServerTest, WhoHangsUpOnAPostEndsNothingElse) {
  const auto answerer = [](const std::string&) -> Answer { return {"", Then::kCut}; };
  for (const bool tls : {false, true}) {
    tls ? Up(answerer) : UpPlain(answerer);
    // More than is under way at once: it is written to who is gone.
    EXPECT_EQ(api_->Post("/", std::string(32 << 20, 'x'), kNever).code(), StatusCode::kUnavailable);
  }
}

TEST_F(ApiServerTest, APostEndsEarlyWhenItIsStopped) {
  const auto posted =
      StoppedOnceHeard([this](const auto& stopped) { return api_->Post("/", "{}", stopped); });
  EXPECT_TRUE(posted.ok()) << posted.message();
}

TEST_F(ApiServerTest, AGetIsAnErrorWhenItIsStopped) {
  const auto got =
      StoppedOnceHeard([this](const auto& stopped) { return api_->Get("/", stopped); });
  ASSERT_FALSE(got.ok());
  EXPECT_EQ(got.status().message(), "stopped");
}

TEST_F(ApiServerTest, AWatchIsLines) {
  Up([](const std::string&) -> Answer {
    return {kChunked + Chunk("one\ntw") + Chunk("o\n") + Chunk("three\nrest") + "0\r\n\r\n"};
  });
  std::vector<std::string> lines;
  const auto on_line = [&](std::string_view line) {
    lines.emplace_back(line);
    return true;
  };
  const Status watched = api_->Watch("/", on_line, kNever);
  EXPECT_TRUE(watched.ok()) << watched.message();
  EXPECT_EQ(lines, (std::vector<std::string>{"one", "two", "three"}));
}

TEST_F(ApiServerTest, AWatchEndsWhenNobodyWantsMore) {
  Up([](const std::string&) -> Answer {
    return {kChunked + Chunk("one\ntwo\nthree\n"), Then::kStay};
  });
  int lines = 0;
  const auto on_line = [&](std::string_view) { return ++lines < 2; };
  EXPECT_TRUE(api_->Watch("/", on_line, kNever).ok());
  EXPECT_EQ(lines, 2);
}

/// Says when the watch is stopped: when nothing has come for so long that it waits.
class Silence {
 public:
  void Heard() { last_ = Clock::now(); }
  bool Enough() const { return Clock::now() - last_ >= milliseconds(300); }
  /// It was left then, and not when its time was over.
  void ExpectLeft() const {
    EXPECT_TRUE(Enough());
    EXPECT_LT(Clock::now() - last_, std::chrono::seconds(5));
  }

 private:
  Clock::time_point last_ = Clock::now();
};

TEST_F(ApiServerTest, ASilentWatchEndsWhenItIsStopped) {
  const auto answerer = [](const std::string&) -> Answer {
    return {kChunked + Chunk("one\n"), Then::kStay};
  };
  for (const bool tls : {false, true}) {
    tls ? Up(answerer) : UpPlain(answerer);
    Silence silence;
    int lines = 0;
    const auto on_line = [&](std::string_view) {
      ++lines;
      silence.Heard();
      return true;
    };
    const Status watched = api_->Watch("/", on_line, [&] { return lines > 0 && silence.Enough(); });
    EXPECT_TRUE(watched.ok()) << watched.message();
    silence.ExpectLeft();
  }
}

TEST_F(ApiServerTest, AWatchOnWhichNothingEverCameEndsWhenItIsStopped) {
  Up([](const std::string&) -> Answer { return {"", Then::kStay}; });
  const Silence silence;
  const Status watched = api_->Watch(
      "/", [](std::string_view) { return true; }, [&] { return silence.Enough(); });
  EXPECT_TRUE(watched.ok()) << watched.message();
  silence.ExpectLeft();
}

TEST_F(ApiServerTest, WhoIsNotReachedIsLeftWhenItIsStopped) {
  for (const int backlog : {0, 4}) {
    const Unattended server(backlog);
    Ask(server.url(), {milliseconds(60'000), milliseconds(60'000), milliseconds(60'000)});
    const Silence silence;
    const Status watched = api_->Watch(
        "/", [](std::string_view) { return true; }, [&] { return silence.Enough(); });
    EXPECT_TRUE(watched.ok()) << watched.message();
    silence.ExpectLeft();
  }
}

TEST_F(ApiServerTest, AWatchOnWhichAllIsBusyEndsWhenItIsStopped) {
  std::string events;
  while (events.size() < 16 << 20) events += Chunk(std::string(1000, 'x') + "\n");
  Up([&](const std::string&) -> Answer { return {kChunked + events, Then::kStay}; });
  std::atomic<bool> stop = false;
  size_t lines = 0;
  const auto on_line = [&](std::string_view) {
    stop = ++lines >= 10;
    return true;
  };
  EXPECT_TRUE(api_->Watch("/", on_line, [&] { return stop.load(); }).ok());
  EXPECT_LT(lines, 1000u);
}

TEST_F(ApiServerTest, AWatchThatIsCutIsAnError) {
  Up([](const std::string&) -> Answer { return {kChunked + Chunk("one\n"), Then::kCut}; });
  const Status watched = api_->Watch(
      "/", [](std::string_view) { return true; }, kNever);
  EXPECT_EQ(watched.code(), StatusCode::kUnavailable);
}

TEST_F(ApiServerTest, AWatchWithALineWithoutEndIsAnError) {
  UpPlain([](const std::string&) -> Answer {
    return {"HTTP/1.1 200 OK\r\n\r\n" + std::string((16 << 20) + 1, 'x'), Then::kStay};
  });
  const Status watched = api_->Watch(
      "/", [](std::string_view) { return true; }, kNever);
  EXPECT_EQ(watched.code(), StatusCode::kUnavailable);
  EXPECT_TRUE(Has(watched.message(), "too long")) << watched.message();
}

TEST_F(ApiServerTest, APodFindsItByItsEnvironment) {
  ::setenv("KUBERNETES_SERVICE_HOST", "fd00::1", 1);
  ::setenv("KUBERNETES_SERVICE_PORT", "443", 1);
  const Result<ApiAccess> access = ApiAccess::OfThisPod(account_.path());
  ASSERT_TRUE(access.ok()) << access.status().message();
  EXPECT_EQ(access->url, "https://[fd00::1]:443");
  EXPECT_EQ(access->ca_file, account_ / "ca.crt");
  Put("token", "");
  EXPECT_EQ(ApiAccess::OfThisPod(account_.path()).status().code(), StatusCode::kNotFound);
  ::unsetenv("KUBERNETES_SERVICE_HOST");
  EXPECT_EQ(ApiAccess::OfThisPod(account_.path()).status().code(), StatusCode::kNotFound);
}

}  // namespace
}  // namespace sluice::deviceplugin
