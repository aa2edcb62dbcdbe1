// SPDX-License-Identifier: GPL-2.0-or-later
// The VLAN first, then the interfaces, their VLANs, addresses and MACs. What the provisioner's
// documents mean beyond their form:
//  - a LAG comes as one row with `lagmaster: true` and its members behind it with false: the
//    members say nothing of their own;
//  - no MAC address means that nobody may send, not that anybody may;
//  - a port that is shut down or in quarantine has no addresses on the LAN.
#include "config/ixp_manager.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "config/export_items.h"
#include "config/report.h"

namespace config {
namespace {

constexpr std::size_t kMostWarnings = 100;

using Failed = std::unexpected<std::vector<Error>>;

Error make(const std::string& file, Place place, std::string where, std::string what) {
  return {.file = file,
          .line = place.line,
          .column = place.column,
          .where = std::move(where),
          .what = std::move(what)};
}

// JSON or YAML: a JSON text begins with a bracket.
std::expected<NodePtr, Error> parse(const IxpManagerFile& file) {
  const auto first = file.text.find_first_not_of(" \t\r\n\xef\xbb\xbf");
  if (first != std::string_view::npos && (file.text[first] == '{' || file.text[first] == '['))
    return parse_json(file.name, file.text);
  return parse_yaml(file.name, std::string(file.text));
}

bool is_true(const Item& item) { return item.text() == "true" || item.text() == "1"; }

class Importer {
 public:
  explicit Importer(const IxpManagerQuery& query) : query_(query) {}

  std::expected<IxpManagerMembers, std::vector<Error>> run() {
    const auto root = parse(query_.interfaces);
    if (!root) return Failed(std::vector{root.error()});
    const Item top{root->get(), ""};
    const Item interfaces = top["layer2interfaces"];
    if (!interfaces.is(Node::Kind::List))
      return refuse((*root)->place, "",
                    "not of IXP Manager's provisioner: no list \"layer2interfaces\"");
    if (auto chosen = choose_vlan(interfaces); !chosen) return Failed(std::move(chosen.error()));
    if (query_.configured_macs)
      if (auto read = read_configured_macs(*query_.configured_macs); !read)
        return Failed(std::move(read.error()));
    find_lags(interfaces);
    for (const Item& one : interfaces.each()) read_interface(one);
    if (closed_ > 0)
      warn(first_closed_, fmt::format("{} interface{} shut down or in quarantine and left out, "
                                      "this one first",
                                      closed_, closed_ == 1 ? " is" : "s are"));
    if (without_mac_ > 0)
      warn(first_without_mac_,
           fmt::format("{} address{} no MAC address and {} left out, this one first", without_mac_,
                       without_mac_ == 1 ? " has" : "es have", without_mac_ == 1 ? "is" : "are"));
    if (result_.bindings.empty())
      return refuse(
          interfaces.place(), interfaces.where,
          fmt::format("nothing usable on VLAN {}: {} interfaces, {} not in use, {} "
                      "addresses without MAC address, {} entries refused",
                      tag_, interfaces.node->items.size(), closed_, without_mac_, refused_));
    if (unsaid_ > 0)
      result_.warnings.push_back(
          make(query_.interfaces.name, {}, "", fmt::format("{} more warnings", unsaid_)));
    return std::move(result_);
  }

 private:
  void warn(const Item& at, std::string what) {
    if (result_.warnings.size() >= kMostWarnings)
      ++unsaid_;
    else
      result_.warnings.push_back(
          make(query_.interfaces.name, at.place(), at.where, std::move(what)));
  }
  void skip(const Item& at, const std::string& what) {
    ++refused_;
    warn(at, fmt::format("{}: {}; left out", who_, what));
  }
  // An error comes with the warnings so far: they often say why.
  Failed refuse(Place place, std::string where, std::string what) {
    std::vector<Error> all{make(query_.interfaces.name, place, std::move(where), std::move(what))};
    std::ranges::move(result_.warnings, std::back_inserter(all));
    return Failed(std::move(all));
  }
  bool inside(const net::IpAddress& address) const {
    return std::ranges::any_of(query_.prefixes,
                               [&](const net::IpPrefix& p) { return p.contains(address); });
  }
  std::string prefixes_text() const {
    std::vector<std::string> all;
    for (const auto& prefix : query_.prefixes) all.push_back(net::to_string(prefix));
    return fmt::format("{}", fmt::join(all, ", "));
  }

