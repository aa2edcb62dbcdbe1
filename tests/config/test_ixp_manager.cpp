// SPDX-License-Identifier: GPL-2.0-or-later
// Files of IXP Manager's provisioner as they come, and as they should not.
#include "config/ixp_manager.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "config/tree.h"
#include "tests/config/helpers.h"

using namespace config;
using testing::ElementsAre;
using testing::HasSubstr;

namespace {

const std::filesystem::path kSource = PEERLAN_SOURCE_DIR;

std::vector<net::IpPrefix> prefixes() {
  return {*net::IpPrefix::parse("192.0.2.0/24"), *net::IpPrefix::parse("2001:db8:1::/64")};
}

std::expected<IxpManagerMembers, std::vector<Error>> read(
    std::string_view text, const std::string& vlan = "", std::optional<std::string_view> macs = {},
    std::optional<std::string_view> vlans = {}) {
  IxpManagerQuery query{prefixes(), vlan, {"l2.json", text}, {}, {}};
  if (macs) query.configured_macs = {"macs.json", *macs};
  if (vlans) query.vlans = {"vlans.json", *vlans};
  return read_ixp_manager(query);
}

// "192.0.2.1 m1 02:00:00:00:00:01,... (Alpha Net)" of each.
std::vector<std::string> bindings(const std::expected<IxpManagerMembers, std::vector<Error>>& got) {
  std::vector<std::string> all;
  if (!got) return {"errors: " + text_of(got.error())};
  for (const auto& one : got->bindings) {
    std::string text = net::to_string(one.binding.ip) + " " + one.binding.port + " ";
    for (const auto& mac : one.binding.macs)
      text += (&mac == &one.binding.macs.front() ? "" : ",") + net::to_string(mac);
    all.push_back(text + " (" + one.binding.member_name + ")");
  }
  return all;
}

std::string one_interface(const std::string& vlan, const std::string& more = "") {
  return "{\"layer2interfaces\":[{\"type\":\"edge\",\"description\":\"A\",\"name\":\"p1\"" + more +
         ",\"vlans\":[{\"number\":10,\"vlaninterfaceid\":7," + vlan + "}]}]}";
}
const char* kAlpha =
    "\"macaddresses\":[\"02:00:00:00:00:01\"],\"ipaddresses\":{\"ipv4\":\"192.0.2.1\"}";

}  // namespace

TEST(IxpManager, TheSampleFile) {
  const auto text = read_file((kSource / "configs/layer2interfaces.json").string());
  ASSERT_TRUE(text);
  const auto got = read(*text);
  EXPECT_THAT(bindings(got),
              ElementsAre("192.0.2.1 m1 02:00:00:00:00:01 (Alpha Net)",
                          "2001:db8:1::1 m1 02:00:00:00:00:01 (Alpha Net)",
                          "192.0.2.2 bond1 02:00:00:00:00:02,02:00:00:00:01:02 (Bravo Net)",
                          "2001:db8:1::2 bond1 02:00:00:00:00:02,02:00:00:00:01:02 (Bravo Net)"));
  EXPECT_THAT(text_of(got->warnings),
              HasSubstr("l2.json:68:5: layer2interfaces[3]: 1 interface is shut down or in "
                        "quarantine and left out"));
  ASSERT_EQ(got->ports.size(), 3u);  // one is in quarantine
  EXPECT_EQ(std::ranges::count_if(got->ports, [](const auto& one) { return one.second.closed; }),
            1);
}

TEST(IxpManager, YamlIsReadToo) {
  EXPECT_THAT(bindings(read("layer2interfaces:\n"
                            "  - type: edge\n"
                            "    description: Alpha\n"
                            "    name: swp1\n"
                            "    shutdown: false\n"
                            "    vlans:\n"
                            "      - number: 10\n"
                            "        macaddresses:\n"
                            "          - 0200.0000.0001\n"
                            "        ipaddresses:\n"
                            "          ipv4: 192.0.2.1/24\n")),
              ElementsAre("192.0.2.1 swp1 02:00:00:00:00:01 (Alpha)"));
}

