// SPDX-License-Identifier: GPL-2.0-or-later
// Member exports of all ages and in all conditions.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/ixf.h"
#include "config/tree.h"
#include "tests/config/helpers.h"

using namespace config;

namespace {

IxfQuery query(std::optional<uint32_t> vlan_id = {}, std::optional<uint32_t> ixp_id = {}) {
  return {{*net::IpPrefix::parse("192.0.2.0/24"), *net::IpPrefix::parse("2001:db8:1::/64")},
          vlan_id,
          ixp_id};
}

std::string text_of(const std::vector<IxfBinding>& bindings) {
  std::string text;
  for (const auto& [b, line, column, where] : bindings) {
    text += to_string(b.ip) + " AS" + std::to_string(b.member_as.value) + " " + b.member_name + ":";
    for (const auto& m : b.macs) text += " " + to_string(m);
    text += " (" + std::to_string(line) + ":" + std::to_string(column) + " " + where + ")\n";
  }
  return text;
}

std::string outcome(const std::expected<IxfMembers, std::vector<Error>>& members) {
  if (!members) return "refused\n" + ::text_of(members.error());
  return text_of(members->bindings) + ::text_of(members->warnings);
}
std::string outcome_of_file(const char* name, const IxfQuery& asked) {
  return outcome(read_ixf("f", *read_file(kData + "/" + name), asked));
}

// A file with one VLAN whose members are `members`, which start in line 3.
std::string with_members(const std::string& members) {
  return R"({"version":"1.0","ixp_list":[{"ixp_id":1,"vlan":[{"id":1,)"
         R"("ipv4":{"prefix":"192.0.2.0","mask_length":24},"ipv6":{"prefix":"2001:db8:1::",)"
         R"("mask_length":64}}]}],)"
         "\n\"member_list\":[\n" +
         members + "]}\n";
}
// A member with one connection; ipv4 and ipv6 entries as given.
std::string member(const std::string& asnum, const std::string& name, const std::string& entry,
                   const std::string& connection = "\"ixp_id\":1") {
  return "{\"asnum\":" + asnum + ",\"name\":\"" + name + "\",\"connection_list\":[{" + connection +
         ",\"vlan_list\":[{\"vlan_id\":1," + entry + "}]}]}";
}
const std::string kGood = member(
    "64500", "Good", R"("ipv4":{"address":"192.0.2.200","mac_addresses":["02:00:00:00:00:c8"]})");
constexpr const char* kEntry = "member_list[0].connection_list[0].vlan_list[0].";

// One bad member in line 3, a good one in line 4: the warnings, when the good one is there.
std::string warnings_beside_good(const std::string& bad) {
  const auto members = read_ixf("f", with_members(bad + ",\n" + kGood), query());
  if (!members) return outcome(members);
  EXPECT_THAT(text_of(members->bindings), testing::HasSubstr("192.0.2.200 AS64500 Good: "));
  return ::text_of(members->warnings);
}

}  // namespace

TEST(Ixf, Version1) {
  const std::string entry = "connection_list[0].vlan_list[0].";
  const std::string want =
      "192.0.2.1 AS64501 Alpha Net: 02:00:00:00:00:01 (13:36 member_list[0]." + entry + "ipv4)\n" +
      "2001:db8:1::1 AS64501 Alpha Net: 02:00:00:00:00:01 (14:36 member_list[0]." + entry +
      "ipv6)\n" + "192.0.2.2 AS64502 Bravo Net: 02:00:00:00:00:02 (18:36 member_list[1]." + entry +
      "ipv4)\n" + "2001:db8:1::2 AS64502 Bravo Net: 02:00:00:00:00:02 (19:36 member_list[1]." +
      entry + "ipv6)\n";
  EXPECT_EQ(outcome_of_file("v1.json", query()), want);
  EXPECT_EQ(outcome_of_file("v1.json", query(1)), want);
  EXPECT_EQ(outcome_of_file("v1.json", query(1, 1)), want);
}

