// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
// sluice-node --compute mps on a driver that has MPS v3: servers and namespaces as grants come and
// go.
#include <sys/stat.h>

#include <map>

#include "common/grant/store.h"
#include "tests/integration/mps_fixture.h"

namespace sluice::testing {
namespace {

namespace fs = std::filesystem;

constexpr char kDriver[] = "driver = 615.21.04\n";

ino_t InodeOf(const std::string& path) {
  struct stat info = {};
  return ::stat(path.c_str(), &info) == 0 ? info.st_ino : 0;
}

class MpsV3 : public Mps {
 protected:
  cli::JobProcess StartV3(std::vector<std::string> more = {"--terms", "wait"}) {
    more.insert(more.end(), {"--grants", folder_ / "g"});
    return Start(stand_in_, {}, more);
  }
  std::string Gpu() const { return Gpus().front(); }
  std::string Grant(const std::string& gpu) {
    const auto made = store_.Make({"", gpu, kMiB, 1, {"id"}});
    EXPECT_TRUE(made.ok());
    // As the plugin does, before kubelet starts the container.
    fs::create_directories(Folder(made->id));
    return made->id;
  }
  void SetGroup(const std::string& grant, const std::string& group,
                const std::string& refusal = "") {
    EXPECT_TRUE(store_.SetTerms(grant, {"ns/pod/main", "uid", kMiB, 0, group, refusal}).ok());
  }
  /// Mounted into the container.
  std::string Folder(const std::string& grant) const { return MpsJobFolder(Dir(), grant); }
  std::string SocketOf(const std::string& grant) const { return Folder(grant) + "/control"; }
  /// The namespace at whose socket the grant's container is, "SERVER/NAMESPACE"; empty: at none.
  std::string PlaceOf(const std::string& grant) const {
    const ino_t inode = InodeOf(SocketOf(grant));
    std::error_code gone;
    const std::string pipes = MpsPipeFolder(Dir(), Gpu());
    for (const auto& server : fs::directory_iterator(pipes, gone)) {
      for (const auto& each : fs::directory_iterator(server.path(), gone)) {
        if (inode == 0 || InodeOf(each.path() / "control") != inode) continue;
        return server.path().filename().string() + "/" + each.path().filename().string();
      }
    }
    return "";
  }
  std::string ServerOf(const std::string& grant) const {
    const std::string place = PlaceOf(grant);
    return place.substr(0, place.find('/'));
  }
  bool Has(const std::string& server) const {
    return fs::exists(MpsPipeFolder(Dir(), Gpu()) + "/" + server);
  }
  /// As a fault of one of its clients does.
  bool EndServer(const std::string& server) const {
    std::istringstream list(Ask("server list --format=csv,noheader"));
    for (std::string line; std::getline(list, line);) {
      if (!line.starts_with(server + ",0,")) continue;
      return ::kill(std::stoi(line.substr(server.size() + 3)), SIGKILL) == 0;
    }
    return false;
  }
  std::string Ask(const std::string& words) const {
    cli::SpawnOptions options;
    options.argv = {stand_in_};
    std::istringstream text(words);
    for (std::string word; text >> word;) options.argv.push_back(word);
    options.environment = cli::Environment::Current();
    options.environment.Set("CUDA_MPS_PIPE_DIRECTORY", MpsPipeFolder(Dir(), Gpu()));
    options.environment.Set("CUDA_MPS_LOG_DIRECTORY", MpsLogFolder(Dir(), Gpu()));
    options.environment.Set("CUDA_MPS_PROTOCOL_VERSION", "3");
    const auto said = cli::RunCommand(std::move(options));
    return said.ok() ? said->out : "";
  }
  std::string Said() const {
    std::ostringstream text;
    text << std::ifstream(MpsLogFolder(Dir(), Gpu()) + "/control.log").rdbuf();
    return text.str();
  }