TEST(IxpManager, OneBadMemberDoesNotLoseTheRest) {
  const auto got = read(R"({"layer2interfaces":[
    {"name":"p1","vlans":[{"number":10,"macaddresses":["zz","02:00:00:00:00:01"],
      "ipaddresses":{"ipv4":"192.0.2.1"}}]},
    {"name":"p2","vlans":[{"number":10,"macaddresses":["01:00:5e:00:00:01"],
      "ipaddresses":{"ipv4":"192.0.2.2"}}]},
    {"name":"p3","vlans":[{"number":10,"macaddresses":["02:00:00:00:00:03"],
      "ipaddresses":{"ipv4":"192.0.2.300"}}]},
    {"name":"p4","vlans":[{"number":10,"macaddresses":["02:00:00:00:00:04"],
      "ipaddresses":{"ipv4":"198.51.100.4","ipv6":"192.0.2.4"}}]},
    {"name":"p5","vlans":[{"number":10,"macaddresses":["02:00:00:00:00:05"],
      "ipaddresses":{"ipv4":"192.0.2.1"}}]},
    {"name":"p6","vlans":[{"number":10,"macaddresses":[],"ipaddresses":{"ipv4":"192.0.2.6"}}]},
    {"name":"p7","vlans":[{"number":10,"macaddresses":["02:00:00:00:00:07"],
      "ipaddresses":{"ipv4":"192.0.2.7"}}]}
  ]})");
  EXPECT_THAT(bindings(got), ElementsAre("192.0.2.1 p1 02:00:00:00:00:01 ()",
                                         "192.0.2.7 p7 02:00:00:00:00:07 ()"));
  ASSERT_TRUE(got);
  const std::string warnings = text_of(got->warnings);
  for (const char* text :
       {"l2.json:2:56: layer2interfaces[0].vlans[0].macaddresses[0]: \"p1\": \"zz\" is no MAC "
        "address; left out",
        "layer2interfaces[1].vlans[0].macaddresses[0]: \"p2\": \"01:00:5e:00:00:01\" is a group "
        "address",
        "layer2interfaces[2].vlans[0].ipaddresses.ipv4: \"p3\": \"192.0.2.300\" is no IP address",
        "198.51.100.4 is outside of 192.0.2.0/24", "192.0.2.4 is no IPv6 address",
        "\"p5\": 192.0.2.1 is \"p1\"'s already, line 3",
        "2 addresses have no MAC address and are left out, this one first"})
    EXPECT_THAT(warnings, HasSubstr(text));
}

TEST(IxpManager, ClosedPorts) {
  for (const char* closed :
       {",\"shutdown\":true", ",\"status\":\"quarantine\"", ",\"status\":\"disabled\""}) {
    const auto got = read(one_interface(kAlpha, closed));
    ASSERT_FALSE(got) << closed;
    EXPECT_THAT(text_of(got.error()), HasSubstr("nothing usable on VLAN 10: 1 interfaces, 1 not "
                                                "in use"))
        << closed;
  }
  EXPECT_TRUE(read(one_interface(kAlpha, ",\"shutdown\":false,\"status\":\"connected\"")));
}

TEST(IxpManager, ConfiguredMacsJoinByTheVlanInterface) {
  const auto got =
      read(one_interface(kAlpha), "",
           R"({"1":{"10":{"020000000002":7,"020000000009":8,"zz":7},"20":{"020000000003":7}}})");
  EXPECT_THAT(bindings(got), ElementsAre("192.0.2.1 p1 02:00:00:00:00:01,02:00:00:00:00:02 (A)"));
  EXPECT_THAT(text_of(got->warnings),
              HasSubstr("macs.json:1:52: 1.10.zz: \"zz\" is no MAC address of a host; left out"));
  EXPECT_THAT(text_of(read(one_interface(kAlpha), "", "[1]").error()),
              HasSubstr("not IXP Manager's configured-macs"));
}

TEST(IxpManager, VlanByTagAndName) {
  const std::string two =
      "{\"layer2interfaces\":[{\"name\":\"p1\",\"vlans\":[{\"number\":10," + std::string(kAlpha) +
      "},{\"number\":11,\"macaddresses\":[\"02:00:00:00:00:02\"],\"ipaddresses\":{\"ipv4\":"
      "\"192.0.2.2\"}}]}]}";
  EXPECT_THAT(text_of(read(two).error()), HasSubstr("2 VLANs have addresses in the prefixes (10, "
                                                    "11): vlan is needed"));
  EXPECT_THAT(bindings(read(two, "11")), ElementsAre("192.0.2.2 p1 02:00:00:00:00:02 ()"));
  EXPECT_THAT(text_of(read(two, "12").error()), HasSubstr("no interface has VLAN 12"));
  EXPECT_THAT(text_of(read(two, "lan2").error()), HasSubstr("the file \"vlans\" is needed"));
  const char* vlans =
      R"({"vlans":[{"name":"LAN 1","tag":10},{"name":"LAN 2","tag":11,"config_name":"lan2"}]})";
  EXPECT_THAT(bindings(read(two, "lan2", {}, vlans)),
              ElementsAre("192.0.2.2 p1 02:00:00:00:00:02 ()"));
  EXPECT_THAT(text_of(read(two, "lan9", {}, vlans).error()), HasSubstr("no VLAN \"lan9\""));
}

TEST(IxpManager, OtherDocumentsAreErrors) {
  EXPECT_THAT(text_of(read("{").error()), HasSubstr("l2.json:1:2: not JSON"));
  EXPECT_THAT(text_of(read("{\"member_list\":[]}").error()),
              HasSubstr("no list \"layer2interfaces\""));
  EXPECT_THAT(text_of(read("a: [").error()), HasSubstr("not YAML"));
  EXPECT_THAT(text_of(read(one_interface("\"macaddresses\":[]")).error()),
              HasSubstr("no VLAN has addresses in the prefixes"));
}

// --- in a settings file

