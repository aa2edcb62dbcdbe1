// SPDX-License-Identifier: GPL-2.0-or-later
// Reloads of a daemon without a data path: what diff says, what is refused, what is undone.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/asio/ip/tcp.hpp>
#include <fstream>
#include <set>
#include <sstream>

#include "daemon/reload_commands.h"
#include "daemon_support.h"
#include "tests/document_tables.h"

using namespace peerland;
using namespace peerland::test;
using testing::HasSubstr;

namespace {

class ReloadTest : public DaemonTest {
 protected:
  ReloadTest() { write(neighbors(3)); }

  // Clients 127.0.0.2 to .`last`.
  std::string neighbors(int last, const std::string& more = "") const {
    std::string text = "node: rs1\nrouter-id: 10.0.0.9\nas: 65000\ncontrol: { socket: " +
                       (folder_ / "control").string() +
                       " }\nbgp:\n  listen: [{ address: 127.0.0.1, port: " + std::to_string(port_) +
                       " }]\n  selection-deferral: 0\n" + more + "  neighbors:\n";
    for (int n = 2; n <= last; ++n)
      text += "    - { address: 127.0.0." + std::to_string(n) +
              ", as: 65000, role: reflector-client, passive: true, connect-retry: 1, description: "
              "client" +
              std::to_string(n - 1) + " }\n";
    return text;
  }
  void write(const std::string& text) const { std::ofstream(folder_ / "rs1.yaml") << text; }
  void start_from_file() {
    const std::string file = (folder_ / "rs1.yaml").string();
    auto loaded = config::load(file);
    ASSERT_TRUE(loaded);
    app = std::make_unique<App>(io, loaded->settings, file);
    const auto started = app->start();
    ASSERT_TRUE(started) << started.error();
  }
  json::object diff() const {
    const auto document = app->reload_difference();
    return document ? json::parse(*document).as_object()
                    : json::object{{"error", document.error()}};
  }
  std::string first_change() const {
    const auto document = diff();
    const auto& changes = document.at("changes").as_array();
    if (changes.empty()) return "";
    const auto& c = changes.front().as_object();
    return std::string(c.at("change").as_string()) + " " + std::string(c.at("what").as_string()) +
           " " + std::string(c.at("name").as_string());
  }
  std::size_t count() const { return app->speaker().neighbors().size(); }

  static uint16_t free_port() {
    boost::asio::io_context context;
    boost::asio::ip::tcp::acceptor probe(context, {boost::asio::ip::make_address("127.0.0.1"), 0});
    return probe.local_endpoint().port();
  }
  uint16_t port_ = free_port();
};

void keys_of(const json::value& value, const std::string& path, std::set<std::string>& keys) {
  if (value.is_array())
    for (const auto& item : value.as_array()) keys_of(item, path + "[]", keys);
  if (!value.is_object()) return;
  for (const auto& [key, inner] : value.as_object()) {
    keys.insert(path + "." + std::string(key));
    keys_of(inner, path + "." + std::string(key), keys);
  }
}

std::string with_members(int last) {
  std::string text = "  members:\n    - vni: 100\n      prefixes: [192.0.2.0/24]\n      list:\n";
  for (int n = 1; n <= last; ++n)
    text += fmt::format(
        "        - {{ as: {}, macs: ['02:00:00:00:00:0{}'], addresses: [192.0.2.{}] }}\n",
        64500 + n, n, n);
  return text;
}

}  // namespace

TEST_F(ReloadTest, DiffSaysWhatAReloadWouldChange) {
  start_from_file();
  EXPECT_TRUE(diff().at("changes").as_array().empty());
  write(neighbors(4));
  EXPECT_EQ(first_change(), "added neighbor 127.0.0.4 (client3)");
  EXPECT_EQ(count(), 2u);
  EXPECT_TRUE(app->reload());
  EXPECT_EQ(count(), 3u);
  EXPECT_TRUE(diff().at("changes").as_array().empty());
}

TEST_F(ReloadTest, DiffIsAsDocumented) {
  start_from_file();
  write(neighbors(2) + "next-hop-tracking: off\n");
  std::set<std::string> emitted, documented;
  keys_of(diff(), "diff", emitted);
  std::ifstream in(std::string(PEERLAN_SOURCE_DIR) + "/docs/json.md");
  std::stringstream text;
  text << in.rdbuf();
  for (const auto& [path, key] : test_support::documented_keys(text.str()))
    if (path == "diff" || path.starts_with("diff.")) documented.insert(path + "." + key);
  EXPECT_THAT(documented, testing::IsSupersetOf(emitted));
  EXPECT_THAT(emitted, testing::Contains("diff.changes[].fields[].after"));
}