  const GrantStore store_ = *GrantStore::Open(folder_ / "g");
};

TEST_F(MpsV3, AServerForEachGroupAndANamespaceForEachGrant) {
  ASSERT_NO_FATAL_FAILURE(Up(1, kDriver));
  cli::JobProcess node = StartV3();
  ASSERT_TRUE(Await([&] { return AllServe(1); })) << Describe(node);
  const std::string a = Grant(Gpu());
  const std::string b = Grant(Gpu());
  const std::string c = Grant(Gpu());
  const std::string unknown = Grant(Gpu());
  const std::string refused = Grant(Gpu());
  const ino_t mounted = InodeOf(Folder(a));
  SetGroup(refused, "one", "its pod asks for too much");
  SetGroup(a, "one");
  SetGroup(b, "one");
  SetGroup(c, "two");
  ASSERT_TRUE(Await([&] { return PlaceOf(a) != "" && PlaceOf(b) != "" && PlaceOf(c) != ""; }))
      << Describe(node) << Said();
  EXPECT_EQ(ServerOf(a), ServerOf(b));
  EXPECT_NE(PlaceOf(a), PlaceOf(b));
  EXPECT_NE(ServerOf(a), ServerOf(c));
  EXPECT_EQ(InodeOf(Folder(a)), mounted) << "the container would not see it";
  EXPECT_EQ(PlaceOf(unknown), "");
  EXPECT_EQ(PlaceOf(refused), "");

  const std::string over = PlaceOf(a);
  const std::string server = ServerOf(c);
  ASSERT_TRUE(store_.Remove(a).ok() && store_.Remove(c).ok());
  EXPECT_TRUE(Await([&] { return !Has(over) && !Has(server) && !fs::exists(Folder(a)); }))
      << Describe(node) << Said();
  EXPECT_NE(PlaceOf(b), "");

  node.Signal(SIGTERM);
  Finish(node, kPatienceMs);
  EXPECT_EQ(node.status().Describe(), "exit code 0") << Describe(node);
  EXPECT_EQ(ControlOf(Gpu()), 0) << "it was asked to quit";
}

TEST_F(MpsV3, WithoutTermsAllAreOfOneGroup) {
  ASSERT_NO_FATAL_FAILURE(Up(1, kDriver));
  cli::JobProcess node = StartV3({});
  ASSERT_TRUE(Await([&] { return AllServe(1); })) << Describe(node);
  const std::string a = Grant(Gpu());
  const std::string b = Grant(Gpu());
  ASSERT_TRUE(Await([&] { return PlaceOf(a) != "" && PlaceOf(b) != ""; })) << Describe(node);
  EXPECT_EQ(ServerOf(a), ServerOf(b));
}

TEST_F(MpsV3, TheEndOfOneServerIsNothingToTheOtherGroup) {
  ASSERT_NO_FATAL_FAILURE(Up(1, kDriver));
  cli::JobProcess node = StartV3();
  ASSERT_TRUE(Await([&] { return AllServe(1); })) << Describe(node);
  const std::string a = Grant(Gpu());
  const std::string b = Grant(Gpu());
  SetGroup(a, "one");
  SetGroup(b, "two");
  ASSERT_TRUE(Await([&] { return PlaceOf(a) != "" && PlaceOf(b) != ""; })) << Describe(node);
  const ino_t before_a = InodeOf(SocketOf(a));
  const ino_t before_b = InodeOf(SocketOf(b));

  ASSERT_TRUE(EndServer(ServerOf(a)));
  // A look that something else is the reason for; without one it comes by itself, later.
  const std::string c = Grant(Gpu());
  SetGroup(c, "two");
  ASSERT_TRUE(Await([&] { return PlaceOf(a) != "" && InodeOf(SocketOf(a)) != before_a; }))
      << Describe(node) << Said();
  ASSERT_TRUE(Await([&] { return PlaceOf(c) != ""; })) << Describe(node) << Said();
  EXPECT_EQ(InodeOf(SocketOf(b)), before_b);
  EXPECT_EQ(ServerOf(c), ServerOf(b));
}

TEST_F(MpsV3, ANewControlDaemonGetsAllOfItAgain) {
  ASSERT_NO_FATAL_FAILURE(Up(1, kDriver));
  cli::JobProcess node = StartV3();
  ASSERT_TRUE(Await([&] { return AllServe(1); })) << Describe(node);
  const std::string a = Grant(Gpu());
  SetGroup(a, "one");
  ASSERT_TRUE(Await([&] { return PlaceOf(a) != ""; })) << Describe(node);
  const ino_t before = InodeOf(SocketOf(a));
  const pid_t killed = ControlOf(Gpu());
  ::kill(killed, SIGKILL);
  ASSERT_TRUE(Await([&] { return PlaceOf(a) != "" && InodeOf(SocketOf(a)) != before; }))
      << Describe(node) << Said();
  EXPECT_NE(ControlOf(Gpu()), killed);
  EXPECT_TRUE(Ready());
}

TEST_F(MpsV3, ANamespaceWithClientsStaysUntilTheyAreGone) {
  ASSERT_NO_FATAL_FAILURE(Up(1, kDriver));
  cli::JobProcess node = StartV3();
  ASSERT_TRUE(Await([&] { return AllServe(1); })) << Describe(node);
  const std::string a = Grant(Gpu());
  SetGroup(a, "one");
  ASSERT_TRUE(Await([&] { return PlaceOf(a) != ""; })) << Describe(node);
  const std::string place = PlaceOf(a);
  const std::string clients = MpsLogFolder(Dir(), Gpu()) + "/clients";
  std::ofstream(clients) << place.substr(0, place.find('/')) << " "
                         << place.substr(place.find('/') + 1) << " 4711\n";
  ASSERT_TRUE(store_.Remove(a).ok());
  const auto asked = [&] { return Said().find("namespace delete") != std::string::npos; };
  ASSERT_TRUE(Await(asked)) << Said();
  EXPECT_TRUE(Has(place));
  fs::remove(clients);
  EXPECT_TRUE(Await([&] { return !Has(place); })) << Describe(node) << Said();
  EXPECT_EQ(Said().find("--force"), std::string::npos) << "nobody is ended";
}

TEST_F(MpsV3, AnOlderDriverHasTheLegacyForm) {
  ASSERT_NO_FATAL_FAILURE(Up(1, "driver = 580.65.06\n"));
  cli::JobProcess node = StartV3();
  ASSERT_TRUE(Await([&] { return AllServe(1); })) << Describe(node);
  node.Signal(SIGTERM);
  Finish(node, kPatienceMs);
  EXPECT_NE(Describe(node).find("MPS legacy: the driver is 580.65.06"), std::string::npos);
  EXPECT_EQ(Said(), "quit\n");
}

TEST_F(MpsV3, LegacyCanBeAskedForAndV3IsRefusedWhereItIsNot) {
  ASSERT_NO_FATAL_FAILURE(Up(1, kDriver));
  cli::JobProcess legacy = StartV3({"--mps-version", "legacy"});
  ASSERT_TRUE(Await([&] { return AllServe(1); })) << Describe(legacy);
  legacy.Signal(SIGTERM);
  Finish(legacy, kPatienceMs);
  EXPECT_EQ(Said(), "quit\n");

  gpu_.reset();
  ASSERT_NO_FATAL_FAILURE(Up(1, "driver = 580.65.06\n"));
  cli::JobProcess third = StartV3({"--mps-version", "3"});
  Finish(third, kPatienceMs);
  EXPECT_EQ(third.status().Describe(), "exit code 2");
  EXPECT_NE(Describe(third).find("--mps-version 3: the driver is 580.65.06; allowed: "),
            std::string::npos)
      << Describe(third);
}

}  // namespace
}  // namespace sluice::testing