class IxpManagerSettings : public testing::Test {
 protected:
  IxpManagerSettings()
      : folder_(std::filesystem::temp_directory_path() /
                ("peerlan-ixpm-" + std::to_string(::getpid()))) {
    std::filesystem::create_directories(folder_);
    std::filesystem::copy_file(kSource / "configs/layer2interfaces.json", folder_ / "l2.json",
                               std::filesystem::copy_options::overwrite_existing);
  }
  ~IxpManagerSettings() override { std::filesystem::remove_all(folder_); }
  std::expected<Loaded, std::vector<Error>> load(const std::string& keys) {
    return load_text("f", kDomain + keys, folder_);
  }
  std::filesystem::path folder_;
};

TEST_F(IxpManagerSettings, OfThisSwitchPortsTakeTheirMacs) {
  const auto loaded = load(
      "    ports: [{interface: m1, as: 64501}, {interface: bond1, macs: [02:00:00:00:00:02]}]\n"
      "    members: [{ixp-manager: l2.json, vlan: 10, this-switch: true}]\n");
  ASSERT_TRUE(loaded) << text_of(loaded.error());
  const auto& domain = loaded->settings.domains[0];
  EXPECT_THAT(domain.ports[0].macs, ElementsAre(*net::MacAddress::parse("02:00:00:00:00:01")));
  EXPECT_EQ(domain.ports[1].macs.size(), 1u);
  EXPECT_THAT(text_of(loaded->warnings),
              HasSubstr("port \"bond1\" has 02:00:00:00:00:02 here and"));
  ASSERT_EQ(domain.proxy.bindings.size(), 4u);
  EXPECT_EQ(domain.proxy.bindings[0].port, "m1");
  EXPECT_EQ(domain.proxy.bindings[0].member_as, net::AsNumber(64501));
  EXPECT_EQ(domain.proxy.bindings[1].port, "bond1");
}

// What IXP Manager has in quarantine, or closed, is let into no LAN here either.
TEST_F(IxpManagerSettings, OfThisSwitchClosedPortsAreInQuarantine) {
  for (const char* closed : {"\"status\": \"quarantine\"", "\"shutdown\": true"}) {
    std::ofstream(folder_ / "closed.json")
        << "{\"layer2interfaces\": [{\"type\": \"edge\", \"name\": \"m1\", " << closed
        << ", \"virtualinterfaceid\": 1, \"vlans\": [{\"number\": 10, \"macaddresses\": "
           "[\"02:00:00:00:00:01\"], \"ipaddresses\": {\"ipv4\": \"192.0.2.1\"}}]}, "
           "{\"type\": \"edge\", \"name\": \"m2\", \"virtualinterfaceid\": 2, \"vlans\": "
           "[{\"number\": "
           "10, \"macaddresses\": [\"02:00:00:00:00:02\"], \"ipaddresses\": {\"ipv4\": "
           "\"192.0.2.2\"}}]}]}";
    const auto loaded = load(
        "    ports: [{interface: m1}, {interface: m2}]\n"
        "    members: [{ixp-manager: closed.json, vlan: 10, this-switch: true}]\n");
    ASSERT_TRUE(loaded) << text_of(loaded.error());
    const auto& ports = loaded->settings.domains[0].ports;
    EXPECT_TRUE(ports[0].quarantined) << closed;
    EXPECT_TRUE(ports[0].macs.empty());
    EXPECT_FALSE(ports[1].quarantined);
    EXPECT_TRUE(ports[1].enforce_macs);
    EXPECT_EQ(ports[1].macs.size(), 1u);
  }
}

TEST_F(IxpManagerSettings, OfAnotherSwitchNamesMeanNothing) {
  const auto loaded = load(
      "    ports: [{interface: m1, macs: [02:00:00:00:00:99]}]\n"
      "    members: [{ixp-manager: l2.json}]\n");
  ASSERT_TRUE(loaded) << text_of(loaded.error());
  for (const auto& binding : loaded->settings.domains[0].proxy.bindings)
    EXPECT_EQ(binding.port, "") << net::to_string(binding.ip);
}

TEST_F(IxpManagerSettings, WrongKeys) {
  const auto error = [&](const std::string& file) {
    const auto loaded = load("    ports: [{interface: m1}]\n    members: [" + file + "]\n");
    return loaded ? std::string("loaded") : text_of(loaded.error());
  };
  EXPECT_THAT(error("{ixp-manager: l2.json, ixf: x}"), HasSubstr("ixf or ixp-manager, not both"));
  EXPECT_THAT(error("{ixp-manager: l2.json, vlan-id: 1}"), HasSubstr("goes with ixf only"));
  EXPECT_THAT(error("{ixf: x.json, vlan: 1}"), HasSubstr("goes with ixp-manager only"));
  EXPECT_THAT(error("{ixp-manager: nothing.json}"),
              HasSubstr("f:12:29: broadcast-domains[0].members["
                        "0].ixp-manager: can't read"));
  EXPECT_THAT(error("{ixp-manager: l2.json, configured-macs: nothing.json}"),
              HasSubstr("configured-macs: can't read"));
}