TEST_F(ReloadTest, WhatNeedsARestartIsRefusedAndSaid) {
  start_from_file();
  std::string text = neighbors(3);
  text.replace(text.find("10.0.0.9"), 8, "10.0.0.7");
  write(text);
  EXPECT_THAT(std::string(diff().at("refused").as_string()),
              HasSubstr("router-id can't be changed"));
  EXPECT_FALSE(diff().at("force_helps").as_bool());
  EXPECT_THAT(app->reload().error(), HasSubstr("router-id can't be changed"));
  EXPECT_THAT(app->reload({.force = true, .confirm = {}}).error(),
              HasSubstr("nothing was changed"));
}

TEST_F(ReloadTest, AnErrorChangesNothing) {
  start_from_file();
  write("node: [");
  EXPECT_THAT(app->reload().error(), HasSubstr("nothing was changed"));
  EXPECT_TRUE(diff().contains("error"));
  EXPECT_EQ(count(), 2u);
}

TEST_F(ReloadTest, UnconfirmedIsUndoneByItself) {
  start_from_file();
  write(neighbors(4));
  ASSERT_TRUE(app->reload({.force = false, .confirm = 1s}));
  EXPECT_EQ(count(), 3u);
  EXPECT_TRUE(app->confirm_until());
  EXPECT_THAT(app->reload().error(), HasSubstr("not confirmed"));
  EXPECT_TRUE(until([&] { return count() == 2; }));
  EXPECT_FALSE(app->confirm_until());
  EXPECT_FALSE(app->confirm_reload());
  EXPECT_FALSE(app->roll_back("test"));
}

TEST_F(ReloadTest, ConfirmedStays) {
  start_from_file();
  write(neighbors(4));
  ASSERT_TRUE(app->reload({.force = false, .confirm = 1s}));
  EXPECT_TRUE(app->confirm_reload());
  const auto later = net::Clock::now() + 1500ms;
  EXPECT_TRUE(until([&] { return net::Clock::now() > later; }));
  EXPECT_EQ(count(), 3u);
}

TEST_F(ReloadTest, RollbackGoesToWhatWasConfirmedLast) {
  start_from_file();
  write(neighbors(4));
  ASSERT_TRUE(app->reload({.force = false, .confirm = 600s}));
  write(neighbors(6));
  ASSERT_TRUE(app->reload({.force = false, .confirm = 600s}));
  EXPECT_EQ(count(), 5u);
  EXPECT_TRUE(app->roll_back("test"));
  EXPECT_EQ(count(), 2u);
}

TEST_F(ReloadTest, TooManyMembersAreNotRemovedWithoutForce) {
  write(neighbors(3, with_members(5)));
  start_from_file();
  write(neighbors(3, with_members(4)));
  EXPECT_TRUE(app->reload()) << "20 % are not more than 20 %";
  write(neighbors(3, with_members(3)));
  EXPECT_THAT(app->reload().error(),
              HasSubstr("1 of the 4 members of VNI 100 would be removed, more than 20 %"));
  EXPECT_EQ(app->settings().members.at(0).addresses.size(), 4u);
  EXPECT_TRUE(diff().at("force_helps").as_bool());
  EXPECT_TRUE(app->reload({.force = true, .confirm = {}}));
  write(neighbors(3, with_members(1)) + "reload: { max-removed-members: 100 }\n");
  EXPECT_TRUE(app->reload());
}

TEST_F(ReloadTest, CommandsOfTheControlSocket) {
  start_from_file();
  write(neighbors(4));
  const auto act = [&](const std::string& command, const json::object& arguments = {}) {
    const auto done = act_on_settings(*app, command, arguments);
    return !done ? "not ours" : *done ? "+ " + **done : "- " + done->error();
  };
  EXPECT_EQ(act("teardown"), "not ours");
  EXPECT_EQ(act("confirm"), "- no reload waits to be confirmed");
  EXPECT_EQ(act("reload", {{"confirm", 0}}), "- confirm: expected seconds, 1 to 86400");
  EXPECT_EQ(act("reload", {{"cofirm", 1}}), "- unknown argument \"cofirm\"");
  EXPECT_EQ(act("reload", {{"confirm", 60}}),
            "+ settings applied; they are undone in 60 s unless confirmed");
  EXPECT_THAT(act("rollback"), HasSubstr("the former settings are back"));
  EXPECT_EQ(act("reload", {{"force", true}}), "+ settings applied");
}