  // --- the VLAN
  std::expected<void, std::vector<Error>> choose_vlan(const Item& interfaces) {
    const auto failed = [&](std::string what) {
      return Failed({make(query_.interfaces.name, interfaces.place(), "", std::move(what))});
    };
    std::set<uint32_t> all, fit;
    for (const Item& one : interfaces.each())
      for (const Item& vlan : one["vlans"].each()) {
        const auto tag = vlan["number"].number();
        if (!tag) continue;
        all.insert(*tag);
        for (const char* family : {"ipv4", "ipv6"})
          if (const auto address = address_of(vlan["ipaddresses"][family]);
              address && inside(*address))
            fit.insert(*tag);
      }
    if (!query_.vlan.empty()) {
      auto named = named_vlan();
      if (!named) return std::unexpected(std::move(named.error()));
      if (!all.contains(*named))
        return failed(fmt::format("no interface has VLAN {}; there are {}", query_.vlan,
                                  fmt::join(all, ", ")));
      tag_ = *named;
      return {};
    }
    if (fit.empty())
      return failed(fmt::format("no VLAN has addresses in the prefixes {}; there are {}",
                                prefixes_text(), fmt::join(all, ", ")));
    if (fit.size() > 1)
      return failed(fmt::format("{} VLANs have addresses in the prefixes ({}): vlan is needed",
                                fit.size(), fmt::join(fit, ", ")));
    tag_ = *fit.begin();
    return {};
  }

  // A tag, or the name of one in the list of VLANs.
  std::expected<uint32_t, std::vector<Error>> named_vlan() {
    uint32_t tag = 0;
    const char* end = query_.vlan.data() + query_.vlan.size();
    if (const auto [at, error] = std::from_chars(query_.vlan.data(), end, tag);
        error == std::errc{} && at == end)
      return tag;
    if (!query_.vlans)
      return Failed({make(
          query_.interfaces.name, {}, "",
          fmt::format("VLAN {} is a name: the file \"vlans\" is needed", quote(query_.vlan)))});
    const auto root = parse(*query_.vlans);
    if (!root) return Failed({root.error()});
    const Item list = Item{root->get(), ""}["vlans"];
    std::vector<std::string> names;
    for (const Item& vlan : list.each())
      for (const char* key : {"name", "config_name"}) {
        const std::string_view name = vlan[key].text();
        if (name.empty()) continue;
        if (name == query_.vlan)
          if (const auto number = vlan["tag"].number()) return *number;
        names.emplace_back(name);
      }
    return Failed(
        {make(query_.vlans->name, (*root)->place, "vlans",
              fmt::format("no VLAN {}{}", quote(query_.vlan), did_you_mean(query_.vlan, names)))});
  }

  // {infrastructure: {tag: {"aabbccddeeff": VLAN interface}}}
  std::expected<void, std::vector<Error>> read_configured_macs(const IxpManagerFile& file) {
    const auto root = parse(file);
    if (!root) return Failed({root.error()});
    const auto failed = [&](const Item& at) {
      return Failed({make(file.name, at ? at.place() : (*root)->place, at.where,
                          "not IXP Manager's configured-macs: expected a mapping")});
    };
    const Item top{root->get(), ""};
    if (!top.is(Node::Kind::Map)) return failed(top);
    for (const Key& infrastructure : top.node->keys) {
      const Item vlans = top[infrastructure.text];
      if (!vlans.is(Node::Kind::Map)) return failed(vlans);
      const Item macs = vlans[std::to_string(tag_)];
      if (!macs.is(Node::Kind::Map)) continue;
      for (std::size_t i = 0; i < macs.node->keys.size(); ++i) {
        const auto mac = parse_any_mac(macs.node->keys[i].text);
        const Item id{macs.node->items[i].get(),
                      fmt::format("{}.{}", macs.where, macs.node->keys[i].text)};
        if (mac && mac->is_unicast() && !id.text().empty()) {
          configured_[std::string(id.text())].push_back(*mac);
          continue;
        }
        ++refused_;
        if (result_.warnings.size() < kMostWarnings)
          result_.warnings.push_back(
              make(file.name, id.place(), id.where,
                   fmt::format("{} {}; left out", quote(macs.node->keys[i].text),
                               mac && mac->is_unicast() ? "has no VLAN interface"
                                                        : "is no MAC address of a host")));
      }
    }
    return {};
  }

  // --- interfaces
  void find_lags(const Item& interfaces) {
    for (const Item& one : interfaces.each()) {
      if (!is_true(one["lagmaster"])) continue;
      if (const auto id = one["virtualinterfaceid"].number()) lags_.insert(*id);
      for (const Item& member : one["lagmembers"].each()) lag_members_.emplace(member.text());
    }
  }
  bool is_lag_member(const Item& one) const {
    if (is_true(one["lagmaster"])) return false;
    const auto id = one["virtualinterfaceid"].number();
    return (id && lags_.contains(*id)) || lag_members_.contains(std::string(one["name"].text()));
  }