TEST(Ixf, Version06HasFamiliesApart) {
  const std::string want =
      "192.0.2.1 AS64501 Alpha Net: aa:bb:cc:00:00:01 (16:50 "
      "member_list[0].connection_list[0].vlan_list[0].ipv4)\n"
      "2001:db8:1::1 AS64501 Alpha Net: aa:bb:cc:00:00:01 (17:50 "
      "member_list[0].connection_list[0].vlan_list[1].ipv6)\n"
      "192.0.2.2 AS64502 Bravo Net: 00:0c:29:00:00:02 00:0c:29:00:00:03 (26:34 "
      "member_list[1].connection_list[1].vlan_list[0].ipv4)\n";
  EXPECT_EQ(outcome_of_file("v06.json", query()), want);
  EXPECT_EQ(outcome_of_file("v06.json", query(0)), want);
}

TEST(Ixf, NullsArePassedOver) {
  EXPECT_EQ(outcome_of_file("nulls.json", query(5)),
            "192.0.2.1 AS64501 : 02:00:00:00:00:01 (16:36 "
            "member_list[3].connection_list[1].vlan_list[2].ipv4)\n");
  EXPECT_EQ(outcome_of_file("nulls.json", query()),
            "refused\nf:6:18: the export describes no VLAN: vlan-id is needed\n");
}

TEST(Ixf, NotAnExport) {
  EXPECT_EQ(outcome(read_ixf("f", "<html>", query())), "refused\nf:1:1: not JSON: syntax error\n");
  EXPECT_EQ(outcome(read_ixf("f", "", query())), "refused\nf:1:1: not JSON: incomplete JSON\n");
  for (const char* text : {"[]", "{}", "{\"member_list\": {}}", "{\"member_list\": null}", "1"})
    EXPECT_EQ(outcome(read_ixf("f", text, query())),
              "refused\nf:1:1: not an IX-F member export: no list \"member_list\"\n")
        << text;
}

TEST(Ixf, NothingUsableIsAnError) {
  EXPECT_EQ(outcome(read_ixf("f", with_members(""), query())),
            "refused\nf:2:15: member_list: nothing usable: 0 members, 0 connections not active, 0 "
            "addresses without MAC address, 0 entries refused\n");
  const std::string bare = member("1", "A", R"("ipv4":{"address":"192.0.2.1"})");
  const std::string off =
      member("2", "B", R"("ipv4":{"address":"192.0.2.2"})", R"("state":"Inactive")");
  const std::string bad = member("3", "C", R"("ipv4":{"address":"192.0.2"})");
  EXPECT_EQ(outcome(read_ixf("f", with_members(bare + ",\n" + off + ",\n" + bad), query())),
            "refused\n"
            "f:2:15: member_list: nothing usable: 3 members, 1 connections not active, 1 addresses "
            "without MAC address, 1 entries refused\n"
            "f:5:98: member_list[2].connection_list[0].vlan_list[0].ipv4.address: AS3 \"C\": "
            "\"192.0.2\" is no IP address; left out\n"
            "f:3:98: member_list[0].connection_list[0].vlan_list[0].ipv4.address: 1 address has "
            "no MAC address and is left out, this one first\n");
}

