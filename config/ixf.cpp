// SPDX-License-Identifier: GPL-2.0-or-later
// Import of IX-F member exports: the VLAN first, then members, connections, VLAN entries and
// addresses, each level skipping what is null, missing or of another VLAN.
#include "config/ixf.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <map>

#include "config/export_items.h"
#include "config/report.h"

namespace config {
namespace {

constexpr std::size_t kMostWarnings = 100;

struct Vlan {
  std::optional<uint32_t> ixp_id;
  uint32_t id = 0;
  std::string name;
  struct Prefix {
    net::IpPrefix prefix;
    Place place;
    std::string where;
  };
  std::vector<Prefix> prefixes;
};

class Importer {
 public:
  Importer(const std::string& name, const IxfQuery& query) : name_(name), query_(query) {}

  std::expected<IxfMembers, std::vector<Error>> run(const Node& root) {
    const Item top{&root, ""};
    const Item members = top["member_list"];
    if (!members.is(Node::Kind::List)) {
      return refuse(root.place, "", "not an IX-F member export: no list \"member_list\"");
    }
    if (const Item version = top["version"];
        version && !version.text().starts_with("0.") && !version.text().starts_with("1."))
      warn(version,
           fmt::format("version {} is not known here; read as 1.0", describe(*version.node)));
    read_vlans(top);
    if (!choose_vlan(members)) return std::unexpected(std::move(errors_));
    for (const Item& member : members.each()) read_member(member);
    if (without_mac_ > 0)
      warn(first_without_mac_,
           fmt::format("{} address{} no MAC address and {} left out, this one first", without_mac_,
                       without_mac_ == 1 ? " has" : "es have", without_mac_ == 1 ? "is" : "are"));
    if (result_.bindings.empty())
      return refuse(members.place(), members.where,
                    fmt::format("nothing usable: {} members, {} connections not active, {} "
                                "addresses without MAC address, {} entries refused",
                                members.node->items.size(), inactive_, without_mac_, refused_));
    if (unsaid_ > 0)
      result_.warnings.push_back(make({}, "", fmt::format("{} more warnings", unsaid_)));
    return std::move(result_);
  }

 private:
  Error make(Place place, std::string where, std::string what) const {
    return {.file = name_,
            .line = place.line,
            .column = place.column,
            .where = std::move(where),
            .what = std::move(what)};
  }
  void warn(Place place, const std::string& where, std::string what) {
    if (result_.warnings.size() >= kMostWarnings)
      ++unsaid_;
    else
      result_.warnings.push_back(make(place, where, std::move(what)));
  }
  void warn(const Item& at, std::string what) { warn(at.place(), at.where, std::move(what)); }
  // A warning about an entry of the current member that is left out.
  void skip(const Item& at, const std::string& what) {
    ++refused_;
    warn(at, fmt::format("{}: {}; left out", member_, what));
  }
  // An error comes with the warnings so far: they often say why.
  std::unexpected<std::vector<Error>> refuse(Place place, std::string where, std::string what) {
    std::vector<Error> all{make(place, std::move(where), std::move(what))};
    std::ranges::move(result_.warnings, std::back_inserter(all));
    return std::unexpected(std::move(all));
  }
  std::string prefixes_text() const {
    std::vector<std::string> all;
    for (const auto& prefix : query_.prefixes) all.push_back(net::to_string(prefix));
    return fmt::format("{}", fmt::join(all, ", "));
  }
  bool is_ours(const net::IpPrefix& prefix) const {
    return std::ranges::any_of(query_.prefixes, [&](const net::IpPrefix& ours) {
      return ours.masked() == prefix.masked();
    });
  }

  void read_vlans(const Item& top) {
    for (const Item& ixp : top["ixp_list"].each()) {
      const auto ixp_id = ixp["ixp_id"].number();
      for (const Item& entry : ixp["vlan"].each()) {
        const auto id = entry["id"].number();
        if (!id) continue;
        Vlan vlan{ixp_id, *id, std::string(entry["name"].text()), {}};
        for (const char* family : {"ipv4", "ipv6"}) read_vlan_prefix(entry[family], vlan);
        vlans_.push_back(std::move(vlan));
      }
    }
  }
  void read_vlan_prefix(const Item& entry, Vlan& vlan) {
    const Item at = entry["prefix"];
    if (!at || at.text().empty()) return;
    std::string text(at.text());
    if (text.find('/') == std::string::npos)
      text += fmt::format("/{}", entry["mask_length"].text());
    if (const auto prefix = net::IpPrefix::parse(text))
      vlan.prefixes.push_back({*prefix, at.place(), at.where});
    else
      warn(at, fmt::format("VLAN {}: {} is no prefix", vlan.id, quote(text)));
  }
  bool has_our_prefix(const Vlan& vlan) const {
    return std::ranges::any_of(vlan.prefixes, [&](const auto& p) { return is_ours(p.prefix); });
  }
  std::string vlans_text() const {
    std::vector<std::string> all;
    for (const Vlan& vlan : vlans_)
      all.push_back(fmt::format("{}{}{}", vlan.id, vlan.name.empty() ? "" : " ",
                                vlan.name.empty() ? "" : quote(vlan.name)));
    return fmt::format("{}", fmt::join(all, ", "));
  }