  void read_interface(const Item& one) {
    if (one["type"] && !equals_ignoring_case(one["type"].text(), "edge")) return;
    if (is_lag_member(one)) return;
    const std::string name(one["name"].text());
    for (const Item& vlan : one["vlans"].each()) {
      if (vlan["number"].number() != tag_) continue;
      who_ = name.empty() ? std::string("an interface") : quote(name);
      const std::string description(one["description"].text());
      if (!description.empty()) who_ += " (" + description + ")";
      if (is_true(one["shutdown"]) || equals_ignoring_case(one["status"].text(), "quarantine") ||
          equals_ignoring_case(one["status"].text(), "disabled")) {
        if (closed_++ == 0) first_closed_ = one;
        if (!name.empty())
          result_.ports.emplace(
              name, ExportedPort{{}, vlan.place().line, vlan.place().column, vlan.where, true});
        continue;
      }
      read_vlan(vlan, name, description);
    }
  }

  void read_vlan(const Item& vlan, const std::string& name, const std::string& description) {
    std::vector<net::MacAddress> macs;
    for (const char* key : {"macaddresses", "mac_addresses"})
      for (const Item& at : vlan[key].each()) add_mac(at, macs);
    if (const auto more = configured_.find(std::string(vlan["vlaninterfaceid"].text()));
        more != configured_.end())
      for (const auto& mac : more->second)
        if (std::ranges::find(macs, mac) == macs.end()) macs.push_back(mac);
    if (!macs.empty() && !name.empty())
      result_.ports.emplace(
          name, ExportedPort{macs, vlan.place().line, vlan.place().column, vlan.where, false});
    for (const char* family : {"ipv4", "ipv6"}) {
      const Item at = vlan["ipaddresses"][family];
      if (at.text().empty()) continue;
      read_address(at, family[3] == '4', {{}, macs, name, net::AsNumber(0), description});
    }
  }

  void add_mac(const Item& at, std::vector<net::MacAddress>& macs) {
    const auto mac = parse_any_mac(at.text());
    if (!mac || !mac->is_unicast())
      return skip(at, fmt::format("{} is {}", describe(*at.node),
                                  !mac             ? "no MAC address"
                                  : mac->is_zero() ? "the zero address"
                                                   : "a group address"));
    if (std::ranges::find(macs, *mac) == macs.end()) macs.push_back(*mac);
  }

  static std::optional<net::IpAddress> address_of(const Item& at) {
    const std::string_view text = at.text();
    return net::IpAddress::parse(text.substr(0, text.find('/')));
  }

  void read_address(const Item& at, bool v4, proxyarp::StaticBinding binding) {
    const auto address = address_of(at);
    if (!address) return skip(at, fmt::format("{} is no IP address", describe(*at.node)));
    const std::string text = net::to_string(*address);
    if (address->is_v4() != v4)
      return skip(at, fmt::format("{} is no IPv{} address", text, v4 ? 4 : 6));
    const auto prefix = std::ranges::find_if(
        query_.prefixes, [&](const net::IpPrefix& p) { return p.contains(*address); });
    if (prefix == query_.prefixes.end())
      return skip(at, fmt::format("{} is outside of {}", text, prefixes_text()));
    if (prefix->is_network_or_broadcast(*address))
      return skip(at, fmt::format("{} is the network's own or broadcast address", text));
    if (binding.macs.empty()) {
      if (without_mac_++ == 0) first_without_mac_ = at;
      return;
    }
    const auto [seen, fresh] = owners_.emplace(*address, std::pair(who_, at.place().line));
    if (!fresh)
      return skip(at, fmt::format("{} is {}'s already, line {}", text, seen->second.first,
                                  seen->second.second));
    binding.ip = *address;
    result_.bindings.push_back({std::move(binding), at.place().line, at.place().column, at.where});
  }

  const IxpManagerQuery& query_;
  uint32_t tag_ = 0;
  std::string who_;                                                 // "\"swp1\" (Alpha Net)"
  std::map<std::string, std::vector<net::MacAddress>> configured_;  // by VLAN interface
  std::map<net::IpAddress, std::pair<std::string, int>> owners_;
  std::set<uint32_t> lags_;            // virtual interfaces that are one
  std::set<std::string> lag_members_;  // names
  std::size_t closed_ = 0, without_mac_ = 0, refused_ = 0, unsaid_ = 0;
  Item first_closed_, first_without_mac_;
  IxpManagerMembers result_;
};

}  // namespace

std::expected<IxpManagerMembers, std::vector<Error>> read_ixp_manager(
    const IxpManagerQuery& query) {
  return Importer(query).run();
}

}  // namespace config