TEST(Ixf, BadEntriesDontLoseOthers) {
  struct {
    std::string bad, warning;
  } const table[] = {
      {R"("ipv4":{"address":"198.51.100.1","mac_addresses":["02:00:00:00:00:01"]})",
       "ipv4.address: AS64501 \"Bad\": 198.51.100.1 is outside of 192.0.2.0/24, "
       "2001:db8:1::/64; left out\n"},
      {R"("ipv4":{"address":"192.0.2.255","mac_addresses":["02:00:00:00:00:01"]})",
       "ipv4.address: AS64501 \"Bad\": 192.0.2.255 is the network's own or broadcast address; "
       "left out\n"},
      {R"("ipv4":{"address":"192.0.2.256","mac_addresses":["02:00:00:00:00:01"]})",
       "ipv4.address: AS64501 \"Bad\": \"192.0.2.256\" is no IP address; left out\n"},
      {R"("ipv4":{"address":["192.0.2.1"],"mac_addresses":["02:00:00:00:00:01"]})",
       "ipv4.address: AS64501 \"Bad\": address is a list; left out\n"},
      {R"("ipv4":{"address":"2001:db8:1::1","mac_addresses":["02:00:00:00:00:01"]})",
       "ipv4.address: AS64501 \"Bad\": 2001:db8:1::1 is no IPv4 address; left out\n"},
      {R"("ipv6":{"address":"192.0.2.1","mac_addresses":["02:00:00:00:00:01"]})",
       "ipv6.address: AS64501 \"Bad\": 192.0.2.1 is no IPv6 address; left out\n"},
      {R"("ipv4":{"address":"192.0.2.1","mac_addresses":["01:00:5e:00:00:01"]})",
       "ipv4.mac_addresses[0]: AS64501 \"Bad\": \"01:00:5e:00:00:01\" is a group address; left "
       "out\n"},
      {R"("ipv4":{"address":"192.0.2.1","mac_addresses":["00:00:00:00:00:00"]})",
       "ipv4.mac_addresses[0]: AS64501 \"Bad\": \"00:00:00:00:00:00\" is the zero address; left "
       "out\n"},
      {R"("ipv4":{"address":"192.0.2.1","mac_addresses":["02:00:00:00:00"]})",
       "ipv4.mac_addresses[0]: AS64501 \"Bad\": \"02:00:00:00:00\" is no MAC address; left out\n"},
      {R"("ipv4":{"address":"192.0.2.1","mac_addresses":[{}]})",
       "ipv4.mac_addresses[0]: AS64501 \"Bad\": MAC address is a mapping; left out\n"},
      {R"("ipv4":{"address":"192.0.2.200","mac_addresses":[]})",
       "ipv4.address: 1 address has no MAC address and is left out, this one first\n"},
  };
  for (const auto& [bad, warning] : table) {
    const std::string got = warnings_beside_good(member("64501", "Bad", bad));
    EXPECT_TRUE(got.starts_with("f:3:")) << got;
    EXPECT_TRUE(got.ends_with(": " + (kEntry + warning))) << got;
    EXPECT_EQ(std::ranges::count(got, '\n'), 1) << got;
  }
}

TEST(Ixf, OneGoodMacIsEnough) {
  const auto members = read_ixf(
      "f",
      with_members(member(
          "1", "A",
          R"("ipv4":{"address":"192.0.2.1","mac_addresses":["x","02:00:00:00:00:01","020000000001"]})")),
      query());
  ASSERT_TRUE(members) << outcome(members);
  EXPECT_THAT(members->bindings.at(0).binding.macs,
              testing::ElementsAre(*net::MacAddress::parse("02:00:00:00:00:01")));
  EXPECT_EQ(members->warnings.size(), 1u);
}

TEST(Ixf, MacsInAnyForm) {
  for (const char* text :
       {"0a:00:00:00:00:0b", "0A-00-00-00-00-0B", "0a00.0000.000b", "0a00-0000-000b",
        "0a00:0000:000b", "0a000000000B", "0a0000-00000b", "a:0:0:0:0:b", " 0a00.0000.000b "}) {
    const auto members =
        read_ixf("f",
                 with_members(member("1", "A",
                                     R"("ipv4":{"address":"192.0.2.1","mac_addresses":[")" +
                                         std::string(text) + R"("]})")),
                 query());
    ASSERT_TRUE(members) << text << outcome(members);
    EXPECT_EQ(to_string(members->bindings.at(0).binding.macs.at(0)), "0a:00:00:00:00:0b") << text;
  }
}

TEST(Ixf, NamesMembersWithoutAsNumber) {
  EXPECT_EQ(warnings_beside_good(R"({"name":"X","connection_list":[]})"),
            "f:3:1: member_list[0]: \"X\": no asnum; left out\n");
  EXPECT_EQ(warnings_beside_good(R"({"asnum":"six","connection_list":[]})"),
            "f:3:10: member_list[0].asnum: a member: asnum is \"six\"; left out\n");
  EXPECT_EQ(warnings_beside_good("7"), "f:3:1: member_list[0]: a member: no asnum; left out\n");
}