  bool choose_vlan(const Item& at) {
    const auto error = [&](std::string what) {
      errors_.push_back(make(at.place(), "", std::move(what)));
      return false;
    };
    ixp_id_ = query_.ixp_id;
    if (vlans_.empty()) {
      if (!query_.vlan_id) return error("the export describes no VLAN: vlan-id is needed");
      vlan_id_ = *query_.vlan_id;
      return true;
    }
    std::vector<const Vlan*> fit;
    for (const Vlan& vlan : vlans_)
      if ((!query_.vlan_id || vlan.id == *query_.vlan_id) &&
          (!query_.ixp_id || !vlan.ixp_id || vlan.ixp_id == query_.ixp_id))
        fit.push_back(&vlan);
    if (fit.empty())
      return error(fmt::format("no VLAN with the id {}{}; there are {}",
                               query_.vlan_id ? std::to_string(*query_.vlan_id) : "asked for",
                               query_.ixp_id ? fmt::format(" in exchange {}", *query_.ixp_id) : "",
                               vlans_text()));
    const bool only_bare = fit.size() == 1 && fit.front()->prefixes.empty();
    if ((!query_.vlan_id && !only_bare) || fit.size() > 1)
      std::erase_if(fit, [&](const Vlan* vlan) { return !has_our_prefix(*vlan); });
    if (fit.empty())
      return error(fmt::format("no VLAN has one of the prefixes {}; there are {}", prefixes_text(),
                               vlans_text()));
    if (fit.size() > 1)
      return error(fmt::format("{} VLANs fit ({}): {} is needed", fit.size(), vlans_text(),
                               query_.vlan_id ? "ixp-id" : "vlan-id"));
    vlan_id_ = fit.front()->id;
    if (fit.front()->ixp_id) ixp_id_ = fit.front()->ixp_id;
    for (const auto& prefix : fit.front()->prefixes)
      if (!is_ours(prefix.prefix))
        warn(prefix.place, prefix.where,
             fmt::format("VLAN {} has the prefix {}, the broadcast domain has {}", vlan_id_,
                         net::to_string(prefix.prefix), prefixes_text()));
    return true;
  }

  void read_member(const Item& member) {
    std::string_view asn = member["asnum"].text();
    if (asn.size() > 2 && equals_ignoring_case(asn.substr(0, 2), "AS")) asn.remove_prefix(2);
    uint32_t as_number = 0;
    const auto [end, error] = std::from_chars(asn.data(), asn.data() + asn.size(), as_number);
    const std::string_view name = member["name"].text();
    if (asn.empty() || error != std::errc{} || end != asn.data() + asn.size() || as_number == 0) {
      member_ = name.empty() ? std::string("a member") : quote(name);
      const Item at = member["asnum"];
      skip(at ? at : member,
           at ? fmt::format("asnum is {}", describe(*at.node)) : std::string("no asnum"));
      return;
    }
    member_ = fmt::format("AS{}{}{}", as_number, name.empty() ? "" : " ",
                          name.empty() ? "" : quote(name));
    ++member_number_;
    for (const Item& connection : member["connection_list"].each()) {
      const auto ixp_id = connection["ixp_id"].number();
      if (ixp_id_ && ixp_id && *ixp_id != *ixp_id_) continue;
      if (!is_active(connection["state"])) {
        ++inactive_;
        continue;
      }
      for (const Item& entry : connection["vlan_list"].each())
        if (is_our_vlan(entry)) {
          const proxyarp::StaticBinding made{
              {}, {}, "", net::AsNumber(as_number), std::string(name)};
          for (const Item& item : entry["ipv4"].each()) read_address(item, true, made);
          for (const Item& item : entry["ipv6"].each()) read_address(item, false, made);
        }
    }
  }

  // The schema leaves the state free; what is said to be off is off, the rest is on.
  bool is_active(const Item& state) {
    const std::string_view text = state.text();
    if (equals_ignoring_case(text, "inactive")) return false;
    for (const char* known : {"", "none", "active", "connected", "operational"})
      if (equals_ignoring_case(text, known)) return true;
    warn(state,
         fmt::format("{}: state {} is not known here; taken as active", member_, quote(text)));
    return true;
  }

  bool is_our_vlan(const Item& entry) {
    const Item at = entry["vlan_id"];
    if (!at) {
      if (vlans_.size() == 1) return true;
      skip(entry, "no vlan_id, and more than one VLAN it could be");
      return false;
    }
    const auto id = at.number();
    if (!id) skip(at, fmt::format("vlan_id is {}", describe(*at.node)));
    return id == vlan_id_;
  }