TEST(Ixf, OneAddressOfTwoMembers) {
  const std::string entry =
      R"("ipv4":{"address":"192.0.2.1","mac_addresses":["02:00:00:00:00:01"]})";
  const auto members =
      read_ixf("f", with_members(member("64501", "A", entry) + ",\n" + member("64502", "B", entry)),
               query());
  ASSERT_TRUE(members) << outcome(members);
  ASSERT_EQ(members->bindings.size(), 1u);
  EXPECT_EQ(members->bindings[0].binding.member_as.value, 64501u);
  EXPECT_EQ(::text_of(members->warnings),
            "f:4:102: member_list[1].connection_list[0].vlan_list[0].ipv4.address: AS64502 \"B\": "
            "192.0.2.1 is AS64501 \"A\"'s already, line 3; left out\n");
}

TEST(Ixf, OneAddressTwiceOfOneMember) {
  const auto entry = [](const char* mac) {
    return std::string(R"({"vlan_id":1,"ipv4":{"address":"192.0.2.1","mac_addresses":[")") + mac +
           "\"]}}";
  };
  const auto members =
      read_ixf("f",
               with_members(R"({"asnum":1,"name":"A","connection_list":[{"vlan_list":[)" +
                            entry("02:00:00:00:00:01") + ",\n" + entry("02:00:00:00:00:01") +
                            ",\n" + entry("02:00:00:00:00:02") + "]}]}"),
               query());
  ASSERT_TRUE(members) << outcome(members);
  ASSERT_EQ(members->bindings.size(), 1u);
  EXPECT_EQ(members->bindings[0].binding.macs.size(), 2u);
  EXPECT_EQ(::text_of(members->warnings),
            "f:5:32: member_list[0].connection_list[0].vlan_list[2].ipv4.address: AS1 \"A\": "
            "192.0.2.1 is listed in line 3 too with other MAC addresses; all are taken\n");
}

TEST(Ixf, States) {
  const std::string entry =
      R"("ipv4":{"address":"192.0.2.1","mac_addresses":["02:00:00:00:00:01"]})";
  struct {
    const char* state;
    std::size_t bindings, warnings;
  } const table[] = {{"null", 2, 0},          {"\"\"", 2, 0},         {"\"active\"", 2, 0},
                     {"\"Connected\"", 2, 0}, {"\"none\"", 2, 0},     {"\"operational\"", 2, 0},
                     {"\"inactive\"", 1, 0},  {"\"INACTIVE\"", 1, 0}, {"\"quarantine\"", 2, 1}};
  for (const auto& [state, bindings, warnings] : table) {
    const auto members =
        read_ixf("f",
                 with_members(member("64501", "A", entry, std::string("\"state\":") + state) +
                              ",\n" + kGood),
                 query());
    ASSERT_TRUE(members) << outcome(members);
    EXPECT_EQ(members->bindings.size(), bindings) << state;
    EXPECT_EQ(members->warnings.size(), warnings) << state;
  }
}

TEST(Ixf, OtherExchangesAndVlansAreLeftOut) {
  const std::string entry =
      R"("ipv4":{"address":"192.0.2.1","mac_addresses":["02:00:00:00:00:01"]})";
  EXPECT_EQ(warnings_beside_good(member("64501", "A", entry, "\"ixp_id\":2")), "");
  const std::string other_vlan =
      R"({"asnum":64501,"connection_list":[{"vlan_list":[{"vlan_id":2,)" + entry + "}]}]}";
  EXPECT_EQ(warnings_beside_good(other_vlan), "");
  const std::string odd_vlan =
      R"({"asnum":64501,"connection_list":[{"vlan_list":[{"vlan_id":"x",)" + entry + "}]}]}";
  EXPECT_EQ(warnings_beside_good(odd_vlan),
            "f:3:60: member_list[0].connection_list[0].vlan_list[0].vlan_id: AS64501: vlan_id is "
            "\"x\"; left out\n");
}

TEST(Ixf, EntryWithoutVlanIdWhereThereIsOne) {
  const auto members = read_ixf(
      "f",
      with_members(R"({"asnum":1,"connection_list":[{"vlan_list":[{"ipv4":{"address":"192.0.2.1",)"
                   R"("mac_addresses":"02:00:00:00:00:01"}}]}]})"),
      query());
  ASSERT_TRUE(members) << outcome(members);
  EXPECT_EQ(members->bindings.size(), 1u);
}

TEST(Ixf, ChoosesTheVlan) {
  const auto file = [](const std::string& exchanges) {
    return "{\"ixp_list\":[" + exchanges + "],\"member_list\":[" + kGood + "]}";
  };
  const auto exchange = [](int ixp, const std::string& vlans) {
    return "{\"ixp_id\":" + std::to_string(ixp) + ",\"vlan\":[" + vlans + "]}";
  };
  const std::string ours =
      R"({"id":1,"name":"LAN","ipv4":{"prefix":"192.0.2.0","mask_length":24}})";
  const std::string other = R"({"id":2,"ipv4":{"prefix":"198.51.100.0","mask_length":"24"}})";
  const std::string same = R"({"id":3,"ipv4":{"prefix":"192.0.2.0/24"}})";
  const std::string bare = R"({"id":1})";
  const auto refusal = [&](const std::string& exchanges, const IxfQuery& asked) {
    const auto members = read_ixf("f", file(exchanges), asked);
    return members ? "taken" : members.error().front().what;
  };
  EXPECT_EQ(refusal(exchange(1, ours + "," + other), query()), "taken");
  EXPECT_EQ(refusal(exchange(1, ours + "," + other), query(1)), "taken");
  EXPECT_EQ(refusal(exchange(1, bare), query()), "taken");
  EXPECT_EQ(refusal(exchange(1, ours + "," + other), query(9)),
            "no VLAN with the id 9; there are 1 \"LAN\", 2");
  EXPECT_EQ(refusal(exchange(1, ours), query(1, 5)),
            "no VLAN with the id 1 in exchange 5; there are 1 \"LAN\"");
  EXPECT_EQ(refusal(exchange(1, other), query()),
            "no VLAN has one of the prefixes 192.0.2.0/24, 2001:db8:1::/64; there are 2");
  EXPECT_EQ(refusal(exchange(1, ours + "," + same), query()),
            "2 VLANs fit (1 \"LAN\", 3): vlan-id is needed");
  EXPECT_EQ(refusal(exchange(1, ours) + "," + exchange(2, ours), query(1)),
            "2 VLANs fit (1 \"LAN\", 1 \"LAN\"): ixp-id is needed");
  EXPECT_EQ(refusal(exchange(1, ours) + "," + exchange(2, ours), query(1, 1)), "taken");
}

TEST(Ixf, PrefixThatDisagrees) {
  const std::string text =
      "{\"ixp_list\":[{\"vlan\":[{\"id\":1,\"ipv4\":{\n\"prefix\":\"192.0.2.0\",\"mask_length\":25}"
      ","
      "\"ipv6\":{\"prefix\":\"x\"}}]}],\"member_list\":[" +
      kGood + "]}";
  const auto members = read_ixf("f", text, query(1));
  ASSERT_TRUE(members) << outcome(members);
  EXPECT_EQ(::text_of(members->warnings),
            "f:2:57: ixp_list[0].vlan[0].ipv6.prefix: VLAN 1: \"x/\" is no prefix\n"
            "f:2:10: ixp_list[0].vlan[0].ipv4.prefix: VLAN 1 has the prefix 192.0.2.0/25, the "
            "broadcast domain has 192.0.2.0/24, 2001:db8:1::/64\n");
}

TEST(Ixf, UnknownVersionIsAWarning) {
  EXPECT_EQ(read_ixf("f", R"({"version":"2.0","member_list":[]})", query(1)).error().size(), 2u);
}

TEST(Ixf, WarningsAreBounded) {
  std::string many;
  for (int i = 0; i < 300; ++i)
    many += member("64501", "A", R"("ipv4":{"address":"x","mac_addresses":[]})") + ",\n";
  const auto members = read_ixf("f", with_members(many + kGood), query());
  ASSERT_TRUE(members) << outcome(members);
  EXPECT_EQ(members->warnings.size(), 101u);
  EXPECT_EQ(to_string(members->warnings.back()), "f: 200 more warnings");
}