  void read_address(const Item& item, bool v4, proxyarp::StaticBinding binding) {
    const Item at = item["address"];
    std::string_view text = at.text();
    if (at && !at.is(Node::Kind::Scalar))
      return skip(at, fmt::format("address is {}", describe(*at.node)));
    if (text.empty()) return;  // no address of this family
    const std::string whole(text);
    text = text.substr(0, text.find('/'));
    const auto address = net::IpAddress::parse(text);
    if (!address) return skip(at, fmt::format("{} is no IP address", quote(whole)));
    if (address->is_v4() != v4)
      return skip(at, fmt::format("{} is no IPv{} address", whole, v4 ? 4 : 6));
    const auto prefix = std::ranges::find_if(
        query_.prefixes, [&](const net::IpPrefix& p) { return p.contains(*address); });
    if (prefix == query_.prefixes.end())
      return skip(at, fmt::format("{} is outside of {}", whole, prefixes_text()));
    if (prefix->is_network_or_broadcast(*address))
      return skip(at, fmt::format("{} is the network's own or broadcast address", whole));
    binding.ip = *address;
    const bool all_good = read_macs(item, binding.macs);
    if (binding.macs.empty()) {
      if (!all_good) return;  // said already
      if (without_mac_++ == 0) first_without_mac_ = at;
      return;
    }
    add(at, item, std::move(binding));
  }

  // False when one was refused.
  bool read_macs(const Item& item, std::vector<net::MacAddress>& macs) {
    bool good = true;
    for (const char* key : {"mac_addresses", "mac_address"})
      for (const Item& at : item[key].each()) {
        std::string_view text = at.text();
        if (!at.is(Node::Kind::Scalar)) {
          skip(at, fmt::format("MAC address is {}", describe(*at.node)));
          good = false;
        }
        while (!text.empty()) {  // several in one text occur
          const std::size_t length = std::min(text.find_first_of(",; \t"), text.size());
          if (length > 0) good = read_mac(at, text.substr(0, length), macs) && good;
          text.remove_prefix(std::min(length + 1, text.size()));
        }
      }
    return good;
  }
  bool read_mac(const Item& at, std::string_view text, std::vector<net::MacAddress>& macs) {
    const auto mac = parse_any_mac(text);
    if (!mac || !mac->is_unicast()) {
      skip(at, fmt::format("{} {}", quote(text),
                           !mac             ? "is no MAC address"
                           : mac->is_zero() ? "is the zero address"
                                            : "is a group address"));
      return false;
    }
    if (std::ranges::find(macs, *mac) == macs.end()) macs.push_back(*mac);
    return true;
  }

  void add(const Item& at, const Item& item, proxyarp::StaticBinding binding) {
    const auto [seen, fresh] =
        by_address_.emplace(binding.ip, Seen{result_.bindings.size(), member_number_, member_});
    if (fresh) {
      result_.bindings.push_back(
          {std::move(binding), at.place().line, at.place().column, item.where});
      return;
    }
    IxfBinding& first = result_.bindings[seen->second.index];
    if (seen->second.member_number != member_number_)
      return skip(at, fmt::format("{} is {}'s already, line {}", net::to_string(binding.ip),
                                  seen->second.member, first.line));
    // Once for each connection of a member, say: all its MACs are good.
    bool more = false;
    for (const auto& mac : binding.macs)
      if (std::ranges::find(first.binding.macs, mac) == first.binding.macs.end()) {
        first.binding.macs.push_back(mac);
        more = true;
      }
    if (more)
      warn(at,
           fmt::format("{}: {} is listed in line {} too with other MAC addresses; all are taken",
                       member_, net::to_string(binding.ip), first.line));
  }

  struct Seen {
    std::size_t index = 0;
    std::size_t member_number = 0;
    std::string member;
  };

  const std::string& name_;
  const IxfQuery& query_;
  std::vector<Vlan> vlans_;
  std::optional<uint32_t> ixp_id_;
  uint32_t vlan_id_ = 0;
  std::string member_;  // "AS64501 \"Alpha Net\""
  std::size_t member_number_ = 0;
  std::map<net::IpAddress, Seen> by_address_;
  std::size_t without_mac_ = 0, inactive_ = 0, refused_ = 0, unsaid_ = 0;
  Item first_without_mac_;
  IxfMembers result_;
  std::vector<Error> errors_;
};

}  // namespace

std::expected<IxfMembers, std::vector<Error>> read_ixf(const std::string& name,
                                                       std::string_view json,
                                                       const IxfQuery& query) {
  const auto root = parse_json(name, json);
  if (!root) return std::unexpected(std::vector{root.error()});
  return Importer(name, query).run(**root);
}

}  // namespace config
